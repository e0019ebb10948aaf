"""What a spec means, rule by rule: lines and files, addresses, what is owned, shared and repeated."""

from pathlib import Path

import pytest
from small import DENSE, SCALE, codes, findings, layers, load, operations, shapes

import archspec
from archspec.pipeline.compile import check

# Lines and files -----------------------------------------------------------------------------------------------------


def test_lines_end_statements_but_not_in_brackets_or_before_a_step() -> None:
    model = load(
        DENSE
        + """
block Net(
  n = 4,   # the width
)(
  x [..., n],
) -> [..., n]
{
  y = (x
    + x)     # still within the brackets

  return y   # and a comment between steps

    # of its own
    |> a: Dense(
      n,
      bias = false,
    )
    |> b: Dense(n)
}
"""
    )
    assert layers(model) == ["a", "b"]


def test_two_hashes_document_what_follows() -> None:
    text = DENSE + "\n## Not this.\nblock Net()(x [4]) -> [4] {\n  return x |> a: Dense(4)\n}\n"
    assert load(text).doc == "Not this."
    assert load(text + '## A net\n## of one layer.\nmodel "it" = Net()\n').doc == "A net\nof one layer."


def test_files_import_from_files_beside_and_below_them(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "dense.arch").write_text(DENSE)
    (tmp_path / "parts" / "all.arch").write_text(
        'export "dense.arch" { Dense as Map }\nexport ops { tanh as squash }\n'
    )
    (tmp_path / "net.arch").write_text(
        """
import "parts/all.arch" { Map as Affine, squash }
block Net()(x [..., 4]) -> [..., 4] {
  return x |> a: Affine(4) |> squash
}
model "net" = Net()
"""
    )
    model = archspec.load(str(tmp_path / "net.arch"))
    assert (model.params.total, operations(model, "op")) == (20, ["linear", "tanh"])
    assert model.tensors[0].type == "Dense"


def test_an_error_inside_imported_definitions_is_at_the_use_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "parts.arch").write_text(
        "layer Even(n)(x [n]) -> [n] {\n  require n % 2 == 0\n  return x\n}\n"
        "block Part(n)(x [n]) -> [n] {\n  return x |> even: Even(n)\n}\n"
    )
    (tmp_path / "net.arch").write_text(
        'import "parts.arch" { Part }\nblock Net()(x [3]) -> [3] {\n  return x |> part: Part(3)\n}\n'
        'model "net" = Net()\n'
    )
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(tmp_path / "net.arch"))
    (found,) = caught.value.diagnostics
    assert found.code == "require" and found.span is not None
    assert found.span.location == f"{tmp_path / 'net.arch'}:3"


@pytest.mark.parametrize(("caller", "expects"), [("Part", "shape [a, b, 2]"), ("inner", "3 axes")])
def test_dimensions_of_another_file_are_not_named_where_it_is_used(tmp_path: Path, caller: str, expects: str) -> None:
    (tmp_path / "parts.arch").write_text(
        "dim a, b\nfn inner(x [a, b, 2]) -> [...] { return x }\nblock Part()(x [...]) -> [...] { return inner(x) }\n"
    )
    call = "inner" if caller == "inner" else "p: Part()"
    block = f"block Net()(x [3]) -> [...] {{ return x |> {call} }}"
    (tmp_path / "net.arch").write_text(f'import "parts.arch" {{ {caller} }}\n{block}\nmodel "net" = Net()\n')
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(tmp_path / "net.arch"))
    assert f"input `x` of `inner` expects {expects}, found [3]" in {d.message for d in caught.value.diagnostics}


def test_definitions_for_any_shape_are_not_compiled_alone(tmp_path: Path) -> None:
    path = tmp_path / "gate.arch"
    path.write_text("layer Gate(n = 4)(x [...], y [n]) -> [...] {\n  w: param [n]\n  return x * .w * y\n}\n")
    assert not check(str(path)).diagnostics
    path.write_text(path.read_text().replace("x [...]", "x [2]"))
    assert check(str(path)).failed


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ('import "../outside.arch" { Dense }', "import-outside"),
        ('import "/etc/passwd" { Dense }', "import-outside"),
        ('import "missing.arch" { Dense }', "missing-file"),
        ("import std { Linaer }", "unknown-import"),
        ("import nothing { Dense }", "unknown-import"),
    ],
)
def test_imports_that_do_not_do(line: str, code: str) -> None:
    text = f"{line}\n" + SCALE + "block Net()(x [4]) -> [4] {\n  return x |> a: Scale(4)\n}\n"
    assert code in codes(text)


