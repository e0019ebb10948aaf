"""What is changed around a call of a module while it is exported or compared, and is as before afterwards."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

from graphs import run, text_of, traced

from archspec.pytorch.passes.known_numbers import known_number_mode, symbolic_len
from archspec.pytorch.passes.own_operations import embedding_bag_mode, recurrent_layer_mode
from archspec.pytorch.passes.precision import in_float64, keeps_rounded, with_epsilon_of

nn = torch.nn
F = nn.functional
GENERATOR = torch.Generator().manual_seed(0)
TABLE = torch.randn(6, 4, generator=GENERATOR)
BAGS = torch.tensor([[1, 2, 3], [4, 0, 1]])
ROWS = torch.tensor([[1e-2, -3e-2], [2e-3, 1e-4]])


class OfType(nn.Module):
    """A module that has buffers of these types."""

    def __init__(self, *dtypes: Any) -> None:
        super().__init__()
        for turn, dtype in enumerate(dtypes):
            self.register_buffer(f"b{turn}", torch.zeros(2, dtype=dtype))


class Numbered(nn.Module):
    """A module that has a number as a buffer, which is not stored."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("number", torch.tensor(3), persistent=False)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Patch(NamedTuple):
    """A function of tensors, and the mode in which it is recorded as another program."""

    mode: Callable[[], AbstractContextManager[object]]
    function: Callable[..., Any]
    inputs: tuple[Any, ...]


def bag(**named: Any) -> Patch:
    return Patch(embedding_bag_mode, lambda ids, table: F.embedding_bag(ids, table.clone(), **named), (BAGS, TABLE))


def norm(module: nn.Module, function: Callable[[Any], Any], dtype: Any = torch.float64) -> Patch:
    return Patch(lambda: with_epsilon_of(module), function, (ROWS.to(dtype),))


def rms(x: Any) -> Any:
    return F.rms_norm(x, (2,))


def of_module(mode: Callable[[nn.Module], AbstractContextManager[object]], function: Callable[..., Any]) -> Patch:
    module = Numbered(function)
    return Patch(lambda: mode(module), module, (TABLE,))


PATCHES: dict[str, Patch] = {
    **{f"the {mode} of bags": bag(mode=mode) for mode in ("sum", "mean", "max")},
    "bags": bag(),
    "bags by position": Patch(
        embedding_bag_mode, lambda ids, table: F.embedding_bag(ids, table, None, None, 2.0, False, "sum"), (BAGS, TABLE)
    ),
    "bags with offsets": Patch(
        embedding_bag_mode,
        lambda ids, table: F.embedding_bag(ids.flatten(), table, torch.arange(0, 6, 4)),
        (BAGS, TABLE),
    ),
    "bags with weights": Patch(
        embedding_bag_mode,
        lambda ids, table: F.embedding_bag(ids, table, per_sample_weights=table[:2, :3], mode="sum"),
        (BAGS, TABLE),
    ),
    "bags with padding": bag(padding_idx=0),
    "bags with a largest norm": bag(max_norm=1.0),
    "a recurrent layer": Patch(recurrent_layer_mode, nn.GRU(4, 3, batch_first=True).eval(), (TABLE.view(2, 3, 4),)),
    "a norm in float64 without a module of a type": norm(nn.Module(), rms),
    "a norm in float32": norm(OfType(torch.bfloat16), rms, torch.float32),
    "a norm in a module of bfloat16": norm(OfType(torch.long, torch.bfloat16, torch.float32), rms),
    "a norm in a module with such parameters": norm(nn.Linear(2, 2).bfloat16(), rms),
    "a norm in a module of float64": norm(OfType(torch.float64), rms),
    "a norm by names": norm(nn.Module(), lambda x: F.rms_norm(input=x, normalized_shape=(2,), weight=x[0])),
    "a norm with a number": norm(nn.Module(), lambda x: F.rms_norm(x, (2,), None, 0.5)),
    "a norm with a number by name": norm(nn.Module(), lambda x: F.rms_norm(x, (2,), eps=0.25)),
    "another norm": norm(nn.Module(), lambda x: F.layer_norm(x, (2,))),
    "the length of a tensor": of_module(symbolic_len, lambda self, x: x * len(x) + len([1, 2])),
    "a number that a module keeps": of_module(known_number_mode, lambda self, x: x[:, : self.number.item()].exp()),
    "a size and a number": of_module(known_number_mode, lambda self, x: torch.zeros(self.number * x.shape[0] // 2)),
}


def recorded(patch: Patch) -> Any:
    """The program of a function; of a module, as it is exported."""
    with torch.no_grad():
        if isinstance(patch.function, nn.Module):
            sizes = ({0: torch.export.Dim.AUTO, 1: torch.export.Dim.AUTO},)
            return torch.export.export(patch.function, patch.inputs, dynamic_shapes=sizes, strict=False)
        return traced(patch.function, *patch.inputs, symbolic=True, composite=True)


def page_of(name: str) -> list[str]:
    """The programs that are recorded without a patch and with it; both compute the same."""
    patch = PATCHES[name]
    try:
        before = text_of(recorded(patch))
    except RuntimeError as error:
        before = [f"raises {type(error).__name__}"]
    with patch.mode():
        program = recorded(patch)
    after = text_of(program)
    if not isinstance(patch.function, nn.Module):
        with nullcontext() if patch.mode is embedding_bag_mode else patch.mode():
            expected = patch.function(*patch.inputs)
        torch.testing.assert_close(run(program, *patch.inputs)[0], expected, msg=name)
    return [f"# {name}", *before, *(["becomes", *after] if after != before else ["unchanged"]), ""]


def test_programs_before_and_after(golden: Callable[[str, str], None]) -> None:
    golden("passes/patches.txt", "\n".join([line for name in PATCHES for line in page_of(name)]))


def test_computations_in_float64() -> None:
    x = torch.ones(3)
    with in_float64():
        found = x.float(), x.to(torch.float32), x.to(dtype=torch.float32), torch.zeros(2), x.half(), x.long()
    kinds = [torch.float64] * 4 + [torch.float16, torch.int64]
    assert [item.dtype for item in found] == kinds and torch.get_default_dtype() is torch.float32
    with pytest.raises(ValueError, match="inside"), in_float64():
        raise ValueError("inside")
    assert torch.zeros(1).dtype is torch.float32


@pytest.mark.parametrize(
    ("kept", "is_rounded"),
    [
        (torch.ones(2), True),
        (torch.ones(2, dtype=torch.complex64), True),
        (torch.ones(2, dtype=torch.long), False),
        ([0, (1, {"a": torch.ones(2)})], True),
        ({"a": [torch.ones(2, dtype=torch.bool)]}, False),
        ("text", False),
        (None, False),
    ],
)
def test_numbers_that_a_module_keeps(kept: Any, is_rounded: bool) -> None:
    module = nn.Sequential(nn.Linear(2, 2))
    assert not keeps_rounded(module)
    object.__setattr__(module[0], "kept", kept)
    assert keeps_rounded(module) is is_rounded
    object.__setattr__(module[0], "kept", [module[0].weight, module[0].bias])
    assert not keeps_rounded(module)


def test_tables_that_are_not_stored_are_kept() -> None:
    module = nn.Linear(2, 2)
    module.register_buffer("table", torch.ones(2))
    assert not keeps_rounded(module)
    module.register_buffer("angles", torch.ones(2), persistent=False)
    assert keeps_rounded(module)
