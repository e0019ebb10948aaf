"""Labels are only for display."""

import re
from pathlib import Path

from archspec import testing

TEXT = """
import std { Linear, LayerNorm }

dim batch

block Part(n, scale = 2)(x [batch, n]) -> (y [batch, n]) {
  label "Part of a model"
  label "width" for n
  label "Lower" for lower, x, y
  return x |> norm: LayerNorm(n) |> lower[i]: Linear(n, n) for i in 0..2 |> * scale
}

block Whole(n = 3, parts = 2)(x [batch, n]) -> [batch, n] {
  label "Vectors" for x
  label "Stack"   for part
  label "Last"    for part[1].lower[0]
  return x |> part[i]: Part(n) for i in 0..parts
}

model "whole" = Whole()
"""


def test_labels_change_nothing_but_what_is_displayed(tmp_path: Path) -> None:
    plain = re.sub(r"\n *label .*", "", TEXT)
    assert plain.count("label") == 0
    commands = (
        ["count", "-", "--by", "tensor", "--format", "json"],
        ["cost", "-", "--batch", "2", "--format", "json"],
        ["formula", "-", "--open", "n"],
        ["build", "-"],
    )
    for command in commands:
        labeled, unlabeled = (testing.run(*command, stdin=text) for text in (TEXT, plain))
        assert labeled.status == 0, labeled.errors
        assert re.sub(r"arch:\d+", "", labeled.output) == re.sub(r"arch:\d+", "", unlabeled.output), command
    (tmp_path / "labeled.arch").write_text(TEXT, encoding="utf-8")
    (tmp_path / "plain.arch").write_text(plain, encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("labeled.arch", "plain.arch")]
    assert testing.run("diff", *paths).status == 0
    compared = [testing.run("compare", *pair).output for pair in (paths, [paths[1]] * 2)]
    assert compared[0].replace(paths[0], paths[1]) == compared[1]
    for command in ("compare", "diff"):
        picture = tmp_path / f"{command}.svg"
        assert testing.run(command, *paths, "--svg", str(picture)).status == 0
        assert "no differences" in picture.read_text(encoding="utf-8")
