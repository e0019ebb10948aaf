"""Headers of safetensors files: what is read of them, and that none of them is believed."""

import json
import re
import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from checkpoints import SHAPES, header, read, read_bytes, safetensors, said, shapes

from archspec import ArchError


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


TOO_DEEP = "cannot read the header: values are nested too deeply: the limit is 16 levels"
BAD_HEADERS: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "not a safetensors file: it is too short for a header"),
    "seven bytes": (bytes(7), "not a safetensors file: it is too short for a header"),
    "no header": (bytes(8), "not a safetensors file: the header does not start with `{`"),
    "header beyond the end": (
        struct.pack("<Q", 100) + b"{}",
        "file is truncated: expected a header of 100 bytes, but the file has 10",
    ),
    "huge header": (
        struct.pack("<Q", 2**63) + b"{}",
        "not a safetensors file: header of 9,223,372,036,854,775,808 bytes exceeds the limit of 100,000,000",
    ),
    "no JSON": (safetensors(b"{nothing}", 0), "cannot read the header: expected a member name in double quotes"),
    "a list": (safetensors(b"[1]", 0), "the header does not start with `{`"),
    "more than JSON": (
        safetensors(b"{}{}", 0),
        "cannot read the header: unexpected text after the end of the JSON value",
    ),
    "no UTF-8": (safetensors(b'{"\xff": 1}', 0), "the header is not UTF-8 text: invalid byte at offset 2"),
    "twice": (
        safetensors(b'{"v": {}, "w": {"dtype": "F32"}, "w": {"dtype": "F32"}}', 0),
        "cannot read the header: member `w` is specified more than once",
    ),
    "twice inside": (
        safetensors(b'{"w": {"dtype": "F32", "dtype": "F16"}}', 0),
        "cannot read the header: member `dtype` is specified more than once",
    ),
    "deep": (safetensors(b'{"w":' + b"[" * 200_000 + b"]" * 200_000 + b"}", 0), TOO_DEEP),
    "deep objects": (safetensors(b'{"w":' * 200_000 + b"1" + b"}" * 200_000, 0), TOO_DEEP),
    "items": (
        safetensors(b'{"w":[' + b"1," * 4_000_000 + b"1]}", 0),
        "too many items in the header: the limit is 4,000,000",
    ),
    "NaN": (safetensors(b'{"w": NaN}', 0), "cannot read the header: invalid JSON value `NaN`"),
    "endless number": (
        safetensors(b'{"w": {"dtype": "F32", "shape": [%s], "data_offsets": [0, 8]}}' % (b"9" * 5000), 8),
        "cannot read the header: number too long: the limit is 400 characters",
    ),
    "no object": (safetensors(b'{"w": 3}', 0), "missing `dtype`, `shape` or `data_offsets` of `w`"),
    "no shape": (
        safetensors(b'{"w": {"dtype": "F32", "data_offsets": [0, 8]}}', 8),
        "missing `dtype`, `shape` or `data_offsets` of `w`",
    ),
    "long name": (
        safetensors(header({"a." * 10_000: (1,)})),
        "tensor name of 20,000 characters exceeds the limit of 10,000",
    ),
    "long name of an unknown type": (
        safetensors({"a" * 10_001: {"dtype": "F33", "shape": [1], "data_offsets": [0, 4]}}, 4),
        "tensor name of 10,001 characters exceeds the limit of 10,000",
    ),
    "half a pair": (safetensors(b'{"\\ud800": {}}', 0), "tensor name '\\ud800' is not valid Unicode"),
    "metadata": (
        safetensors(b'{"__metadata__": {"a": 1}}', 0),
        "expected a mapping of strings to strings in `__metadata__`",
    ),
    "metadata list": (
        safetensors(b'{"__metadata__": []}', 0),
        "expected a mapping of strings to strings in `__metadata__`",
    ),
    "type": (with_info(dtype="F33"), "unknown dtype of `w`: 'F33'"),
    "type of a type": (with_info(dtype=["F32"]), "unknown dtype of `w`: ['F32']"),
    "negative": (with_info(shape=[-2]), "invalid shape of `w`: [-2]"),
    "real": (with_info(shape=[2.0]), "invalid shape of `w`: [2.0]"),
    "true": (with_info(shape=[True, 2]), "invalid shape of `w`: [True, 2]"),
    "text": (with_info(shape="2"), "invalid shape of `w`: '2'"),
    "overflow": (
        with_info(shape=[2**62, 2**62, 2**62]),
        "bytes for F32 of shape [4611686018427387904, 4611686018427387904, 46116860184273..., found 8",
    ),
    "wraps to two": (with_info(shape=[2**63 + 2]), "invalid shape of `w`: [9223372036854775810]"),
    "rank": (with_info(shape=[1] * 65), "too many axes in the shape of `w`: the limit is 64"),
    "three offsets": (with_info(data_offsets=[0, 4, 8]), "invalid data_offsets of `w`: [0, 4, 8]"),
    "backwards": (with_info(data_offsets=[8, 0]), "invalid data_offsets of `w`: [8, 0]"),
    "infinite": (with_info(data_offsets=[0, 1e400]), "cannot read the header: invalid JSON value `Infinity`"),
    "another size": (with_info(data_offsets=[0, 4]), "`w`: expected 8 bytes for F32 of shape [2], found 4"),
    "half a byte": (
        with_info(dtype="F4", shape=[3], data_offsets=[0, 1]),
        "`w`: expected 1.5 bytes for F4 of shape [3], found 1",
    ),
    "late start": (with_info(data_offsets=[4, 12]), "bytes 0 to 4 belong to no tensor"),
    "cut short": (
        safetensors(header({"w": (2,), "v": (3,)}), 19),
        "file is truncated: expected 20 bytes of tensors, found 19",
    ),
    "rest": (safetensors(header({"w": (2,)}), 9), "found 1 byte after the last tensor"),
}


