"""The command line: each command with good and bad input, its exit codes, and what scripts read of it."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from PIL import Image

import envpool_sdk
from envpool_sdk import _native, registry

typer_testing = pytest.importorskip("typer.testing")

COMMANDS = ("list", "info", "bench", "play", "check", "new", "doctor")

Run = Callable[..., Any]


@pytest.fixture
def cli() -> Run:
    """Runs a command in this process: cli("info", "Pong-v5"), with code= the exit code expected."""
    from envpool_sdk.cli.app import app

    def run(*words: object, code: int = 0) -> Any:
        result = typer_testing.CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == code, result.output + repr(result.exception)
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        return result

    return run


def process(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command in a process of its own, as users do."""
    command = [sys.executable, "-m", "envpool_sdk", *map(str, words)]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=120)


# ---- all ----


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(cli: Run, command: str) -> None:
    assert re.search(rf"Example:\s+envpool-sdk\s+{command}", cli(command, "--help").output)


def test_help_names_every_command(cli: Run) -> None:
    output = cli("--help").output
    assert all(re.search(rf"^. {command} ", output, re.MULTILINE) for command in COMMANDS)


def test_version(cli: Run) -> None:
    major, minor = _native.ABI_VERSION
    assert cli("--version").output == f"envpool-sdk {envpool_sdk.__version__} (ABI {major}.{minor})\n"


def test_wrong_use_is_code_2(cli: Run) -> None:
    for words in (
        ["nonsense"],
        ["info"],
        ["info", "CartPole-v1", "--option", "gravity"],
        ["info", "CartPole-v1", "--option", "gravity=1", "--option", "gravity=2"],
        ["bench", "CartPole-v1", "--num-envs", "-1"],
        ["play", "CartPole-v1", "--output", "film.avi"],
    ):
        cli(*words, code=2)


@pytest.mark.parametrize("command", ["info", "bench", "play"])
def test_near_id_is_suggested(cli: Run, command: str) -> None:
    assert "no task 'CartPol-v1' is known. Did you mean 'CartPole-v1'?" in cli(command, "CartPol-v1", code=1).stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("gravty=1", "Did you mean 'gravity'?"),
        ("gravity=fast", "gravity"),
        ("length=0", "length=0 is out of range"),
        ("frame_skip=0", "frame_skip=0"),
    ],
)
@pytest.mark.parametrize("command", ["info", "bench", "play"])
def test_bad_option_is_one_line(cli: Run, command: str, option: str, message: str) -> None:
    stderr = cli(command, "CartPole-v1", "--option", option, code=1).stderr
    assert message in stderr
    assert stderr.startswith("error: CartPole-v1")
    assert stderr.count("\n") == 1


def test_broken_library_is_one_line(cli: Run, plugins: Path) -> None:
    stderr = cli("info", "Bad-v0", "--plugin", plugins / "bad_no_step.so", code=1).stderr
    assert stderr.startswith("error: ")
    assert "step" in stderr


def test_as_a_module_and_as_a_command() -> None:
    done = process("info", "Nothing-v0")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no task 'Nothing-v0'" in done.stderr
    command = Path(sys.executable).with_name("envpool-sdk")
    if not command.exists():
        pytest.skip("envpool-sdk is not installed as a command")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, timeout=60)
    assert done.stdout == process("--version").stdout