def test_the_file_of_the_operations_is_suggested() -> None:
    with pytest.raises(archspec.ArchError, match="did you mean `ops`"):
        archspec.loads(f"import opss {{ relu }}\n{SCALE}block Net()(x [4]) -> [4] {{\n  return x |> a: Scale(4)\n}}\n")


UNTIDY = """import std { Linear, relu }
dim batch, idle
block Net(n = 4, count = 3, used = true)(x [batch, n]) -> [batch, n] {
  twice = x * 2.0
  y = first: Linear(n, n)(x)
  _ = second: Linear(n, n)(x)
  return x + y if used else x
}
model "net" = Net()
"""


def test_what_is_only_unused_is_a_warning() -> None:
    model = load(UNTIDY)
    found = ["unused-import", "unused-dimension", "unused-hyperparameter", "unused-value"]  # in the order of the file
    assert [w.code for w in model.warnings] == found and model.params.total == 40
    assert {w.severity for w in model.warnings} == {"warning"}


def test_only_hyperparameters_are_forwarded_to_hyperparameters() -> None:
    text = """
layer Inner(n, kind = 1, mask = 2)(x [2, n]) -> [2, n] {
  w: param [n]
  return x * .w * (kind + mask)
}
block Net(n = 4, kind = 1)(x [2, n]) -> [2, n] {
  return inner: Inner(..)(..)
}
"""
    assert load(text).warnings == ()
    (warning,) = load(
        text.replace("n = 4, kind = 1", "n = 4").replace("  return inner", "  kind = 3\n  return inner")
    ).warnings
    assert warning.message == "unused value `kind`"
    (error,) = findings(
        text.replace("(x [2, n]) -> [2, n] {\n  return inner", "(x [2, n], mask [2]) -> [2, n] {\n  return inner")
    )
    assert error.message == "unused input `mask`"


def test_a_layer_whose_result_affects_no_output_is_an_error() -> None:
    with pytest.raises(archspec.ArchError, match="`first` does not affect any output"):
        load(UNTIDY, used=False)
    unread = "  unread = third: Linear(n, n)(twice)\n  return"
    with pytest.raises(archspec.ArchError, match="`third` does not affect any output"):
        load(UNTIDY.replace("  return", unread))
    assert load(UNTIDY.replace("  return", unread.replace("unread", "_"))).params.total == 60


def test_an_override_that_nothing_reads_is_an_error() -> None:
    with pytest.raises(archspec.ArchError, match='`count` of "net" is never used, so setting it changes nothing'):
        load(UNTIDY, count=4)
    forwarded = UNTIDY.replace('"net" = Net', '"net" = Outer') + (
        "block Outer(..Net)(x [batch, n]) -> [batch, n] {\n  return inner: Net(..)(x)\n}\n"
    )
    assert load(forwarded, n=5).params.total == 60
    with pytest.raises(archspec.ArchError, match='`count` of "net" is never used, so setting it changes nothing'):
        load(forwarded, count=4)


INHERITED = """
import std { Linear }
dim batch
block Part(n)(x [batch, n]) -> [batch, n] { return x |> linear: Linear(n, n) }
block Wide(n, times)(x [batch, n]) -> [batch, n] {
  return x |> up: Linear(n, times * n) |> down: Linear(times * n, n) |> + x
}
block Net(n = 4, inner = 2 * n, Layer = Part, twice = inner * 2)(x [batch, n]) -> [batch, n] {
  extra: unused param [twice]
  return x |> layer: Layer(n)
}
block Wider(..Net, times = 3, Layer = Wide(times = times), n = times + 1)(..Net) -> [batch, n] {
  return ..: Net(..)(..)
}
block Head(..Wider)(..Wider) -> [batch, 2] { return net: Wider(..)(..) |> head: Linear(n, 2) }
model "net" = Head()
"""


def test_a_default_that_replaces_another_may_use_new_hyperparameters() -> None:
    assert load(INHERITED).hyperparameters == {
        "times": 3,
        "Layer": "Wide(times = 3)",
        "n": 4,
        "inner": 8,
        "twice": 16,
    }
    changed = load(INHERITED, times=1)
    assert (changed.hyperparameters["n"], changed.hyperparameters["twice"]) == (2, 8)
    assert changed.params.total == 8 + 2 * (2 * 2 + 2) + 2 * 2 + 2
    assert load(INHERITED, Layer="Part", inner=5).params.total == 10 + 20 + 10
    assert not load(INHERITED).warnings


