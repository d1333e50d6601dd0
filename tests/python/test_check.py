"""The checker: each bad plugin fails exactly its check, each good one passes all; the command, the report, pytest's face.

`reference/bad/faulty.txt` and `flaws.txt` say which check finds which flaw. In the ordinary run every flaw is shown to its
own check, and a few to all of them; `full` shows every flaw to every check.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import shutil
import subprocess
import sys
import textwrap
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from envpool_sdk.check import abi, check_plugin
from envpool_sdk.check.catalog import GROUPS, all_checks, chosen
from envpool_sdk.check.options import Option
from envpool_sdk.check.promise import locate
from envpool_sdk.check.report import Report
from envpool_sdk.check.runner import Checker, Target

ROOT = Path(__file__).parents[2]
BAD = ROOT / "reference" / "bad"


# ---- the plugins that are bad -----------------------------------------------------------------------------------------


def _faulty() -> dict[str, tuple[str, str]]:
    """From faulty.txt: the check that finds each flaw, and a word of what it says."""
    lines = [line.split(None, 2) for line in (BAD / "faulty.txt").read_text().splitlines() if re.match("[a-z]", line)]
    return {name: (check, word[0].strip() if word else "") for name, check, *word in lines}


def _check_of(flaw: str, where: str) -> str:
    """The check that finds a flaw of flaws.txt."""
    by_prefix = {
        "no_symbol": "load.entry",
        "plugin_null": "load.entry",
        "plugin_": "abi.plugin",
        "abi_major": "abi.plugin",
        "host_minor": "abi.plugin",
        "no_tasks": "abi.tasks",
        "task": "abi.tasks",
        "sharing": "abi.tasks",
        "id_": "abi.ids",
        "no_": "abi.functions",
        "option": "options.declared",
    }
    if where != "load":
        return "spec.valid" if where == "describe" else "lifecycle.runs"
    return next(check for prefix, check in by_prefix.items() if flaw.startswith(prefix))


def _bad() -> dict[str, str]:
    lines = [line.split() for line in (BAD / "flaws.txt").read_text().splitlines() if re.match("[a-z]", line)]
    return {flaw: _check_of(flaw, where) for flaw, where, *_ in lines}


FAULTY, BAD_AT_LOAD = _faulty(), _bad()
SHOWN_TO_ALL = {"none", "batch_none", "shared_generator", "leaks_env"}
SHOWN_AT_LOAD = {"no_symbol", "plugin_null", "abi_major", "task_null", "id_bad", "no_step", "option_range"} | {
    "field_bounds",
    "refusal_ignored",
    "create_fails",
    "step_status",
}
FULL = pytest.mark.full


def _run(plugins: Path, flaw: str, only: tuple[str, ...] = ()) -> Report:
    target = Target(str(plugins / f"faulty_{flaw}.so"), assets={"board": os.devnull})
    with Checker(target, seed=5) as checker:
        return checker.run(only)


def _told(report: Report) -> str:
    return "\n".join(result.message() for result in report.failed)


@pytest.mark.parametrize("flaw", [flaw for flaw in FAULTY if FAULTY[flaw][0] != "-"])
def test_flaw_is_found(plugins: Path, flaw: str) -> None:
    check, word = FAULTY[flaw]
    report = _run(plugins, flaw, (check,))
    assert [result.check for result in report.failed] == [check], _told(report)
    assert word.lower() in report.failed[0].seen.lower()


@pytest.mark.parametrize("flaw", [pytest.param(flaw, marks=() if flaw in SHOWN_TO_ALL else FULL) for flaw in FAULTY])
def test_flaw_is_found_by_no_other(plugins: Path, flaw: str) -> None:
    report = _run(plugins, flaw)
    assert [result.check for result in report.failed] == ([] if FAULTY[flaw][0] == "-" else [FAULTY[flaw][0]]), _told(
        report
    )


@pytest.mark.parametrize(
    "flaw", [pytest.param(flaw, marks=() if flaw in SHOWN_AT_LOAD else FULL) for flaw in BAD_AT_LOAD]
)
def test_broken_declaration(plugins: Path, flaw: str) -> None:
    report = check_plugin(plugins / f"bad_{flaw}.so")
    assert {result.check for result in report.failed} == {BAD_AT_LOAD[flaw]}, _told(report)


LIARS = {
    "LiarSeed-v0": "determinism.same_seed",
    "LiarObserve-v0": "lifecycle.observe_pure",
    "LiarBounds-v0": "values.bounds",
    "LiarUnwritten-v0": "memory.written",
    "LiarState-v0": "state.round_trip",
    "LiarEnvId-v0": "determinism.env_id",
}


@pytest.mark.full
@pytest.mark.parametrize("task", LIARS)
def test_liar(plugins: Path, task: str) -> None:
    report = check_plugin(plugins / "kitchen_sink.so", [task])
    assert [result.check for result in report.failed] == [LIARS[task]], _told(report)


def test_every_check_finds_a_flaw() -> None:
    found = {check for check, _ in FAULTY.values()} | set(BAD_AT_LOAD.values())
    assert all_checks().keys() - found == {"options.given"}  # that one is about the user


# ---- the plugins that are good ----------------------------------------------------------------------------------------

KITCHEN_SINK = ("Image-v0", "ImageSkip-v0", "Counter-v0", "Slow-v0", "Bound-v0", "Globals-v0", "MainThread-v0")


@pytest.mark.parametrize(
    ("library", "task", "options"),
    [
        ("cartpole_c", "CartPole-v1", {}),
        ("multi_agent", "Pursuit-v0", {"agents": "2"}),
        pytest.param("multi_agent", "Pursuit-v0", {}, marks=FULL),
        pytest.param("cartpole_cpp", "CartPole-v1", {}, marks=FULL),
        pytest.param("kitchen_sink", "KitchenSink-v0", {}, marks=FULL),
        pytest.param("kitchen_sink", "Required-v0", {"answer": "3"}, marks=FULL),
        *(pytest.param("kitchen_sink", task, {}, marks=FULL) for task in KITCHEN_SINK),
    ],
)
def test_sound(plugins: Path, library: str, task: str, options: dict[str, str]) -> None:
    report = check_plugin(plugins / f"{library}.so", [task], options)
    assert report.ok, _told(report)
    assert report.counts()["passed"] > 70  # of what a task does not offer nothing is checked: state, batch, render


# ---- its own parts ----------------------------------------------------------------------------------------------------


def test_there_are_many_checks() -> None:
    checks = all_checks()
    assert len(checks) >= 50
    assert {check.group for check in checks.values()} == set(GROUPS)
    for check in checks.values():
        assert check.title
        assert locate(check.promise).line > 0
        assert set(check.after) <= checks.keys()


def test_promises_are_where_they_are_said_to_be() -> None:
    text = (ROOT / "sdk/include/envpool/env.h").read_text().splitlines()
    assert "observe)" in text[locate("ep_task.observe").line - 1]
    assert "typedef struct ep_view" in text[locate("ep_view").line - 1]
    assert locate("ep_state.save").header == "envpool/ext/state.h"
    with pytest.raises(LookupError, match=r"ep_task\.nothing"):
        locate("ep_task.nothing")


def test_layout_is_that_of_the_headers(tmp_path: Path) -> None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler is installed")
    said = {}
    for name, struct in abi.STRUCTS.items():
        said[f"sizeof({name})"] = ctypes.sizeof(struct)
        for member, *_ in struct._fields_:
            said[f"offsetof({name}, {member.removesuffix('_')})"] = getattr(struct, member).offset
    said |= {f"EP_{name}": value for value, name in ((v, n.upper()) for v, n in abi.DTYPES.items())}
    said |= {name: value for value, name in abi.STATUS.items()}
    for name in ("BOX", "DISCRETE", "MULTI_BINARY", "TEXT", "OBS", "ACTION", "INFO", "GLOBAL", "FREE", "THREAD_BOUND"):
        said[f"EP_{name}"] = getattr(abi, name)
    for name in ("PLAIN", "HW", "HWC", "CHW", "INDEXED", "RGB8", "RGBA8", "DEPTH_F32", "ANSI", "ONE_PER_PROCESS"):
        said[f"EP_{name}"] = getattr(abi, name)
    for prefix in ("FIELD_", "OPTION_", "TASK_", "T_", "STATE_"):
        said |= {f"EP_{name}": getattr(abi, name) for name in dir(abi) if name.startswith(prefix)}
    includes = ("env.h", "ext/agents.h", "ext/batch.h", "ext/render.h", "ext/state.h")
    source = "".join(f"#include <envpool/{header}>\n" for header in includes) + "#include <stdio.h>\nint main(void) {\n"
    source += "".join(f'  printf("%s=%lld\\n", "{what}", (long long)({what}));\n' for what in said) + "}\n"
    (tmp_path / "layout.c").write_text(source)
    program = tmp_path / "layout"
    subprocess.run([compiler, f"-I{ROOT / 'sdk/include'}", tmp_path / "layout.c", "-o", program], check=True)
    lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
    assert dict(line.rsplit("=", 1) for line in lines) == {what: str(value) for what, value in said.items()}


def test_checks_are_chosen_by_id_group_and_pattern() -> None:
    assert [check.id for check in chosen(["memory.written"])] == ["memory.written"]
    assert {check.group for check in chosen(["render", "batch"])} == {"render", "batch"}
    assert {check.id for check in chosen(["memory.guard*"])} == {"memory.guard_after", "memory.guard_before"}
    with pytest.raises(ValueError, match="'nothing'"):
        chosen(["nothing"])


def _option(kind: int, **members: object) -> Option:
    plain = {"dtype": 0, "flags": 0, "default": 1, "low": None, "high": None, "choices": ()}
    return Option(name="size", type=kind, **{**plain, **members})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("option", "word", "value"),
    [
        (_option(abi.T_INT), "0x10", 16),
        (_option(abi.T_BOOL), "True", True),
        (_option(abi.T_FLOAT, high=2.0), "1.5", 1.5),
        (_option(abi.T_STRING, choices=("a", "b")), "b", "b"),
        (_option(abi.T_JSON), "[1]", "[1]"),
        (_option(abi.T_INT), 7, 7),
    ],
)
def test_options_are_read(option: Option, word: object, value: object) -> None:
    assert option.parse(word) == value


def test_an_array_is_read() -> None:
    array = _option(abi.T_ARRAY, dtype=332).parse("[1, 2]")
    np.testing.assert_array_equal(array, np.array([1, 2], np.int32), strict=True)


@pytest.mark.parametrize(
    ("option", "word"),
    [
        (_option(abi.T_INT), "1.5"),
        (_option(abi.T_BOOL), "maybe"),
        (_option(abi.T_FLOAT, high=2.0), "2.5"),
        (_option(abi.T_STRING, choices=("a", "b")), "c"),
        (_option(abi.T_JSON), "["),
    ],
)
def test_bad_options_are_refused(option: Option, word: str) -> None:
    with pytest.raises(ValueError, match="option size"):
        option.parse(word)


# ---- the command ------------------------------------------------------------------------------------------------------

_COMMAND = "import typer; from envpool_sdk.check.command import check; typer.run(check)"


def _command(*words: str | Path) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-c", _COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)


def test_command_passes(plugins: Path) -> None:
    done = _command(plugins / "cartpole_c.so", "--only", "load", "--only", "spec.valid")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 failed" in done.stdout


def test_command_tells_what_failed_and_how_to_see_it_again(plugins: Path) -> None:
    library = plugins / "faulty_unwritten.so"
    done = _command(library, "--only", "memory.written", "--option", "cells=3", "--reproduce", "11")
    assert done.returncode == 1
    again = f"envpool-sdk check {library} --task Faulty-v0 --option cells=3 --only memory.written --reproduce 11"
    for words in ("expected: every byte of observation 'state'", "seen:     byte 8", "envpool/env.h:", again):
        assert words in done.stdout


def test_command_gives_json_and_junit(plugins: Path, tmp_path: Path) -> None:
    junit = tmp_path / "report.xml"
    done = _command(plugins / "faulty_nan.so", "--only", "values", "--json", "--junit", junit)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert not report["ok"]
    assert report["failed"] == 1
    assert [result["check"] for result in report["results"] if result["outcome"] == "failed"] == ["values.nan"]
    cases = list(ElementTree.parse(junit).iter("testcase"))
    assert len(cases) == len(report["results"]) == len(chosen(["values"]))
    (failure,) = ElementTree.parse(junit).iter("failure")
    assert "promised: envpool/env.h:" in (failure.text or "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("/no/such/plugin.so",), "there is no file '/no/such/plugin.so'"),
        (("NoSuchGame-v0",), "no task 'NoSuchGame-v0' is known"),
        ((), "name a plugin library or an id"),
        (("cartpole_c.so", "--only", "nothing"), "no check is called 'nothing'"),
        (("cartpole_c.so", "--option", "gravity"), "'gravity' is not NAME=VALUE"),
        (("cartpole_c.so", "--junit", "nowhere/report.xml"), "there is no directory 'nowhere'"),
    ],
)
def test_command_refuses(plugins: Path, words: tuple[str, ...], told: str) -> None:
    done = _command(*(plugins / word if word == "cartpole_c.so" else word for word in words))
    assert done.returncode == 2
    assert told in done.stderr


def test_bad_options_are_one_failure(plugins: Path) -> None:
    report = check_plugin(plugins / "kitchen_sink.so", ["Required-v0"], only=["options.given", "spec", "lifecycle"])
    assert [result.check for result in report.failed] == ["options.given"]
    assert "option answer is required" in report.failed[0].seen
    report = check_plugin(plugins / "cartpole_c.so", options={"gravity": "much"}, only=["options.given"])
    assert "'much' is no float" in report.failed[0].seen


def test_command_lists_checks() -> None:
    done = _command("--list")
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == len(all_checks())


def test_nothing_is_left_when_the_checker_is_killed(plugins: Path) -> None:
    library = plugins / "faulty_cancel_ignored.so"
    # Every process of the checker inherits the writing end: the pipe ends when the last of them does.
    ended, held = os.pipe()
    command = [sys.executable, "-c", _COMMAND, str(library), "--only", "resources.cancel"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[held])
    os.close(held)
    with open(ended, "rb") as pipe:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        until = time.monotonic() + 60
        while process.poll() is None and not children.read_text() and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(1)  # into the check, which takes six seconds
        assert process.poll() is None, process.communicate()[0].decode()
        process.kill()
        process.communicate()
        assert select.select([pipe], [], [], 60)[0], "a child of the checker lives on"
        assert pipe.read() == b""


# ---- pytest's face ----------------------------------------------------------------------------------------------------


def test_conformance_gives_a_test_a_check(plugins: Path, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        textwrap.dedent(f"""
            from envpool_sdk.testing import conformance

            test_good = conformance({str(plugins / "cartpole_c.so")!r}, only=["load", "values"])
            test_bad = conformance({str(plugins / "faulty_nan.so")!r}, only=["values.nan", "values.reward"])
        """)
    )
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert "test_bad[values.nan]" in done.stdout, done.stdout + done.stderr
    assert "seen:     element 0 of observation 'state' is NaN" in done.stdout
    counts = re.search(r"1 failed, (\d+) passed, (\d+) skipped", done.stdout)
    assert counts
    assert int(counts[1]) + int(counts[2]) + 1 == len(chosen(["load", "values"])) + 2
    assert "no field is discrete" in done.stdout
