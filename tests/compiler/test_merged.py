"""Definitions that own the parts of another one without a prefix: `..: Inner(..)(..)`."""

import pytest
import torch_compare
from paths import DATA
from small import DENSE, SCALE, findings, layers, load, operations, shapes

import archspec
from archspec.codegen.build import torch_source

SPEC = DATA / "translated" / "merged.arch"
NAMES = ["encoder", "other", "third", "parts", "wrapped", "both"]
INNER = (
    DENSE
    + SCALE
    + """
dim batch
block Inner(n = 4, m = 2, scaled = true, depth = 2)(x [batch, n]) -> [batch, n] {
  h = x |> layers[i]: Dense(n, n) for i in 0..depth
  y = h |> a.up: Dense(n, m) |> a.down: Dense(m, n)
  tie layers[1].weight = layers[0].weight if depth > 1
  role body for layers
  return y |> scale: Scale(n) if scaled
}
"""
)


def outer(body: str, head: str = "..Inner") -> str:
    return f"{INNER}block Outer({head})(..Inner) -> [batch, n] {{\n{body}\n}}\n"


WHOLE = outer("  return ..: Inner(..)(..)")


def test_the_parts_are_those_of_the_other_definition() -> None:
    model, inner = load(WHOLE), load(INNER)
    assert model.tensors == inner.tensors
    assert model.params == inner.params
    assert layers(model) == layers(inner)
    assert operations(model, "op") == operations(inner, "op")
    assert archspec.cost(model).work == archspec.cost(inner).work
    assert not archspec.diff(inner, model)


def test_a_part_is_replaced() -> None:
    text = outer("  h = ..: Inner(.., scaled = false)(..)\n  return h |> scale: Dense(n)")
    model, inner = load(text), load(INNER)
    assert shapes(model) == {
        **{name: shape for name, shape in shapes(inner).items() if name != "scale.weight"},
        "scale.weight": (4, 4),
        "scale.bias": (4,),
    }


def test_ties_and_roles_hold() -> None:
    text = outer(
        "  h = ..: Inner(.., m = 4)(..)\n  last: Dense(n)\n"
        "  tie last.weight = a.up.weight\n  tie a.down.weight = last.weight\n"
        "  role top for last\n  return .last(h)"
    )
    model = load(text)
    tied = {tensor.name: tensor.tied_to for tensor in model.tensors if tensor.tied_to}
    assert tied == {
        "layers.1.weight": "layers.0.weight",
        "last.weight": "a.up.weight",
        "a.down.weight": "a.up.weight",
    }
    assert model.params.total == 16 + 2 * 4 + 16 + 2 * 4 + 4 + 4
    roles = {tensor.name: tensor.role for tensor in model.tensors}
    assert roles["layers.1.bias"] == "body"
    assert roles["last.bias"] == "top"
    assert roles["a.up.bias"] is None


def test_a_role_of_the_whole_definition_holds_for_its_parts() -> None:
    text = f"""{DENSE}
block Inner(n = 4)(x [..., n]) -> [..., n] {{
  role body
  return x |> a: Dense(n)
}}
block Outer(n = 4)(x [..., n]) -> [..., n] {{
  return x |> ..: Inner(n) |> b: Dense(n)
}}
"""
    assert {tensor.name: tensor.role for tensor in load(text).tensors} == {
        "a.weight": "body",
        "a.bias": "body",
        "b.weight": None,
        "b.bias": None,
    }


def test_parts_are_frozen_and_applied_by_their_addresses() -> None:
    body = "  ..: frozen Inner(.., depth = 1, scaled = false)\n"
    body += "  return x |> .layers[0] |> .a.up |> .a.down |> top: Dense(n)"
    model = load(outer(body))
    assert model.params.trainable == 20
    assert model.params.frozen == 20 + 10 + 12
    unused = findings(outer(body.replace(" |> .layers[0]", "")))
    assert [(d.code, d.message) for d in unused] == [("unused-layer", "`layers.0` does not affect any output")]


def test_what_is_left_out_is_none() -> None:
    body = "  h = ..: Inner(..)(..) if on else x\n"
    body += "  if .scale != none {\n    y = .scale(h)\n  } else {\n    y = h\n  }\n  return y"
    text = outer(body, "..Inner, on = true")
    assert load(text).params.total == load(INNER).params.total
    assert load(text, on=False).params.total == 0


def test_formulas() -> None:
    names = {"hidden": 6, "layers": 2}
    formula = archspec.formula(f"{SPEC}:third", list(names))
    for values in (names, {"hidden": 8, "layers": 5}, {"hidden": 3, "layers": 1}):
        assert formula.at(**values) == archspec.load(f"{SPEC}:third", **values).params.total


MISTAKES = [
    (
        "  a.up: Dense(n)\n  h = ..: Inner(..)(..)\n  return h |> .a.up",
        "address `a.up` of `Inner` is already declared",
        [(22, "first declared here"), (16, "`Inner` declares it here")],
    ),
    (
        "  h = ..: Inner(..)(..)\n  return h |> scale: Dense(n)",
        "address `scale` is already declared",
        [(22, "first declared here")],
    ),
    (
        "  h = ..: Inner(..)(..)\n  return h |> a: Dense(n)",
        "address `a.up` is inside `a`, which is already declared",
        [(23, "declared here")],
    ),
    (
        "  return x |> ..: Inner(..) |> ..: Inner(..)",
        "address `layers.0` of `Inner` is already declared",
        [(22, "first declared here"), (15, "`Inner` declares it here")],
    ),
    (
        "  for i in 0..2 {\n    x = ..: Inner(..)(x)\n  }\n  return x",
        "address `layers.0` of `Inner` is declared again in each loop iteration",
        [],
    ),
]


