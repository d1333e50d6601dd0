"""The questions and their answers: few questions, and no bad name leaves anything behind."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from generated_package import LANGUAGES, ROOT, TEMPLATES

import envpool_sdk
from envpool_sdk import new

Cookiecutter = Callable[..., subprocess.CompletedProcess[str]]

BAD = [
    ({"project_name": "3D-Pong"}, "package_name '3d_pong': .* Try 'env_3d_pong'"),
    ({"project_name": "class"}, "package_name 'class': is a keyword .* Try 'env_class'"),
    ({"project_name": "Pöng"}, "package_name 'pöng': .* Try 'pong'"),
    ({"project_name": 'Po"ng'}, "project_name 'Po\"ng': must be"),
    ({"project_name": "../../evil"}, "package_name .* Try"),
    ({"package_name": "my game"}, "package_name 'my game': .* Try 'my_game'"),
    ({"package_name": "match"}, "is a keyword"),
    ({"package_name": "json"}, "standard library.* Try 'env_json'"),
    ({"package_name": "envpool_pong"}, "those of envpool.* Try 'pong'"),
    ({"package_name": "envpool"}, "those of envpool.* Try 'env_game'"),
    ({"package_name": "numpy"}, "is a package that this one will use"),
    ({"package_name": "Pong"}, "must be lower-case .* Try 'pong'"),
    ({"package_name": "a'; import os; '"}, "package_name .* Try"),
    ({"env_id": "Pong"}, "env_id 'Pong': .* Try 'Pong-v0'"),
    ({"env_id": "Pong-v01"}, "env_id 'Pong-v01'"),
    ({"env_id": "my/Pong-v0"}, "env_id 'my/Pong-v0': .* Try 'MyPong-v0'"),
    ({"env_id": "Pöng v1"}, "env_id 'Pöng v1': .* Try 'Pong-v0'"),
    ({"players": "0"}, "players '0': must be a number from 1 to 8"),
    ({"author": 'A "B" C'}, "author .* without double quotes"),
    ({"author": "A, B"}, "author .* without commas"),
    ({"description": "two\nlines"}, "description .* must be a line"),
]


@pytest.mark.parametrize(("answers", "advice"), BAD, ids=lambda value: str(value)[:30])
def test_bad_answers(cookiecutter: Cookiecutter, tmp_path: Path, answers: dict[str, str], advice: str) -> None:
    done = cookiecutter(tmp_path / "here", **answers)
    assert done.returncode != 0
    assert re.search(advice, done.stdout + done.stderr), done.stdout + done.stderr
    left = [path for path in tmp_path.rglob("*") if path != tmp_path / "here"]
    assert left == []


def test_advice_is_good(cookiecutter: Cookiecutter, tmp_path: Path) -> None:
    for name in ("3D-Pong", "class", "envpool", "json", "my game", "***x"):
        output = cookiecutter(tmp_path / "bad", package_name=name).stderr
        advised = re.search(r"Try '([^']+)'", output)
        assert advised, output
        assert cookiecutter(tmp_path / name[:2], package_name=advised[1]).returncode == 0


def test_good_names_that_look_bad(cookiecutter: Cookiecutter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PWD", str(tmp_path.parent))  # the user's shell is there
    done = cookiecutter(
        tmp_path,
        project_name="Pong d'été",
        package_name="pong_2",
        env_id="pong.2_x-v10",
        author="José Ñandú",
        description="It's 100% fun, for <all> & sundry.",
    )
    assert done.returncode == 0, done.stderr
    assert "José Ñandú" in (tmp_path / "pong-2" / "pyproject.toml").read_text()
    assert f"cd {tmp_path.name}/pong-2\n" in done.stdout  # the next steps


def test_first_template_is_the_default(cookiecutter: Cookiecutter, tmp_path: Path) -> None:
    assert cookiecutter(tmp_path).returncode == 0
    assert (tmp_path / "grid-chase/src/env.cpp").is_file()


def test_questions() -> None:
    asked = [json.loads((TEMPLATES / language / "cookiecutter.json").read_text()) for language in LANGUAGES]
    for language, answers in zip(LANGUAGES, asked, strict=True):
        assert answers.pop("_language") == language
    assert asked[0] == asked[1] == asked[2]
    questions = [name for name in asked[0] if not name.startswith("_")]
    assert len(questions) <= 10
    for name in questions:
        prompt = asked[0]["__prompts__"][name]
        assert "\n" not in (prompt["__prompt__"] if isinstance(prompt, dict) else prompt)
    offered = json.loads((ROOT / "cookiecutter.json").read_text())["templates"]
    assert [template["path"] for template in offered.values()] == [f"./templates/{name}" for name in LANGUAGES]


def test_hooks_are_alike() -> None:
    for hook in ("pre_gen_project.py", "post_gen_project.py"):
        assert len({(TEMPLATES / language / "hooks" / hook).read_text() for language in LANGUAGES}) == 1


# ---- envpool_sdk.new: the same from the installed package ----


def files(root: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in root.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_installed_templates_are_these() -> None:
    assert files(new.templates()) == files(TEMPLATES)


def test_create(cookiecutter: Cookiecutter, tmp_path: Path) -> None:
    made = new.create("c", {"project_name": "Pong", "players": "2"}, directory=tmp_path / "installed")
    assert made == tmp_path / "installed" / "pong"
    assert (
        cookiecutter(tmp_path / "clone", "--directory", "templates/c", project_name="Pong", players="2").returncode == 0
    )
    assert files(made) == files(tmp_path / "clone" / "pong")


@pytest.mark.parametrize(
    ("language", "answers", "message"),
    [
        ("zig", {}, "language must be one of cpp, c, rust, not 'zig'"),
        ("cpp", {"projekt_name": "x"}, "no question 'projekt_name'. Did you mean 'project_name'"),
        ("cpp", {"observation": "smell"}, "smell"),
        ("cpp", {"package_name": "class"}, "not allowed"),
    ],
)
def test_create_refuses(tmp_path: Path, language: str, answers: dict[str, str], message: str) -> None:
    pytest.importorskip("cookiecutter")
    with pytest.raises(ValueError, match=message):
        new.create(language, answers, directory=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_copied_headers_are_the_sdks(tmp_path: Path) -> None:
    pytest.importorskip("cookiecutter")
    for language in LANGUAGES:
        made = new.create(language, directory=tmp_path / language)
        assert files(made / "sdk/include") == files(Path(envpool_sdk.get_include())) == files(ROOT / "sdk/include")
