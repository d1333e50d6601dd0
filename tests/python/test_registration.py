"""How tasks become known: engine packages, ENVPOOL_PLUGIN_PATH, load_plugin; what broken ones do; import and exit."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest

import envpool_sdk

Run = Callable[..., subprocess.CompletedProcess[str]]

MANIFEST = """
from envpool_sdk.manifest import Manifest, TaskManifest

def manifest():
    return Manifest(
        name={name!r},
        library={library!r},
        abi={abi!r},
        tasks=(
            TaskManifest(
                "CartPole-v1",
                max_episode_steps=500,
                reward_threshold=475.0,
                defaults={{"gravity": 5.0, "frame_skip": 2}},
                aliases=("Cart-v1",),
            ),
        ),
    )
"""


@pytest.fixture
def install(tmp_path: Path, plugins: Path) -> Callable[..., str]:
    """Installs an engine package into a directory, which it gives back for PYTHONPATH."""

    def install(name: str = "engine", code: str = MANIFEST, **values: object) -> str:
        values = {"name": name, "library": str(plugins / "cartpole_cpp.so"), "abi": (1, 0)} | values
        package = tmp_path / f"envpool_{name}"
        package.mkdir()
        (package / "__init__.py").write_text("import envpool_sdk\n")
        (package / "plugin.py").write_text(code.format(**values))
        info = tmp_path / f"envpool_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: envpool-{name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[envpool_sdk.plugins]\n{name} = envpool_{name}.plugin:manifest\n")
        return str(tmp_path)

    return install


# ---- engine packages ----


def test_packages_are_found_but_not_loaded(install: Callable[..., str], run_python: Run) -> None:
    done = run_python(
        """
import envpool_sdk, gymnasium
def loaded():
    return "cartpole_cpp" in open("/proc/self/maps").read()
assert "CartPole-v1" in envpool_sdk.list_all_envs() and "Cart-v1" in envpool_sdk.list_all_envs()
spec = gymnasium.spec("envpool/CartPole-v1")
assert (spec.max_episode_steps, spec.reward_threshold, spec.nondeterministic) == (500, 475.0, False)
assert not loaded()
env = envpool_sdk.make("envpool/Cart-v1")
assert loaded()
assert (env.config["gravity"], env.config["frame_skip"]) == (5.0, 2), env.config
assert envpool_sdk.make("Cart-v1", gravity=1.0).config["gravity"] == 1.0
assert gymnasium.make("envpool/Cart-v1").unwrapped.spec.id == "envpool/Cart-v1"
assert gymnasium.make_vec("envpool/Cart-v1", num_envs=2).spec.config.gravity == 5.0
""",
        PYTHONPATH=install(),
        PYTHONWARNINGS="error",
    )
    assert done.returncode == 0, done.stderr


def test_a_package_may_be_imported_first(install: Callable[..., str], run_python: Run) -> None:
    done = run_python(
        "import envpool_engine, envpool_sdk; envpool_sdk.make('CartPole-v1')",
        PYTHONPATH=install(),
        PYTHONWARNINGS="error",
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ({"code": "raise RuntimeError('no such engine')"}, "RuntimeError: no such engine"),
        ({"code": "import not_there"}, "No module named 'not_there'"),
        ({"code": "manifest = None"}, "TypeError"),
        ({"code": "def manifest(): return 3"}, "AttributeError"),
        ({"library": "/nowhere/engine.so"}, "/nowhere/engine.so"),
        ({"library": "engine.so"}, "'engine.so' is not the absolute path"),
        ({"abi": (2, 0)}, "built for ABI 2.0"),
        ({"abi": (1, 99)}, "built for ABI 1.99"),
    ],
)
def test_a_broken_package_is_one_warning(
    install: Callable[..., str], run_python: Run, broken: dict[str, object], reason: str
) -> None:
    install("broken", **broken)
    done = run_python(
        """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import envpool_sdk