def test_without_the_extra_it_says_what_to_install(run_python: Run) -> None:
    done = run_python("import sys; sys.modules['typer'] = None; from envpool_sdk.cli import main; main()")
    assert done.returncode == 1
    assert "pip install 'envpool-sdk[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_import_does_not_bring_it(run_python: Run) -> None:
    done = run_python(
        "import sys, envpool_sdk; print([m for m in sys.modules if m.split('.')[0] in ('typer', 'rich', 'click', 'PIL')"
        " or m.startswith('envpool_sdk.cli')])"
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


# ---- list ----


def test_list(cli: Run) -> None:
    output = cli("list").output
    assert all(task_id in output for task_id in envpool_sdk.list_all_envs())
    assert "CartPole-v1" in cli("list", "cartp*").output.split()
    assert "Pursuit-v0" not in cli("list", "cart").output
    assert "no task fits 'zzz'" in cli("list", "zzz", code=1).stderr


def test_list_json(cli: Run) -> None:
    listed = json.loads(cli("list", "--json").output)
    assert [one["id"] for one in listed] == envpool_sdk.list_all_envs()
    [one] = json.loads(cli("list", "CartPole-v1", "--json").output)
    assert (one["engine"], one["max_episode_steps"], one["reward_threshold"]) == ("cartpole-cpp", 500, 475.0)
    assert one["library"] == registry.find("CartPole-v1").manifest.library
    assert json.loads(cli("list", "zzz", "--json", code=1).output) == []


def test_list_takes_a_library(plugins: Path) -> None:
    done = process("list", "Walk", "--plugin", plugins / "nothing.so")
    assert done.returncode == 1
    assert "nothing.so" in done.stderr
    done = process("list", "--plugin", plugins / "multi_agent.so", "Pursuit")
    assert done.returncode == 0
    assert "Pursuit-v0" in done.stdout


# ---- info ----


def test_info(cli: Run) -> None:
    output = cli("info", "KitchenSink-v0").output
    for words in (
        ["one env", "any thread"],
        ["time limit", "100 steps"],
        ["num/float64", "float64", "any", "m", "a double"],
        ["pick/one", "int64", "-2 .. 2", "labels: a, b, c, d"],
        ["bits", "int8[4]", "0 or 1"],
        ["spent", "float64", "s", "not deterministic"],
        ["size", "int", "3", "1 .. 64", "elements of"],
        ["mode", "string", "'calm'"],
    ):
        assert re.search(".*?".join(map(re.escape, words)), output.replace("envs share", "one env")), words


def test_info_follows_options(cli: Run) -> None:
    about = json.loads(cli("info", "KitchenSink-v0", "--json", "-o", "size=5", "-o", "mode=wild").output)
    [vec] = [field for field in about["fields"]["obs"] if field["name"] == "vec"]
    assert vec["shape"] == [5]
    values = {option["name"]: option["value"] for option in about["options"]}
    assert (values["size"], values["mode"], values["weights"]) == (5, "wild", [0.5, 1.5])


def test_info_json_is_the_spec(cli: Run) -> None:
    about = json.loads(cli("info", "envpool/CartPole-v1", "--json").output)
    env = gymnasium.make("envpool/CartPole-v1")
    assert about["action_space"] == str(env.action_space)
    assert about["observation_space"] == str(env.observation_space)
    assert (about["max_episode_steps"], about["reward_threshold"], about["sharing"]) == (500, 475.0, "free")
    assert "envpool.render/1" in about["extensions"]
    assert about["agents"] == 1
    assert [field["labels"] for field in about["fields"]["action"]] == [list(_labels("CartPole-v1"))]


def _labels(task_id: str) -> tuple[str, ...]:
    plugin = registry.load(registry.find(task_id).manifest)
    return plugin.describe(task_id, {}, {})["action"][0]["labels"]


def test_info_without_a_required_option(cli: Run) -> None:
    output = cli("info", "Required-v0").output
    assert re.search(r"answer +int .*required", output)
    assert "required options" in output
    assert "fields" not in json.loads(cli("info", "Required-v0", "--json").output)
    assert json.loads(cli("info", "Required-v0", "--json", "-o", "answer=42").output)["fields"]["action"]


def test_info_tells_all_transforms(cli: Run) -> None:
    """Those of the runtime, with its defaults: as its stub says, in brackets."""
    stub = next(path for place in envpool_sdk.__path__ if (path := Path(place, "_native.pyi")).exists()).read_text()
    typed = stub.partition("class TransformsDict")[2].partition("class Plugin")[0]
    wanted, default = {}, None
    for name, comment in re.findall(r"^    (\w+): \w+(?:  # (.*))?$", typed, re.MULTILINE):
        given = re.search(r"\[([^\]:]+)[^\]]*\]", comment)
        default = ast.literal_eval(given[1]) if given else default  # img_width has that of img_height above it
        wanted[name] = None if name.startswith("img_") else default
    about = json.loads(cli("info", "Image-v0", "--json").output)["transforms"]
    assert {one["name"]: one["default"] for one in about} == wanted
    about = json.loads(cli("info", "Image-v0", "-o", "stack_num=3", "--json").output)["transforms"]
    assert {one["name"]: one["value"] for one in about} == wanted | {"stack_num": 3}
    plain = gymnasium.make("envpool/Image-v0")
    told = gymnasium.make("envpool/Image-v0", **wanted)
    assert plain.observation_space == told.observation_space


def test_info_of_agents(cli: Run) -> None:
    assert re.search(r"agents +\d+: ", cli("info", "Pursuit-v0").output)


# ---- bench ----


@pytest.mark.parametrize(
    "words",
    [
        ["CartPole-v1"],
        ["CartPole-v1", "--num-envs", "7", "--batch-size", "3", "--num-threads", "2"],
        ["Pursuit-v0"],
        ["KitchenSink-v0", "-o", "size=2"],
        ["Image-v0", "-o", "frame_skip=4"],
        ["Bound-v0"],
        ["Globals-v0", "--num-envs", "2"],
        ["CartPole-v1", "--num-envs", "4", "--isolation", "process", "--envs-per-worker", "2"],
    ],
    ids=" ".join,
)
def test_bench_counts_both_sides(cli: Run, words: list[str]) -> None:
    report = json.loads(cli("bench", *words, "--seconds", "0.05", "--json").stdout)
    skip = 4 if "frame_skip=4" in words else 1
    assert report["frame_skip"] == skip
    for side in (report["bare_loop"], report["pool"]):
        assert side["frames"] > 0
        assert side["frames"] % skip == 0
        assert side["frames_per_second"] == pytest.approx(side["frames"] / side["seconds"])
        assert side["seconds"] >= 0.05
    assert report["ratio"] == pytest.approx(
        report["pool"]["frames_per_second"] / report["bare_loop"]["frames_per_second"]
    )
    processes = "process" in words or "Globals-v0" in words
    assert report["isolation"] == ("process" if processes else "thread")
    if "--batch-size" in words:
        assert (report["num_envs"], report["batch_size"], report["num_threads"]) == (7, 3, 2)


def test_bench_table(cli: Run) -> None:
    output = cli("bench", "CartPole-v1", "-n", "4", "--seconds", "0.01").output
    assert re.search(r"bare loop, 1 env, 1 thread.* 1\.00", output)
    assert re.search(r"pool, 4 envs, \d thread", output)


def test_bench_refuses_what_the_pool_refuses(cli: Run) -> None:
    assert "batch_size" in cli("bench", "CartPole-v1", "-n", "4", "--batch-size", "5", code=1).stderr
    assert "isolation='fork'" in cli("bench", "CartPole-v1", "--isolation", "fork", code=1).stderr


def test_bare_loop_plays_what_one_env_plays(plugins: Path) -> None:
    """The same seed and actions: as many episodes in as many steps as Gymnasium's face of a pool of one."""
    plugin = _native.Plugin(str(plugins / "cartpole_cpp.so"))
    actions = np.random.default_rng(5).integers(2, size=50)
    steps, episodes, seconds = _native.bare_loop(plugin, "CartPole-v1", {}, [actions], seconds=0.01, seed=3)
    assert steps > 500
    assert seconds >= 0.01
    env = gymnasium.make("envpool/CartPole-v1")
    env.reset(seed=3)
    ended = 0
    for step in range(steps):
        *_, terminated, truncated, _ = env.step(actions[step % 50])
        if terminated or truncated:
            ended += 1
            env.reset()
    assert episodes == ended > 10


def test_bare_loop_skips_frames_and_keeps_the_limit(plugins: Path) -> None:
    plugin = _native.Plugin(str(plugins / "kitchen_sink.so"))
    one = [np.zeros(1, np.int64)]
    limit = plugin.describe("Counter-v0", {}, {})["max_episode_steps"]
    steps, episodes, _ = _native.bare_loop(plugin, "Counter-v0", {}, one, seconds=0.01)
    skipped, more_episodes, _ = _native.bare_loop(plugin, "Counter-v0", {}, one, seconds=0.01, frame_skip=3)
    assert steps > 0
    assert skipped > 0
    if limit:
        assert episodes >= steps // limit
        assert more_episodes >= skipped // limit


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([], "action is missing"),
        ([np.zeros(0, np.int64)], "no rows"),
        ([np.zeros(3, np.float32)], "dtype"),
        ([np.zeros((3, 2), np.int64)], "shape"),
        ([np.full(3, 9, np.int64)], "is 9"),
        ([np.zeros(3, np.int64)] * 2, "expected 1"),
    ],
)
def test_bare_loop_refuses_bad_actions(plugins: Path, actions: list[Any], message: str) -> None:
    plugin = _native.Plugin(str(plugins / "cartpole_cpp.so"))
    with pytest.raises(ValueError, match=message):
        _native.bare_loop(plugin, "CartPole-v1", {}, actions, seconds=0.01)