ELEMENTS = {
    "BOOL": ("bool", 8),
    "U8": ("uint8", 8),
    "I8": ("int8", 8),
    "U16": ("uint16", 16),
    "I16": ("int16", 16),
    "U32": ("uint32", 32),
    "I32": ("int32", 32),
    "U64": ("uint64", 64),
    "I64": ("int64", 64),
    "F4": ("float4_e2m1fn", 4),
    "F6_E2M3": ("float6_e2m3fn", 6),
    "F6_E3M2": ("float6_e3m2fn", 6),
    "F8_E4M3": ("float8_e4m3fn", 8),
    "F8_E4M3FNUZ": ("float8_e4m3fnuz", 8),
    "F8_E5M2": ("float8_e5m2", 8),
    "F8_E5M2FNUZ": ("float8_e5m2fnuz", 8),
    "F8_E8M0": ("float8_e8m0fnu", 8),
    "F16": ("float16", 16),
    "BF16": ("bfloat16", 16),
    "F32": ("float32", 32),
    "F64": ("float64", 64),
    "C64": ("complex64", 64),
}


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_every_element_type(tmp_path: Path, dtype: str) -> None:
    name, bits = ELEMENTS[dtype]
    head = {"w": {"dtype": dtype, "shape": [2, 4], "data_offsets": [0, bits]}}  # 8 elements
    (entry,) = read_bytes(tmp_path, safetensors(head)).entries
    assert (entry.dtype, entry.bytes) == (name, bits)
    head["w"]["data_offsets"] = [0, bits + 1]
    assert said(tmp_path, safetensors(head))


@pytest.mark.parametrize("case", BAD_HEADERS)
def test_a_header_that_lies(tmp_path: Path, case: str) -> None:
    data, message = BAD_HEADERS[case]
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, data)
    rendered = [d.render() for d in caught.value.diagnostics]
    assert [d.code for d in caught.value.diagnostics] == ["bad-checkpoint"] * (2 if case == "late start" else 1)
    shown = caught.value.diagnostics[0].message
    assert shown.endswith(message)
    assert re.match(r"error\[bad-checkpoint\]: [^:]*\.safetensors: ", rendered[0]), rendered
    assert len(rendered[0]) < 600 and rendered[0].replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("text", "location"),
    [
        ('{"a": {}, "w": {"dtype": "F32", "shape": [1,]}}', "1:44"),
        ('{"a": {"b": [{"c": 1}, {}]}, "w": {"v": [{"c": 1}, {"c": 1, "c": 2}]}}', "1:61"),
        ('{"a": "\\u00e9", "w": [[0], [NaN]]}', "1:29"),
        ('{"a": {}', "1:1"),
    ],
)
def test_errors_in_a_header_have_their_location(tmp_path: Path, text: str, location: str) -> None:
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, safetensors(text.encode(), 0))
    assert f"--> header of model.safetensors:{location}\n" in str(caught.value)


def test_errors_behind_very_many_values_are_in_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.formats.strict_json.MAX_VALUES", 4)
    message = "cannot read the header: syntax error or duplicate name in this value or after it"
    assert said(tmp_path, safetensors(b'{"a": 1, "b": [2, 3], "c": 4, "d": 5, "a": 6}', 0)).endswith(message)


def test_as_much_as_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = with_info(shape=[2] + [1] * 63)
    assert shapes(read_bytes(tmp_path, data)) == {"w": (2, *[1] * 63)}
    largest = {"dtype": "F32", "shape": [2**63 - 1, 0], "data_offsets": [8, 8]}
    assert shapes(read_bytes(tmp_path, safetensors({**header({"v": (2,)}), "w": largest})))["w"] == (2**63 - 1, 0)
    assert (
        said(tmp_path, with_info(shape=[2**63, 0], data_offsets=[0, 0]))
        == "invalid shape of `w`: [9223372036854775808, 0]"
    )
    length = int.from_bytes(data[:8], "little")
    items = data.count(b",") + data.count(b"[") + data.count(b"{")
    for name, limit, message in (
        ("safetensors.MAX_HEADER_BYTES", length, f"header of {length:,} bytes exceeds the limit of {length - 1:,}"),
        ("safetensors.MAX_ITEMS", items, f"too many items in the header: the limit is {items - 1:,}"),
        ("safetensors.MAX_DIMENSIONS", 64, "too many axes in the shape of `w`: the limit is 63"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"archspec.formats.checkpoints.{name}", limit)
            assert len(read_bytes(tmp_path, data).entries) == 1
            patch.setattr(f"archspec.formats.checkpoints.{name}", limit - 1)
            assert said(tmp_path, data).endswith(message)


def test_overlaps_and_gaps_are_named(tmp_path: Path) -> None:
    head = header({"a": (2,), "b": (2,), "c": (2,)})
    head["b"]["data_offsets"] = [4, 12]
    with pytest.raises(ArchError) as caught:
        read_bytes(tmp_path, safetensors(head, 24))
    messages = [d.message.partition(": ")[2] for d in caught.value.diagnostics]
    assert messages == ["`b` starts at byte 4, inside `a`", "bytes 12 to 16 belong to no tensor"]


def test_two_names_of_the_same_bytes_overlap(tmp_path: Path) -> None:
    head = header({"a": (2,), "b": (2,)})
    head["b"]["data_offsets"] = [0, 8]
    assert said(tmp_path, safetensors(head, 8)) == "`b` starts at byte 0, inside `a`"


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
