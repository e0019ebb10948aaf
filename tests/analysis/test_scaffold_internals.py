"""Steps of the code that the tests of scaffold cannot reach through public names."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from checkpoints import write
from hypothesis import given
from hypothesis import strategies as st
from paths import read_spec

import archspec
from archspec.analysis.scaffold import api, tensors
from archspec.analysis.scaffold.structure import LoopIndex, choose_definition_name, split_progressions, tie_statements
from archspec.analysis.scaffold.tensors import TensorSketch as Sketch
from archspec.core import resources
from archspec.formats.checkpoints.entries import Checkpoint, Entry


def owned(text: str) -> list[str]:
    """The statements of the outermost block, without comments."""
    body = text[text.index("block Model") :].partition("\n}")[0].split("\n")[1:-1]
    return [re.sub(" +", " ", line.partition("#")[0]).strip() for line in body]


def test_the_library_is_what_is_recognised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library with one layer of another kind: nothing is known but what it says."""
    specs = tmp_path / "specs"
    specs.mkdir()
    (specs / "std.arch").write_text('export "own.arch" { Affine, Fixed, Inner }\n')
    (specs / "own.arch").write_text(
        "layer Affine(n, m, shift = true)(x [..., n]) -> [..., m] {\n  w: param [n, m]\n  b: param [m] if shift\n"
        "  y = matmul(x, .w)\n  return y + .b if shift else y\n}\n"
        "layer Fixed(n)(x [n]) -> [n] {\n  f: frozen param [n]\n  return x * .f\n}\n"
        "layer Inner(n)(x [n]) -> [n] {\n  g.h: param [n]\n  return x * .g.h\n}\n"
    )
    monkeypatch.setattr(resources, "specs_root", lambda: str(specs))
    shapes = {"a.w": (3, 5), "a.b": (5,), "affine.w": (3, 5), "c.weight": (3, 5), "c.bias": (5,)}
    found = owned(archspec.scaffold(write(tmp_path / "m.safetensors", shapes)))
    assert found[:2] == ["a: unused Affine(3, 5)", "affine: unused Affine(3, 5, shift = false)"]
    assert found[2].startswith("c.weight: unused param")
    others = owned(archspec.scaffold(write(tmp_path / "n.safetensors", {"fixed.f": (5,), "inner.g.h": (5,)})))
    assert others == ["fixed.f: unused param [5]", "inner.g.h: unused param [5]"]


@given(st.sets(st.integers(0, 60)))
def test_progressions_are_all_of_the_numbers(numbers: set[int]) -> None:
    runs = split_progressions(sorted(numbers))
    assert sorted(n for run in runs for n in run) == sorted(numbers)
    assert all(len({b - a for a, b in pairwise(run)}) <= 1 for run in runs)


EACH, LATER = LoopIndex(1, 0), LoopIndex(2, 3)


LETTERS = [f"B{letter}" for letter in "BCDEFGHIJKLMNOPQRSTUVWXYZ"]


@pytest.mark.parametrize(
    ("paths", "taken", "name"),
    [
        ([["self_attn"]], [], "SelfAttn"),
        ([["layers"]], [], "Layers"),
        ([["model", "layers", EACH]], [], "Layer"),
        ([["encoder", "layers", EACH], ["decoder", "layers", EACH]], [], "EncoderLayer"),
        ([["decoder", "2", "block", EACH]], [], "DecoderBlock"),
        ([["text_encoder", "m", "block", EACH]], [], "Block"),
        ([["decoder", "my_decoder"]], [], "MyDecoder"),
        ([["encoder", "encoder_layer"]], [], "EncoderLayer"),
        ([["layers", "3"], ["other", "3"]], [], "Layer3"),
        ([["layers", "3"], ["layers", "4"]], [], "Layer"),
        ([["h", "0"]], [], "Layer0"),
        ([["glass", EACH]], [], "Glass"),
        ([["gas", EACH]], [], "Gas"),
        ([["bass", EACH], ["x"]], [], "Bass"),
        ([["bases", EACH]], [], "Base"),
        ([["0"]], [], "Part0"),
        ([[EACH]], [], "Part"),
        ([["2d-conv"]], [], "dConv"),
        ([["-"]], [], "Part"),
        ([["y" + "x" * 40]], [], "x" * 40),
        ([["vision_tower", "self_attn", "out"]], ["Out"], "SelfAttnOut"),
        ([["vision_tower", "self_attn", "out"]], ["Out", "SelfAttnOut"], "VisionTowerSelfAttnOut"),
        ([["a", "b"]], ["B", "AB"], "ABB"),
        ([["b"]], ["B"], "BB"),
        ([["b"]], ["B", *LETTERS], "BB2"),
        ([["b"]], ["B", *LETTERS, "BB2"], "BC2"),
    ],
)
def test_names_of_definitions(paths: list[list[str | LoopIndex]], taken: list[str], name: str) -> None:
    assert choose_definition_name(paths, {*taken}) == name


