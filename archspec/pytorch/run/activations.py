"""The memory of activations: what PyTorch keeps of a forward pass for the backward pass."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from inspect import signature
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from warnings import catch_warnings, simplefilter

from archspec.analysis.cost.memory import KeptForBackward
from archspec.core.algebra import (
    Polynomial,
    multiply_unexpanded,
    split_multiple,
    substitute,
    symbol,
    symbols,
    weighted_sum,
)
from archspec.core.diagnostics import ArchError, make_error
from archspec.core.optional import import_torch
from archspec.ir.index_ranges import dimensions
from archspec.ir.module import Type
from archspec.ir.work import Quantity
from archspec.pipeline.model import Model
from archspec.pytorch.run.to_torch import to_torch

if TYPE_CHECKING:
    import torch
    from torch import SymInt, Tensor, nn
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    Size: TypeAlias = int | SymInt
    """A size of a tensor."""


class SavedActivations(NamedTuple):
    """Bytes; a formula holds where the dimensions in it are at least so large."""

    bytes: Quantity
    least: dict[str, int]


def activation_bytes(model: Model, sizes: Mapping[str, int], dtype: str, attention: str) -> SavedActivations:
    """Bytes that the tensors kept for training take after a forward pass of the generated module on a CPU.

    Each storage counts once; parameters do not count, nor does what is computed from weights alone. `sizes` has values
    for dimensions; what depends on others is a formula. `dtype` is that of the weights, `attention` "flash" or "math";
    every optional input is given. The module is run with PyTorch's fake tensors, which have shapes and storages and no
    contents, so that it takes neither time nor memory; sizes left open are PyTorch's own symbols.

    Raises ArchError: `missing-package` without PyTorch, `untranslatable` where the model has no form in it, `bad-size`
    where the form of attention cannot run, `no-formula` where what is kept is no polynomial in the open sizes.
    """
    import_torch()
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode  # the public name of none
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    left = sorted({*dimensions(model.inputs.items())} - sizes.keys())
    environment = ShapeEnv()
    mode = FakeTensorMode(shape_env=environment if left else None)
    if not left:
        return SavedActivations(int(_saved_bytes(mode, model, sizes, dtype, attention)), {})
    # An open size must be some number too. What is decided by that number is noted, as a guard.
    numbers = torch.empty([32 * (2 + i) for i in range(len(left))], device="meta")
    stand_ins = mode.from_tensor(numbers).shape
    found = _saved_bytes(mode, model, {**sizes, **dict(zip(left, stand_ins, strict=True))}, dtype, attention)
    unknowns = [_expression(size) for size in stand_ins]
    polynomial = None if isinstance(found, int) else _expression(found).as_poly(*unknowns)
    if polynomial is None or not _is_known(environment, polynomial):
        raise _no_formula(model, left)
    terms = [
        (multiply_unexpanded(map(symbol, _repeated(left, powers))), int(times)) for powers, times in polynomial.terms()
    ]
    ranges = environment.var_to_range
    return SavedActivations(
        weighted_sum(terms), {name: int(ranges[x].lower) for name, x in zip(left, unknowns, strict=True)}
    )


SAVED_RESULTS = {
    "matmul": ("mm", "addmm", "bmm", "baddbmm"),
    "attention": (
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_fused_attention_overrideable",
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
    ),
}
"""Names of operations whose results selective checkpointing saves, by policy."""


def bytes_kept_for_backward(
    model: Model,
    sizes: Mapping[str, int],
    dtype: str,
    attention: str,
    checkpointed: Collection[str],
    policy: str,
    frozen: Collection[str],
    stages: Sequence[Sequence[str]] = (),
) -> list[KeptForBackward]:
    """Bytes that a forward pass keeps, as `activation_bytes` counts, for each of the `stages` or for the entire model.

    `torch.utils.checkpoint` holds all tensors that a block is called with, but with fused attention no masks of true
    and false, which those kernels do not need; the inputs of a block that saves nothing are not held. `policy` is a key
    of SAVED_RESULTS, or "". A stage is a list of blocks; what is outside of blocks belongs to the stage of the block
    before. Parameters do not count, nor do `frozen` ones need gradients. `sizes` has a value for every dimension.

    Raises ArchError as `activation_bytes`, and `untranslatable` for blocks that are no modules in PyTorch, each called
    once and in order if there are stages.
    """
    import_torch()
    from torch._subclasses.fake_tensor import FakeTensorMode

    blocks = [address for stage in stages for address in stage] or checkpointed
    saved = _Saved(blocks, policy, frozen, has_masks=attention != "flash")
    _save(FakeTensorMode(), model, sizes, dtype, attention, saved)
    called = [block.address for block in saved.blocks]
    missing = [address for address in blocks if address not in called]
    if missing or (stages and called != blocks):
        problem = f"the block `{missing[0]}`" if missing else "a block"
        raise make_error("untranslatable", f"{problem} of {model.name} is not called as a module of a stack")
    bounds = [0, *accumulate(map(len, stages))] if stages else [0, len(called)]
    return [saved.count(start, stop, checkpointed) for start, stop in pairwise(bounds)]


def _total_bytes(storages: Iterable[torch.UntypedStorage]) -> int:
    return sum(int(storage.nbytes()) for storage in storages)


_Storages: TypeAlias = "dict[int, torch.UntypedStorage]"
"""Storages by their numbers, held so that no other one gets the number."""


class _Block:
    """The storages that a call of a block saves, also its inputs, and results that a policy saves."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.saved: _Storages = {}
        self.inputs: _Storages = {}
        self.results: _Storages = {}


