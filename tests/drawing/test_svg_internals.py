"""Steps of the code that the tests of svg cannot reach through public names."""

import json
from xml.etree import ElementTree

import picture_lint
import pytest
from pictured import HOSTILE, named, states

import archspec
from archspec.core.algebra import evaluate
from archspec.drawing.api import build_plan, find_open_nodes, picture
from archspec.drawing.layout.layout import layout
from archspec.drawing.plan.metrics import shorten_text, width
from archspec.drawing.svg.legend import role_share
from archspec.drawing.svg.paint import Paint
from archspec.drawing.svg.svg import svg
from archspec.drawing.svg.theme import DARK, LIGHT, Theme, contrast, heat_color, role_styles


def test_svg_is_self_contained() -> None:
    shown = picture(archspec.load("bart-base"), "op")
    root = ElementTree.fromstring(shown)
    names = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert names <= {"svg", "title", "rect", "g", "path", "text", "circle"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if "href" in name or name.startswith("on") or name in ("id", "style")]


def test_the_plan_is_data() -> None:
    plan = build_plan(archspec.load("t5-small"))
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
    plan = build_plan(model)
    root = ElementTree.fromstring(picture(model))
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "\u202e" not in "".join(root.itertext())
    for name_, is_open in states(plan):
        assert picture_lint.text_faults(layout(plan, is_open)) == [], name_


def test_texts_are_shortened_in_the_middle() -> None:
    assert shorten_text("abcdefghijklmnop", 10, 40) == "abc\N{HORIZONTAL ELLIPSIS}op"
    assert shorten_text("abcdefghijklmnop", 10, 45) == "abc\N{HORIZONTAL ELLIPSIS}nop"
    assert shorten_text("mmmm", 10, 5) == "m\N{HORIZONTAL ELLIPSIS}"
    assert shorten_text("a\tb", 10, 40) == "a\N{REPLACEMENT CHARACTER}b"
    assert shorten_text("abc", 10, width("abc", 10)) == "abc"


def test_shares_have_one_decimal() -> None:
    assert [role_share(part, 1000) for part in (0, 1, 15, 1000)] == ["tied", "0.1 %", "1.5 %", "100.0 %"]
    assert (role_share(1, 1001), role_share(1, 2001)) == ("0.1 %", "< 0.1 %")


@pytest.mark.parametrize(
    ("bold", "total", "letters"), [(False, 50_058, [1015, 222, 944]), (True, 52_367, [975, 278, 944])]
)
def test_widths_are_those_of_helvetica(bold: bool, total: int, letters: list[int]) -> None:
    assert [width(letter, 1000, bold) for letter in "@iW"] == letters
    assert sum(width(chr(code), 1000, bold) for code in range(32, 127)) == total


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
        fill = heat_color(theme, share / 100)
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
    plan = build_plan(model)
    paint = Paint(plan, LIGHT, "flops", {"batch": 1, "seq": 128})
    whole = archspec.cost(model, 1, 128)
    dense = {module.address: module for module in whole.modules}["encoder.layer.0.intermediate.dense"]
    share = 12 * dense.own.flops / whole.work.flops
    assert paint.shares[named(plan, "encoder.layer.*.intermediate.dense").id] == pytest.approx(share)
    shown = svg(plan, find_open_nodes(plan, "layer", None), paint)
    assert "share of FLOPs at batch = 1, seq = 128" in shown
