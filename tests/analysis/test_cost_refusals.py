"""What `cost` refuses and reports in rare cases: decoding steps, sizes, quantized layouts, activations."""

from types import SimpleNamespace
from typing import Any

import pytest
from small import load

import archspec
from archspec import ArchError, CachePart
from archspec.analysis.cost import report
from archspec.analysis.cost.api import Activations
from archspec.analysis.cost.decoding_report import rows, summary
from archspec.core.reports.page import render_markdown
from archspec.pytorch.run import activations


def test_objects_that_are_no_models_are_diagnostics() -> None:
    objects: list[tuple[Any, str]] = [(3, "int"), (None, "NoneType"), (archspec.cost("gpt2"), "Cost")]
    for value, name in objects:
        with pytest.raises(ArchError) as found:
            archspec.cost(value)
        assert found.value.diagnostics[0].message == f"expected a model, found an object of type {name}"


def test_the_rows_of_a_decoding_step() -> None:
    found = archspec.cost("gpt2", past=5).decoding
    assert found is not None
    assert rows(found).rows == [CachePart("attention", 12, 5, 1536, 12 * 5 * 1536 * 4)._asdict()]
    lines = summary(found, "float32")
    assert lines[0].startswith("one position after 5 positions of `seq`") and "at most" not in "".join(lines)
    bound = summary(found._replace(weights_are_bound=True, batch=3), "float32")
    assert bound[:-1] != lines and bound[0].startswith("one position of each of 3 sequences after 5")
    assert bound[-1] == "the sequences of a batch may choose different experts; the bound assumes that they do"
    assert bound[2].startswith("at most ") and bound[4].startswith("at most ")


FIXED = "block Net(n = 4)(x [n]) -> [n] {\n  w: param [n]\n  kept: buffer [n] = 1.0\n  return x * .w + .kept\n}\n"


