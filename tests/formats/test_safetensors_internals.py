"""Steps of the code that the tests of safetensors cannot reach through public names."""

from io import BytesIO
from typing import Any

import pytest
from checkpoints import safetensors

from archspec import ArchError
from archspec.formats.checkpoints.safetensors import DTYPES
from archspec.formats.checkpoints.safetensors import read as read_header


def with_info(**fields: Any) -> bytes:
    """A file of a tensor `w`, whose entry in the header is changed."""
    return safetensors({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8], **fields}}, 8)


def test_locations_are_printable() -> None:
    data = safetensors(b'{"a": }', 0)
    with pytest.raises(ArchError) as caught:
        read_header(BytesIO(data), len(data), "a\x1b[31m.safetensors")
    assert "--> header of a\\x1b[31m.safetensors:1:7" in str(caught.value)


def test_shortened_values() -> None:
    """As many characters of a value as fit."""
    ones, more = [1] * 20, [1] * 21
    assert (len(str(ones)), len(str(more))) == (60, 63)

    def shown(shape: object) -> str:
        data = with_info(shape=shape, data_offsets=[0, 4])
        with pytest.raises(ArchError) as caught:
            read_header(BytesIO(data), len(data), "m")
        return caught.value.diagnostics[0].message

    assert shown([-1, *ones[:18]]) == f"m: invalid shape of `w`: {[-1, *ones[:18]]}"
    assert shown([*ones[:-1], 2]) == f"m: `w`: expected 8 bytes for F32 of shape {[*ones[:-1], 2]}, found 4"
    assert (
        shown([*more[:-1], 2]) == f"m: `w`: expected 8 bytes for F32 of shape {str([*more[:-1], 2])[:57]}..., found 4"
    )
    assert shown("é" * 9) == "m: invalid shape of `w`: '" + "\\xe9" * 9 + "'"
    assert shown("x" * 99) == "m: invalid shape of `w`: '" + "x" * 59


def test_types_are_those_of_the_format() -> None:
    assert len(set(DTYPES.values())) == len(DTYPES)
