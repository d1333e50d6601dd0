"""Every public header compiles alone, without a warning, in every standard it promises, with gcc and clang.

The layout is pinned (native/test_layout.c), env.hpp does what it says (native/test_env_hpp.cpp), and the example in its
opening comment is a plugin."""

import functools
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "sdk" / "include"
NATIVE = ROOT / "tests" / "native"
HEADERS = sorted(p.relative_to(INCLUDE).as_posix() for p in INCLUDE.rglob("*.h"))

WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wundef", "-Werror"]
C_WARNINGS = [*WARNINGS, "-Wstrict-prototypes", "-Wmissing-prototypes"]
CXX_WARNINGS = [*WARNINGS, "-Wnon-virtual-dtor", "-Woverloaded-virtual"]
C = ["c99", "c11", "c17", "c2x"]
CXX = ["c++11", "c++14", "c++17", "c++20", "c++2b"]
LAYER = ["c++20", "c++2b"]  # env.hpp


@functools.cache
def compiler(name, standard):
    """The command that compiles with this compiler for this standard, if it is there and knows it."""
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    command = [path, f"-std={standard}", "-x", "c++" if "+" in standard else "c"]
    probe = subprocess.run([*command, "-fsyntax-only", "-"], input="", capture_output=True, text=True)
    if probe.returncode:
        pytest.skip(f"{name} does not know {standard}")
    return command


def compile_source(tool, standard, source, output, *flags):
    """Compiles source (a path) to output and fails with the compiler's own words."""
    command = [*compiler(tool, standard), *flags, f"-I{INCLUDE}", str(source), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def test_headers_are_found():
    assert "envpool/env.h" in HEADERS
    assert len(HEADERS) >= 6


@pytest.mark.parametrize("standard", C)
@pytest.mark.parametrize("tool", ["gcc", "clang"])
def test_c(tool, standard, tmp_path):
    for header in HEADERS:  # each alone, and twice: the guard
        source = tmp_path / "alone.c"
        source.write_text(f"#include <{header}>\n#include <{header}>\nint unused_by_anyone(void);\n")
        compile_source(tool, standard, source, tmp_path / "out.o", "-c", *C_WARNINGS)


@pytest.mark.parametrize("standard", CXX)
@pytest.mark.parametrize("tool", ["g++", "clang++"])
def test_cxx(tool, standard, tmp_path):
    for header in HEADERS:
        source = tmp_path / "alone.cpp"
        source.write_text(f"#include <{header}>\n#include <{header}>\n")
        compile_source(tool, standard, source, tmp_path / "out.o", "-c", *WARNINGS)


@pytest.mark.parametrize("standard", LAYER)
@pytest.mark.parametrize("tool", ["g++", "clang++"])
def test_layer(tool, standard, tmp_path):
    source = tmp_path / "alone.cpp"
    source.write_text("#include <envpool/env.hpp>\n#include <envpool/env.hpp>\n")
    compile_source(tool, standard, source, tmp_path / "out.o", "-c", *CXX_WARNINGS)


@pytest.mark.parametrize("standard", LAYER)
@pytest.mark.parametrize("tool", ["g++", "clang++"])
def test_example_in_the_layer(tool, standard, tmp_path):
    text = (INCLUDE / "envpool" / "env.hpp").read_text()
    example = re.search(r"^//   struct Walk.*?^//   ENVPOOL_PLUGIN[^\n]*\n", text, re.M | re.S).group(0)
    source = tmp_path / "walk.cpp"
    source.write_text("#include <envpool/env.hpp>\n" + re.sub(r"^// ? ? ?", "", example, flags=re.M))
    flags = [
        "-shared",
        "-fPIC",
        *CXX_WARNINGS,
    ]  # with default visibility: nothing of the layer may then be unique
    compile_source(tool, standard, source, tmp_path / "walk.so", *flags)
    nm = shutil.which("nm")
    if nm:
        symbols = subprocess.run(
            [nm, "-DC", "--defined-only", tmp_path / "walk.so"], capture_output=True, text=True
        ).stdout
        assert re.search(r" T envpool_plugin_v1$", symbols, re.M)
        assert not re.findall(r" u .*(?:envpool|Walk).*", symbols)


@pytest.mark.parametrize(
    ("tool", "standard"),
    [("gcc", "c11"), ("gcc", "c17"), ("gcc", "c2x"), ("clang", "c11"), ("clang", "c2x")]
    + [(tool, standard) for tool in ("g++", "clang++") for standard in ("c++11", "c++17", "c++2b")],
)
def test_layout(tool, standard, tmp_path):
    compile_source(tool, standard, NATIVE / "test_layout.c", tmp_path / "layout", *WARNINGS)
    subprocess.run([tmp_path / "layout"], check=True)


@pytest.mark.parametrize("standard", LAYER)
@pytest.mark.parametrize("tool", ["g++", "clang++"])
def test_env_hpp(tool, standard, tmp_path):
    compile_source(tool, standard, NATIVE / "test_env_hpp.cpp", tmp_path / "env_hpp", *WARNINGS)
    done = subprocess.run([tmp_path / "env_hpp"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