@pytest.mark.parametrize(
    ("given", "code", "message"),
    [
        ({"dims": {"seq": 3}}, "usage", "unknown dimension `seq` of it: all its sizes are fixed"),
        ({"past": -1}, "usage", "expected a number of past positions from 0 to 2^63 - 2, found -1"),
        ({"past": 2**63 - 1}, "usage", f"expected a number of past positions from 0 to 2^63 - 2, found {2**63 - 1}"),
        ({"attention": "flash", "dtype": "int8"}, "usage", "models are not trained with weights of type int8"),
        ({"attention": "fast"}, "usage", "unknown attention implementation `fast`"),
    ],
)
def test_other_arguments_are_refused(given: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(ArchError) as found:
        archspec.cost(load(FIXED), **given)
    assert (found.value.diagnostics[0].code, found.value.diagnostics[0].message) == (code, message)


# Activations ----------------------------------------------------------------------------------------------------------

NET = """
dim batch, seq
block Net(n = 4)(x [batch, 3 * seq, n]) -> [batch, 3 * seq, n] {
  w: param [n, n]
  return tanh(linear(exp(x), .w))
}
"""


def test_activations_have_formulas() -> None:
    torch = pytest.importorskip("torch")
    model = load(NET)
    found = activations.activation_bytes(model, {}, "float32", "flash")
    batch, seq = archspec.core.algebra.symbol("batch"), archspec.core.algebra.symbol("seq")
    assert str(found.bytes) == str(96 * batch * seq) and found.least.keys() == {"batch", "seq"}
    assert torch.get_default_dtype() == torch.float32


def test_activations_of_sizes_that_are_no_multiples() -> None:
    pytest.importorskip("torch")
    model = load(
        """
dim batch, seq
block Net(n = 4)(x [batch, seq, n], z [batch, seq + 1, n]) -> [batch, seq + 1, n] {
  w: param [n, n]
  return tanh(linear(exp(z), .w)) + sum(axis = 1, keep = true)(x)
}
"""
    )
    for given in ({}, {"batch": 2}):
        with pytest.raises(ArchError) as caught:
            activations.activation_bytes(model, given, "float32", "flash")
        (found,) = caught.value.diagnostics
        assert found.message == "no formula in seq was found for the memory of activations of it"
        assert (found.code, found.help) == ("no-formula", "add --dim seq=N")
    batch = archspec.core.algebra.symbol("batch")
    found = activations.activation_bytes(model, {"seq": 3}, "float32", "flash")
    assert str(found.bytes) == str(4 * 2 * 16 * batch) and found.least.keys() == {"batch"}
    fixed = activations.activation_bytes(model, {"seq": 3, "batch": 5}, "float16", "math")
    assert fixed == (2 * 2 * 16 * 5, {}) and type(fixed.bytes) is int


def test_activations_that_are_no_polynomial_have_no_formula() -> None:
    pytest.importorskip("torch")
    halves = load(
        NET.replace("exp(x)", "exp(slice(axis = 1, stop = seq // 2)(x))").replace(
            "-> [batch, 3 * seq", "-> [batch, seq // 2"
        )
    )
    with pytest.raises(ArchError) as caught:
        activations.activation_bytes(halves, {"batch": 2}, "float32", "flash")
    assert caught.value.diagnostics[0].message == "no formula in seq was found for the memory of activations of it"
    found = activations.activation_bytes(halves, {"batch": 2, "seq": 7}, "float32", "flash")
    assert found.bytes == 4 * 2 * 4 * (3 + 3)  # the results of exp and tanh


def test_formulas_of_activations_hold_from_certain_sizes_on() -> None:
    sympy = pytest.importorskip("sympy")
    s, t = sympy.symbols("s t", integer=True, positive=True)

    def is_known(polynomial: Any, *guards: Any, deferred: Any = ()) -> bool:
        noted = [SimpleNamespace(expr=guard) for guard in guards]
        environment: Any = SimpleNamespace(guards=noted, deferred_runtime_asserts=deferred)
        return activations._is_known(environment, sympy.Poly(polynomial, s, t))

    assert is_known(3 * s * t) and is_known(3 * s * t, s > 3, t >= 2)
    for guard in (s < 5, s <= 5, sympy.Eq(s, 4), s > t, 2 * s > 3, s > sympy.Rational(5, 2), sympy.And(s > 3, t > 4)):
        assert not is_known(3 * s * t, s > 3, guard)
    assert not is_known(s / 2 + t) and not is_known(3 * s * t, deferred={"s": ["a check"]})


def test_attention_that_the_fused_kernel_does_not_take() -> None:
    pytest.importorskip("torch")
    model = archspec.load("t5-small", layers=1, vocab=10)
    sizes = {"batch": 1, "seq": 3, "target": 2}
    with pytest.raises(ArchError) as caught:
        activations.activation_bytes(model, sizes, "float32", "flash")
    (found,) = caught.value.diagnostics
    assert found.code == "bad-size" and found.message.startswith("t5-small cannot run with flash attention: ")
    assert found.help is not None and "`--attention math` takes all" in found.help
    assert activations.activation_bytes(model, sizes, "float32", "math").least == {}


def test_reports_of_memory() -> None:
    found = archspec.cost(load(FIXED))
    text = render_markdown(report.page(found))
    assert "| `buffers` |" in text and "activations" not in text
    text = render_markdown(report.page(found.replace(activations=Activations("math", 4321, {}))))
    assert "| `activations saved for training, math attention` |" in text and "4,321" in text
    document = found.replace(activations=Activations("math", 4321, {"seq": 3})).to_dict()
    assert document["memory"]["activations"] == {"attention": "math", "bytes": 4321, "least": {"seq": 3}}
    size = archspec.core.algebra.symbol("seq") * 1000
    text = render_markdown(report.page(found.replace(activations=Activations("flash", size, {"seq": 3, "b": 2}))))
    assert r"1,000\*seq bytes of activations saved for training, flash attention, where seq >= 3, b >= 2" in text
