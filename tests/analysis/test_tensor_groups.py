"""Parts of groups of tensors: names, addresses, and the part that a token uses."""

from types import SimpleNamespace
from typing import Any

import pytest

import archspec
from archspec.analysis.explain.tensor_groups import TensorGroup as Group
from archspec.analysis.explain.tensor_groups import (
    _enclosing_address,
    _first_index,
    _move,
    _outermost_modules,
    _split_by_use,
    _subset_sums,
    _token_choices,
)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("t5-small", ["shared", "encoder", "decoder", "lm_head"]),
        (
            "bert-base-uncased",
            [
                *("embeddings.word_embeddings", "embeddings.position_embeddings", "embeddings.token_type_embeddings"),
                *("embeddings.LayerNorm", *(f"encoder.layer.{i}" for i in range(12)), "pooler.dense"),
            ],
        ),
    ],
)
def test_modules_that_a_model_declares_itself(model: str, found: list[str]) -> None:
    assert _outermost_modules(archspec.load(model).count().table) == found


def test_names() -> None:
    assert (
        _enclosing_address("a.b.c.d", {"a.b", "a.b.c", "x"}) == ["a.b"]
        and _enclosing_address("a.b", {"a.b.c", "b"}) == []
    )
    assert [_first_index(name) for name in ("a.b.12.c.3", "a1.b", "0")] == ["12", "", "0"]
    assert [_move(name, "a.b", "z") for name in ("a.b.c", "a.bc", "a")] == ["z.c", "a.bc", "a"]
    assert _move("a.b", "", "z") == "z.a.b"


def test_sums_of_subsets() -> None:
    assert _subset_sums([1, 20, 400])[:9] == [0, 1, 20, 21, 400, 401, 420, 421, 0]
    assert len(_subset_sums([])) == 256 and sum(_subset_sums([])) == 0
    assert _subset_sums([1] * 8)[255] == 8


def test_the_part_that_a_token_uses() -> None:
    group = Group(*[None] * len(Group._fields))._replace(each=120, share="")  # type: ignore[arg-type]
    assert _split_by_use(group, None) == [group]
    assert [(part.share, part.each) for part in _split_by_use(group, (2, 8))] == [("used", 30), ("idle", 90)]
    chosen: list[tuple[int, int] | None] = [(2, 5), None]
    for sizes, found in (((10, 3), chosen), ((11, 3), [None, None])):
        table: Any = SimpleNamespace(
            active=SimpleNamespace(by_tensor=lambda: chosen), tensors=[SimpleNamespace(size=size) for size in sizes]
        )
        assert _token_choices(table) == found
    assert _token_choices(SimpleNamespace(active=None, tensors=[0, 0])) == [None, None]  # type: ignore[arg-type]