def test_bare_loop_tells_of_failures(plugins: Path) -> None:
    plugin = _native.Plugin(str(plugins / "bad_step_status.so"))
    (field,) = plugin.describe("Bad-v0", {}, {})["action"]
    with pytest.raises(envpool_sdk.EnvError, match=r"Bad-v0: step: .*12345"):
        _native.bare_loop(plugin, "Bad-v0", {}, [np.zeros((2, *field["shape"]), field["dtype"])], seconds=0.01)


# ---- play ----


def frames_of(path: Path) -> list[Any]:
    with Image.open(path) as image:
        frames = []
        for i in range(getattr(image, "n_frames", 1)):
            image.seek(i)
            frames.append(np.asarray(image.convert("RGB")))
        return frames


def test_play_png_is_what_render_gives(cli: Run, tmp_path: Path) -> None:
    output = tmp_path / "last.png"
    cli("play", "CartPole-v1", "--output", output, "--seed", "4", "--script", "[1, 0, 0]")
    env = gymnasium.make("envpool/CartPole-v1", render_mode="rgb_array")
    env.reset(seed=4)
    for action in (1, 0, 0):
        env.step(action)
    np.testing.assert_array_equal(frames_of(output)[0], env.render())


def test_play_gif(cli: Run, tmp_path: Path) -> None:
    output = tmp_path / "play.gif"
    summary = json.loads(cli("play", "CartPole-v1", "-f", output, "--steps", "15", "--scale", "2", "--json").stdout)
    assert summary["pictures"] == 16
    env = gymnasium.make("envpool/CartPole-v1", render_mode="rgb_array")
    env.reset()
    height, width, _ = env.render().shape
    assert (summary["width"], summary["height"]) == (2 * width, 2 * height)
    frames = frames_of(output)
    assert 1 < len(frames) <= 16  # pictures that are alike may be one
    assert frames[0].shape == (2 * height, 2 * width, 3)
    assert sum(summary["returns"]) <= 15


