"""What holds of every model, tried on small encoders with options drawn at random."""

import itertools
import json

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import Options, options
from small import SCALE, load

from archspec import Model, SelectionRule, Source, Table, Tensors, pipeline
from archspec.analysis.count.groups import count_by_block, count_by_layer, count_by_role, find_role_components
from archspec.analysis.count.select import select
from archspec.analysis.count.tree import count_tree as folded
from archspec.core.diagnostics import Report
from archspec.language.syntax import store
from archspec.pipeline.model import get_compilation

VIEWS = [
    {"level": level, "fold": fold, **depth}
    for fold in (False, True)
    for level, depth in [
        ("layer", {}),
        ("op", {}),
        ("block", {}),
        ("block", {"depth": 0}),
        ("block", {"depth": 2}),
        ("block", {"depth": 7}),
    ]
]


def sums_up(model: Model) -> None:
    """Every sum over the table is the total."""
    table, params = get_compilation(model).table, model.params
    assert sum(t.params for t in table.tensors) == params.total == params.trainable + params.frozen
    assert sum(t.params for t in table.tensors if t.trainable) == params.trainable
    names = {t.name: t for t in table.tensors}
    for tensor in table.tensors:
        assert tensor.params == (0 if tensor.tied_to else tensor.size)
        if tensor.tied_to:
            assert names[tensor.tied_to].tied_to is None and names[tensor.tied_to].shape == tensor.shape
            assert names[tensor.tied_to].trainable == tensor.trainable
    everything = select(table)
    for depth in (None, 1, 2, 3):
        for groups in (count_by_layer(table, everything, depth), count_by_block(table, everything, depth)):
            assert sum(group.params for group in groups) == params.total
            assert sum(group.trainable for group in groups) == params.trainable
        assert sum(branch.total for branch in folded(table, everything, depth) if branch.level == 0) == params.total
    assert sum(group.params for group in count_by_role(table, everything)) == params.total


@settings(max_examples=12, deadline=None)
@given(options())
def test_totals_are_what_arithmetic_says_and_every_view_of_the_table_sums_to_them(chosen: Options) -> None:
    model = load(chosen.text)
    assert model.params.total == chosen.total
    sums_up(model)


@settings(max_examples=8, deadline=None)
@given(options())
def test_graphs_are_acyclic_in_one_piece_and_sum_to_the_total(chosen: Options) -> None:
    model = load(chosen.text)
    for view in VIEWS:
        graph = model.graph(**view)
        assert networkx.is_directed_acyclic_graph(graph)
        assert sum(data["params"] for _, data in graph.nodes(data=True)) == model.params.total
        alone = [node for node, data in graph.nodes(data=True) if data.get("unused")]
        assert alone == ["spare"] * (chosen.spare > 0)
        graph.remove_nodes_from(alone)
        assert networkx.is_weakly_connected(graph)
        assert {f"input:{name}" for name in model.inputs} <= set(graph)
        assert {f"output:{name}" for name in model.outputs} <= set(graph)


RESIDUAL = """
block Part()(x [4]) -> [4] {
  return x |> s: Scale(4) |> + x
}
"""
UNUSUAL = {
    "a stack in two pieces": "return x |> a[i]: Part() for i in 0..2 |> c: Scale(4) |> a[i]: Part() for i in 2..4",
    "one part in two stacks": "a: Part()\n  return x |> .a for i in 0..3 |> c: Scale(4) |> .a for i in 0..3",
    "two stacks in turn": """h = x
  for i in 0..3 {
    h = h |> a[i]: Part() |> b: Scale(4) if i == 1 |> c[i]: Part()
  }
  return h""",
    "rounds that meet again": """a = x |> d[0]: Part()
  b = a |> d[1]: Part()
  c = b |> d[2]: Part()
  e = c + b |> u[0]: Part()
  f = e + a |> u[1]: Part()
  return f + x |> u[2]: Part()""",
    "rounds side by side": """a = x |> d[0]: Part()
  b = x |> d[1]: Part()
  c = a |> e[0]: Part()
  d = c + b |> d[2]: Part()
  return d |> e[1]: Part()""",
    "rounds that are one tensor": """tie l[i].s.weight = l[0].s.weight for i in 1..4
  return x |> l[i]: Part() for i in 0..4""",
    "what is unused is one tensor": """u: unused Scale(4)
  v: unused Scale(4)
  tie u.weight = v.weight
  return x |> a: Scale(4)""",
    "only another name is used": """b: Scale(4)
  tie a.weight = b.weight
  return x |> a: Scale(4)""",
    "a part is read from outside": "y = x |> a: Part()\n  return y * .a.s.weight",
    "something is used twice at once": "a: Part()\n  return .a(x) + .a(x)",
}


