"""Steps of the code that the tests of gguf cannot reach through public names."""

import io
import struct
from pathlib import Path
from typing import Any

import pytest
from checkpoints import gguf, gguf_text, read, read_bytes, shapes
from test_gguf import METADATA

import archspec
from archspec import ArchError
from archspec.formats.checkpoints import gguf as headers
from archspec.formats.checkpoints.gguf import TYPES

SHAPES = {"token_embd.weight": (10, 256), "blk.0.attn_q.weight": (4, 256), "output_norm.weight": (256,)}


QUANTIZED = {"blk.0.attn_q.weight": "Q4_K", "token_embd.weight": "Q8_0"}


def small() -> bytes:
    return gguf(SHAPES, METADATA, QUANTIZED)


def test_texts_as_long_as_they_may_be(tmp_path: Path) -> None:
    name, key = "n" * 10_000, "k" * 65_535
    found = read_bytes(tmp_path, gguf({name: (256,)}, {"general.architecture": "llama", key: 1}), "m.gguf")
    assert shapes(found) == {name: (256,)}
    data = gguf({}, {"general.architecture": "llama"}).rstrip(b"\0")  # ends with a text
    assert data.endswith(b"llama") and headers.read_header(io.BytesIO(data), len(data), "m.gguf").entries == []


def test_which_values_of_the_metadata_are_kept() -> None:
    template = "x" * 1_000
    values = {"a": 3, "b": True, "c": 0.5, "d": template, "e": template + "x", "f": [1, 2], "g": ["a", "b"], "h": "end"}
    data = gguf({"w": (2,)}, values)
    found = headers.read_header(io.BytesIO(data), len(data), "m.gguf")
    assert found.metadata == {**values, **dict.fromkeys("efg")}
    assert [(entry.name, entry.shape) for entry in found.entries] == [("w", (2,))]


def test_a_file_that_becomes_shorter_while_it_is_read() -> None:
    data = small()
    with pytest.raises(ArchError, match=r"file is truncated: the header does not end within its [0-9,]+ bytes"):
        headers.read_header(io.BytesIO(data[:100]), len(data), "m.gguf")


BITS = """
0 float32 1 32|1 float16 1 16|2 Q4_0 32 4.5|3 Q4_1 32 5|6 Q5_0 32 5.5|7 Q5_1 32 6|8 Q8_0 32 8.5|9 Q8_1 32 10
10 Q2_K 256 2.625|11 Q3_K 256 3.4375|12 Q4_K 256 4.5|13 Q5_K 256 5.5|14 Q6_K 256 6.5625|15 Q8_K 256 9.125
16 IQ2_XXS 256 2.0625|17 IQ2_XS 256 2.3125|18 IQ3_XXS 256 3.0625|19 IQ1_S 256 1.5625|20 IQ4_NL 32 4.5
21 IQ3_S 256 3.4375|22 IQ2_S 256 2.5625|23 IQ4_XS 256 4.25|24 int8 1 8|25 int16 1 16|26 int32 1 32|27 int64 1 64
28 float64 1 64|29 IQ1_M 256 1.75|30 bfloat16 1 16|34 TQ1_0 256 1.6875|35 TQ2_0 256 2.0625|39 MXFP4 32 4.25
40 NVFP4 64 4.5|41 Q1_0 128 1.125
"""


def test_types_have_as_many_bits_per_element_as_is_published() -> None:
    rows = [row.split() for row in BITS.strip().replace("\n", "|").split("|")]
    published = {int(number): (name, int(block), float(bits)) for number, name, block, bits in rows}
    assert {number: (name, block, 8 * size / block) for number, (name, block, size) in TYPES.items()} == published


@pytest.mark.slow  # which needs a package that nothing else does
def test_types_are_those_of_the_package_of_llama_cpp() -> None:
    package: Any = pytest.importorskip("gguf")
    names = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}
    names |= {f"I{bits}": f"int{bits}" for bits in (8, 16, 32, 64)}
    sizes = {
        type.value: (names.get(type.name, type.name), *package.GGML_QUANT_SIZES[type])
        for type in package.GGML_QUANT_SIZES
    }
    assert sizes == TYPES