def test_play_mp4(cli: Run, tmp_path: Path) -> None:
    imageio_ffmpeg = pytest.importorskip("imageio_ffmpeg")
    output = tmp_path / "play.mp4"
    cli("play", "CartPole-v1", "-f", output, "--steps", "30", "--fps", "20")
    frames, seconds = imageio_ffmpeg.count_frames_and_secs(str(output))
    assert (frames, seconds) == (31, pytest.approx(31 / 20, abs=0.1))


def test_play_mp4_without_its_package(cli: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    stderr = cli("play", "CartPole-v1", "-f", tmp_path / "play.mp4", code=1).stderr
    assert "pip install 'imageio-ffmpeg'" in stderr


def test_play_is_the_same_twice(cli: Run, tmp_path: Path) -> None:
    for name in ("one.gif", "two.gif"):
        cli("play", "CartPole-v1", "-f", tmp_path / name, "--steps", "15", "--seed", "9")
    assert (tmp_path / "one.gif").read_bytes() == (tmp_path / "two.gif").read_bytes()


def test_play_scripts(cli: Run, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps([_labels("CartPole-v1")[1], 0, 0]))
    output = ["--seed", "4", "--output", tmp_path / "by-label.png"]
    assert json.loads(cli("play", "CartPole-v1", "--script", script, *output, "--json").stdout)["pictures"] == 4
    cli("play", "CartPole-v1", "--script", "[1, 0, 0]", "--seed", "4", "--output", tmp_path / "by-number.png")
    assert (tmp_path / "by-label.png").read_bytes() == (tmp_path / "by-number.png").read_bytes()
    assert "no action" in cli("play", "CartPole-v1", "--script", '["UP"]', *output, code=1).stderr
    assert "no JSON" in cli("play", "CartPole-v1", "--script", "[1,", *output, code=1).stderr
    assert "JSON list" in cli("play", "CartPole-v1", "--script", "[]", *output, code=1).stderr
    stderr = cli("play", "CartPole-v1", "--script", "nowhere.json", *output, code=1).stderr
    assert re.search(r"--script: neither a JSON list nor a file .*nowhere", stderr)
    assert "is 7" in cli("play", "CartPole-v1", "--script", "[7]", *output, code=1).stderr


def test_play_scripts_every_kind_of_action(cli: Run, tmp_path: Path) -> None:
    """Nested, tuples, texts, ragged ones: the same picture as by the same action through the Python API."""
    action = {
        "move": "JUMP",
        "push": [0.5, -1],
        "keys": [1, 0, 1],
        "choice": [1, 2],
        "say": "moo",
        "path": [[0, 1]] * 4,
        "path_length": 2,
        "hand": [2, 0.25],
    }
    output = tmp_path / "sink.png"
    cli("play", "KitchenSink-v0", "-f", output, "--seed", "6", "--script", json.dumps([action]), "--steps", "3")
    env = gymnasium.make("envpool/KitchenSink-v0", render_mode="rgb_array")
    env.reset(seed=6)
    for _ in range(3):
        env.step(action | {"move": 2, "hand": (2, 0.25)})
    np.testing.assert_array_equal(frames_of(output)[0], env.render())
    stderr = cli("play", "KitchenSink-v0", "-f", output, "--script", '[{"move": 1}]', code=1).stderr
    assert "must be a dictionary with the keys" in stderr


def test_play_is_as_fast_as_the_env(cli: Run, tmp_path: Path) -> None:
    """Frames that the pool skips make fewer pictures a second."""
    fps = gymnasium.make("envpool/CartPole-v1").metadata["render_fps"]
    words = ["play", "CartPole-v1", "-f", tmp_path / "play.gif", "--steps", "1", "--json"]
    assert json.loads(cli(*words).stdout)["fps"] == fps
    assert json.loads(cli(*words, "-o", "frame_skip=4").stdout)["fps"] == fps / 4


def test_play_refuses_a_directory_that_is_not_there(cli: Run, tmp_path: Path) -> None:
    stderr = cli("play", "CartPole-v1", "-f", tmp_path / "nowhere" / "play.gif", code=2).stderr
    assert "there is no directory" in stderr


def test_play_says_when_a_task_can_not_draw(cli: Run, tmp_path: Path) -> None:
    assert "Counter-v0" in cli("play", "Counter-v0", "-f", tmp_path / "play.png", code=1).stderr
    assert not (tmp_path / "play.png").exists()


# ---- check and new: that they are there; their own tests are elsewhere ----


def test_check(cli: Run, plugins: Path) -> None:
    output = cli("check", plugins / "cartpole_c.so", "--only", "load").output
    assert "failed" in output
    assert "there is no file" in cli("check", plugins / "nothing.so", code=2).stderr.lower()


def test_new(cli: Run, tmp_path: Path) -> None:
    pytest.importorskip("cookiecutter")
    questions = cli("new", "rust", "--questions").output.splitlines()
    assert {"observation: vector, image, dict", "package_name: grid_chase", "env_id: GridChase-v0"} <= set(questions)
    cli("new", "c", "--no-input", "--directory", tmp_path, "--answer", "project_name=Tin Soldiers")
    assert (tmp_path / "tin-soldiers" / "pyproject.toml").is_file()
    for words, message in (
        (["cobol"], "language"),
        (["c", "--answer", "projct_name=x"], "project_name"),
        (["c", "--answer", "env_id=Tin Soldiers"], "not allowed"),
        (["c", "--answer", "project_name=Tin Soldiers"], "exists"),
    ):
        stderr = cli("new", *words, "--no-input", "--directory", tmp_path, code=1).stderr
        assert message in stderr
        assert "Traceback" not in stderr
    cli("new", "c", "--answer", "project_name", code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["tin-soldiers"]


# ---- doctor ----

ENGINE = """
from envpool_sdk.manifest import Manifest, TaskManifest

{start}
def manifest():
    return Manifest(
        name={name!r}, library={library!r}, abi=(1, 0), tasks=(TaskManifest({task!r}),), assets={assets}
    )
"""

PACKAGES = {  # name: library, task, assets, what the module begins with, what doctor should say
    "sound": ("multi_agent", "Pursuit-v0", "{}", "", ""),
    "no-task": ("cartpole_cpp", "Swing-v0", "{}", "", "has no task 'Swing-v0'"),
    "no-step": ("bad_no_step", "NoStep-v0", "{}", "", "its function step is NULL"),
    "undescribed": ("bad_describe_fails", "Bad-v0", "{}", "", "cannot describe"),
    "raises": ("cartpole_cpp", "Raises-v0", "lambda: 1 / 0", "", "ZeroDivisionError"),
    "aborts": ("cartpole_cpp", "Aborts-v0", "lambda: __import__('os').abort()", "", "SIGABRT"),
    "exits": ("cartpole_cpp", "Exits-v0", "lambda: __import__('os')._exit(3)", "", "code 3"),
    "no-import": ("cartpole_cpp", "NoImport-v0", "{}", "import nothing_of_that_name", "nothing_of_that_name"),
    "no-library": ("nothing", "NoLibrary-v0", "{}", "", "nothing.so"),
}


@pytest.fixture(scope="module")
def clinic(plugins: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables with which sound and broken packages and files are found."""
    place = tmp_path_factory.mktemp("packages")
    for name, (library, task, assets, start, _) in PACKAGES.items():
        module = f"engine_{name.replace('-', '_')}"
        code = ENGINE.format(name=name, library=str(plugins / f"{library}.so"), task=task, assets=assets, start=start)
        (place / f"{module}.py").write_text(code)
        info = place / f"{module}-2.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: engine-{name}\nVersion: 2.5\n")
        (info / "entry_points.txt").write_text(f"[envpool_sdk.plugins]\n{name} = {module}:manifest\n")
    files = (plugins / f"{name}.so" for name in ("bad_no_reset", "cartpole_c", "missing"))
    return {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(place), os.environ.get("PYTHONPATH", "")])),
        "ENVPOOL_PLUGIN_PATH": os.pathsep.join(map(str, files)),
    }


def test_doctor_tells_what_is_broken_and_why(clinic: dict[str, str]) -> None:
    done = process("doctor", "--json", **clinic)
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert report["abi"] == list(_native.ABI_VERSION)
    assert report["envpool_sdk"] == envpool_sdk.__version__
    assert report["cpus_allowed"] == _native.available_cpus()
    assert report["ENVPOOL_PLUGIN_PATH"] == clinic["ENVPOOL_PLUGIN_PATH"]
    assert report["packages"]["gymnasium"] == gymnasium.__version__

    found = {Path(plugin["source"]).stem: plugin for plugin in report["plugins"]}
    wanted = {f"engine-{name}": reason for name, (*_, reason) in PACKAGES.items()}
    wanted |= {"bad_no_reset": "its function reset is NULL", "cartpole_c": "", "missing": "missing.so"}
    for name, reason in wanted.items():
        problems = found[name]["problems"]
        assert len(problems) == bool(reason), name
        assert reason in "".join(problems), name
    sound = found["engine-sound"]
    assert (sound["version"], sound["tasks"]) == ("2.5", ["Pursuit-v0"])
    assert sound["engine"]["abi"] == list(_native.ABI_VERSION)
    assert found["cartpole_c"]["engine"]["name"] == "cartpole-c"


def test_doctor_for_people(clinic: dict[str, str]) -> None:
    done = process("doctor", **clinic)
    assert done.returncode == 1
    assert re.search(r"broken +\S*bad_no_reset.*\n.*its function reset is NULL", done.stdout)
    assert re.search(r"fine +\S*cartpole_c", done.stdout)
    assert re.search(r"broken +engine-aborts 2\.5: 1 id\n.*SIGABRT", done.stdout)


def test_doctor_is_content_with_what_is_installed() -> None:
    done = process("doctor", ENVPOOL_PLUGIN_PATH="")
    assert done.returncode == 0, done.stdout
