"""Steps of the code that the tests of diff cannot reach through public names."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from bundled import pairs
from hypothesis import given, settings
from hypothesis import strategies as st
from small import load, load_table
from test_diff import PAIRS, SPEC

import archspec
from archspec import Model, NamePrefix, StoredTensor
from archspec.analysis.diff.structure import (
    StoredTensors,
    apply_changes,
    collapse_changes,
    detect_prefix,
    find_changes,
    find_repetitions,
    rename_tensors,
    stored_tensors,
)
from archspec.compiler.evaluate import limits
from archspec.testing import main


@pytest.mark.parametrize("pairs", pairs())
def test_applied_to_a_bundled_model_it_gives_another(pairs: Sequence[tuple[str, str]]) -> None:
    tensors = {name: stored_tensors(load_table(name, {})[0]) for name in dict.fromkeys(chain(*pairs))}
    for one, other in pairs:
        before, after = tensors[one], tensors[other]
        prefix = detect_prefix(before, after)
        steps = find_changes(rename_tensors(before, prefix), after)
        assert apply_changes(before, prefix, steps) == after
        assert bool(steps or any(prefix)) == (before != after)
        assert sorted(n for f in collapse_changes(steps) for n in f.fold.names) == sorted(step.name for step in steps)


NAMES = st.lists(st.sampled_from(["a", "b", "0", "1", "2", "w"]), min_size=1, max_size=4).map(".".join)


@st.composite
def tensors(draw: st.DrawFn) -> StoredTensors:
    """Parameters and buffers, some tied to others; names may be parts of each other, as no spec's are."""
    names = draw(st.lists(NAMES, unique=True, max_size=12))
    shapes = st.sampled_from([(), (2,), (3,), (2, 3)])
    found: StoredTensors = {}
    for name in names:
        kind = draw(st.sampled_from(["param", "param", "buffer"]))
        tied = draw(st.sampled_from([None, *found])) if kind == "param" else None
        found[name] = StoredTensor(kind, draw(shapes), kind == "param" and draw(st.booleans()), tied)
    return found


@settings(max_examples=150, deadline=None)
@given(tensors(), tensors(), st.sampled_from(["", "a.", "enc.0."]))
def test_applying_changes_gives_what_they_lead_to(before: StoredTensors, after: StoredTensors, around: str) -> None:
    after = rename_tensors(after, NamePrefix(added=around))
    prefix = detect_prefix(before, after)
    start = rename_tensors(before, prefix)
    assert len(start) == len(before)
    steps = find_changes(start, after)
    assert apply_changes(before, prefix, steps) == after
    for repetition in find_repetitions(start, after):
        names = {step.name for step in steps if step.name.startswith(repetition.address[:-1])}
        inside = {n for i in repetition.numbers for n in names if n.startswith(f"{repetition.address[:-1]}{i}.")}
        assert len(inside) == repetition.tensors * len(repetition.numbers)


@given(tensors())
def test_a_model_behind_a_prefix_has_no_other_changes(before: StoredTensors) -> None:
    after = rename_tensors(before, NamePrefix(added="enc."))
    if before:
        for a, b in ((before, after), (after, before)):
            prefix = detect_prefix(a, b)
            assert find_changes(rename_tensors(a, prefix), b) == () or len(before) < 3


def test_a_prefix_is_one_only_if_more_names_agree() -> None:
    weight = StoredTensor("param", (2,), True, None)
    before, after = {"w": weight, "v": weight}, {"w": weight, "a.w": weight}
    assert detect_prefix(before, after) == detect_prefix(after, before) == NamePrefix()
    assert detect_prefix(before, after | {"a.v": weight}) == NamePrefix(added="a.")
    assert detect_prefix(before | {"u": weight, "t": weight}, after | {"a.v": weight}) == NamePrefix()


BASE = load(SPEC)


def variant(*changes: tuple[str, str]) -> Model:
    text = SPEC
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return load(text)


MUTATIONS = {
    "another function": ("tanh(x", "sigmoid(x"),
    "another constant": ("* 0.5", "* 0.25"),
    "a constant of another type": ("* 0.5", "* 1"),
    "operands of a subtraction": ("a - c", "c - a"),
    "a residual left out": ("return h + x\n    |>", "return h * 1.0 + x * 0.0\n    |>"),
    "another repetition read": ("return y, a - c", "return y, b - c"),
    "another round read": ("c = a + b |>", "c = a + a + b |>"),
    "applied again": ("c + b |> .extra", "c + b |> .extra |> .extra"),
    "only without optional inputs": ("return y, a - c", "return y if mask != none else y * 2.0, a - c"),
    "only with optional inputs": ("where(mask, _, 0.0)", "where(mask, _, 1.0)"),
    "outputs exchanged": ("return y, a - c", "return a - c, y"),
    "sum over another axis": ("a - c", "a - c + sum(axis = -1, keep = true)(a)"),
    "without a bias": ("extra: Dense(n, n)", "extra: Dense(n, n, bias = false)"),
}


@pytest.mark.parametrize("what", MUTATIONS)
def test_other_computations_differ(what: str) -> None:
    other = variant(MUTATIONS[what])
    for a, b in ((BASE, other), (other, BASE)):
        assert archspec.diff(a, b).operations
        assert archspec.diff(a, b).apply(a) == stored_tensors(b.count().table)


def test_models_that_become_too_large_without_optional_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "two.arch").write_text("""\
fn times(k)(x [4]) -> [4] { return x * k }
block A(n = 2)(x [4], y [4] = none) -> [4] { return times(n)(x) if y == none else x + y }
model "a" = A()
model "b" = A(3)
""")
    one, other = [archspec.load(f"{tmp_path}/two.arch:{name}") for name in "ab"]
    monkeypatch.setattr(limits, "MAX_INSTANCES", -1)
    with pytest.raises(archspec.ArchError, match="too many distinct instances"):
        archspec.diff(one, other)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["diff", *words])
    return status, *capsys.readouterr()


def stored(row: dict[str, Any] | None) -> StoredTensor | None:
    return StoredTensor(row["kind"], tuple(row["shape"]), row["trainable"], row["tied_to"]) if row else None


@pytest.mark.parametrize("pair", PAIRS)
def test_the_document_is_enough_to_make_b_of_a(pair: str, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = PAIRS[pair]
    document = json.loads(run(capsys, a, b, "--format", "json")[1])
    found = rename_tensors(stored_tensors(load_table(a, {})[0]), NamePrefix(**document["prefix"]))
    for change in document["tensors"]:
        for name in change["names"]:
            assert found.get(name) == stored(change["before"])
            after = stored(change["after"])
            if after is None:
                del found[name]
            else:
                found[name] = after
    assert found == stored_tensors(load_table(b, {})[0])
