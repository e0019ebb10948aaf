"""Steps of the code that the tests of torch files cannot reach through public names."""

import io
import pickle as pickles
import struct
from pathlib import Path
from typing import Any

import pytest
from checkpoints import SHAPES, encode, read_bytes, shapes, sizes, state, torch_zip

from archspec.formats.checkpoints.entries import Entry
from archspec.formats.checkpoints.pickled import PickleError, Reader
from archspec.formats.checkpoints.torchzip import _check_end, _LimitedFile


def test_tensors_without_elements_are_not_at_one_place() -> None:
    empty = Entry("a", (0, 3), "F32", 0, "model.bin", "0", 8)
    assert empty.storage_key == empty.storage_key and empty.storage_key != empty._replace(name="b").storage_key
    full = empty._replace(shape=(2, 3), bytes=24)
    assert (
        full.storage_key == full._replace(name="b").storage_key
        and full.storage_key != full._replace(start=16).storage_key
    )


GOOD = torch_zip(state(SHAPES), sizes(SHAPES))


def test_an_entry_of_the_directory_with_another_signature(tmp_path: Path) -> None:
    start = GOOD.index(b"PK\x01\x02")
    end = GOOD.rindex(b"PK\x05\x06")
    count, size = struct.unpack_from("<HI", GOOD, end + 10)
    with pytest.raises(PickleError, match=r"^the directory of the archive is damaged$"):
        _check_end(io.BytesIO(GOOD[:start] + b"PK\x01\x03" + GOOD[start + 4 :]), count, start, len(GOOD))
    _check_end(io.BytesIO(GOOD), count, start, len(GOOD))
    with pytest.raises(PickleError, match=r"^the end of the archive is damaged$"):
        _check_end(io.BytesIO(GOOD + b"x"), count, start, len(GOOD) + 1)
    assert start + size == end


END = struct.Struct("<4sHHHHIIH")


@pytest.mark.parametrize("field", range(1, 7))
def test_every_number_at_the_end_of_an_archive_is_checked(tmp_path: Path, field: int) -> None:
    """It is the right one, or the largest, which stands for one in the records of large archives."""
    place = GOOD.rindex(b"PK\x05\x06")
    start = struct.unpack_from("<I", GOOD, place + 16)[0]

    def check(value: int) -> None:
        values = [*END.unpack_from(GOOD, place)]
        values[field] = value
        _check_end(io.BytesIO(GOOD[:place] + END.pack(*values)), values_of[3], start, len(GOOD))

    values_of = END.unpack_from(GOOD, place)
    largest = 0xFFFFFFFF if field in (5, 6) else 0xFFFF
    for value in (values_of[field], largest):
        check(value)
    for value in (values_of[field] + 1, largest - 1):
        with pytest.raises(PickleError, match=r"^the end of the archive is damaged$"):
            check(value)


def test_an_archive_with_a_comment(tmp_path: Path) -> None:
    def commented(said: int) -> bytes:
        return GOOD[:-2] + struct.pack("<H", said) + b"hello"

    assert shapes(read_bytes(tmp_path, commented(5), "m.bin")) == SHAPES
    place = GOOD.rindex(b"PK\x05\x06")
    count, start = struct.unpack_from("<H4xI", GOOD, place + 10)
    for length in (4, 6):
        with pytest.raises(PickleError, match=r"^the end of the archive is damaged$"):
            _check_end(io.BytesIO(commented(length)), count, start, len(GOOD) + 5)


def test_reads_of_archives_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.formats.checkpoints.torchzip.MAX_DIRECTORY_BYTES", 6)
    file = _LimitedFile(io.BytesIO(b"0123456789"), 8)
    with pytest.raises(ValueError, match=r"^directory of 8 bytes exceeds the limit of 6$"):
        file.read()
    assert file.read(6) == b"012345" and file.read() == b"67" and file.read(4) == b"" and file.tell() == 8


def loaded(pickle: bytes, names: Any = ()) -> Any:
    return Reader(io.BytesIO(pickle), names, lambda _: None, lambda name, arguments: (name, arguments)).load()


