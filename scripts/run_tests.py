"""Runs every check that this machine allows, and says at the end what it left out and why. scripts/test starts it.

Without names all steps run, in the order of --list. Test frameworks' own counts go into the closing line; a step that is
no test framework counts as one.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import bootstrap
from bootstrap import PYTHON, ROOT, SetupError


@dataclass
class Outcome:
    """What a step did: counts of tests, and what it left out, each with the reason."""

    passed: int = 0
    failed: int = 0
    left_out: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    strict: bool = False
    full: bool = False
    fix: bool = False
    pytest: tuple[str, ...] = ()


def call(command: Sequence[str | Path], env: dict[str, str] | None = None) -> int:
    """Runs a command with its output in plain sight; gives its exit code."""
    words = [str(word) for word in command]
    print(f"$ {shlex.join(words)}", flush=True)
    environment = bootstrap.environment() | (env or {})
    # Resolved against .venv here: subprocess looks a program up in this process's own PATH.
    words[0] = shutil.which(words[0], path=environment["PATH"]) or words[0]
    return subprocess.run(words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL).returncode


def one(*commands: Sequence[str | Path]) -> Outcome:
    """A step that passes if every command does; all run."""
    bad = [command for command in commands if call(command)]
    return Outcome(failed=1) if bad else Outcome(passed=1)


def run_framework(report: Path, command: Sequence[str | Path], env: dict[str, str] | None = None) -> Outcome:
    """Runs pytest or ctest, which shall write a JUnit file, and counts the cases in it. An expected failure (xfail) counts as
    passed."""
    report.unlink(missing_ok=True)
    code = call(command, env)
    outcome = Outcome()
    reasons: dict[str, int] = {}
    for case in ElementTree.parse(report).iter("testcase") if report.exists() else ():
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        elif skipped is not None and skipped.get("type") != "pytest.xfail":
            reason = skipped.get("message") or "no reason given"
            reasons[reason] = reasons.get(reason, 0) + 1
        else:
            outcome.passed += 1
    outcome.left_out = [f"{count} test{'s' if count > 1 else ''}: {reason}" for reason, count in reasons.items()]
    if code and not outcome.failed:  # it ended badly, or found no test
        outcome.failed = 1
    return outcome


def sources(*suffixes: str) -> list[Path]:
    """The C and C++ files of this tree."""
    folders = ("sdk", "reference", "envs", "tests", "benchmarks", "examples")
    found = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes)
    return sorted(
        path for path in found if not {"build", "dist", "templates"}.intersection(path.relative_to(ROOT).parts)
    )


# ---- steps --------------------------------------------------------------------------------------------------------------


def ruff(options: Options) -> Outcome:
    if options.fix:
        return one(["ruff", "check", "--fix", "."], ["ruff", "format", "."])
    return one(["ruff", "check", "."], ["ruff", "format", "--check", "--diff", "."])


def clang_format(options: Options) -> Outcome:
    files = sources(".h", ".hpp", ".c", ".cpp")
    return one(["clang-format", *(["-i"] if options.fix else ["--dry-run", "-Werror"]), *files])


def mypy(options: Options) -> Outcome:
    return one(["mypy", "--python-executable", PYTHON])


def docs(options: Options) -> Outcome:
    """The documentation as a site, in build/site. The Python tests run its code blocks."""
    return one(["mkdocs", "build", "--quiet", "--strict"])


def wheel(options: Options) -> Outcome:
    """The wheels of the SDK and the engine packages, built and installed into .venv; what the SDK's has to hold."""
    bootstrap.install_packages()
    (path,) = (ROOT / "dist" / "sdk").glob("*.whl")
    names = set(zipfile.ZipFile(path).namelist())
    wanted = ["py.typed", "_native.pyi", "cmake/envpool_sdkConfig.cmake"]
    wanted += [str(file.relative_to(ROOT / "sdk")) for file in (ROOT / "sdk/include").rglob("*.h*")]
    missing = [name for name in wanted if f"envpool_sdk/{name}" not in names]
    if not any(name.startswith("envpool_sdk/_native.") and name.endswith(".so") for name in names):
        missing.append("_native")
    if missing:
        print(f"{path.name} lacks {', '.join(missing)}")
        return Outcome(failed=1)
    gil_disabled = subprocess.run([PYTHON, "-c", "import sys; sys.exit('t' in sys.abiflags)"]).returncode
    if "-cp311-abi3-" not in path.name and not gil_disabled:
        print(f"{path.name} is no stable-ABI wheel (cp311-abi3)")
        return Outcome(failed=1)
    return one([PYTHON, "-m", "pip", "check"])