[one] = [str(w.message) for w in caught if "envpool" in str(w.message)]
print(one)
envpool_sdk.make("CartPole-v1")
""",
        PYTHONPATH=install("sound"),
    )
    assert done.returncode == 0, done.stderr
    assert "envpool-broken" in done.stdout
    assert reason in done.stdout


def test_a_manifest_that_promises_too_much(install: Callable[..., str], plugins: Path, run_python: Run) -> None:
    done = run_python(
        """
import envpool_sdk
try:
    envpool_sdk.make("CartPole-v1")
except envpool_sdk.PluginError as error:
    print(error)
""",
        PYTHONPATH=install(library=str(plugins / "multi_agent.so")),
    )
    assert "has no task 'CartPole-v1'" in done.stdout
    assert "Pursuit-v0" in done.stdout


def test_two_packages_with_one_id(install: Callable[..., str], plugins: Path, run_python: Run) -> None:
    install("first")
    done = run_python("import envpool_sdk", PYTHONPATH=install("second", library=str(plugins / "cartpole_c.so")))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("are not available") == 1
    assert "cartpole_c.so" in done.stderr
    assert "cartpole_cpp.so" in done.stderr
    assert "'CartPole-v1'" in done.stderr


def test_lazy_assets(plugins: Path) -> None:
    calls = []

    def assets() -> dict[str, str]:
        calls.append(1)
        return {"rom": "/tmp/rom"}

    manifest = envpool_sdk.Manifest(
        name="lazy",
        library=str(plugins / "kitchen_sink.so"),
        abi=(1, 0),
        tasks=(envpool_sdk.TaskManifest("Lazy-v0"),),
        assets=assets,
    )
    assert envpool_sdk.register(manifest) == ("Lazy-v0",)
    assert envpool_sdk.register(manifest) == ("Lazy-v0",)  # again: nothing happens
    assert calls == []


# ---- ENVPOOL_PLUGIN_PATH ----


def test_plugin_path(plugins: Path, tmp_path: Path, run_python: Run) -> None:
    shutil.copy(plugins / "multi_agent.so", tmp_path)
    (tmp_path / "junk.so").write_text("no library")
    (tmp_path / "junk.txt").write_text("not looked at")
    path = os.pathsep.join([str(tmp_path), str(plugins / "cartpole_c.so"), "", "/nowhere"])
    done = run_python(
        """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import envpool_sdk