def test_a_default_cannot_use_one_that_depends_on_it() -> None:
    assert codes(INHERITED.replace("n = times + 1", "n = inner")) == ["unknown-name"]


def test_one_file_may_have_several_models(tmp_path: Path) -> None:
    path = tmp_path / "two.arch"
    path.write_text(SCALE + 'model "small" = Scale(2)\nmodel "a: big one" = Scale(n = 20)\n')
    assert archspec.load(f"{path}:small").params.total == 2
    assert archspec.load(f"{path}:a: big one").params.total == 20
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(path))
    assert [d.code for d in caught.value.diagnostics] == ["which-model"]
    assert "small" in str(caught.value) and "a: big one" in str(caught.value)


# Addresses -----------------------------------------------------------------------------------------------------------


def test_an_address_is_the_name_in_a_checkpoint_verbatim() -> None:
    model = load(
        DENSE
        + """
block Net(layers = 2)(x [4]) -> [4] {
  return x
    |> encoder.layer[i].attention.self.query: Dense(4) for i in 0..layers
    |> decoder.0.proj_Q:                      Dense(4, bias = false)
    |> LayerNorm:                             Dense(4)
}
"""
    )
    assert list(shapes(model)) == [
        "encoder.layer.0.attention.self.query.weight",
        "encoder.layer.0.attention.self.query.bias",
        "encoder.layer.1.attention.self.query.weight",
        "encoder.layer.1.attention.self.query.bias",
        "decoder.0.proj_Q.weight",
        "LayerNorm.weight",
        "LayerNorm.bias",
    ]


@pytest.mark.parametrize(
    "word", ["import", "dim", "fn", "layer", "block", "model", "export", "self", "output", "weight", "matmul"]
)
def test_words_that_begin_items_may_begin_an_address(word: str) -> None:
    model = load(SCALE + f"block Net(n = 2)(x [n]) -> [n] {{\n  {word}.part: Scale(n)\n  return .{word}.part(x)\n}}\n")
    assert list(shapes(model)) == [f"{word}.part.weight"]


KEYWORDS = """if else for in return tie require role param buffer frozen unused expect
and or not true false none inf as"""


@pytest.mark.parametrize("word", [*KEYWORDS.split(), "0", "1e5x"])
def test_any_word_may_follow_the_first_dot_and_quotes_help_the_first(word: str) -> None:
    model = load(
        SCALE
        + f"""
block Net(n = 2)(x [n]) -> [n] {{
  part.{word}.{word}: Scale(n)
  "{word}".part[0]:   Scale(n)
  return x |> .part.{word}.{word} |> ."{word}".part[0]
}}
"""
    )
    assert list(shapes(model)) == [f"part.{word}.{word}.weight", f"{word}.part.0.weight"]


@pytest.mark.parametrize("part", ["a@2", "input:x", "#tanh", "*", "a.b", "", "a b"])
def test_a_quoted_part_is_nothing_that_graphs_and_patterns_give_a_meaning(part: str) -> None:
    text = SCALE + f'block Net()(x [4]) -> [4] {{\n  return x |> a: Scale(4) |> .a |> "{part}".b: Scale(4)\n}}\n'
    assert codes(text) == ["syntax"]


def test_addresses_and_values_of_the_same_name_do_not_mix() -> None:
    model = load(
        """
layer Net(bias = true, weight = 3)(x [weight]) -> [weight] {
  weight: param [weight, weight]
  bias:   param [weight] if bias
  y = linear(x, .weight, .bias)
  return y * weight
}
"""
    )
    assert shapes(model) == {"weight": (3, 3), "bias": (3,)}


def test_a_name_is_bound_once() -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  y = x |> a: Dense(4)\n  y = y |> b: Dense(4)\n  return y\n}\n"
    assert codes(text) == ["duplicate-name"]


# Declaring, applying, sharing ----------------------------------------------------------------------------------------


def test_what_is_declared_can_be_applied_often() -> None:
    model = load(
        DENSE
        + """
block Net()(x [seq, 4], y [seq, 4]) -> ([seq, 4], [seq, 4]) {
  shared: Dense(4)
  a = x |> .shared |> .shared |> own: Dense(4)
  return a, .shared(y)
}
dim seq
"""
    )
    assert layers(model) == ["shared", "shared@2", "own", "shared@3"]
    nodes = model.graph().nodes
    assert (nodes["shared"]["params"], nodes["shared@2"]["params"], nodes["shared@3"]["params"]) == (20, 0, 0)
    assert nodes["shared@3"]["shared_with"] == ("shared",)
    assert {nodes[n]["address"] for n in ("shared", "shared@2", "shared@3")} == {"shared"}
    assert model.params.total == 40


