"""Values, records, tables and reports in cases that no other test has, one by one."""

from pathlib import Path
from typing import Any

import pytest
from paths import read_spec
from small import load

import archspec
from archspec import ArchError, Note, Source, Span, Type
from archspec.analysis.count.report import page
from archspec.analysis.formula import derivation
from archspec.analysis.verify.report import _remark
from archspec.compiler.evaluate import limits
from archspec.compiler.evaluate.values import DYNAMIC, UNKNOWN, MultipleOutputs, arithmetic, show, type_description
from archspec.compiler.evaluate.values import Tensor as TensorValue
from archspec.compiler.literals import parse_literal
from archspec.core.algebra import dim_max, symbol, to_latex
from archspec.core.algebra.polynomial import clear_fractions
from archspec.core.record import Node, Record
from archspec.core.reports.diagnostic_formats import _related
from archspec.core.reports.page import render_plain
from archspec.core.reports.tables import Bar, _csv_value
from archspec.pipeline import cache
from archspec.pipeline.compile import MAX_LIST_DEPTH, _is_plain
from archspec.pipeline.locate import locate
from archspec.testing import main

A, B = symbol("a"), symbol("b")
SCALE = read_spec("rare_values_scale")


class Pair(Record):
    left: int
    right: int = 7


class Named(Node):
    left: int


def test_records_have_their_fields() -> None:
    assert Pair(1) == (1, 7) and Pair(left=1, right=2)._replace(left=3) == (3, 2)
    for given, named, text in (
        ((1, 2, 3), {}, "Pair has only the fields left, right"),
        ((1,), {"middle": 3}, "Pair has only the fields left, right"),
        ((1,), {"left": 3}, "Pair has only the fields left, right"),
        ((), {"right": 3}, "Pair has no value for 'left'"),
    ):
        with pytest.raises(TypeError, match=f"^{text}$"):
            Pair(*given, **named)
    with pytest.raises(TypeError, match=r"^Pair has no field middle, more$"):
        Pair(1)._replace(middle=3, left=4, more=5)