def build(preset: str, options: Options) -> bool:
    """Configures and builds a preset; ninja does nothing where nothing changed."""
    return not (
        call(["cmake", "--preset", preset, f"-DENVPOOL_SDK_WERROR={'ON' if options.strict else 'OFF'}"])
        or call(["cmake", "--build", "--preset", preset])
    )


def native(preset: str, options: Options, wrapper: Sequence[str] = ()) -> Outcome:
    """Builds a preset and runs its native tests."""
    if not build(preset, options):
        return Outcome(failed=1)
    report = ROOT / "build" / preset / "ctest.xml"
    return run_framework(report, [*wrapper, "ctest", "--preset", preset, "--no-tests=error", "--output-junit", report])


def release(options: Options) -> Outcome:
    return native("release", options)


def clang(options: Options) -> Outcome:
    return with_clang(lambda: native("clang", options))


def clang_engines(options: Options) -> Outcome:
    def build() -> Outcome:
        built = [build_engine(package, options) for package in bootstrap.engine_packages()]
        return Outcome(passed=built.count(True), failed=built.count(False))

    return with_clang(build)


def with_clang(run: Callable[[], Outcome]) -> Outcome:
    if shutil.which("clang") and shutil.which("clang++"):
        return run()
    return Outcome(left_out=["there is no clang (Debian: apt-get install clang)"])


def build_engine(package: Path, options: Options) -> bool:
    """Builds an engine package's plugin by itself, by clang."""
    folder = ROOT / "build" / "clang" / "envs" / package.name
    werror = f"-DCMAKE_COMPILE_WARNING_AS_ERROR={'ON' if options.strict else 'OFF'}"
    env = {"CC": "clang", "CXX": "clang++"}
    return not (
        call(["cmake", "-G", "Ninja", "-S", package, "-B", folder, werror], env) or call(["cmake", "--build", folder])
    )


SANITIZERS = {"asan": "address,undefined", "tsan": "thread"}
SANITIZED_ENGINES = {"asan": ("mujoco", "vizdoom"), "tsan": ("mujoco",)}
"""The engine packages whose Python tests are run with sanitizers. Doom's engine inherits their runtime: untried with ThreadSanitizer's."""


def asan(options: Options) -> Outcome:
    return sanitized("asan", lambda wrapper: native("asan", options, wrapper))


def tsan(options: Options) -> Outcome:
    return sanitized("tsan", lambda wrapper: native("tsan", options, wrapper))


def pytest_asan(options: Options) -> Outcome:
    return sanitized("asan", lambda wrapper: engines("asan", options, wrapper))


def pytest_tsan(options: Options) -> Outcome:
    return sanitized("tsan", lambda wrapper: engines("tsan", options, wrapper))


def sanitized(preset: str, run: Callable[[Sequence[str]], Outcome]) -> Outcome:
    """Runs it with the wrapper that programs with these sanitizers need, if they can be built and run here."""
    # Older ThreadSanitizers refuse an address space that is more random than they know: then do without randomness.
    for wrapper in ([], ["setarch", "-R"]):
        if run_sanitized(SANITIZERS[preset], wrapper):
            return run(wrapper)
    return Outcome(
        left_out=[f"the compiler can't link with -fsanitize={SANITIZERS[preset]}, or such a program does not start"]
    )


def engines(preset: str, options: Options, wrapper: Sequence[str]) -> Outcome:
    """The Python tests of engine packages, over an SDK and plugins built with sanitizers and laid over .venv."""
    site = ROOT / "build" / preset / "site"
    flags = f"-fsanitize={SANITIZERS[preset]} -fno-sanitize-recover=all -fno-omit-frame-pointer"
    pip: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--upgrade",
        "--no-deps",
        "--no-build-isolation",
    ]
    settings = ["-C", "cmake.build-type=RelWithDebInfo", "-C", "cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g"]
    for name, source in {"sdk": ROOT, **{name: ROOT / "envs" / name for name in SANITIZED_ENGINES[preset]}}.items():
        folder: list[str | Path] = ["-C", f"build-dir={ROOT / 'build' / preset / 'packages' / name}", "--target", site]
        if call([*pip, *settings, *folder, source], {"CFLAGS": flags, "CXXFLAGS": flags}):
            return Outcome(failed=1)
    # Python is not built with the sanitizers, so their runtime has to come first; ASan's wants to see the C++ library.
    libraries = [runtime_library(name) for name in (f"lib{preset}.so", "libstdc++.so")]
    variables = {
        "LD_PRELOAD": ":".join(libraries),
        "PYTHONPATH": site,
        # An interpreter leaves much behind at its end; Doom's engine, which inherits this, frees by delete[] what it has of strdup.
        "ASAN_OPTIONS": "detect_leaks=0:alloc_dealloc_mismatch=0",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "TSAN_OPTIONS": f"suppressions={ROOT / 'scripts' / 'tsan-suppressions.txt'}",
    }
    report = ROOT / "build" / preset / "pytest.xml"
    # By env: setarch itself does not bear the runtime.
    with_variables = ["env", *(f"{name}={value}" for name, value in variables.items())]
    tests = [f"envs/{name}/tests" for name in SANITIZED_ENGINES[preset]]
    python: list[str | Path] = [*wrapper, *with_variables, PYTHON]
    return run_framework(report, [*python, "-m", "pytest", f"--junitxml={report}", *tests, *options.pytest])