def test_what_is_applied_where_it_is_owned_can_be_applied_again() -> None:
    model = load(DENSE + "block Net()(x [4]) -> [4] {\n  y = x |> shared: Dense(4)\n  return .shared(y)\n}\n")
    assert layers(model) == ["shared", "shared@2"]


def test_a_part_of_what_is_owned_can_be_applied_and_its_tensors_read() -> None:
    model = load(
        DENSE
        + """
block Pair(n)(x [..., n]) -> [..., n] {
  return x |> one: Dense(n) |> two: Dense(n)
}
block Net()(x [..., 4]) -> [..., 4] {
  return x |> pair: Pair(4) |> .pair.one |> + .pair.two.bias
}
"""
    )
    assert layers(model) == ["pair.one", "pair.two", "pair.one@2"]
    assert model.params.total == 40


def test_an_encoder_may_apply_one_layer_as_often_as_it_likes() -> None:
    """ALBERT: the number of layers changes what is computed, and not what is owned."""
    text = (
        DENSE
        + """
block Net(layers = 3)(x [..., 4]) -> [..., 4] {
  group.0.layer: Dense(4)
  return x |> .group.0.layer for i in 0..layers
}
"""
    )
    assert layers(load(text)) == ["group.0.layer", "group.0.layer@2", "group.0.layer@3"]
    assert load(text).params == load(text, layers=12).params
    assert len(layers(load(text, layers=12))) == 12


REACHED = (
    DENSE
    + """
block Part(own = false)(x [4]) -> [4] {
  table: Dense(4) if own
  scale: param [4] if own
  return x |> dense: Dense(4) |> + x
}
block Net(layers = 3)(x [4]) -> [4] {
  part[i]: Part(i == 0) for i in 0..layers
  y = .part.0.table(x) * .part[0].scale
  return y |> .part[i] for i in 0..layers
}
"""
)


def test_what_a_part_owns_may_be_used_by_whoever_owns_the_part() -> None:
    model = load(REACHED)
    assert model.params.total == 20 + 4 + 3 * 20
    assert layers(model) == ["part.0.table", "part.0.dense", "part.1.dense", "part.2.dense"]
    graph = model.graph()
    assert {n: graph.nodes[n]["params"] for n in ("part.0.table", "part.0.scale")} == {
        "part.0.table": 20,
        "part.0.scale": 4,
    }


def test_a_model_in_which_nobody_uses_it_is_in_error() -> None:
    assert codes(REACHED.replace("Part(i == 0)", "Part(true)")) == ["unused-layer", "unused-tensor"]
    assert codes(REACHED.replace(".part.0.table(x)", "x")) == ["unused-layer"]
    assert codes(REACHED.replace(" * .part[0].scale", "")) == ["unused-tensor"]


def test_what_nothing_applies_is_an_error_or_marked() -> None:
    text = DENSE + "block Net()(x [4]) -> [4] {\n  idle: Dense(4)\n  return x |> a: Dense(4)\n}\n"
    assert codes(text) == ["unused-layer"]
    model = load(text.replace("idle: ", "idle: unused "))
    assert model.params.total == 40
    graph = model.graph()
    assert {n: graph.nodes[n]["params"] for n in graph if n.startswith("idle")} == {"idle.weight": 16, "idle.bias": 4}


def test_what_a_file_defines_twice() -> None:
    text = """export std { Linear }
export std { LayerNorm, Embedding as Linear }
dim n, n
block Net()(x [n]) -> [n] { return x * 2.0 }
model "x" = Net()
model "x" = Net()
"""
    found = [each for each in findings(text) if each.code == "duplicate-name"]
    assert [each.message for each in found] == [
        "export `Linear` is already defined",
        "dimension `n` is already defined",
        "model `x` is already defined",
    ]
    second = ["Embedding as Linear", "n", '"x"']
    first = [text.index("Linear"), text.index("n, n"), text.index('"x"')]
    for each, written, start in zip(found, second, first, strict=True):
        assert each.span is not None and each.span.source.text[each.span.start : each.span.end] == written
        assert [(note.text, note.span and note.span.start) for note in each.notes] == [("first defined here", start)]