def test_powers_and_ratios() -> None:
    assert A.__pow__(1.5) is NotImplemented and A.__pow__(True) is NotImplemented  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        _ = A**1.5  # type: ignore[operator]
    assert clear_fractions(A * 2, B * A * 3) == (2, B * 3) and clear_fractions(A + 1, B) == (A + 1, B)
    assert clear_fractions(A, A + B) == (A, A + B)
    remainder, floor = r"\left( a \bmod 4 \right)", r"\left\lfloor \frac{a}{b} \right\rfloor"
    assert to_latex(3 * (A // B) + A % 4) == rf"{remainder} + 3 \, {floor}"
    assert to_latex(dim_max(A, B)).startswith(r"\max")


def test_values_are_described() -> None:
    tensor = TensorValue(0, Type((2,)))
    assert [type_description(value) for value in (MultipleOutputs((tensor,)), tensor, DYNAMIC, A, (1,))] == [
        "group of outputs",
        "tensor",
        "value",
        "dimension",
        "list",
    ]
    assert [show(value) for value in (MultipleOutputs((tensor,)), tensor, DYNAMIC, A, UNKNOWN, True)] == [
        "...",
        "...",
        "DYNAMIC",
        "a",
        "(unknown)",
        "true",
    ]
    assert -UNKNOWN is UNKNOWN
    assert arithmetic("==", A, A + 0) is True and arithmetic("!=", A, A + 0) is False
    with pytest.raises(Exception, match="`a == b` is not a compile-time constant"):
        arithmetic("==", A, B)


def test_operations_on_sizes_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "MAX_SYMBOLIC_OPERATIONS"
    text = "dim seq\nblock Net(n = 4)(x [seq, n]) -> [seq * 2, n] {\n  a: unused param [n]\n  b: unused param [n]\n"
    text += "  return reshape([seq * 2, n])(concat(axis = 0)(x, x))\n}\n"
    count = next(n for n in range(1, 99) if _compiles(text, name, n, monkeypatch))
    monkeypatch.setattr(limits, name, count - 1)
    with pytest.raises(ArchError, match="too many operations on symbolic sizes: the limit is") as found:
        load(text)
    assert found.value.diagnostics[0].code == "budget" and f"{count - 1:,}" in found.value.diagnostics[0].message


def _compiles(text: str, name: str, most: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    monkeypatch.setattr(limits, name, most)
    try:
        load(text)
    except ArchError:
        return False
    return True


def test_literals_are_parsed() -> None:
    assert [parse_literal(text) for text in ("-3", "-2.5", "[1, -2]", "none", "true")] == [
        -3,
        -2.5,
        [1, -2],
        None,
        True,
    ]


def test_the_arguments_of_models_are_checked() -> None:
    model = load(SCALE.replace("  TIES\n", ""))
    for by in ("tensors", ""):
        with pytest.raises(ValueError, match=f"^by is 'tensor', 'layer', 'block' or 'role', not {by!r}$"):
            model.count(by)
    with pytest.raises(ValueError, match=r"^depth is 0 or more, not -1$"):
        model.count(depth=-1)
    for level in ("op", "layer"):
        with pytest.raises(ValueError, match=r"^depth goes with level 'block'$"):
            model.graph(level, depth=0)


def test_many_ties_are_counted() -> None:
    ties = "\n  ".join(f"tie {name}.weight = a.weight" for name in "bc")
    model = load(SCALE.replace("TIES", ties))
    assert "more names" not in render_plain(page(model.count()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("archspec.analysis.count.report._MAX_TIES", 1)
        text = render_plain(page(model.count()))
    assert "tied: b.weight = a.weight (4 counted once)" in text
    assert "tied: 1 more name; use --by tensor to show all" in text


def test_graphs_have_a_largest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load(SCALE.replace("  TIES\n", ""))
    monkeypatch.setattr("archspec.drawing.graph.MAX_GRAPH_NODES", 3)
    with pytest.raises(ArchError, match=r"too many graph nodes: about [0-9]+, the limit is 3") as found:
        model.graph("op")
    assert found.value.diagnostics[0].help == "use level `block` with a smaller depth"


def test_notes_of_diagnostics_have_places() -> None:
    source = Source("a.arch", "dim batch\nblock Net\n")
    assert _related(1, Note("seen")) == {"id": 1, "message": {"text": "seen"}}
    found: Any = _related(2, Note("defined here", Span(source, 10, 15)))
    assert found["id"] == 2 and found["message"] == {"text": "defined here"}
    assert found["physicalLocation"]["region"]["startLine"] == 2


def test_cells_of_tables() -> None:
    assert [_csv_value(value) for value in (True, "=1", "-x", "plain", 3, None, (2, 3))] == [
        "true",
        "'=1",
        "'-x",
        "plain",
        3,
        None,
        "2x3",
    ]
    assert _csv_value(Bar(5, 9)) == 5


def test_contents_of_files(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"text")
    assert cache.has_contents(str(path), b"text")
    assert not any(cache.has_contents(str(path), other) for other in (b"tex", b"texts", b"Text"))
    assert not cache.has_contents(path, b"text") and not cache.has_contents("\0", b"")
    assert not cache.has_contents(str(tmp_path), b"")


def test_remarks_on_differences() -> None:
    from types import SimpleNamespace

    def remark(**named: Any) -> str:
        usual = {"kind": "missing", "other": None, "dtype": "", "what": "tensor"}
        return _remark(SimpleNamespace(**{**usual, **named}))  # type: ignore[arg-type]

    assert remark(kind="tied", other="a.weight") == "same tensor as a.weight"
    assert remark(kind="total_size", other="12345") == "the index specifies 12,345 bytes"
    assert remark() == "" and remark(what="buffer") == "buffer" and remark(dtype="int8", what="buffer") == "int8"


def test_a_configuration_describes_its_quantization(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "bert", "quantization_config": [4]}')
    assert main(["count", str(path)]) != 0
    assert "`quantization_config` expects an object, found" in capsys.readouterr().err


def test_the_bundled_table_is_sound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.ir.tabulate.Table.is_consistent", lambda self: False)
    with pytest.raises(ArchError, match="the tensors of net do not add up to its total; this is a bug in archspec"):
        _ = load(SCALE.replace("  TIES\n", "").replace("n = 4", "n = 31")).tensors


def test_text_and_instances_are_counted_from_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = "block Inner(n)(x [seq, n]) -> [seq, n] {\n  a: param [n]\n  return x * .a\n}"
    outer = "block Net(n = 4)(x [seq, n]) -> [seq, n] {\n  return x |> b: Inner(n)\n}"
    text = f"dim seq\n{inner}\n{outer}\n"
    # Definitions are compiled for the model, and with their defaults.
    for name, least in (
        ("MAX_PROCESSED_CHARACTERS", 2 * limits.NEW_INSTANCE_FACTOR * len(inner + outer)),
        ("MAX_INSTANCES", 2),
    ):
        assert _compiles(text, name, least, monkeypatch)
        assert not _compiles(text, name, least - 1, monkeypatch)
        monkeypatch.undo()


def test_lists_of_overrides_are_limited_in_depth() -> None:
    def nested(depth: int) -> Any:
        return [nested(depth - 1)] if depth else 1

    assert _is_plain(nested(MAX_LIST_DEPTH)) and not _is_plain(nested(MAX_LIST_DEPTH + 1))


def test_a_path_that_does_not_exist_is_no_checkpoint(tmp_path: Path) -> None:
    assert [locate(str(path)).kind for path in (tmp_path / "missing", tmp_path)] == ["spec", "directory"]
    (tmp_path / "model.safetensors").touch()
    assert [locate(path).kind for path in (tmp_path, "missing/a/model.safetensors")] == ["checkpoint"] * 2


def test_the_text_of_all_compilations_for_a_formula_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "block Net(n = 4)(x [seq, n]) -> [seq, n] {\n  require n % 2 == 0\n  a: param [n]\n  return x * .a\n}"
    model = load(f"dim seq\n{text}\n")
    once = limits.NEW_INSTANCE_FACTOR * len(text)  # in the first compilation, before the assumption

    def is_derived(name: str, limit: int) -> bool:
        with monkeypatch.context() as patch:
            patch.setattr(derivation, name, limit)
            try:
                return str(archspec.formula(model, ["n"]).total) == "n"
            except ArchError:
                return False

    for name, least in (("MAX_COMPILATIONS", 2), ("MAX_PROCESSED_CHARACTERS", once)):
        assert [is_derived(name, least + more) for more in (-1, 0)] == [False, True]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MAX_COMPILATIONS", "too many case distinctions: the limit is 1"),
        ("MAX_PROCESSED_CHARACTERS", "too much text to process: the limit is 1 characters"),
    ],
)
def test_compilations_for_a_formula_are_limited(name: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derivation, name, 1)
    with pytest.raises(ArchError) as found:
        archspec.formula("bert-base-uncased", ["hidden", "heads"])
    assert [(error.code, error.message) for error in found.value.diagnostics] == [("no-formula", message)]
