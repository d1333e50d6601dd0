"""python -m envpool_sdk.as_envpool: a script that was written for EnvPool runs as it is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import envpool_sdk

SCRIPT = '''
"""A script."""
import sys
import envpool
import helper
from envpool.python.envpool import EnvPoolMixin
from envpool.python.protocol import EnvPool
import envpool.python.protocol as protocol

assert __name__ == "__main__"
assert __file__ == sys.argv[0]
assert protocol.EnvPool is EnvPool
env = envpool.make("CartPole-v1", env_type="gymnasium", num_envs=2)
assert isinstance(env, EnvPoolMixin) and isinstance(env, envpool.EnvPool)
assert isinstance(env, envpool.python.envpool.EnvPoolMixin)
env.close()
env.reset()  # EnvPool's close() leaves everything as it is
assert "CartPole-v1" in envpool.list_all_envs()
assert envpool.make_spec("CartPole-v1").action_space.n == 2
assert envpool.make_gym("CartPole-v1").spec.id == envpool.make_gymnasium("CartPole-v1").spec.id
print(sys.argv[1:], helper.WHAT)
'''


@pytest.fixture
def run(plugins: Path, tmp_path: Path) -> Any:
    """Runs files of tmp_path from another directory: run("script.py", "argument")."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/helper.py").write_text("WHAT = 'beside the script'\n")
    (tmp_path / "scripts/script.py").write_text(SCRIPT)

    def run(*arguments: str, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "envpool_sdk.as_envpool", *arguments],
            env=os.environ | {"ENVPOOL_PLUGIN_PATH": str(plugins / "cartpole_cpp.so")},
            cwd=cwd,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


def test_a_script(run: Any) -> None:
    done = run("scripts/script.py", "--seed", "1", "-m")
    assert (done.returncode, done.stdout) == (0, "['--seed', '1', '-m'] beside the script\n"), done.stderr


def test_a_module(run: Any, tmp_path: Path) -> None:
    done = run("-m", "script", "x", cwd=tmp_path / "scripts")
    assert (done.returncode, done.stdout) == (0, "['x'] beside the script\n"), done.stderr


def test_processes_that_it_starts(run: Any, tmp_path: Path) -> None:
    (tmp_path / "parent.py").write_text(
        """
import multiprocessing
import subprocess
import sys
import envpool

def child(queue):
    queue.put(envpool.EnvPool.__module__)

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get())
    process.join()
    code = "import envpool; print(envpool.EnvPool.__module__)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout, end="")
"""
    )
    done = run("parent.py")
    assert (done.returncode, done.stdout) == (0, "envpool_sdk.facade\n" * 2), done.stderr


def test_tracebacks_begin_in_the_script(run: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "import envpool\n\ndef work():\n    envpool.make('CartPol-v1', 'gym')\n\nwork()\n"
    )
    done = run("broken.py")
    assert done.returncode == 1
    lines = done.stderr[done.stderr.index("Traceback") :].splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == '  File "broken.py", line 6, in <module>'
    assert "runpy" not in done.stderr
    assert "Did you mean 'CartPole-v1'?" in lines[-1]


def test_exit_status(run: Any, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(3)\n")
    assert run("ends.py").returncode == 3


def test_a_script_that_is_not_there(run: Any) -> None:
    done = run("nowhere.py")
    assert (done.returncode, "there is no file 'nowhere.py'" in done.stderr) == (1, True)
    assert "usage: python -m envpool_sdk.as_envpool SCRIPT" in run().stderr


def test_make_dm_is_batched(run: Any, tmp_path: Path) -> None:
    pytest.importorskip("dm_env")
    (tmp_path / "dm.py").write_text(
        "import envpool\nprint(envpool.make_dm('CartPole-v1').reset().observation.obs.shape)\n"
    )
    assert run("dm.py").stdout == "(1, 4)\n"


def test_names_are_there() -> None:
    assert envpool_sdk.python.envpool.EnvPoolMixin is envpool_sdk.EnvPool
    assert envpool_sdk.python.protocol.EnvSpec is envpool_sdk.Spec
