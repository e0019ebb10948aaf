"""Scaffolds: exactly the tensors of a checkpoint, repetition as loops, unknown properties marked."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoints import header, safetensors, state, storage, tensor, torch_zip, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import archspec
from archspec import ArchError, testing
from archspec.testing import main

Tensors = dict[str, tuple[int, ...]]


def scaffold(folder: Path, shapes: Tensors) -> str:
    """The scaffold of a checkpoint with these tensors; it has no findings and is the checkpoint exactly."""
    return proven(folder, write(folder / "model.safetensors", shapes))


def proven(folder: Path, path: Path) -> str:
    text = archspec.scaffold(path)
    spec = folder / "scaffold.arch"
    spec.write_text(text)
    assert testing.check(str(spec)) == []
    found = archspec.verify(str(spec), path)
    assert found.is_exact and not found.spellings and not found.notes
    return text


def owned(text: str) -> list[str]:
    """The statements of the outermost block, without comments."""
    body = text[text.index("block Model") :].partition("\n}")[0].split("\n")[1:-1]
    return [re.sub(" +", " ", line.partition("#")[0]).strip() for line in body]


def linear(name: str, out: int, into: int) -> Tensors:
    return {f"{name}.weight": (out, into), f"{name}.bias": (out,)}


def norm(name: str, size: int) -> Tensors:
    return {f"{name}.weight": (size,), f"{name}.bias": (size,)}


def layer(name: str, hidden: int = 8, inner: int = 32) -> Tensors:
    """A pre-norm layer with fused queries, keys and values."""
    found = norm(f"{name}.ln1", hidden) | linear(f"{name}.attn.qkv", 3 * hidden, hidden)
    found |= linear(f"{name}.attn.out", hidden, hidden) | norm(f"{name}.ln2", hidden)
    return found | linear(f"{name}.mlp.up", inner, hidden) | linear(f"{name}.mlp.down", hidden, inner)


def encoder() -> Tensors:
    found: Tensors = {"embed.tokens.weight": (50, 8), "embed.positions.weight": (20, 8), "cls": (1, 1, 8)}
    found |= {"patches.conv.weight": (8, 3, 4, 4), "patches.conv.bias": (8,), "final_norm.weight": (8,)}
    for i in range(3):
        found |= layer(f"encoder.layers.{i}")
    for i in range(4):
        found |= layer(f"vision.layers.{i}", 12, 20)
        for j in range(5) if i % 2 else ():
            found |= linear(f"vision.layers.{i}.experts.{j}.up", 6, 12)
            found |= linear(f"vision.layers.{i}.experts.{j}.down", 12, 6)
    found |= norm("stem.bn", 8) | {"stem.bn.running_mean": (8,), "stem.bn.running_var": (8,)}
    return found | {"h.c_fc.weight": (8, 32), "h.c_fc.bias": (32,), "h.c_proj.weight": (8, 8), "h.c_proj.bias": (8,)}


def test_what_it_writes(tmp_path: Path, golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    scaffold(tmp_path, encoder())
    monkeypatch.chdir(tmp_path)
    golden("scaffold/encoder.arch", archspec.scaffold("model.safetensors"))


def test_it_can_be_counted(tmp_path: Path) -> None:
    scaffold(tmp_path, encoder())
    model = archspec.load(str(tmp_path / "scaffold.arch"))
    assert {t.name: t.shape for t in model.tensors} | {b.name: b.shape for b in model.buffers} == encoder()
    assert [b.name for b in model.buffers] == ["stem.bn.running_mean", "stem.bn.running_var"]
    assert main(["count", str(tmp_path / "scaffold.arch")]) == 0


# Recognising ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "statement"),
    [
        (linear("a", 3, 5), "a: unused Linear(5, 3)"),
        (norm("a", 5), "a: unused LayerNorm(5)"),
        ({"norm.weight": (5,)}, "norm: unused RMSNorm(5) # unknown: or LayerNorm(5, bias = false)"),
        ({"layer_norm.weight": (5,)}, "layer_norm: unused RMSNorm(5) # unknown: or LayerNorm(5, bias = false)"),
        ({"q.weight": (3, 5)}, "q: unused Linear(5, 3, bias = false) # unknown: or Embedding(3, 5)"),
        ({"embed.weight": (3, 5)}, "embed: unused Embedding(3, 5) # unknown: or Linear(5, 3, bias = false)"),
        (
            {"a.weight": (3, 5, 7), "a.bias": (3,)},
            "a: unused Conv1d(5, 3, kernel = 7) # unknown: stride, padding, dilation, groups",
        ),
        (
            {"conv.weight": (3, 5, 7, 7)},
            "conv: unused Conv2d(5, 3, kernel = 7, bias = false)"
            " # unknown: or ConvTranspose2d(3, 5, kernel = 7, bias = false); stride, padding, dilation, groups",
        ),
        (
            {"a.weight": (3, 5, 7, 7), "a.bias": (5,)},
            "a: unused ConvTranspose2d(3, 5, kernel = 7) # unknown: stride, padding, dilation, groups",
        ),
        ({"a.weight": (3, 5, 7, 7)}, "a.weight: unused param [3, 5, 7, 7]"),
        ({"a.weight": (3, 5, 7)}, "a.weight: unused param [3, 5, 7]"),
        ({"a.weight": (3, 5), "a.bias": (4,)}, "a.weight: unused param [3, 5]"),
        (
            {"a.weight": (3, 5), "a.bias": (5,)},
            "a.weight: unused param [3, 5] # unknown: a linear map stored as [in, out]?",
        ),
        ({"a.weight": (3, 5), "a.scale": (5,)}, "a.weight: unused param [3, 5]"),
        ({"scale": ()}, "scale: unused param []"),
        ({"for.in-put": (2,)}, '"for"."in-put": unused param [2]'),
        ({"0.weight": (2, 2), "0.bias": (2,)}, '"0": unused Linear(2, 2)'),
        ({"weight": (3, 5), "bias": (3,)}, "weight: unused param [3, 5]"),
        (linear("a", 3, 5) | {"a.b.c": (2,)}, "a.weight: unused param [3, 5]"),
    ],
)
def test_what_is_recognised(tmp_path: Path, shapes: Tensors, statement: str) -> None:
    text = re.sub(" +", " ", scaffold(tmp_path, shapes))
    text = re.sub(r"\b(hidden|vocab)\b", lambda name: sizes(text)[name[0]], text)
    assert f" {statement}\n" in text


@pytest.mark.parametrize(
    ("table", "name"),
    [
        *((table, "vocab") for table in ("word_embeddings", "tok_embed", "embed_wte", "vocab_embed", "shared_embed")),
        *((table, "positions") for table in ("position_embeddings", "embed_pos", "embed_wpe")),
        *((table, "types") for table in ("token_type_embeddings", "segment_embed")),
        ("embed", "50"),
    ],
)
def test_the_rows_of_a_table_are_named_by_its_name(tmp_path: Path, table: str, name: str) -> None:
    shapes = {f"{table}.weight": (50, 8)} | norm("n", 8) | linear("up", 32, 8) | linear("down", 8, 32)
    (line, *_) = owned(scaffold(tmp_path, shapes))
    assert line == f"{table}: unused Embedding({name}, hidden)"


def test_an_axis_of_as_many_as_a_table_has_rows_has_their_name(tmp_path: Path) -> None:
    shapes = {"token_embedding.weight": (50, 8), "position_embedding.weight": (20, 8), "bias": (50,), "mask": (1, 20)}
    text = scaffold(tmp_path, shapes | norm("n", 8) | linear("up", 32, 8) | linear("down", 8, 32))
    assert "block Model(vocab = 50, hidden = 8, inner = 32, positions = 20)" in text
    assert "bias: unused param [vocab]" in owned(text)
    assert "mask: unused param [1, positions]" in owned(text)


def sizes(text: str) -> dict[str, str]:
    return dict(re.findall(r"(\w+) = (\d+)", text))


@pytest.mark.parametrize(
    ("dtype", "kind", "remark"),
    [("I64", "buffer int", ""), ("I32", "buffer int", ""), ("U8", "buffer int", "  # uint8"), ("F16", "param", "")],
)
def test_integers_are_buffers(tmp_path: Path, dtype: str, kind: str, remark: str) -> None:
    path = write(tmp_path / "m.safetensors", {"ids": (1, 4)}, dtype)
    text = proven(tmp_path, path)
    assert owned(text) == [f"ids: unused {kind} [1, 4]"] and f"{kind} [1, 4]{remark}\n" in text


# Repetition -----------------------------------------------------------------------------------------------------------


def test_layers_that_differ(tmp_path: Path) -> None:
    """Layer 0 has a table of its own; of the others every third has more."""
    found: Tensors = {}
    for i in range(10):
        found |= layer(f"layers.{i}")
        found |= {f"layers.{i}.table": (4, 2)} if i == 0 else {}
        found |= {f"layers.{i}.gate": (8,)} if i in (3, 6, 9) else {}
    lines = owned(scaffold(tmp_path, found))
    assert [line.partition(":")[0] for line in lines] == [
        "layers.0",
        "layers[3 * i + 1]",
        "layers[3 * i + 2]",
        "layers[3 * i + 3]",
    ]
    assert [line.partition(" for ")[2] for line in lines] == ["", "i in 0..3", "i in 0..3", "i in 0..3"]


def test_one_block_for_parts_of_different_sizes(tmp_path: Path) -> None:
    found = (
        layer("left.layers.0")
        | layer("left.layers.1")
        | layer("right.layers.0", 6, 10)
        | layer("right.layers.1", 6, 10)
    )
    text = scaffold(tmp_path, found)
    assert text.count("\nblock ") == 2 and "block Layer(hidden, inner)" in text and "Linear(hidden, 3 * hidden)" in text
    assert owned(text) == [
        "left.layers[i]: unused Layer(8, 32) for i in 0..2",
        "right.layers[i]: unused Layer(6, 10) for i in 0..2",
    ]


@pytest.mark.parametrize(("times", "size"), [(2, "2 * hidden"), (3, "3 * hidden"), (4, "inner"), (5, "inner")])
def test_multiples_of_the_hidden_size(times: int, size: str, tmp_path: Path) -> None:
    shapes = norm("n", 8) | norm("m", 8) | linear("fc", 8 * times, 8)
    if size == "inner":
        shapes |= linear("back", 8, 8 * times)
    assert owned(scaffold(tmp_path, shapes))[2] == f"fc: unused Linear(hidden, {size})"


def linears(**sizes: tuple[int, int]) -> Tensors:
    """Linear maps by name, with the sizes of their input and output."""
    return {key: value for name, (into, out) in sizes.items() for key, value in linear(name, out, into).items()}


def norms(*sizes: int) -> Tensors:
    return {key: value for i, size in enumerate(sizes) for key, value in norm(f"norm{i}", size).items()}


@pytest.mark.parametrize(
    ("shapes", "head", "arguments"),
    [
        (
            norms(8, 8)
            | linears(q=(8, 8), k_proj=(8, 6), v_proj=(8, 6), a=(8, 16), b=(8, 24), c=(8, 32), d=(8, 40), e=(8, 20)),
            "hidden = 8, kv = 6",
            "q: hidden, hidden; k_proj: hidden, kv; v_proj: hidden, kv; "
            "a: hidden, 2 * hidden; b: hidden, 3 * hidden; c: hidden, 4 * hidden; d: hidden, 40; e: hidden, 20",
        ),
        (norms(8, 8) | linears(k_proj=(8, 6), other=(8, 6)), "hidden = 8", "k_proj: hidden, 6; other: hidden, 6"),
        (
            norms(8, 8) | linears(my_expert=(8, 20), expert_out=(20, 8), up=(8, 12), down=(12, 8)),
            "hidden = 8, inner = 12, expert = 20",
            "my_expert: hidden, expert; expert_out: expert, hidden; up: hidden, inner; down: inner, hidden",
        ),
        (
            norms(8, 8) | linears(expert_in=(8, 20), expert_out=(20, 8), up=(8, 20)),
            "hidden = 8, inner = 20",
            "expert_in: hidden, inner; expert_out: inner, hidden; up: hidden, inner",
        ),
        (
            norms(8, 8, 6) | linears(a=(6, 8), b=(8, 6), c=(6, 18)),
            "hidden = 8, inner = 6",
            "a: inner, hidden; b: hidden, inner; c: inner, 3 * inner",
        ),
        (norms(8, 8, 8, 6, 6) | linears(a=(6, 8), b=(8, 6)), "", "a: 6, 8; b: 8, 6"),
        (norms(8, 6) | linears(a=(6, 8)), "", "a: 6, 8"),
        (norms(1) | linears(a=(6, 8)), "hidden = 6", "a: hidden, 8"),
        (
            linears(a=(6, 8), b=(8, 6), c=(6, 8)),
            "hidden = 6, inner = 8",
            "a: hidden, inner; b: inner, hidden; c: hidden, inner",
        ),
        (linears(a=(8, 8), b=(8, 6)), "hidden = 8", "a: hidden, hidden; b: hidden, 6"),
        (linears(a=(2, 2), b=(2, 7)), "hidden = 2", "a: hidden, hidden; b: hidden, 7"),
        (norms(2, 2) | linears(a=(2, 7)), "hidden = 2", "a: hidden, 7"),
        (linears(a=(1, 8), b=(8, 1)), "", "a: 1, 8; b: 8, 1"),
    ],
)
def test_names_of_widths(shapes: Tensors, head: str, arguments: str, tmp_path: Path) -> None:
    text = scaffold(tmp_path, shapes)
    assert f"block Model({head})" in text or (not head and "block Model(x" in text)
    found = [re.fullmatch(r"(\w+): unused Linear\((.*)\)", line) for line in owned(text)]
    assert "; ".join(f"{line[1]}: {line[2]}" for line in found if line) == arguments


def test_sizes_without_a_name_of_their_own_are_widths(tmp_path: Path) -> None:
    shapes: Tensors = {}
    for i in range(3):
        shapes |= linear(f"blocks.{i}.fc", 3 + i, 5 * (i + 1)) | {f"blocks.{i}.t": (i + 2,)}
        shapes |= {f"blocks.{i}.conv.weight": (7 + i, 2, 3, 3), f"blocks.{i}.conv.bias": (7 + i,)}
    text = scaffold(tmp_path, shapes)
    assert "block Block(hidden, width, width2, width3)(x [...]) -> [...] {" in text
    assert owned(text) == [
        "blocks.0: unused Block(hidden, 3, 2, 7)",
        "blocks.1: unused Block(10, 4, 3, 8)",
        "blocks.2: unused Block(inner, hidden, 4, 9)",
    ]


def test_sizes_that_are_one_somewhere_have_no_meaning(tmp_path: Path) -> None:
    shapes: Tensors = {}
    for i, size in enumerate((1, 8)):
        shapes |= norm(f"blocks.{i}.norm", size) | {f"blocks.{i}.type_embedding.weight": (size, 4)}
        shapes |= linear(f"blocks.{i}.fc", 5, size)
    text = scaffold(tmp_path, shapes)
    assert "block Block(width)(x [...]) -> [...] {" in text
    assert owned(text) == ["blocks.0: unused Block(1)", "blocks.1: unused Block(hidden)"]


@pytest.mark.parametrize(("lines", "first"), [(2, "left.t0: unused param [2]"), (3, "left: unused Left")])
def test_repeated_blocks_of_few_lines_are_not_definitions(lines: int, first: str, tmp_path: Path) -> None:
    found = owned(scaffold(tmp_path, {f"{side}.t{i}": (2,) for side in ("left", "right") for i in range(lines)}))
    assert found[0] == first and len(found) == (2 * lines if lines == 2 else 2)


def test_long_addresses_are_not_aligned_with(tmp_path: Path) -> None:
    for length in (60, 61):
        text = scaffold(tmp_path, {"a": (2,), "b" * length: (2,)})
        (line,) = [line for line in text.splitlines() if line.startswith("  a:")]
        assert line == f"  a:{' ' * (60 if length == 60 else 1)}unused param [2]"


def test_a_large_model_stays_short(tmp_path: Path) -> None:
    found: Tensors = {}
    for i in range(30):
        found |= norm(f"model.layers.{i}.norm", 4)
        for j in range(32):
            found |= {f"model.layers.{i}.experts.{j}.{part}.weight": (2, 4) for part in ("up", "gate")}
    text = scaffold(tmp_path, found)
    assert len(found) == 1_980 and text.count("\n") < 40
    assert owned(text) == ["model.layers[i]: unused Layer(hidden) for i in 0..30"]


def test_lists_of_lists(tmp_path: Path) -> None:
    found = {f"blocks.{i}.{j}.{part}": (2,) for i in range(3) for j in range(4) for part in ("a", "b")}
    assert owned(scaffold(tmp_path, found)) == [f"blocks.{i}[i]: unused Block for i in 0..4" for i in range(3)]


WORDS = (
    "0",
    "1",
    "2",
    "3",
    "07",
    "a",
    "b",
    "layers",
    "weight",
    "bias",
    "for",
    "x-y",
    "model",
    "h",
    "param",
    "std",
    "i",
    "x",
    "batch",
)
NAMES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=5).map(".".join)
SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(NAMES, SHAPES, min_size=1, max_size=40))
def test_any_names_and_shapes(tmp_path: Path, found: Tensors) -> None:
    found = {n: s for n, s in found.items() if not any(n.startswith(f"{other}.") for other in found)}
    text = scaffold(tmp_path, found)
    model = archspec.load(str(tmp_path / "scaffold.arch"))
    assert {t.name: t.shape for t in model.tensors} | {b.name: b.shape for b in model.buffers} == found
    assert archspec.scaffold(tmp_path / "model.safetensors") == text


# Ties -----------------------------------------------------------------------------------------------------------------


def test_names_of_one_storage_are_tied(tmp_path: Path) -> None:
    shapes: Tensors = {"words.weight": (5, 4)}
    for i in range(3):
        shapes |= norm(f"layers.{i}.norm", 4) | {f"layers.{i}.table": (2, 4)} | {f"other.{i}.table": (2, 4)}
    value = state(shapes)
    value["head.weight"] = value["words.weight"]
    for i in range(3):
        value[f"layers.{i}.norm.bias"] = value["layers.0.norm.bias"]
        value[f"other.{i}.table"] = value[f"layers.{i}.table"]
    used = {call.arguments[0].identifier[2]: call.arguments[0].identifier[4] * 4 for call in value.values()}
    path = tmp_path / "pytorch_model.bin"
    path.write_bytes(torch_zip(value, used))
    assert [line for line in owned(proven(tmp_path, path)) if line.startswith("tie")] == [
        "tie other[i].table = layers[i].table for i in 0..3",
        "tie layers[i].norm.bias = layers.0.norm.bias for i in 1..3",
        "tie head.weight = words.weight",
    ]
    table = archspec.load(str(tmp_path / "scaffold.arch"))
    assert {t.name: t.tied_to for t in table.tensors if t.tied_to} == {
        "head.weight": "words.weight",
        "layers.1.norm.bias": "layers.0.norm.bias",
        "layers.2.norm.bias": "layers.0.norm.bias",
        **{f"other.{i}.table": f"layers.{i}.table" for i in range(3)},
    }


# What cannot be said --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({}, "no tensors in"),
        ({"a": (2,), "a.b": (3,)}, "address inside the address of another tensor: `a.b`"),
        ({"a..b": (2,)}, "empty address segment: `a..b`"),
        ({"": (2,)}, "empty address segment: ``"),
        ({"x y": (2,), "é.w": (2,), "a#b": (1,)}, "invalid character in an address: `x y`, `é.w`, `a#b`"),
        ({"\x1b[31m": (2,)}, "invalid character in an address"),
        ({"none": (0, 4)}, "tensor without elements; sizes in a spec must be positive: `none`"),
        ({".".join("a" * 65): (2,)}, "address too long: the limit is 64 segments and 500 characters"),
        ({"a" * 501: (2,)}, "address too long: the limit is 64 segments and 500 characters"),
        ({f"t{i}.": (1,) for i in range(7)}, "`t4.` (and 2 more)"),
    ],
)
def test_what_no_spec_can_say(tmp_path: Path, shapes: Tensors, message: str) -> None:
    path = write(tmp_path / "m.safetensors", shapes)
    with pytest.raises(ArchError) as caught:
        archspec.scaffold(path)
    (found,) = caught.value.diagnostics
    assert found.code == "no-scaffold" and message in found.message


def test_addresses_may_be_as_long_as_in_a_spec(tmp_path: Path) -> None:
    assert len(owned(scaffold(tmp_path, {".".join("a" * 64): (1,), "b" * 500: (1,)}))) == 2


def test_every_reason_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArchError) as caught:
        archspec.scaffold(write(tmp_path / "m.safetensors", {"a": (2,), "a.b": (0,), "c d": (1,)}))
    assert len(caught.value.diagnostics) == 3


def test_too_much_that_does_not_repeat(tmp_path: Path) -> None:
    path = write(tmp_path / "m.safetensors", {f"{'x' * 450}{i}": (1,) for i in range(600)})
    with pytest.raises(ArchError, match=r"error\[budget\].*scaffold of .* too large: [\d,]+ bytes"):
        archspec.scaffold(path)


def test_sizes_that_no_number_is_large_enough_for(tmp_path: Path) -> None:
    run = storage("0", 1)
    path = tmp_path / "m.bin"
    path.write_bytes(torch_zip({"a": tensor(run, (10**9, 10**9), strides=(0, 0))}, {"0": 4}))
    with pytest.raises(ArchError, match="18 digits"):
        archspec.scaffold(path)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bert.v2.safetensors", "bert"),
        ("-bert (copy)-.safetensors", "bert-copy"),
        ("???.safetensors", "model"),
        ("tiny/model.safetensors", "tiny"),
        ("tiny/pytorch_model.bin", "tiny"),
        ("model.safetensors", "model"),
        ("x" * 90 + ".bin", "x" * 80),
    ],
)
def test_the_model_has_the_name_of_its_file_or_folder(
    path: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    assert f'model "{name}" = Model()' in archspec.scaffold(write(Path(path), {"a": (2,)}))


# The command ----------------------------------------------------------------------------------------------------------


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path / "m.safetensors", linear("a", 3, 5)))
    assert main(["scaffold", path]) == 0
    text = capsys.readouterr().out
    assert text == archspec.scaffold(path)
    out = tmp_path / "out.arch"
    assert main(["scaffold", path, "-o", str(out)]) == 0 and out.read_text() == text
    out.write_text("mine")
    assert main(["scaffold", path, "-o", str(out)]) == 2 and out.read_text() == "mine"
    assert main(["scaffold", path, "-o", str(out), "--force"]) == 0 and out.read_text() == text
    assert main(["scaffold", str(tmp_path / "nowhere")]) == 2
    (tmp_path / "bad.safetensors").write_bytes(safetensors(header({"a": (1,)}))[:-1])
    assert main(["scaffold", str(tmp_path / "bad.safetensors"), "-o", str(tmp_path / "new.arch")]) == 2
    assert not (tmp_path / "new.arch").exists()
    unfit = str(write(tmp_path / "unfit.safetensors", {"x y": (1,)}))
    assert main(["scaffold", unfit]) == 1
    assert "Traceback" not in capsys.readouterr().err
