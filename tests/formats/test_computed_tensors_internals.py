"""Steps of the code that the tests of computed tensors cannot reach through public names."""

from pathlib import Path
from struct import pack

import pytest
from checkpoints import read
from test_computed_tensors import write

from archspec.formats.checkpoints.computed import find_computed

SIZES = {"F32": 4, "F16": 2, "BF16": 2, "U8": 1, "BOOL": 1, "I64": 8}


Tensor = tuple[str, tuple[int, ...], bytes]


def numbers(dtype: str, *values: float) -> bytes:
    if dtype == "BF16":
        return b"".join(pack("<f", value)[2:] for value in values)
    return pack(f"<{len(values)}{ {'F32': 'f', 'F16': 'e', 'U8': 'B', 'BOOL': 'B', 'I64': 'q'}[dtype] }", *values)


def mask(size: int, dtype: str = "F32", window: int = 1000, seen: float = 1, hidden: float = 0) -> Tensor:
    values = [seen if i - window < j <= i else hidden for i in range(size) for j in range(size)]
    return dtype, (1, 1, size, size), numbers(dtype, *values)


@pytest.mark.parametrize(
    ("name", "tensor", "kind"),
    [
        ("attn.bias", mask(7), "causal mask"),
        ("attn.attention.bias", mask(9, "U8", 4), "causal mask of 4 positions"),
        ("attn.causal_mask", mask(300, "BOOL"), "causal mask"),
        ("attn.bias", mask(600), "causal mask"),
        ("attn.mask", mask(5, "F32", 1000, 0, -1e9), "causal mask"),
        ("attn.bias", mask(5, "F16", 1000, 0, float("-inf")), "causal mask"),
        ("attn.bias", ("F32", (1, 1, 3, 3), bytes(36)), "mask of zeros"),
        ("attn.masked_bias", ("F16", (1,), numbers("F16", -1e4)), "the score of masked positions"),
        ("embeddings.position_ids", ("I64", (1, 9), numbers("I64", *range(9))), "positions"),
        ("position_ids", ("I64", (3,), numbers("I64", 0, 1, 2)), "positions"),
        *(
            (
                "rotary_emb.inv_freq",
                (dtype, (32,), numbers(dtype, *(10000 ** (-i / 32) for i in range(32)))),
                "the frequencies of rotary embeddings",
            )
            for dtype in ("F32", "F16", "BF16")
        ),
    ],
)
def test_computed_tensors(tmp_path: Path, name: str, tensor: Tensor, kind: str) -> None:
    path = write(tmp_path / "model.safetensors", {name: tensor, "w": ("F32", (2,), bytes(8))})
    entries = read(str(path)).entries
    assert find_computed(entries) == {name: kind}
    path.unlink()
    (unread,) = find_computed(entries).values()
    assert unread.endswith("elements were not read)")


def changed(tensor: Tensor, index: int, value: float) -> Tensor:
    dtype, shape, data = tensor
    width = SIZES[dtype]
    return dtype, shape, data[: index * width] + numbers(dtype, value) + data[(index + 1) * width :]


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("attn.bias", changed(mask(7), 24, 0)),
        ("attn.bias", changed(mask(600), 600 * 599 + 3, 0)),
        ("attn.bias", changed(mask(600), 600 * 300 + 301, 1)),
        ("attn.bias", changed(("F32", (1, 1, 3, 3), bytes(36)), 5, 2)),
        ("attn.bias", mask(7, seen=0.5, hidden=0.25)),
        ("attn.bias", mask(7, seen=1, hidden=1)),
        ("attn.bias", ("F32", (1, 2, 2, 2), bytes(32))),
        ("attn.bias", ("F32", (4, 4), bytes(64))),
        ("attn.weight", mask(7)),
        ("attn.masked_bias", ("F32", (), pack("<f", 3.5))),
        ("position_ids", ("I64", (3,), numbers("I64", 0, 2, 1))),
        ("position_ids", ("F32", (3,), numbers("F32", 0, 1, 2))),
        ("inv_freq", ("F32", (4,), numbers("F32", 1, 0.5, 0.3, 0.125))),
        ("inv_freq", ("F32", (4,), bytes(16))),
        ("inv_freq", ("F32", (1,), numbers("F32", 1))),
    ],
)
def test_other_elements_are_not_computed(tmp_path: Path, name: str, tensor: Tensor) -> None:
    entries = read(str(write(tmp_path / "model.safetensors", {name: tensor}))).entries
    assert not find_computed(entries)