class _Saved:
    """Storages that a forward pass saves: in the calls of `blocks`, and `outside`: before the first, after each."""

    def __init__(
        self,
        watched: Collection[str] = (),
        policy: str = "",
        frozen: Collection[str] = (),
        *,
        has_masks: bool = True,
    ) -> None:
        self.watched = watched
        self.policy = policy
        self.frozen = frozen
        self.has_masks = has_masks
        self.outside: list[_Storages] = [{}]
        self.blocks: list[_Block] = []

    def hooks(self, block: _Block | None = None) -> Any:
        """Hooks that add what is saved."""
        import torch

        def keep(tensor: Tensor) -> Tensor:
            _add_storage(self.outside[-1] if block is None else block.saved, tensor)
            return tensor

        return torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)

    def watch(self, module: nn.Module) -> None:
        """Let blocks of a module save apart from the others."""
        modules: dict[str, Any] = dict(cast("Any", module).named_modules())
        for address in self.watched:
            if address in modules:
                modules[address].forward = self._watched(address, modules[address].forward)

    def _watched(self, address: str, forward: Any) -> Any:
        import torch
        from torch import Tensor
        from torch.utils._pytree import tree_leaves

        def run(*args: object, **kwargs: object) -> object:
            block = _Block(address)
            with self.hooks(block), _result_recorder(SAVED_RESULTS.get(self.policy, ()), block.results):
                outputs = forward(*args, **kwargs)
            if block.saved:
                for value in tree_leaves((args, kwargs)):
                    if isinstance(value, Tensor) and (self.has_masks or value.dtype != torch.bool):
                        _add_storage(block.inputs, value)
            self.blocks.append(block)
            self.outside.append({})
            return outputs

        return run

    def exclude(self, keys: Iterable[int]) -> None:
        """Forget storages that do not count."""
        for key in keys:
            for storages in (*self.outside, *[s for block in self.blocks for s in (block.saved, block.inputs)]):
                storages.pop(key, None)

    def count(self, start: int, stop: int, checkpointed: Collection[str]) -> KeptForBackward:
        """Count what is kept in some of the blocks and outside of them after each, from the first on also before."""
        outside: _Storages = {}
        for storages in self.outside[start + (start > 0) : stop + 1]:
            outside.update(storages)
        again: list[_Storages] = []
        inputs: _Storages = {}
        results: _Storages = {}
        for block in self.blocks[start:stop]:
            if block.address in checkpointed:
                again.append(block.saved)
                inputs.update(block.inputs)
                results.update(block.results)
            else:
                outside.update(block.saved)
        outside = {key: storage for key, storage in outside.items() if key not in inputs}
        results = {key: storage for key, storage in results.items() if key not in inputs and key not in outside}
        counted = {**inputs, **outside, **results}
        most = max([_total_bytes(s for key, s in block.items() if key not in counted) for block in again], default=0)
        totals = [_total_bytes(storages.values()) for storages in (inputs, outside, results)]
        return KeptForBackward(totals[0], totals[1], totals[2], most)


