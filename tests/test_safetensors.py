"""Headers of safetensors files: what is read of them, and that none of them is believed."""

import json
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from checkpoints import SHAPES, header, read_bytes, safetensors, said, shapes

from archspec import ArchError
from archspec.checkpoints.checkpoint import read
from archspec.checkpoints.safetensors import DTYPES


def test_a_safetensors_file(tmp_path: Path) -> None:
    found = read_bytes(tmp_path, safetensors({"__metadata__": {"format": "pt"}, **header(SHAPES, "BF16")}))
    assert shapes(found) == SHAPES
    assert [(e.dtype, e.elements, e.bytes) for e in found.entries] == [
        ("bfloat16", 3, 6),
        ("bfloat16", 6, 12),
        ("bfloat16", 1, 2),
        ("bfloat16", 0, 0),
    ]


def test_a_file_without_tensors(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, safetensors({})).entries == ()


def test_padding_and_types_of_less_than_a_byte(tmp_path: Path) -> None:
    text = json.dumps(header({"w": (4, 3)}, "F4")).encode() + b"   "
    (entry,) = read_bytes(tmp_path, safetensors(text, 6)).entries
    assert (entry.dtype, entry.elements, entry.bytes) == ("float4_e2m1fn", 12, 6)


def with_info(**fields: Any) -> bytes:
    """A file of a tensor `w`, whose entry in the header is changed."""
    return safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **fields}}, 8)


BAD_HEADERS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "is no safetensors file: it ends before its header begins"),
    "seven bytes": (bytes(7), "is no safetensors file: it ends before its header begins"),
    "no header": (bytes(8), "is no safetensors file: its header does not begin with `{`"),
    "header beyond the end": (
        struct.pack("<Q", 100) + b"{}",
        "is cut short: a header of 100 bytes in a file of 10",
    ),
    "huge header": (
        struct.pack("<Q", 2**63) + b"{}",
        "is no safetensors file: a header of 9,223,372,036,854,775,808 bytes, where 100,000,000 are allowed",
    ),
    "no JSON": (safetensors(b"{nothing}", 0), "the header is no JSON"),
    "a list": (safetensors(b"[1]", 0), "its header does not begin with `{`"),
    "more than JSON": (safetensors(b"{}{}", 0), "the header is no JSON: Extra data"),
    "no UTF-8": (safetensors(b'{"\xff": 1}', 0), "the header is no UTF-8 text"),
    "twice": (
        safetensors(b'{"w": {"dtype": "F32"}, "w": {"dtype": "F32"}}', 0),
        "the header is no proper JSON: `w` is there twice",
    ),
    "twice inside": (
        safetensors(b'{"w": {"dtype": "F32", "dtype": "F16"}}', 0),
        "the header is no proper JSON: `dtype` is there twice",
    ),
    "deep": (safetensors(b'{"w":' + b"[" * 200_000 + b"]" * 200_000 + b"}", 0), "the header is nested too deeply"),
    "deep objects": (safetensors(b'{"w":' * 200_000 + b"1" + b"}" * 200_000, 0), "the header is nested too deeply"),
    "items": (safetensors(b'{"w":[' + b"1," * 4_000_000 + b"1]}", 0), "the header has more than 4,000,000 items"),
    "NaN": (safetensors(b'{"w": NaN}', 0), "the header is no proper JSON: NaN is no number"),
    "endless number": (
        safetensors(b'{"w": {"dtype": "F32", "shape": [%s], "data_offsets": [0, 8]}}' % (b"9" * 5000), 8),
        "the header is no proper JSON",
    ),
    "no object": (safetensors(b'{"w": 3}', 0), "`w` lacks one of"),
    "no shape": (safetensors(b'{"w": {"dtype": "F32", "data_offsets": [0, 8]}}', 8), "`w` lacks one of"),
    "long name": (safetensors(header({"a." * 10_000: (1,)})), "has a name of 20,000 characters, where 10,000 are"),
    "half a pair": (safetensors(b'{"\\ud800": {}}', 0), "the name '\\ud800' is no text"),
    "metadata": (safetensors(b'{"__metadata__": {"a": 1}}', 0), "`__metadata__` is no mapping of strings to strings"),
    "metadata list": (safetensors(b'{"__metadata__": []}', 0), "`__metadata__` is no mapping of strings to strings"),
    "type": (with_info(dtype="F33"), "`w` is of a type that the format does not have: 'F33'"),
    "type of a type": (with_info(dtype=["F32"]), "`w` is of a type that the format does not have: ['F32']"),
    "negative": (with_info(shape=[-2]), "`w` has a shape that is none: [-2]"),
    "real": (with_info(shape=[2.0]), "`w` has a shape that is none: [2.0]"),
    "true": (with_info(shape=[True, 2]), "`w` has a shape that is none: [True, 2]"),
    "text": (with_info(shape="2"), "`w` has a shape that is none: '2'"),
    "overflow": (with_info(shape=[2**62, 2**62, 2**62]), "`w` takes up 8 bytes, and F32 of shape"),
    "wraps to two": (with_info(shape=[2**63 + 2]), "`w` has a shape that is none"),
    "rank": (with_info(shape=[1] * 65), "`w` has 65 dimensions, more than 64"),
    "three offsets": (with_info(data_offsets=[0, 4, 8]), "`w` has offsets that are none: [0, 4, 8]"),
    "backwards": (with_info(data_offsets=[8, 0]), "`w` has offsets that are none: [8, 0]"),
    "infinite": (with_info(data_offsets=[0, 1e400]), "the header is no proper JSON: Infinity is no number"),
    "another size": (with_info(data_offsets=[0, 4]), "`w` takes up 4 bytes, and F32 of shape [2] needs 8"),
    "half a byte": (with_info(dtype="F4", shape=[3], data_offsets=[0, 1]), "`w` takes up 1 byte, and F4 of shape [3]"),
    "late start": (with_info(data_offsets=[4, 12]), "bytes 0 to 4 belong to no tensor"),
    "cut short": (safetensors(header({"w": (2,), "v": (3,)}), 19), "its tensors take up 20 bytes, of which 19"),
    "rest": (safetensors(header({"w": (2,)}), 9), "its last 1 byte belong to no tensor"),
}


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_a_header_that_lies(tmp_path: Path, case: str) -> None:
    data, message = BAD_HEADERS[case]
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, data)
    rendered = [d.render() for d in caught.value.diagnostics]
    assert {d.code for d in caught.value.diagnostics} == {"bad-checkpoint"}
    assert message in rendered[0], rendered
    assert len(rendered[0]) < 600 and rendered[0].replace("\n", "").isprintable()