def runtime_library(name: str) -> str:
    """The path of a library of the compiler's."""
    command = [*shlex.split(compiler()), f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def compiler() -> str:
    """The C++ compiler that CMake will take."""
    return os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), "c++")


def run_sanitized(sanitizers: str, wrapper: Sequence[str]) -> bool:
    """Whether programs with these sanitizers can be built and run here."""
    folder = ROOT / "build" / "probe"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "main.cpp").write_text("#include <thread>\nint main() { std::thread([] {}).join(); }\n")
    command = [*shlex.split(compiler()), f"-fsanitize={sanitizers}", "-pthread", "main.cpp", "-o", "main"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        subprocess.run([*wrapper, folder / "main"], check=True, capture_output=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def pytest(options: Options) -> Outcome:
    """The Python tests, those of the engine packages too. They load the reference plugins of the release preset."""
    if not build("release", options):
        return Outcome(failed=1)
    return run_pytest(PYTHON, "pytest", [*(["-m", ""] if options.full else []), *options.pytest])


def run_pytest(
    python: Path, name: str, arguments: Sequence[str | Path], variables: dict[str, str] | None = None
) -> Outcome:
    """pytest with what our tests look for in the environment."""
    report = ROOT / "build" / f"{name}.xml"
    env = {
        "ENVPOOL_REFERENCE_DIR": str(ROOT / "build" / "release" / "reference"),
        "PYTHONPATH": str(bootstrap.ENGINE_LIBRARIES),
        "SDL_VIDEODRIVER": "dummy",  # no test may open a window, whatever the machine has
    }
    return run_framework(report, [python, "-m", "pytest", f"--junitxml={report}", *arguments], env | (variables or {}))


def gymnasium(options: Options) -> Outcome:
    """The tests of the Gymnasium faces with the oldest one that is supported, laid over .venv in build/gymnasium."""
    if not build("release", options):
        return Outcome(failed=1)
    folder = ROOT / "build" / "gymnasium"
    wanted = bootstrap.requirements(["gymnasium"])
    install: list[str | Path] = [PYTHON, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    if call([*install, f"--target={folder}", *wanted]):
        return Outcome(failed=1)
    names = ("facade", "gymnasium_single", "gymnasium_vector", "registration")
    tests = [f"tests/python/test_{name}.py" for name in names]
    return run_pytest(PYTHON, "gymnasium", [*tests, *options.pytest], {"PYTHONPATH": str(folder)})


def ray(options: Options) -> Outcome:
    """The tests with Ray and RLlib, in build/ray: Ray pins an older Gymnasium and is large (1 GB with PyTorch)."""
    if not build("release", options):
        return Outcome(failed=1)
    bootstrap.install_packages({"atari"})
    wheels = [next((ROOT / "dist" / name).glob("*.whl")) for name in ("sdk", "atari")]
    python = ROOT / "build" / "ray" / "bin" / "python"
    install: list[str | Path] = [python, "-m", "pip", "install", "--quiet"]
    commands: list[list[str | Path]] = [
        [PYTHON, "-m", "venv", python.parent.parent],
        [*install, *bootstrap.requirements(["ray"]), *wheels],
        [*install, "--no-deps", "--force-reinstall", *wheels],  # an older build has the same version
    ]
    if any(map(call, commands)):
        return Outcome(failed=1)
    tests: list[str | Path] = ["tests/ray", "tests/test_docs.py", "-k", "not docs or distributed", *options.pytest]
    # Without the engine libraries: TorchRL imports a half of Procgen if it finds one.
    return run_pytest(python, "ray", tests, {"PYTHONPATH": ""})


STEPS: dict[str, tuple[str, Callable[[Options], Outcome]]] = {
    "ruff": ("Python lint and format", ruff),
    "clang-format": ("C and C++ format", clang_format),
    "wheel": ("build and install the wheels", wheel),
    "mypy": ("Python types", mypy),
    "docs": ("the documentation's site", docs),
    "release": ("native tests, optimised", release),
    "pytest": ("Python tests", pytest),
    "gymnasium": ("Python tests of the Gymnasium faces, oldest Gymnasium", gymnasium),
    "asan": ("native tests, AddressSanitizer and UndefinedBehaviorSanitizer", asan),
    "tsan": ("native tests, ThreadSanitizer", tsan),
    "clang": ("native tests, built by clang", clang),
    "clang-engines": ("the engines' plugins, built by clang", clang_engines),
    "pytest-asan": ("Python tests of engines, AddressSanitizer and UndefinedBehaviorSanitizer", pytest_asan),
    "pytest-tsan": ("Python tests of engines, ThreadSanitizer", pytest_tsan),
    "ray": ("tests with Ray and RLlib, in an environment of their own", ray),
}
LONG = ("clang-engines", "pytest-asan", "pytest-tsan", "ray")
"""The steps that run only if they are named, or with --all."""


def run_step(name: str, options: Options) -> Outcome:
    title, function = STEPS[name]
    print(f"\n==> {name}: {title}", flush=True)
    try:
        return function(options)
    except SetupError as failure:
        print(failure, flush=True)
        return Outcome(failed=1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/test", description=__doc__)
    parser.add_argument("steps", nargs="*", metavar="step", help="names of steps (default: all but the long ones)")
    parser.add_argument("--list", action="store_true", help="list the steps and stop")
    parser.add_argument(
        "--all", action="store_true", help="the long sweeps too (pytest marker 'full', steps " + ", ".join(LONG) + ")"
    )
    parser.add_argument("--strict", action="store_true", help="warnings are errors, and nothing may be left out")
    parser.add_argument("--fix", action="store_true", help="let ruff and clang-format change the files")
    parser.add_argument(
        "--pytest", metavar="ARGS", default="", help="more arguments for pytest, e.g. --pytest='-k autoreset'"
    )
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(f"{name:14} {title}" for name, (title, _) in STEPS.items()))
        return 0
    unknown = [name for name in arguments.steps if name not in STEPS]
    if unknown:
        parser.error(f"no step is called {', '.join(unknown)}; there are: {', '.join(STEPS)}")
    usual = [name for name in STEPS if arguments.all or name not in LONG]
    chosen = [name for name in STEPS if name in (arguments.steps or usual)]
    options = Options(arguments.strict, arguments.all, arguments.fix, tuple(shlex.split(arguments.pytest)))

    # A shell makes its background jobs ignore SIGINT, and their children with them: tests that interrupt programs would fail.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        bootstrap.make_venv()
        peers = ["peers"] if options.strict or options.full else []
        bootstrap.install_requirements(["test", *peers, *(["torch"] if options.full else [])])
        bootstrap.install_engine_libraries()
    except SetupError as failure:
        print(f"{failure}\n\n0 passed, 1 failed, 0 skipped")
        return 1

    results: dict[str, tuple[Outcome, float]] = {}
    for name in chosen:
        start = time.monotonic()
        outcome = run_step(name, options)
        results[name] = (outcome, time.monotonic() - start)
    return report(results, options)


def report(results: dict[str, tuple[Outcome, float]], options: Options) -> int:
    print("\n==> summary")
    for name, (outcome, took) in results.items():
        ran = outcome.passed + outcome.failed
        word = "FAILED" if outcome.failed else "passed" if ran else "left out"
        counts = f"{outcome.passed} of {ran}" if ran > 1 else ""
        print(f"{word:9} {name:14} {took:6.0f} s  {counts}".rstrip())
    left_out = [f"{name}: {what}" for name, (outcome, _) in results.items() for what in outcome.left_out]
    if left_out:
        print("\nleft out" + (" (which --strict takes for a failure):" if options.strict else ":"))
        print("\n".join(f"  {line}" for line in left_out))
    if "pytest" in results and not options.full:
        print("\nThe long sweeps were not asked for: scripts/test --all")
    passed = sum(outcome.passed for outcome, _ in results.values())
    failed = sum(outcome.failed for outcome, _ in results.values())
    print(f"\n{passed} passed, {failed} failed, {len(left_out)} skipped", flush=True)
    return 1 if failed or not passed or (options.strict and left_out) else 0


if __name__ == "__main__":
    sys.exit(main())
