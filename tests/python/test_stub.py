"""The hand-written stub names just what the native module has."""

from __future__ import annotations

import ast
from pathlib import Path

import envpool_sdk
from envpool_sdk import _native


def stub_names() -> dict[str, set[str]]:
    """Public names of the stub's module ("") and classes, without the typed dictionaries, which exist for types only."""
    path = next(p for p in (Path(place) / "_native.pyi" for place in envpool_sdk.__path__) if p.exists())
    names: dict[str, set[str]] = {"": set()}

    def name_of(node: ast.stmt) -> str | None:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            return node.target.id
        return node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else None

    for node in ast.parse(path.read_text()).body:
        name = name_of(node)
        if name is None or name.endswith("Dict"):
            continue
        names[""].add(name)
        if isinstance(node, ast.ClassDef):
            members = {member for part in node.body if (member := name_of(part)) is not None}
            names[name] = {member for member in members if not member.startswith("_")}
    return names


def test_stub_and_module_agree() -> None:
    for owner, wanted in stub_names().items():
        target = getattr(_native, owner) if owner else _native
        base = set(dir(target.__base__)) if isinstance(target, type) else set()
        public = {name for name in dir(target) if not name.startswith("_")} - base
        assert public == {name for name in wanted if not name.startswith("_")}, owner or "_native"