@pytest.mark.parametrize("wiring", UNUSUAL)
def test_unusual_wirings_are_acyclic_and_sum_to_the_total_too(wiring: str) -> None:
    text = SCALE + (RESIDUAL if "Part" in UNUSUAL[wiring] else "")
    model = load(f"{text}block Net()(x [4]) -> [4] {{\n  {UNUSUAL[wiring]}\n}}\n")
    sums_up(model)
    for view in VIEWS:
        graph = model.graph(**view)
        assert networkx.is_directed_acyclic_graph(graph), view
        assert sum(data["params"] for _, data in graph.nodes(data=True)) == model.params.total, view


@settings(max_examples=8, deadline=None)
@given(options())
def test_a_folded_stack_stands_for_the_whole_one(chosen: Options) -> None:
    model = load(chosen.text)
    flat, short = model.graph(), model.graph(fold=True)
    assert len(short) <= len(flat)
    assert sum(data.get("repeat", 1) for _, data in short.nodes(data=True)) == len(flat)


@settings(max_examples=10, deadline=None)
@given(options())
def test_totals_are_linear_in_the_number_of_layers(chosen: Options) -> None:
    model = load(chosen.text)
    totals = [load(chosen.text, layers=1 + n * chosen.every).params.total for n in range(1, 5)]
    steps = {b - a for a, b in itertools.pairwise(totals)}
    assert len(steps) == 1
    assert (steps == {0}) == chosen.shared
    assert model.params.total == load(chosen.text, layers=chosen.layers).params.total


@settings(max_examples=8, deadline=None)
@given(options())
def test_loading_twice_gives_the_same(chosen: Options) -> None:
    one, two = load(chosen.text), load(chosen.text)
    assert get_compilation(one).table == get_compilation(two).table
    assert (one.inputs, one.outputs) == (two.inputs, two.outputs)
    for view in VIEWS[:3]:
        graphs = one.graph(**view), one.graph(**view), two.graph(**view)
        assert len({id(graph) for graph in graphs}) == 3
        for graph in graphs[1:]:
            assert list(graph) == list(graphs[0])
            assert {n: without_place(d) for n, d in graph.nodes(data=True)} == {
                n: without_place(d) for n, d in graphs[0].nodes(data=True)
            }
            assert list(graph.edges(data=True)) == list(graphs[0].edges(data=True))


def without_place(data: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in data.items() if key != "source"}


@settings(max_examples=8, deadline=None)
@given(options())
def test_tables_and_trees_survive_being_written_down(chosen: Options) -> None:
    table = get_compilation(load(chosen.text)).table
    assert Table.from_data(json.loads(json.dumps(table.to_data()))) == table
    whole = table._replace(tensors=Tensors(table.tensors.all()))
    assert folded(table, select(table)) == folded(whole, select(whole))
    for role in ("head", "pooler"):
        assert find_role_components(table, role) == find_role_components(whole, role)
    file = pipeline.files.parse_cached(Source("text", chosen.text), Report())
    assert store.load(json.loads(json.dumps(store.dump(file)))) == file


@settings(max_examples=8, deadline=None)
@given(
    options(), st.lists(st.tuples(st.booleans(), st.sampled_from(["*.bias", "layers.*", "*.weight", "head.*", "*"])))
)
def test_a_selection_and_what_it_leaves_out_make_the_whole(chosen: Options, drawn: list[tuple[bool, str]]) -> None:
    table = get_compilation(load(chosen.text)).table
    rules = [SelectionRule(*rule) for rule in drawn]
    selection = select(table, rules)
    assert sum(selection.params) == selection.total <= table.params.total
    everything = select(table, [SelectionRule(True, "*"), *rules])
    nothing = select(table, [*rules, SelectionRule(False, "*")])
    assert (nothing.total, everything.total >= selection.total) == (0, True)