@pytest.mark.parametrize(("body", "message", "notes"), MISTAKES)
def test_two_owners_of_an_address(body: str, message: str, notes: list[tuple[int, str]]) -> None:
    found = [d for d in findings(outer(body)) if d.code == "duplicate-address"]
    assert message in [d.message for d in found]
    diagnostic = next(d for d in found if d.message == message)
    assert [(n.span.source.position(n.span.start)[0], n.text) for n in diagnostic.notes if n.span] == notes


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  return ..: Inner(..)(..) |> .scales", "nothing is declared at `.scales`"),
        ("  return ..: linear(x, x)", "expected a layer or block after an address, found a function `linear`"),
        ("  ..: Inner(..)(..)\n  return x", "the value of this statement is unused"),
        ("  ..: param [n]\n  return x", "expected a layer or block after `:`, found `param`"),
        ("  h = ..\n  return h", "expected `:` after `..`, found the end of the line"),
        ("  tie .. = a\n  return ..: Inner(..)(..)", "expected an address after `tie`, found `..`"),
        ("  role top for scales\n  return ..: Inner(..)(..)", "nothing is declared at `scales`"),
    ],
)
def test_mistakes(body: str, message: str) -> None:
    assert message in [d.message for d in findings(outer(body))]


def test_an_error_in_the_other_definition_is_the_only_one() -> None:
    text = outer("  h = ..: Inner(..)(..)\n  role body for scale\n  return .scale(h)")
    wrong = text.replace("scale: Scale(n) if scaled", "scale: Unknown(n) if scaled")
    assert [d.message for d in findings(wrong)] == ["unknown name `Unknown`"]


def test_a_layer_merges_layers_only() -> None:
    text = WHOLE.replace("block Outer", "layer Outer")
    assert [d.message for d in findings(text)] == ["a layer can only declare tensors, found the block `Inner`"]


# PyTorch -------------------------------------------------------------------------------------------------------------


def test_a_class_is_derived() -> None:
    source = torch_source(archspec.load(f"{SPEC}:third"))
    assert "class Third(Other):" in source
    assert "class Other(Encoder):" in source
    assert "logits = super().forward(ids)" in source


def refused(text: str) -> str:
    with pytest.raises(archspec.ArchError) as caught:
        torch_source(load(text))
    assert [d.code for d in caught.value.diagnostics] == ["untranslatable"]
    return caught.value.diagnostics[0].message


def test_what_has_no_class_to_derive_from_is_refused() -> None:
    message = "a class can only be derived from one other, which is the same in every use"
    two = f"{INNER}block Other(n = 4)(x [batch, n]) -> [batch, n] {{\n  return x |> b: Dense(n)\n}}\n"
    two += "block Outer(n = 4)(x [batch, n]) -> [batch, n] {\n  return x |> ..: Inner(n) |> ..: Other(n)\n}\n"
    assert refused(two) == message
    torch_layer = f"{DENSE}layer Outer(n = 4)(x [..., n]) -> [..., n] {{\n  return x |> ..: Dense(n) |> * 2.0\n}}\n"
    assert refused(torch_layer) == "a class cannot be derived from `Dense`, which is nn.Linear in PyTorch"


SHARED = {
    "plain": "a.top: Dense(n)",
    "a container in it": "a.top.last: Dense(n)",
    "the next number": "layers[2]: Dense(n)",
    "a later number": "layers[7]: Dense(n)",
    "a loop": "layers[i + 2]: Dense(n) for i in 0..3",
    "numbers in a plain container": "a.parts[i].dense: Dense(n) for i in 0..2",
    "a condition": "a.top: Dense(n) if scaled",
}


@pytest.mark.parametrize("part", SHARED.values(), ids=SHARED)
def test_a_derived_class_adds_parts_to_containers_of_its_base_class(part: str) -> None:
    pytest.importorskip("torch")
    model = load(outer(f"  h = ..: Inner(..)(..)\n  return h |> {part} |> own: Inner()"))
    torch_compare.agrees(model)


def test_three_classes_fill_one_container() -> None:
    pytest.importorskip("torch")
    middle = outer("  return ..: Inner(..)(..) |> a.top: Dense(n)")
    last = middle.replace("Outer", "Middle") + (
        "block Outer(..Middle)(..Middle) -> [batch, n] {\n"
        "  return ..: Middle(..)(..) |> layers[5]: Dense(n) |> a.parts[1]: Dense(n) |> other: Middle(..)\n}\n"
    )
    torch_compare.agrees(load(last))


def test_values_that_a_base_class_does_not_get_are_refused() -> None:
    text = f"""{INNER}
block Wrap(n = 4, Part = Inner(depth = 3))(x [batch, n]) -> [batch, n] {{
  return ..: Part(n)(x)
}}
block Outer(n = 4)(x [batch, n]) -> [batch, n] {{
  return x |> p: Wrap(n) |> q: Wrap(n, Part = Inner)
}}
"""
    assert "p.layers.2.bias" in shapes(load(text)) and "q.layers.2.bias" not in shapes(load(text))
    assert refused(text) == "the hyperparameters of a base class cannot be bound in a value"


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_modules_compute_what_the_spec_says(name: str) -> None:
    pytest.importorskip("torch")
    torch_compare.agrees(archspec.load(f"{SPEC}:{name}"))