def test_overlaps_and_gaps_are_named(tmp_path: Path) -> None:
    head = header({"a": (2,), "b": (2,), "c": (2,)})
    head["b"]["data_offsets"] = [4, 12]
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, safetensors(head, 24))
    messages = [d.message.partition(": ")[2] for d in caught.value.diagnostics]
    assert messages == ["`b` begins at byte 4, within `a`", "bytes 12 to 16 belong to no tensor"]


def test_two_names_of_the_same_bytes_overlap(tmp_path: Path) -> None:
    head = header({"a": (2,), "b": (2,)})
    head["b"]["data_offsets"] = [0, 8]
    assert said(tmp_path, safetensors(head, 8)) == "`b` begins at byte 0, within `a`"


def test_of_many_like_faults_one_is_said_and_the_rest_counted(tmp_path: Path) -> None:
    head = {f"w.{i}": {"dtype": "Q8", "shape": [1], "data_offsets": [0, 1]} for i in range(500)}
    assert said(tmp_path, safetensors(head, 1)).endswith(": 'Q8' (and 499 more like it)")


def test_only_the_header_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    head = json.dumps(header({"w": (25_000_000_000,)})).encode()
    with open(path, "wb") as file:  # 100 GB, all but the header a hole
        file.write(struct.pack("<Q", len(head)) + head)
        file.truncate(8 + len(head) + 100_000_000_000)
    tracemalloc.start()
    assert read(str(path)).entries[0].bytes == 100_000_000_000
    assert tracemalloc.get_traced_memory()[1] < 3_000_000
    tracemalloc.stop()


def test_types_are_those_of_the_format() -> None:
    assert len(set(DTYPES.values())) == len(DTYPES)