@pytest.mark.parametrize(
    ("names", "lines"),
    [
        ("x.0.0 x.1.0 x.2.0 x.0.1", ["x[i].0 = w for i in 0..3", "x.0.1 = w"]),  # the longest loop comes first
        ("x.0 y x.1 x.4", ["x[i] = w for i in 0..2", "y = w", "x.4 = w"]),
        ("x.2 x.4 x.6", ["x[2 * i + 2] = w for i in 0..3"]),
        ("x.3", ["x.3 = w"]),
    ],
)
def test_names_of_one_tensor_are_tied_in_loops(names: str, lines: list[str]) -> None:
    assert [*tie_statements(dict.fromkeys(names.split(), "w"))] == [f"tie {line}" for line in lines]


def of(*shapes: tuple[int, ...]) -> Checkpoint:
    """A checkpoint with tensors of some shapes."""
    entries = [Entry(f"t{i}.weight", shape, "float32", 0, "a", "", i) for i, shape in enumerate(shapes)]
    return Checkpoint("a", tuple(entries))


def test_sizes_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "MAX_TENSORS", 11)
    tensors.check_entries(of(*[(1,)] * 11))
    tensors.check_entries(of((10**18 - 1,)))
    tensors.check_entries(of((10**17, 5), (10**18 // 2 - 1,)))
    for shapes, message in (
        ([(10**9, 10**9)], "a: too many elements: the limit is 18 digits: `t0.weight`"),
        ([(10**17, 5), (10**18 // 2,)], "too many elements in a: the limit is 18 digits"),
        ([(1,)] * 5 + [(0,)] * 6, "`t5.weight`, `t6.weight`, `t7.weight`, `t8.weight`, `t9.weight` (and 1 more)"),
        ([(0,)] * 5, "positive: `t0.weight`, `t1.weight`, `t2.weight`, `t3.weight`, `t4.weight`"),
        ([], "no tensors in a"),
        ([(1,)] * 12, "too many tensors in a: the limit is 11"),
    ):
        with pytest.raises(archspec.ArchError) as caught:
            tensors.check_entries(of(*shapes))
        assert [each.message.endswith(message) for each in caught.value.diagnostics] == [True]


PARTS = read_spec("scaffold_internals_parts")


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("block {", "internal", "the scaffold of a does not compile; this is a bug in archspec; please report it"),
        (
            PARTS.replace("w:", "v:").replace(".w", ".v"),
            "internal",
            "the scaffold of a has wrong tensors; this is a bug",
        ),
        (
            PARTS.replace("param [3]", "param [4]").replace("+ .w", "+ sum(axis = 0)(.w)"),
            "internal",
            "the scaffold of a has wrong tensors; this is a bug",
        ),
        (PARTS.replace("param [3]", "buffer [3]"), "internal", "the scaffold of a has wrong tensors; this is a bug"),
        (
            PARTS.replace("..2", "..999999"),
            "budget",
            "the scaffold of a: too many loop iterations: the limit is 100,000",
        ),
    ],
)
def test_a_scaffold_is_compared_with_its_checkpoint(text: str, code: str, message: str) -> None:
    found = {f"t.{i}.w": Sketch("param", "", 1) for i in range(2)}
    entries = Checkpoint(
        "a", tuple([Entry(name, (3,), "float32", 12, "a", "", 12 * i) for i, name in enumerate(found)])
    )
    api._verify(entries, found, PARTS)
    with pytest.raises(archspec.ArchError) as caught:
        api._verify(entries, found, text)
    assert [(each.code, each.message[: len(message)]) for each in caught.value.diagnostics] == [(code, message)]
