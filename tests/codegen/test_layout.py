"""How the code of generated files is broken into lines."""

import ast

import pytest
from building import build
from paths import DATA, ROOT

from archspec.codegen.python import layout

SPECS = {
    "small-decoder": f"{ROOT / 'specs' / 'std' / 'examples.arch'}:small-decoder",
    "everything": f"{DATA / 'translated' / 'everything.arch'}",
    "t5-small": "t5-small",
}


@pytest.mark.parametrize(
    "name", ["small-decoder", *[pytest.param(name, marks=pytest.mark.slow) for name in ("everything", "t5-small")]]
)
def test_where_lines_end_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However narrow lines are, a file is the same program: operations keep their parentheses."""
    programs: set[str] = set()
    for width in (20, 40, 64, 88):
        monkeypatch.setattr(layout, "WIDTH", width)
        tree = ast.parse(build(SPECS[name]))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module) and ast.get_docstring(node) is not None:
                node.body.pop(0)
        programs.add(ast.unparse(tree))
    assert len(programs) == 1
