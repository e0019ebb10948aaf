"""GGUF files: what is read of their headers, that none of them is believed, and which tensors of a spec they hold."""

import random
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from checkpoints import gguf, gguf_text, gguf_value, mutated, read, read_bytes, said, shapes

from archspec import ArchError

SHAPES = {"token_embd.weight": (10, 256), "blk.0.attn_q.weight": (4, 256), "output_norm.weight": (256,)}
QUANTIZED = {"blk.0.attn_q.weight": "Q4_K", "token_embd.weight": "Q8_0"}
METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.context_length": 4096,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.add_bos_token": True,
    "tokenizer.ggml.tokens": ["<s>", "a", "é"],
    "tokenizer.ggml.token_type": [3, 1, 1],
}


def small() -> bytes:
    return gguf(SHAPES, METADATA, QUANTIZED)


def write(folder: Path, data: bytes, name: str = "model.gguf") -> str:
    (folder / name).write_bytes(data)
    return str(folder / name)


@pytest.mark.parametrize("version", [2, 3])
def test_a_file(tmp_path: Path, version: int) -> None:
    found = read_bytes(tmp_path, gguf(SHAPES, METADATA, QUANTIZED, version), "m.gguf")
    assert [(e.name, e.shape, e.dtype, e.elements, e.bytes) for e in found.entries] == [
        ("token_embd.weight", (10, 256), "Q8_0", 2560, 2720),
        ("blk.0.attn_q.weight", (4, 256), "Q4_K", 1024, 576),
        ("output_norm.weight", (256,), "float32", 256, 1024),
    ]
    assert found.notes == (
        "GGUF, architecture `llama`",
        "no `output.weight`: llama.cpp ties the output layer to `token_embd.weight`",
    )


def test_an_alignment_of_its_own_and_any_file_name(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, gguf(SHAPES, {"general.alignment": 4096}), "model.bin")
    assert shapes(found) == SHAPES
    assert found.entries[0].start == 4096


def test_embeddings_are_not_tied_to_an_output_layer(tmp_path: Path) -> None:
    bert = {"general.architecture": "bert", "bert.attention.causal": False}
    assert read_bytes(tmp_path, gguf(SHAPES, bert), "m.gguf").notes == ("GGUF, architecture `bert`",)


# What is wrong with a file --------------------------------------------------------------------------------------------


def head(tensors: int, values: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, values) + rest


def info(name: str = "w", shape: tuple[int, ...] = (2,), type: int = 0, start: int = 0) -> bytes:
    return gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), type, start)


def padded(data: bytes, rest: int) -> bytes:
    return data + bytes(-len(data) % 32 + rest)


