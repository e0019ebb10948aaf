"""Nothing in the compiler knows a bundled definition by name: with every one renamed, the tables stay the same."""

import re
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from bundled import each
from paths import ROOT

import archspec
import archspec.pipeline.files
from archspec import Source, Tensors, pipeline
from archspec.core import resources
from archspec.core.diagnostics import Report
from archspec.core.record import Node
from archspec.language.syntax import tree
from archspec.pipeline.model import get_compilation

SPECS = ROOT / "specs"
MODELS = archspec.models()


def parse(text: str) -> tree.File:
    return pipeline.files.parse_cached(Source("spec", text), Report())


def definitions(file: tree.File) -> list[tree.Definition]:
    return [item for item in file.items if isinstance(item, tree.Definition)]


@cache
def trees() -> dict[Path, tree.File]:
    return {path: parse(path.read_text(encoding="utf-8")) for path in sorted(SPECS.rglob("*.arch"))}


@cache
def kinds() -> dict[str, str]:
    return {d.name.text: d.kind for file in trees().values() for d in definitions(file)}


@cache
def new_names() -> dict[str, str]:
    return {name: f"Other{n}" for n, name in enumerate(kinds())}


@cache
def old_names() -> dict[str, str]:
    return {new: old for old, new in new_names().items()}


def renamed(path: Path) -> str:
    """The text of a bundled file with the names of definitions changed where they stand, and nothing else."""
    text, file = path.read_text(encoding="utf-8"), trees()[path]
    ours = {d.name.text for d in definitions(file)}
    places: dict[int, str] = {}
    for item in file.items:
        if isinstance(item, tree.Import):
            taken = [entry for entry in item.names if entry.name in new_names()]
            places |= {entry.start: entry.name for entry in taken}
            ours |= {entry.name for entry in taken if entry.alias == entry.name}
    for item in file.items:
        if not isinstance(item, tree.Import | tree.DimensionDeclaration):
            places |= {name.start: name.text for name in names(item) if name.text in ours}
    for start, name in sorted(places.items(), reverse=True):
        assert text.startswith(name, start)
        text = text[:start] + new_names()[name] + text[start + len(name) :]
    return text


def names(node: Any) -> Iterator[tree.Name]:
    """Every bare word in a part of the tree. (No local has the name of a definition in sight: that is an error.)"""
    if isinstance(node, tree.Name):
        yield node
    elif isinstance(node, Node | tuple):
        for part in node:
            yield from names(part)


def restored(value: Any) -> Any:
    """The data of a table, with the old names wherever the new ones stand, as in `Part(n = 4)`."""
    if isinstance(value, dict):
        return {key: restored(item) for key, item in value.items()}
    if isinstance(value, list | tuple | Tensors):
        return [restored(item) for item in value]
    return re.sub(r"\w+", lambda word: old_names().get(word[0], word[0]), value) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the specs with other names."""
    folder = tmp_path_factory.mktemp("renamed") / "specs"
    shutil.copytree(SPECS, folder)
    for path in trees():
        (folder / path.relative_to(SPECS)).write_text(renamed(path), encoding="utf-8")
    return folder


def test_every_definition_has_another_name_in_the_copy() -> None:
    assert len(new_names()) > 20
    for path in trees():
        file = parse(renamed(path))
        assert not file.broken
        assert {d.name.text for d in definitions(file)} <= set(old_names())


def test_the_copy_has_the_same_models(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "specs_root", lambda: str(copy))
    assert archspec.models() == MODELS


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", each())
def test_a_copy_with_every_definition_renamed_gives_the_same_tables(
    name: str, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = archspec.load(name)
    monkeypatch.setattr(resources, "specs_root", lambda: str(copy))
    model = archspec.load(name)
    before, after = get_compilation(original).table, get_compilation(model).table
    assert {row.type for row in (*after.tensors, *after.modules)} <= set(old_names())
    assert restored(after.to_data()) == restored(before.to_data())
    assert restored(archspec.cost(model)) == restored(archspec.cost(original))


LIFTING = (
    "pytorch/lift/idioms/layers.py",
    "pytorch/lift/notation/notation.py",
    "pytorch/lift/notation/names.py",
    "pytorch/lift/statements/value_names.py",
)
"""Lifting writes the layers of the standard library for modules of PyTorch."""

OTHER_LIBRARIES = ("formats/configs/companions.py",)
"""Files that read the names of classes of other libraries."""

PAPERS = tuple(f"ir/structure/{name}.py" for name in ("bodies", "parts", "read")) + tuple(
    f"drawing/figure/{name}.py" for name in ("elements", "names")
)
"""Files that say in the words of papers what operations compute, whatever definitions are called."""

PART = re.compile(r"[\w-]+")


def test_no_python_file_names_a_bundled_model_block_or_layer() -> None:
    words = {name: PART.findall(name) for name in (*MODELS, *(name for name, kind in kinds().items() if kind != "fn"))}
    found = []
    for path in sorted((ROOT / "archspec").rglob("*.py")):
        if str(path.relative_to(ROOT / "archspec")) in (*LIFTING, *OTHER_LIBRARIES, *PAPERS):
            continue
        text = path.read_text(encoding="utf-8")
        parts = set(PART.findall(text))
        possible = [re.escape(name) for name, needed in words.items() if parts.issuperset(needed)]
        if not possible:
            continue
        word = re.compile(rf"(?<![\w-])(?<!\bnn\.)({'|'.join(possible)})(?![\w-])")
        for number, line in enumerate(text.splitlines(), 1):
            found += [f"{path.relative_to(ROOT)}:{number} names {name}" for name in word.findall(line)]
    assert not found
