"""The Python that specs are translated to: `cases/NAME.txt` has the code for each spec in `cases/NAME.arch`.

Imports, docstrings and `build` are left out. What has no form in PyTorch has an error in the place of code.
`pytest tests/codegen/test_codegen_cases.py --update-golden` renews the code.
"""

import ast
from pathlib import Path
from typing import Any

import pytest
import torch_compare
from sections import compare_section, read_sections

import archspec
from archspec import testing

CASES = Path(__file__).parent / "cases"
SPECS = {(path.stem, name): text for path in sorted(CASES.glob("*.arch")) for name, text in read_sections(path).items()}
NOT_RUN = {"a model whose only output is left out gives none"}
BUILT = [(file, name) for file, name in SPECS if file not in ("refused", "initializers") and name not in NOT_RUN]


def parameters(cases: Any) -> Any:
    return pytest.mark.parametrize(("file", "name"), cases, ids=[f"{file}: {name}" for file, name in cases])


@parameters(SPECS)
def test_the_code_of_a_spec(file: str, name: str, request: pytest.FixtureRequest) -> None:
    result = testing.run("build", "-", stdin=SPECS[file, name])
    assert bool(result.status) == (file == "refused")
    names = [name for path, name in SPECS if path == file]
    text = result.errors if result.status else shorten(result.output)
    compare_section(CASES / f"{file}.txt", name, text, names, request.config.getoption("--update-golden"))


def shorten(source: str) -> str:
    """Return a file without imports, docstrings and `build`."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node) is not None:
            del node.body[0]
    omitted = (ast.Import, ast.ImportFrom)
    tree.body = [node for node in tree.body if not isinstance(node, omitted) and getattr(node, "name", "") != "build"]
    return ast.unparse(tree)


@pytest.mark.slow
@parameters(BUILT)
def test_a_module_computes_what_the_spec_says(file: str, name: str) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(archspec.loads(SPECS[file, name]))


def test_each_code_has_a_spec() -> None:
    assert all([*read_sections(path)] == [*read_sections(path.with_suffix(".txt"))] for path in CASES.glob("*.arch"))