def _add_storage(storages: dict[int, torch.UntypedStorage], tensor: Tensor) -> None:
    storage: Any = tensor.untyped_storage()
    storages[storage._cdata] = storage


def _result_recorder(names: Collection[str], storages: dict[int, torch.UntypedStorage]) -> Any:
    """A mode that adds the results of operations with these names."""
    from torch import Tensor
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    class ResultRecorder(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            results = func(*args, **(kwargs or {}))
            if func.overloadpacket.__name__ in names:
                for value in tree_leaves(results):
                    if isinstance(value, Tensor):
                        _add_storage(storages, value)
            return results

    return ResultRecorder() if names else nullcontext()


def _expression(size: Size) -> Any:
    """The expression of sympy that PyTorch has for a symbolic size."""
    node: Any = cast("SymInt", size).node
    return node.expr


def _is_known(environment: ShapeEnv, polynomial: Any) -> bool:
    """Whether a polynomial of bytes is one, and holds for all sizes from certain ones on."""
    whole = all(coefficient.is_Integer for coefficient in polynomial.coeffs())
    guards: list[Any] = [guard.expr for guard in environment.guards]
    bounded = all(g.is_Relational and g.rel_op in (">", ">=") and g.lhs.is_Symbol and g.rhs.is_Integer for g in guards)
    return whole and bounded and not environment.deferred_runtime_asserts


def _repeated(names: Sequence[str], powers: Sequence[int]) -> list[str]:
    return [name for name, power in zip(names, powers, strict=True) for _ in range(power)]


def _saved_bytes(mode: FakeTensorMode, model: Model, sizes: Mapping[str, Size], dtype: str, attention: str) -> Size:
    """The bytes that hooks on saved tensors see, an integer or one of PyTorch's symbolic integers."""
    saved = _Saved()
    _save(mode, model, sizes, dtype, attention, saved)
    return sum(storage.nbytes() for storage in saved.outside[0].values())


def _save(
    mode: FakeTensorMode, model: Model, sizes: Mapping[str, Size], dtype: str, attention: str, saved: _Saved
) -> None:
    """Run a forward pass on fake tensors, and add what is saved."""
    import torch
    from torch.nn import Parameter
    from torch.nn.attention import SDPBackend, sdpa_kernel

    backend = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}[attention]
    form = fused_attention() if attention == "flash" else nullcontext()

    # On the meta device, where starting out weights looks at none.
    with torch.device("meta"), _default_type(getattr(torch, dtype)):
        module = to_torch(model).eval()  # without the masks of dropout
    # What is kept does not depend on how vectors are distributed over experts, and fake tensors do not say how.
    names: dict[str, object] = module.forward.__globals__
    if "group_sizes" in names:
        names["group_sizes"] = _route_to_one_expert
    with mode:
        parameters, buffers = dict(module.named_parameters()), dict(module.named_buffers())
        owned = {
            n: Parameter(torch.empty(p.shape, dtype=p.dtype), p.requires_grad and n not in saved.frozen)
            for n, p in parameters.items()
        }
        stored = owned | {n: torch.empty(b.shape, dtype=b.dtype) for n, b in buffers.items()}
        words = signature(module.forward).parameters  # the inputs, some under names that Python allows
        inputs = {w: _empty(model, t, sizes, dtype) for w, t in zip(words, model.inputs.values(), strict=True)}
        weights = weight_tracer(owned.values(), stored.values())
        try:
            module = _replace_tensors(module, stored)
            saved.watch(module)
            with weights, sdpa_kernel(backend), form, saved.hooks(), catch_warnings():
                simplefilter("ignore")  # a kernel that cannot be used says so in a warning first
                outputs = module(**inputs)
        except RuntimeError as problem:
            message = f"{model.name} cannot run with {attention} attention: {problem}"
            help = "PyTorch's fused kernel does not take a bias that is trained, for one; `--attention math` takes all"
            raise make_error("bad-size", message, help=help if attention == "flash" else None) from None
        saved.exclude(weights.excluded)
    del outputs


