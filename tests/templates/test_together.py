"""Packages live together: with runtimes of other versions, with each other, and with other versions of themselves."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from generated_package import LANGUAGES, ROOT, TEMPLATES, Project

Generate = Callable[..., Project]

ROLLOUT = """
import hashlib, sys
import numpy as np
import envpool_sdk

def rollout(task_id):
    digest = hashlib.sha256()
    with envpool_sdk.make(task_id, num_envs=4, seed=5) as envs:
        envs.reset()
        rng = np.random.default_rng(3)
        for _ in range(400):
            obs, reward, terminated, truncated, info = envs.step(rng.integers(5, size=4))
            for array in (obs, reward, terminated, truncated, info["coins"]):
                digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
"""

APPENDED = [  # a struct, and what a later minor might append to it
    ("ep_field", "const char* later;"),
    ("ep_option", "int64_t later[4];"),
    ("ep_spec", "int64_t later;"),
    ("ep_host", "void(EP_CALL* later)(const struct ep_host* host);"),
    ("ep_input", "int64_t later;"),
    ("ep_result", "double* later;"),
    ("ep_view", "void* const* later;"),
    ("ep_reset", "uint64_t later;"),
    ("ep_create", "uint64_t later;"),
    ("ep_task", "ep_status(EP_CALL* later)(void* env);"),
    ("ep_plugin", "const char* later;"),
]


def of_a_later_minor(header: str) -> str:
    """env.h as a later release might have it: a member more in every struct that may grow, the minor one higher."""
    for struct, member in APPENDED:
        # ep_host is declared before it is defined; the others end with their names.
        begin = header.index(f"struct {struct} {{")
        end = header.index("\n}", begin)
        header = f"{header[:end]}\n  {member}{header[end:]}"
    header, changed = re.subn(r"#define EP_ABI_MINOR 0\b", "#define EP_ABI_MINOR 1", header)
    assert changed == 1
    return header


@pytest.mark.parametrize("language", [pytest.param("cpp", marks=pytest.mark.full), "c"])
def test_built_with_a_later_header(generate: Generate, language: str) -> None:
    """Built against another checkout's header, whose structs have members more, it runs here, and alike."""
    project = generate(language)
    project.install()
    program = ROLLOUT + "print(rollout('GridChase-v0'))"
    expected = project.must(["python", "-W", "error", "-c", program])
    header = project.path / "sdk/include/envpool/env.h"
    header.write_text(of_a_later_minor(header.read_text()))
    project.install("--force-reinstall")
    assert project.must(["python", "-W", "error", "-c", program]) == expected


def test_every_growing_struct_has_grown() -> None:
    header = (ROOT / "sdk/include/envpool/env.h").read_text()
    growing = set(re.findall(r"struct (ep_\w+) \{\n  uint32_t size;", header))
    assert growing == {struct for struct, _ in APPENDED}


def test_same_names_and_other_versions(generate: Generate, tmp_path: Path) -> None:
    """All packages have a class Env and a class Game: each uses its own. So do two versions of one library."""
    slow = generate("cpp", project_name="Slow")
    fast = generate("cpp", project_name="Fast", action="continuous")
    later = generate("cpp", project_name="Later")
    game = later.path / "src/game.hpp"
    game.write_text(game.read_text().replace("std::int32_t coins = 0;", "std::int32_t coins = 0, padding[100] = {1};"))
    look = later.path / "src/env.cpp"
    look.write_text(look.read_text().replace("v.put(f.coins, p.coins)", "v.put(f.coins, p.coins + 41)"))
    libraries = []
    for project in (slow, fast, later):
        project.install()
        libraries.append(str(project.library))
    # The same version of the library under two file names: two plugins can't offer one id, so the copy has another.
    copied = tmp_path / "copy.so"
    copied.write_bytes(Path(libraries[0]).read_bytes().replace(b"Slow-v0", b"Copy-v0"))
    program = (
        ROLLOUT
        + f"""
for path in {[*libraries, str(copied)]}:
    envpool_sdk.load_plugin(path)
slow = rollout("Slow-v0")
assert rollout("Copy-v0") == slow
made = [envpool_sdk.make(name, seed=1) for name in ("Slow-v0", "Fast-v0", "Later-v0", "Copy-v0")]
for envs in made:
    envs.reset()
coins = [envs.step(np.stack([envs.action_space.sample()]))[4]["coins"][0] for envs in made]
assert coins == [0, 0, 41, 0], coins
for envs in made:
    envs.close()
assert rollout("Slow-v0") == slow
"""
    )
    slow.must(["python", "-W", "error", "-c", program])


@pytest.mark.full
def test_three_languages_one_game(generate: Generate) -> None:
    """The templates are the same game: the same seed and actions give the same bits."""
    seen = {}
    for language in LANGUAGES:
        project = generate(language, project_name=f"In {language}", env_id="Chase-v0")
        project.install()
        seen[language] = project.must(["python", "-W", "error", "-c", ROLLOUT + "print(rollout('Chase-v0'))"])
    assert seen["cpp"] == seen["c"] == seen["rust"]


def test_rust_bindings_are_env_h(tmp_path: Path) -> None:
    """Sizes, offsets, types' widths and values in abi.rs are those that tests/native/test_layout.c pins for env.h."""
    rustc = shutil.which("rustc")
    if rustc is None:
        pytest.skip("there is no rustc")
    pinned = (ROOT / "tests/native/test_layout.c").read_text()
    lines = []
    for struct, size in re.findall(r"^SIZE\((\w+), (\d+)\);", pinned, re.M):
        lines.append(f'same("size of {struct}", std::mem::size_of::<{struct}>() as i128, {size});')
    for struct, member, offset in re.findall(r"^AT\((\w+), (\w+), (\d+)\);", pinned, re.M):
        name = f"r#{member}" if member in ("type", "in") else member
        lines.append(f"at!({struct}, {name}, {offset});")
    for constant, value in re.findall(r"^IS\((\w+), (.+)\);", pinned, re.M):
        value = re.sub(r"UINT64_C\((\d+)\)", r"\1", value)
        lines.append(f'same("{constant}", {constant} as i128, {value});')
    for constant, value in re.findall(r'strcmp\((\w+), ("[^"]+")\)', pinned):
        lines.append(f"assert_eq!({constant}, {value});")
    assert len(lines) > 200
    [bindings] = TEMPLATES.glob("rust/*/src/envpool/abi.rs")
    checks = "\n    ".join(lines)
    (tmp_path / "main.rs").write_text(
        f"""#[path = "{bindings}"]
mod abi;
use abi::*;
fn same(what: &str, seen: i128, pinned: i128) {{
    assert_eq!(seen, pinned, "{{what}}");
}}
macro_rules! at {{
    ($type:ty, $member:ident, $offset:expr) => {{
        let value = std::mem::MaybeUninit::<$type>::uninit();
        let start = value.as_ptr();
        let member = unsafe {{ std::ptr::addr_of!((*start).$member) }};
        same(stringify!($type.$member), member as i128 - start as i128, $offset);
    }};
}}
fn main() {{
    {checks}
}}
"""
    )
    for command in ([rustc, "--edition", "2021", "main.rs"], [tmp_path / "main"]):
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