VALUE = gguf_text("k")
BAD: dict[str, tuple[bytes, str]] = {
    "only the magic": (b"GGUF", "file is truncated: the header does not end within its 4 bytes"),
    "version 1": (head(0, 0, version=1), "unsupported version 1 of GGUF: expected 2 or 3"),
    "version 4": (head(0, 0, version=4), "unsupported version 4 of GGUF: expected 2 or 3"),
    "big-endian": (
        b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "unsupported byte order: expected a little-endian file",
    ),
    "huge count": (head(2**63, 0), "too many tensors: 9,223,372,036,854,775,808, the limit is 200,000"),
    "huge metadata": (head(0, 2**40), "too many values of metadata: 1,099,511,627,776, the limit is 100,000"),
    "count": (head(500, 0), "file is truncated: too short for 500 tensors and 0 values of metadata"),
    "long key": (
        head(0, 1, struct.pack("<Q", 70_000) + bytes(80_000)),
        "key of the metadata of 70,000 bytes exceeds the limit of 65,535",
    ),
    "endless key": (
        head(0, 1, struct.pack("<Q", 2**63) + bytes(50)),
        "file is truncated: the header does not end within its 82 bytes",
    ),
    "key": (head(0, 1, gguf_text(b"\xff") + bytes(20)), "key of the metadata is not UTF-8 text"),
    "key twice": (
        head(0, 2, 2 * (VALUE + gguf_value(1))),
        "`k` appears more than once in the metadata",
    ),
    "type of a value": (head(0, 1, VALUE + struct.pack("<IQ", 13, 0)), "unknown type 13 of `k` in the metadata"),
    "boolean": (head(0, 1, VALUE + struct.pack("<IB", 7, 2) + bytes(9)), "invalid boolean `k` in the metadata"),
    "nested": (
        head(0, 1, VALUE + struct.pack("<IIQ", 9, 9, 1) + bytes(20)),
        "unsupported type 9 of the elements of `k` in the metadata",
    ),
    "long array": (
        head(0, 1, VALUE + struct.pack("<IIQ", 9, 4, 2**62)),
        "file is truncated: the header does not end within its 49 bytes",
    ),
    "many strings": (
        head(0, 1, VALUE + struct.pack("<IIQ", 9, 8, 2**62)),
        "too many strings in the metadata: the limit is 5,000,000",
    ),
    "short array": (
        head(0, 1, VALUE + struct.pack("<IIQ", 9, 8, 2**20)),
        "file is truncated: the header does not end within its 49 bytes",
    ),
    "long string": (
        head(0, 1, VALUE + struct.pack("<IQ", 8, 2**62) + bytes(9)),
        "file is truncated: the header does not end within its 54 bytes",
    ),
    "alignment": (
        head(0, 1, gguf_text("general.alignment") + gguf_value(24)),
        "invalid general.alignment: expected a power of two, found 24",
    ),
    "no alignment": (
        head(0, 1, gguf_text("general.alignment") + gguf_value(0)),
        "invalid general.alignment: expected a power of two, found 0",
    ),
    "text alignment": (
        head(0, 1, gguf_text("general.alignment") + gguf_value("32")),
        "invalid general.alignment: expected a power of two, found '32'",
    ),
    "name": (head(1, 0, gguf_text(b"\xff") + bytes(40)), "name of a tensor is not UTF-8 text"),
    "long name": (
        padded(head(1, 0, info("a" * 20_000)), 64),
        "tensor name of 20,000 characters exceeds the limit of 10,000",
    ),
    "twice": (padded(head(2, 0, info() + info(start=32)), 64), "`w` appears more than once"),
    "axes": (head(1, 0, info(shape=(1,) * 5)), "too many axes in the shape of `w`: the limit is 4"),
    "type": (head(1, 0, info(type=31)), "unknown type of `w`: 31"),
    "overflow": (
        head(1, 0, info(shape=(2**40, 2**40))),
        "`w` is too large: 1099511627776 x 1099511627776, from byte 0",
    ),
    "offset": (head(1, 0, info(start=2**63)), "`w` is too large: 2, from byte 9,223,372,036,854,775,808"),
    "row": (
        head(1, 0, info(shape=(2, 100), type=12)),
        "rows of `w` have 100 elements, not a multiple of the block size 256 of Q4_K",
    ),
    "row of a scalar": (
        head(1, 0, info(shape=(), type=12)),
        "rows of `w` have 1 elements, not a multiple of the block size 256 of Q4_K",
    ),
    "short": (head(1, 0, info()), "file is truncated: expected 8 bytes of tensors, found 0"),
    "unaligned": (padded(head(1, 0, info(start=8)), 64), "`w` starts at byte 8, not a multiple of 32"),
    "overlap": (
        padded(head(2, 0, info(shape=(9,)) + info("v", start=32)), 64),
        "`v` starts at byte 32, inside `w`",
    ),
    "nothing inside": (
        padded(head(3, 0, info(shape=(16,)) + info("v", (0,), start=32) + info("u", (8,), start=32)), 64),
        "`u` starts at byte 32, inside `w`",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_file_that_lies(tmp_path: Path, case: str) -> None:
    data, message = BAD[case]
    assert said(tmp_path, data, "m.gguf").endswith(message)


def test_sizes_in_a_header_allocate_nothing(tmp_path: Path) -> None:
    for case in ("huge count", "endless key", "long array", "long string", "overflow"):
        path = write(tmp_path, BAD[case][0])
        tracemalloc.start()
        with pytest.raises(ArchError):
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
        tracemalloc.stop()


PIECES = [b"\xff" * 8, bytes(8), b"\x01", struct.pack("<Q", 2**31)]


def test_no_change_of_a_file_yields_anything_but_a_diagnostic(tmp_path: Path) -> None:
    header = small()[: len(small()) - 2720 - 576 - 1024]
    source = random.Random(7)
    refused = 0
    for _ in range(400):
        try:
            read_bytes(tmp_path, mutated(header, source, PIECES) + bytes(4400), "m.gguf")
        except ArchError as error:
            refused += 1
            assert {d.code for d in error.diagnostics} == {"bad-checkpoint"}
            assert error.diagnostics[0].render()
    assert refused > 100


def test_no_part_of_a_file_is_taken_for_the_whole(tmp_path: Path) -> None:
    whole = small()
    for end in range(0, len(whole), 40):
        with pytest.raises(ArchError):
            read_bytes(tmp_path, whole[:end], "m.gguf")


# A model in several files ---------------------------------------------------------------------------------------------


def parts(folder: Path, count: int = 2, tensors: int = 3) -> list[Path]:
    """The tensors of SHAPES in two files."""
    names = [*SHAPES]
    found: list[Path] = []
    for number, part in enumerate((names[:2], names[2:])):
        split = {"split.no": number, "split.count": count, "split.tensors.count": tensors}
        path = folder / f"m-{number + 1:05}-of-00002.gguf"
        shared = {} if number else {"general.architecture": "llama"}  # which llama.cpp writes in the first part only
        path.write_bytes(gguf({name: SHAPES[name] for name in part}, {**shared, **split}))
        found.append(path)
    return found


def test_parts_of_a_model_are_read_together(tmp_path: Path) -> None:
    one, two = parts(tmp_path)
    for path in (one, two, tmp_path):
        found = read(str(path))
        assert (shapes(found), found.files) == (SHAPES, 2)
        assert len(found.notes) == 2


def test_as_many_parts_as_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = parts(tmp_path)
    monkeypatch.setattr("archspec.formats.checkpoints.gguf.MAX_PARTS", 2)
    assert read(str(one)).files == 2
    monkeypatch.setattr("archspec.formats.checkpoints.gguf.MAX_PARTS", 1)
    with pytest.raises(ArchError, match="too many parts: 2, the limit is 1"):
        read(str(one))
    whole = {"split.count": 0, "split.tensors.count": 9}
    assert shapes(read_bytes(tmp_path, gguf(SHAPES, whole), "m.gguf")) == SHAPES


def test_parts_that_are_missing_or_have_the_same_tensors(tmp_path: Path) -> None:
    _, two = parts(tmp_path)
    two.write_bytes(gguf(SHAPES, {"split.no": 1, "split.count": 2}))
    with pytest.raises(ArchError) as found:
        read(str(two))
    shown = found.value.diagnostics[0].message.replace(f"{tmp_path}/", "")
    name = "token_embd.weight"
    assert f"`{name}` is in two parts, m-00001-of-00002.gguf and m-00002-of-00002.gguf" in shown
    alone = tmp_path / "m-00002-of-00003.gguf"
    alone.write_bytes(gguf(SHAPES, {"split.no": 1, "split.count": 3}))
    with pytest.raises(ArchError, match=r"m-00001-of-00003\.gguf \(and 1 more like it\), one of the 3 parts"):
        read(str(alone))


@pytest.mark.parametrize("number", ["one", 1.0, True])
def test_numbers_of_parts_are_integers(tmp_path: Path, number: Any) -> None:
    one, two = parts(tmp_path)
    two.write_bytes(gguf(SHAPES, {"split.no": number, "split.count": 2}))
    with pytest.raises(ArchError, match=r"00002\.gguf: invalid `split\.no`: expected a number"):
        read(str(one))


def test_parts_that_do_not_belong_together(tmp_path: Path) -> None:
    one, two = parts(tmp_path, tensors=4)
    with pytest.raises(ArchError, match="expected 4 tensors in all parts, found 3"):
        read(str(one))
    one, two = parts(tmp_path)
    two.write_bytes(one.read_bytes())
    with pytest.raises(ArchError, match=r"m-00002-of-00002.gguf is not part 2 of 2"):
        read(str(one))
    two.unlink()
    with pytest.raises(ArchError, match=r"missing-file\]: file not found: .*m-00002-of-00002.gguf, one of the 2 parts"):
        read(str(one))
    one, two = parts(tmp_path, count=3)
    with pytest.raises(ArchError, match=r"one of 3 parts, whose name does not end in `-of-00003\.gguf`"):
        read(str(one))
    one, two = parts(tmp_path, count=2**31)
    with pytest.raises(ArchError, match="too many parts: 2,147,483,648, the limit is 10,000"):
        read(str(one))