def weight_tracer(parameters: Iterable[Tensor], weights: Iterable[Tensor]) -> Any:
    """A mode whose `excluded` are the storages of parameters, and of all that is computed from weights alone."""
    from torch import Tensor
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    def storages(values: object) -> dict[int, Any]:
        tensors = [value for value in tree_leaves(values) if isinstance(value, Tensor)]
        return {storage._cdata: storage for storage in [cast("Any", tensor.untyped_storage()) for tensor in tensors]}

    known = storages([*weights])  # held, so that no other one gets its number

    class WeightTracer(TorchDispatchMode):
        excluded = storages([*parameters])

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            results = func(*args, **(kwargs or {}))
            operands = storages((args, kwargs))
            if operands and operands.keys() <= known.keys():
                new = {key: storage for key, storage in storages(results).items() if key not in known}
                self.excluded.update(new)
                known.update(new)
            return results

    return WeightTracer()


def fused_attention() -> Any:
    """A mode in which attention keeps what fused kernels keep: queries, keys, values, the result, a sum for each query.

    They take causality, windows and lengths as numbers, so no mask of true and false is kept; they read keys and values
    of groups of heads, so none are repeated; and their results are laid out as tokens by heads, whatever the layout of
    queries, so they are not copied when heads are merged. A mask of numbers is added to scores and kept.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    attend: Any = torch.nn.functional.scaled_dot_product_attention

    class FusedAttention(TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.groups: dict[int, tuple[Tensor, Tensor]] = {}  # both held, so that no other one gets the number

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is attend:
                return self.attend(*args, **(kwargs or {}))
            result = func(*args, **(kwargs or {}))
            x = args[0] if args else None
            if isinstance(x, torch.Tensor) and isinstance(result, torch.Tensor) and (x.ndim, result.ndim) == (5, 4):
                sizes: list[Size] = [result.shape[1], x.shape[1], x.shape[2], x.stride(2)]
                if all(isinstance(size, int) for size in sizes) and sizes[3] == 0 and sizes[0] == sizes[1] * sizes[2]:
                    self.groups[id(result)] = result, x.select(2, 0)
            return result

        def attend(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, **options: Any) -> Any:
            if attn_mask is not None and attn_mask.dtype is torch.bool:
                attn_mask = None
            grouped = [self.groups.get(id(x)) for x in (key, value)]
            if grouped[0] is not None and grouped[1] is not None:
                key, value, options["enable_gqa"] = grouped[0][1], grouped[1][1], True
            if query.ndim == 4 and query.is_contiguous():
                query = query.transpose(1, 2).contiguous().transpose(1, 2)
            return attend(query, key, value, attn_mask, **options)

    return FusedAttention()


def _route_to_one_expert(experts: Tensor, count: int) -> list[int]:
    """All vectors given to one of `count` experts."""
    return [experts.numel(), *[0] * (count - 1)]


def _no_formula(model: Model, left: Sequence[str]) -> ArchError:
    message = f"no formula in {', '.join(left)} was found for the memory of activations of {model.name}"
    return make_error("no-formula", message, help=f"add {' '.join(f'--dim {name}=N' for name in left)}")


@contextmanager
def _default_type(dtype: torch.dtype) -> Generator[None]:
    """Modules are made with weights of this type."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _empty(model: Model, type: Type, sizes: Mapping[str, Size], dtype: str) -> Tensor:
    import torch

    shape: list[Size] = []
    for size in type.shape:
        known = {name: given for name in symbols(size) if isinstance(given := sizes[name], int)}
        rest = substitute(size, known) if isinstance(size, Polynomial) else size
        multiple = split_multiple(rest)
        if multiple is not None:
            shape.append(multiple[0] * sizes[multiple[1]])
        elif isinstance(rest, int):
            shape.append(rest)
        else:
            raise _no_formula(model, sorted(symbols(rest)))
    element = {"real": getattr(torch, dtype), "int": torch.int64, "bool": torch.bool}[type.dtype]
    return torch.empty(shape, dtype=element)


def _replace_tensors(module: Any, stored: Mapping[str, Tensor]) -> nn.Module:
    """A module with other tensors in the place of its own, whatever their addresses are called."""
    by_own = {id(own): stored[name] for name, own in (*module.named_parameters(), *module.named_buffers())}
    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, own in tensors.items():
                tensors[name] = by_own.get(id(own))  # none where there is none
    return module