def test_pickles_as_large_as_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "c" + "a" * 30 + "\nb\n"
    data = b"\x80\x02(" + b"K\x07" * 3 + encode("text") + name.encode() + b"t."
    whole = f"{'a' * 30}.b"
    for limit, value, message in (
        ("MAX_PICKLE_BYTES", len(data), f"pickle exceeds the limit of {len(data) - 1:,} bytes"),
        ("MAX_PENDING", 6, "too many values on the stack of a pickle: the limit is 5"),
        ("_MAX_LINE_LENGTH", 31, "invalid pickle: unterminated name"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(f"archspec.formats.checkpoints.pickled.{limit}", value)
            *numbers, text, found = loaded(data, {whole})
            assert (numbers, text, found.name) == ([7, 7, 7], "text", whole)
            patch.setattr(f"archspec.formats.checkpoints.pickled.{limit}", value - 1)
            with pytest.raises(PickleError, match=f"^{message}$"):
                loaded(data, {whole})


def test_values_before_a_mark_stay(tmp_path: Path) -> None:
    assert loaded(b"\x80\x02K\x01(K\x02K\x030t\x86.") == (1, (2,))
    assert loaded(b"\x80\x02K\x01(K\x02K\x031.") == 1
    assert loaded(b"\x80\x02](K\x01K\x02eK\x03a.") == [1, 2, 3]
    assert loaded(b"\x80\x02}K\x05K\x06s(" + encode("a") + b"K\x01" + encode("b") + b"K\x02u.") == {
        None: 6,
        "a": 1,
        "b": 2,
    }
    assert loaded(b"\x80\x02K\x09q\x05K\x08r\x00\x01\x00\x000h\x05j\x00\x01\x00\x00\x87.") == (9, 9, 8)
    assert loaded(b"\x80\x04K\x09\x94K\x08\x94h\x01h\x00\x87\x85.") == ((8, 8, 9),)
    for data in (b"K\x01(\x85.", b"K\x01K\x02(K\x03\x86.", b"(K\x01R.", b"K\x01(s.", b"0.", b"(0.", b"](a."):
        with pytest.raises(PickleError, match=r"^invalid pickle: "):
            loaded(b"\x80\x02" + data)


PLAIN: list[Any] = [
    *(None, True, False, 0, 255, 256, 65535, 65536, -1, -256, 2**31 - 1, -(2**31), 2**31, -(2**63), 2**500),
    *(0.5, -1e300, float("inf"), "", "text", "ü", "x" * 300, b"", b"bytes", b"\xff" * 300),
    *((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1], [1, 2], {}, {"a": 1}, {"a": 1, "b": (3,)}),
    [[], {"a": [{}]}, ("b",)],
    ["again"] * 300,
    [f"{i}" for i in range(600)] * 2,  # more memo entries than one byte can number
]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_data_is_read_as_python_reads_it(protocol: int) -> None:
    for value in PLAIN:
        if isinstance(value, bytes) and protocol == 2:
            continue  # Python writes a call of a function
        data = pickles.dumps(value, protocol)
        assert Reader(io.BytesIO(data), (), lambda _: None, lambda _name, _: None).load() == value


@pytest.mark.parametrize(
    "data",
    [
        b"\x8d" + (3).to_bytes(8, "little") + b"abc",
        b"\x8e" + (3).to_bytes(8, "little") + b"abc",
        b"T\x03\x00\x00\x00abc",
        b"U\x03abc",
        b"X\x03\x00\x00\x00abc",
        b"B\x03\x00\x00\x00abc",
    ],
)
def test_texts_and_bytes_with_lengths_of_any_size(data: bytes) -> None:
    """Python only writes some of these for gigabytes."""
    pickle = b"\x80\x04(" + data + b"K\x05t."
    found = Reader(io.BytesIO(pickle), (), lambda _: None, lambda _name, _: None).load()
    assert found == pickles.loads(pickle)