texts = sorted(str(w.message) for w in caught if "ENVPOOL_PLUGIN_PATH" in str(w.message))
assert len(texts) == 2, texts
assert "/nowhere" in texts[0] and "junk.so" in texts[1], texts
envpool_sdk.make("CartPole-v1").reset()
envpool_sdk.make("Pursuit-v0").reset()
""",
        ENVPOOL_PLUGIN_PATH=path,
    )
    assert done.returncode == 0, done.stderr


# ---- load_plugin ----


def test_load_plugin(plugins: Path, recwarn: pytest.WarningsRecorder) -> None:
    assert envpool_sdk.load_plugin(plugins / "cartpole_cpp.so") == ("CartPole-v1",)  # again: nothing happens
    assert envpool_sdk.load_plugin(os.path.relpath(plugins / "cartpole_cpp.so")) == ("CartPole-v1",)
    assert not recwarn
    assert {"CartPole-v1", "KitchenSink-v0", "Pursuit-v0"} <= set(envpool_sdk.list_all_envs())
    assert {"envpool/CartPole-v1", "envpool/KitchenSink-v0"} <= gymnasium.registry.keys()
    assert envpool_sdk.make("Required-v0", answer=3).reset()[0].tolist() == [3]
    with pytest.raises(ValueError, match="answer"):
        envpool_sdk.make("Required-v0")


def test_another_file_with_a_known_id(plugins: Path) -> None:
    with pytest.raises(envpool_sdk.PluginError, match=r"cartpole_c\.so.*'CartPole-v1'.*cartpole_cpp\.so"):
        envpool_sdk.load_plugin(plugins / "cartpole_c.so")


def test_files_that_are_no_plugins(tmp_path: Path) -> None:
    (tmp_path / "text.so").write_text("no library")
    (tmp_path / "empty.so").write_text("")
    libc = next(Path("/lib").rglob("libm.so.6"), None)
    for path in (tmp_path / "text.so", tmp_path / "empty.so", tmp_path / "missing.so", tmp_path, *filter(None, [libc])):
        with pytest.raises(envpool_sdk.PluginError, match=path.name.split(".")[0]):
            envpool_sdk.load_plugin(path)
    with pytest.raises(TypeError):
        envpool_sdk.load_plugin(3)  # type: ignore[arg-type]


def flaws() -> list[tuple[str, str, str]]:
    lines = (Path(__file__).parents[2] / "reference/bad/flaws.txt").read_text().splitlines()
    return [tuple(line.split(maxsplit=2)) for line in lines if line and not line.startswith("#")]


@pytest.mark.parametrize(("flaw", "where", "word"), [flaw for flaw in flaws() if flaw[1] in ("load", "describe")])
def test_broken_plugins(plugins: Path, flaw: str, where: str, word: str) -> None:
    [path] = plugins.rglob(f"bad_{flaw}.so")
    before = envpool_sdk.list_all_envs()

    def load_and_describe() -> None:
        for task in envpool_sdk.load_plugin(path):
            envpool_sdk.make_spec(task)

    with pytest.raises((ValueError, envpool_sdk.EnvError), match=f"(?i){word}") as caught:
        load_and_describe()
    if where == "load":
        assert isinstance(caught.value, envpool_sdk.PluginError)
        assert path.name in str(caught.value)
        assert envpool_sdk.list_all_envs() == before


# ---- import and exit ----


def test_import_is_light(run_python: Run) -> None:
    """Heavy packages are loaded by who uses them; `python -m benchmarks startup` measures the seconds."""
    heavy = ("torch", "jax", "cv2", "dm_env", "ale_py", "mujoco", "vizdoom", "pygame", "PIL", "rich", "typer", "ray")
    done = run_python(f"import sys, envpool_sdk; print([name for name in {heavy} if name in sys.modules])")
    assert done.stdout == "[]\n", done.stderr


def test_a_missing_extra_is_named(run_python: Run) -> None:
    done = run_python("import sys; sys.modules['ray'] = None; import envpool_sdk.ray")
    assert "ModuleNotFoundError: envpool_sdk.ray needs Ray: pip install 'envpool-sdk[ray]'" in done.stderr


def test_versions_and_headers() -> None:
    assert envpool_sdk.__version__
    assert (Path(envpool_sdk.get_include()) / "envpool/env.h").is_file()
    assert (Path(envpool_sdk.get_include()) / "envpool/env.hpp").is_file()
    assert (Path(envpool_sdk.get_cmake_dir()) / "envpool_sdkConfig.cmake").is_file()


@pytest.mark.parametrize("end", ["", "raise SystemExit(0)", "raise RuntimeError('x')", "env.close(); vec.close()"])
def test_exit_with_busy_pools(plugins: Path, run_python: Run, end: str) -> None:
    start = time.monotonic()
    done = run_python(
        f"""
import envpool_sdk, gymnasium
envpool_sdk.load_plugin({str(plugins / "kitchen_sink.so")!r})
env = envpool_sdk.make("Slow-v0", num_envs=8, batch_size=2, step_us=100_000.0)
env.async_reset()
for _ in range(2):
    env.send([0, 0], env.recv()[4]["env_id"])
vec = gymnasium.make_vec("envpool/KitchenSink-v0", num_envs=4)
kept = vec.reset()
env.send([0, 0], env.recv()[4]["env_id"])
{end}
"""
    )
    assert done.returncode == ("RuntimeError" in end), done.stderr
    assert "leaked" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert time.monotonic() - start < 5  # imports included; the end itself takes no 2 s
