"""Pictures as SVG, PNG and PDF: the file, its colors, and the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import picture_lint
import pytest
from test_picture import named, states

import archspec
from archspec.algebra import evaluate
from archspec.cli import main
from archspec.pictures.api import opened, picture, plan_of
from archspec.pictures.layout import layout
from archspec.pictures.metrics import width
from archspec.pictures.paint import Paint
from archspec.pictures.svg import svg
from archspec.pictures.theme import DARK, LIGHT, Theme, contrast, heat, role_styles

# The file


def test_svg_is_self_contained() -> None:
    shown = picture(archspec.load("bart-base"), "op")
    root = ElementTree.fromstring(shown)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names <= {"svg", "title", "rect", "g", "path", "text", "circle"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if "href" in name or name.startswith("on") or name in ("id", "style")]


def test_the_plan_is_data() -> None:
    plan = plan_of(archspec.load("t5-small"))
    data = json.loads(json.dumps(plan.to_data()))
    sizes = {"batch": 3, "seq": 5, "target": 7}
    for node, found in zip(plan.nodes, data["nodes"], strict=True):
        assert (found["id"], found.get("parent"), found.get("main")) == (node.id, node.parent, node.main)
        for key in ("macs", "elementwise", "bytes", "times"):
            exact = evaluate(getattr(node, key), sizes)
            assert value_of(found.get(key, 1 if key == "times" else 0), sizes) == exact


def value_of(data: object, sizes: dict[str, int]) -> int:
    """Evaluate a polynomial as the page does."""
    if not isinstance(data, list):
        return int(data)  # pyright: ignore[reportArgumentType]
    total = 0
    for coefficient, factors in data:
        term = int(coefficient)
        for factor, exponent in factors:
            if isinstance(factor, str):
                value = sizes[factor]
            else:
                one, *rest = (value_of(part, sizes) for part in factor[1:])
                value = {"+": lambda a: a, "//": int.__floordiv__, "%": int.__mod__, "min": min, "max": max}[factor[0]](
                    one, *rest
                )
            term *= value**exponent
        total += term
    return total


@pytest.mark.slow
def test_the_same_bytes_each_time() -> None:
    code = "import archspec; from archspec.pictures.api import picture; print(picture(archspec.load('t5-small'), 'op'))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(runs) == 1


HOSTILE = ["</script><script>alert(1)</script>", "a\"b'c", "\u202eright to left", "שלום עולם", "x" * 200, "語" * 60]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_inert_and_inside(name: str) -> None:
    quoted = json.dumps(name, ensure_ascii=False)
    long = "very_" * 40 + "long"
    model = archspec.loads(
        f"""
        import std {{ Linear }}
        dim batch
        block Net(n = 4)(x [batch, n]) -> (y_{long} [batch, n]) {{
          return x |> a.b.{long}: Linear(n, n)
        }}
        model {quoted} = Net()
        """
    )
    plan = plan_of(model)
    root = ElementTree.fromstring(picture(model))
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "\u202e" not in "".join(root.itertext())
    for name_, is_open in states(plan):
        assert picture_lint.text_faults(layout(plan, is_open)) == [], name_


# Colors


@pytest.mark.parametrize("bold", [False, True])
def test_digits_are_equally_wide(bold: bool) -> None:
    assert {width(digit, 1000, bold) for digit in "0123456789"} == {556}


def test_contrast_is_that_of_wcag() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=5e-4)
    assert contrast("#0a0a0a", "#000000") == pytest.approx(1 + 10 / 255 / 12.92 / 0.05)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_contrast_of_texts(theme: Theme) -> None:
    fills = [fill.fill for fill in (theme.plain, *theme.roles.values(), *theme.others)]
    fills += [theme.background, theme.pill, theme.terminal, *theme.frames]
    for fill in fills:
        assert contrast(theme.ink, fill) >= 4.5 and contrast(theme.dim, fill) >= 4.5, fill
    assert contrast(theme.badge_ink, theme.badge) >= 4.5
    assert contrast(theme.tie, theme.background) >= 4.5
    for share in range(101):
        fill = heat(theme, share / 100)
        assert max(contrast("#000000", fill), contrast("#ffffff", fill)) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_roles_are_distinguished_without_color(theme: Theme) -> None:
    roles = [*theme.roles, "router", "adapter", "encoder", "a", "b", "c", "d"]
    styles = role_styles(theme, roles)
    assert len({style.letter for style in styles.values()}) == len(roles)
    assert [*styles][: len(theme.roles)] == [*theme.roles]
    legend = picture(archspec.load("bert-base-uncased"))
    for letter in ("E", "A", "F", "N", "P"):
        assert legend.count(f">{letter}</text>") >= 2  # in the legend and on a box


def test_colors_by_share() -> None:
    model = archspec.load("bert-base-uncased")
    plan = plan_of(model)
    paint = Paint(plan, LIGHT, "flops", {"batch": 1, "seq": 128})
    whole = archspec.cost(model, 1, 128)
    dense = {module.address: module for module in whole.modules}["encoder.layer.0.intermediate.dense"]
    share = 12 * dense.own.flops / whole.work.flops
    assert paint.shares[named(plan, "encoder.layer.*.intermediate.dense").id] == pytest.approx(share)
    shown = svg(plan, opened(plan, "layer", None), paint)
    assert "share of FLOPs at batch = 1, seq = 128" in shown


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["graph", "bert-base-uncased", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_extension_is_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for extension, start in (
        (".svg", "<svg "),
        (".SVG", "<svg "),
        (".dot", "digraph"),
        (".mmd", "---\ntitle"),
        (".json", "{"),
    ):
        path = tmp_path / f"bert{extension}"
        assert run(capsys, "-o", str(path))[0] == 0
        assert path.read_text().startswith(start)
    path = tmp_path / "bert.txt"
    assert run(capsys, "-o", str(path), "--to", "svg")[0] == 0
    assert path.read_text().startswith("<svg ")
    status, _, err = run(capsys, "-o", str(tmp_path / "bert.svgz"))
    assert status != 0 and "unknown extension `.svgz`" in err and "did you mean `svg`?" in err
    assert "has no extension" in run(capsys, "-o", str(tmp_path / "bert"))[2]


def test_options_of_pictures(capsys: pytest.CaptureFixture[str]) -> None:
    assert "#12161d" in run(capsys, "--to", "svg", "--dark")[1]
    assert "share of parameters" in run(capsys, "--to", "svg", "--color", "params")[1]
    assert "requires sizes of `batch`, `seq`" in run(capsys, "--to", "svg", "--color", "flops")[2]
    assert "share of activation" in run(capsys, "--to", "svg", "--color", "bytes", "--batch", "1", "--seq", "8")[1]
    assert "requires a picture" in run(capsys, "--to", "dot", "--dark")[2]
    assert "does not depend on sizes" in run(capsys, "--to", "svg", "--seq", "8")[2]
    assert "bad-size" in run(capsys, "--to", "svg", "--color", "flops", "--batch", "1", "--seq", "4096")[2]


def test_png_and_pdf(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "error[usage]: PNG requires a file" in run(capsys, "--to", "png")[2]
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    assert "requires `rsvg-convert` or the Python package `cairosvg`" in run(capsys, "-o", str(tmp_path / "a.pdf"))[2]
    fake = SimpleNamespace(svg2png=lambda bytestring, scale: b"\x89PNG" + bytestring[:4])
    monkeypatch.setitem(sys.modules, "cairosvg", fake)
    assert run(capsys, "-o", str(tmp_path / "a.png"))[0] == 0
    assert (tmp_path / "a.png").read_bytes() == b"\x89PNG<svg"
    program = tmp_path / "rsvg-convert"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:], len(sys.stdin.read()) > 1000)\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(capsys, "-o", str(tmp_path / "b.pdf"))[0] == 0
    assert (tmp_path / "b.pdf").read_text() == "['--format', 'pdf'] True\n"
