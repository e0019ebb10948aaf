"""`..` that passes a hyperparameter into a part where its name may mean something different."""

from pathlib import Path

import pytest

from archspec.pipeline.compile import check

SPEC = """
import std {{ Linear }}
dim batch

block Text({text})(x [batch, hidden]) -> [batch, hidden] {{
  return x |> dense: Linear(hidden, hidden)
}}

block Vision({vision})(x [batch, hidden]) -> [batch, hidden] {{
  return x |> dense: Linear(hidden, hidden, bias)
}}

block Both({both}, Tower = Vision)(x [batch, hidden], y [batch, {size}]) -> ([batch, hidden], [batch, {size}]) {{
  h = text: Text(..)(x)
  return h, vision: Tower({arguments})(y)
}}
"""
VISION = "hidden = 96, bias = true"


@pytest.mark.parametrize(
    ("text", "vision", "both", "arguments", "warns"),
    [
        ("hidden", VISION, "hidden = 64", "..", True),
        ("hidden = 64", VISION, "hidden = 64", "..", True),
        ("hidden = 64", VISION, "..Text", "..", True),
        ("hidden = 32", VISION, "hidden = 64", "..", False),  # both differ: the defaults are those of other models
        ("hidden", VISION, "hidden = 64", "hidden = 96, ..", False),
        ("hidden", VISION, "hidden = 64", "96, ..", False),
        ("hidden", VISION, "hidden = 64", "hidden = hidden", False),
        ("hidden", VISION, "hidden", "..", False),
        ("hidden", "hidden = 64, bias = true", "hidden = 64", "..", False),
        ("hidden", "hidden = 96, bias = true, heads", "hidden = 64, heads = 2", "..", False),  # no model by itself
        ("hidden", "hidden, bias = true", "hidden = 64", "..", False),
    ],
)
def test_a_different_default_beside_another_part_is_a_warning(
    text: str, vision: str, both: str, arguments: str, warns: bool, tmp_path: Path
) -> None:
    path = tmp_path / "spec.arch"
    size = "96" if "96" in arguments else "hidden"
    path.write_text(SPEC.format(text=text, vision=vision, both=both, arguments=arguments, size=size))
    report = check(path)
    assert [each for each in report.diagnostics if each.severity == "error"] == []
    codes = [each.code for each in report.diagnostics if each.code == "ambiguous-name"]
    assert codes == ["ambiguous-name"] * warns