@pytest.mark.slow  # which needs a package that nothing else does
def test_sizes_of_files_that_the_package_of_llama_cpp_writes(tmp_path: Path) -> None:
    """One with a tensor of each type; those that the package can quantize to have such values."""
    package: Any = pytest.importorskip("gguf")
    numpy: Any = pytest.importorskip("numpy")
    values = numpy.random.default_rng(0).normal(size=(3, 5, 512)).astype(numpy.float32)
    writer = package.GGUFWriter(path := tmp_path / "m.gguf", "llama")
    writer.add_array("tokenizer.ggml.tokens", ["a", "b"])
    quantized: set[str] = set()
    for number, (name, block, width) in TYPES.items():
        type = package.GGMLQuantizationType(number)
        if block == 1 and name != "bfloat16":
            writer.add_tensor(name, values.astype(name))
            continue
        try:
            data = package.quants.quantize(values, type)
            quantized.add(name)
        except NotImplementedError:
            data = numpy.zeros((3, 5, 512 // block * width), dtype=numpy.uint8)
        writer.add_tensor(name, data, raw_dtype=type)
    assert {"bfloat16", "Q4_0", "Q8_0", "MXFP4", "TQ1_0"} <= quantized
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    found = read(str(path))
    theirs = package.GGUFReader(path).tensors
    assert [e.dtype for e in found.entries] == [name for name, *_ in TYPES.values()] == [t.name for t in theirs]
    assert [(e.shape, e.elements, e.bytes, e.start) for e in found.entries] == [
        ((*map(int, reversed(t.shape)),), t.n_elements, t.n_bytes, t.data_offset) for t in theirs
    ]
    verified = archspec.verify("bert-base-uncased", path)
    assert verified.stored.elements == sum(t.n_elements for t in theirs) == len(TYPES) * values.size
    assert verified.stored.bytes == sum(t.n_bytes for t in theirs)
    assert {name: (part.elements, part.bytes) for name, part in verified.dtypes.items()} == {
        t.name: (t.n_elements, t.n_bytes) for t in theirs
    }


def head(tensors: int, values: int, rest: bytes = b"", version: int = 3) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", version, tensors, values) + rest


def info(name: str = "w", shape: tuple[int, ...] = (2,), type: int = 0, start: int = 0) -> bytes:
    return gguf_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), type, start)


def padded(data: bytes, rest: int) -> bytes:
    return data + bytes(-len(data) % 32 + rest)


def refused(data: bytes, size: int | None = None) -> str:
    """What is wrong with a file; "" if nothing is."""
    try:
        headers.read_header(io.BytesIO(data), len(data) if size is None else size, "m.gguf")
    except ArchError as error:
        return error.diagnostics[0].message.removeprefix("m.gguf: ")
    return ""


def test_as_much_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    strings = {"a": ["x", "y"], "b": ["z"]}
    data = gguf({"u": (2,), "v": (1, 2, 1, 3)}, strings)
    limits = {
        "MAX_TENSORS": (2, "too many tensors: 2, the limit is 1"),
        "MAX_VALUES": (2, "too many values of metadata: 2, the limit is 1"),
        "MAX_STRINGS": (3, "too many strings in the metadata: the limit is 2"),
        "MAX_DIMENSIONS": (4, "too many axes in the shape of `v`: the limit is 3"),
        "MAX_SIZE": (32, "`v` is too large: 1 x 2 x 1 x 3, from byte 32"),
    }
    for name, (limit, message) in limits.items():
        monkeypatch.setattr(headers, name, limit)
        assert refused(data) == ""
        with monkeypatch.context() as patch:
            patch.setattr(headers, name, limit - 1)
            assert refused(data) == message
    monkeypatch.setattr(headers, "MAX_SIZE", 35)
    assert refused(gguf({"u": (5, 7)})) == "" and refused(gguf({"u": (6, 6)})).startswith("`u` is too large: 6 x 6")


@pytest.mark.parametrize("alignment", [1, 2, 8, 64])
def test_alignments(alignment: int) -> None:
    data = gguf({"u": (2,), "v": (3,)}, {"general.alignment": alignment})
    assert refused(data) == ""
    found = headers.read_header(io.BytesIO(data), len(data), "m.gguf").entries
    assert [entry.start % alignment for entry in found] == [0, 0]
    assert [entry.stop for entry in found][-1] <= len(data)


def test_files_are_as_long_as_their_tensors() -> None:
    head_only = padded(head(2, 0, info(shape=(8,)) + info("v", (2,), start=32)), 0)
    assert refused(head_only + bytes(40)) == refused(head_only + bytes(41)) == ""
    assert refused(head_only + bytes(39)) == "file is truncated: expected 40 bytes of tensors, found 39"
    inside = padded(head(2, 0, info(shape=(9,)) + info("v", (2,), start=32)), 40)
    assert refused(inside) == "`v` starts at byte 32, inside `w`"
    empty = padded(head(2, 0, info(shape=(9,)) + info("v", (0,), start=32)), 40)
    assert refused(empty) == ""


def test_headers_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    data = small()

    def refusal(size: int) -> str:
        with pytest.raises(ArchError) as found:
            headers.read_header(io.BytesIO(data), size, "m.gguf")
        return found.value.diagnostics[0].message

    monkeypatch.setattr(headers, "MAX_HEADER_BYTES", 400)
    assert refusal(len(data)) == "m.gguf: the header exceeds the limit of 400 bytes"
    assert refusal(400) == "m.gguf: file is truncated: the header does not end within its 400 bytes"
    data = b"GGML" + data[4:]
    assert refusal(len(data)) == "m.gguf: not a GGUF file"
