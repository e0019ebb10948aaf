"""A model's PyTorch module against the reference interpreter: the same tensors, and the same numbers out."""

import inspect
import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from paths import ROOT
from reference import DTYPES, Array, Result, _Run, evaluate

import archspec
from archspec import Model, Polynomial, Type
from archspec.codegen.build import torch_source
from archspec.core.algebra import substitute
from archspec.core.algebra import symbols as names_of
from archspec.ir.module import Body, LocatedTensor, canonical_name, find_member
from archspec.pipeline.model import get_compilation

SIZES = ((2, 5, 7, 3, 4, 6), (1, 4, 3, 8, 2, 5))
"""What the open dimensions of a model are, one after the other."""


def agrees(model: Model, sizes: Iterable[tuple[int, ...]] = SIZES, within: float = 1e-10) -> int:
    """Asserts that the module of a model computes what the reference does; for how many inputs it was tried.

    Every use of the model is tried that was traced: with its optional inputs given, and absent.
    """
    import torch

    with default_dtype(torch.float64):
        torch.manual_seed(0)
        module = archspec.to_torch(model)
    return computes(model, module, sizes, within)


def computes(model: Model, module: Any, sizes: Iterable[tuple[int, ...]] = SIZES, within: float = 1e-10) -> int:
    """The same of a module that was made in float64 in whatever way."""
    import torch

    same_tensors(model, module)
    weights = random_weights(model, module)
    module.load_state_dict({name: torch.tensor(weights[canonical_of(model, name)]) for name in module.state_dict()})
    module.eval()
    tried = 0
    is_lenient = "scaled_dot_product_attention" in torch_source(model)
    trace = get_compilation(model).trace()
    for use in trace.uses[trace.root]:
        for chosen in sizes:
            found = random_inputs(use.body, chosen, weights)
            if found is None:
                continue
            inputs, expected = found
            if all(np.isnan(value).all() for value in expected.outputs.values()):
                continue  # the mask that was drawn hides every key
            # With reals in it or going in, a model needs no default; it is the other one.
            with torch.no_grad(), default_dtype(torch.float32 if has_reals(model, module) else torch.float64):
                given = by_parameter(model, module, inputs)
                got = module(**given)
            tried += 1
            try:
                same_outputs(got, expected.outputs, within, is_lenient)
            except AssertionError:
                if not is_unstable(use.body, inputs, weights, expected, within):
                    raise
    assert tried, "no inputs were found that the reference takes"
    return tried


@contextmanager
def default_dtype(dtype: Any) -> Iterator[None]:
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def named_inputs(model: Model, module: Any, sizes: tuple[int, ...] = SIZES[0]) -> dict[str, Any]:
    """Random inputs of a module of a model by argument, in float64."""
    return by_parameter(model, module, drawn_inputs(model, module, sizes))


def drawn_inputs(model: Model, module: Any, sizes: tuple[int, ...]) -> dict[str, Array]:
    """Random inputs of a module of a model by their names in the spec."""
    weights = {name: tensor.double().numpy() for name, tensor in module.state_dict().items()}
    found = random_inputs(get_compilation(model).body, sizes, weights)
    assert found is not None
    return found[0]


def tied_buffers(model: Model) -> set[str]:
    return {*get_compilation(model).table.buffer_ties}


def unused_tensors(model: Model) -> set[str]:
    """The names of tensors that no output depends on."""
    unused = {name for name, data in model.graph().nodes(data=True) if data.get("unused")}  # marked so in the spec
    return unused | {*get_compilation(model).body.unused}


def has_reals(model: Model, module: Any) -> bool:
    stored = any(tensor.is_floating_point() for tensor in module.state_dict().values())
    return stored or any(type.dtype == "real" for type in model.inputs.values())


def canonical_of(model: Model, name: str) -> str:
    module = get_compilation(model).body.module
    assert module is not None
    return canonical_name(module, name)


def same_tensors(model: Model, module: Any) -> None:
    """The module's state is the model's table: names, shapes, element types, ties, what is trained."""
    state = module.state_dict()
    tensors = {t.name: t.shape for t in model.tensors}
    buffers = {b.name: b.shape for b in model.buffers}
    assert {name: tuple(t.shape) for name, t in state.items()} == tensors | buffers
    parameters = dict(module.named_parameters(remove_duplicate=False))
    assert set(parameters) == set(tensors)
    assert {name for name, _ in module.named_buffers(remove_duplicate=False) if name in state} == set(buffers)
    for tensor in model.tensors:
        assert parameters[tensor.name].requires_grad == tensor.trainable, tensor.name
    ids = {name: id(tensor) for name, tensor in parameters.items()}
    for one, other in itertools.combinations(model.tensors, 2):
        tied = (one.tied_to or one.name) == (other.tied_to or other.name)
        assert (ids[one.name] == ids[other.name]) == tied, f"{one.name}, {other.name}"
    owner = get_compilation(model).body.module
    assert owner is not None
    for name, tensor in state.items():
        leaf = find_member(owner, name)
        assert isinstance(leaf, LocatedTensor)
        wanted = DTYPES[leaf.weight.type.dtype]
        assert tensor.numpy().dtype == wanted, f"{name}: {tensor.dtype}"


def random_weights(model: Model, module: Any) -> dict[str, Array]:
    """Values for every counted name: random, but for the constant tables, which must be what the spec computes."""
    generator = np.random.default_rng(0)
    owner = get_compilation(model).body.module
    assert owner is not None
    weights: dict[str, Array] = {}
    for name, tensor in module.state_dict().items():
        if canonical_name(owner, name) != name:
            continue
        leaf = find_member(owner, name)
        assert isinstance(leaf, LocatedTensor)
        if leaf.weight.value is not None:
            value = np.asarray(_Run(owner, {}).weight(name, leaf.weight.type))
            np.testing.assert_allclose(tensor.numpy(), value, 1e-12, 1e-12, err_msg=name)
        elif leaf.weight.type.dtype == "real" and leaf.weight.kind == "buffer":
            value = generator.uniform(0.5, 2, leaf.weight.shape)  # which may be a variance
        elif leaf.weight.type.dtype == "real":
            value = generator.normal(0, 1, leaf.weight.shape)
        else:
            value = generator.integers(0, 2, leaf.weight.shape)
        weights[name] = np.asarray(value).astype(DTYPES[leaf.weight.type.dtype])
    return weights


def random_inputs(
    body: Body, sizes: tuple[int, ...], weights: Mapping[str, Array]
) -> tuple[dict[str, Array], Result] | None:
    """Inputs that a body takes, with its outputs: integers as large as its tables allow. None if it takes none."""
    symbols: dict[str, int] = {}
    for _, type in body.inputs:
        for size in type.shape:
            for symbol in sorted(names_of(size)):
                symbols.setdefault(symbol, sizes[len(symbols) % len(sizes)])
    for most in (7, 4, 3, 2, 1):
        generator = np.random.default_rng(most)
        inputs = {name: random_array(generator, type, symbols, most) for name, type in body.inputs}
        try:
            with np.errstate(all="ignore"):
                return inputs, evaluate(body, inputs, weights)
        except (AssertionError, ValueError, IndexError):
            continue
    return None


def is_unstable(
    body: Body, inputs: Mapping[str, Array], weights: Mapping[str, Array], expected: Result, within: float
) -> bool:
    """Whether the last digits of what goes in decide what comes out, as where almost nothing is divided by its norm."""
    generator = np.random.default_rng(0)

    def nudged(x: Array) -> Array:
        return x * (1 + generator.normal(0, 1e-14, x.shape)) if x.dtype == np.float64 else x

    given = {name: nudged(x) for name, x in inputs.items()}
    others = {name: nudged(x) for name, x in weights.items()}
    with np.errstate(all="ignore"):
        again = evaluate(body, given, others).outputs
    return any(
        np.nanmax(np.abs(x - again[name])) > within for name, x in expected.outputs.items() if x.dtype == np.float64
    )


def random_array(generator: np.random.Generator, type: Type, symbols: Mapping[str, int], most: int) -> Array:
    shape = tuple(substitute(size, symbols) if isinstance(size, Polynomial) else size for size in type.shape)
    if type.dtype == "real":
        return generator.normal(0, 1, shape)
    if type.dtype == "int":  # few are 0, and none along the start of the last axis: 0 may mean padding
        numbers = generator.integers(0, most, shape)
        again = generator.integers(0, most, shape)
        numbers = np.where(numbers == 0, again, numbers)
        if shape and most > 1:
            numbers[..., 0] = np.maximum(numbers[..., 0], 1)
        return numbers
    return generator.random(shape) < 0.7


def by_parameter(model: Model, module: Any, inputs: Mapping[str, Array]) -> dict[str, Any]:
    """Inputs as tensors, by the names that they have in Python."""
    import torch

    entries = [entry.name for entry in get_compilation(model).trace().root.inputs]
    parameters = inspect.signature(module.forward).parameters
    by_order = {name.rstrip("_"): name for name in parameters}
    assert len(parameters) == len(entries)
    return {by_order[name.rstrip("_")]: torch.tensor(value) for name, value in inputs.items()}


def same_outputs(got: Any, expected: Mapping[str, Array], within: float, is_lenient: bool = False) -> None:
    """Asserts that outputs are those expected. `is_lenient`: where a query sees no key, PyTorch may give anything."""
    import torch

    if isinstance(got, torch.Tensor):
        got = (got,)
    if hasattr(got, "_asdict"):
        present = {name: value for name, value in got._asdict().items() if value is not None}
        assert [name.rstrip("_") for name in present] == [name.rstrip("_") for name in expected]
        got = tuple(present.values())
    values = [value for value in got if value is not None]
    assert len(values) == len(expected)
    for value, (name, wanted) in zip(values, expected.items(), strict=True):
        array = value.numpy()
        assert array.shape == wanted.shape, name
        assert array.dtype == wanted.dtype, f"{name}: {array.dtype}, not {wanted.dtype}"
        if is_lenient:
            assert not np.isnan(wanted).all(), name
            array = np.where(np.isnan(wanted), np.nan, array)
        scale = np.abs(wanted[np.isfinite(wanted)]).max(initial=1.0)
        np.testing.assert_allclose(array, wanted, within, within * scale, equal_nan=True, err_msg=name)


def lint(folder: Path) -> str:
    """What ruff finds in the files of a folder, by its own rules and by this project's."""
    checks = (["--isolated"], ["--config", str(ROOT / "pyproject.toml")])
    return "".join(_ruff("check", "--no-cache", *options, str(folder)) for options in checks)


def layout(folder: Path) -> str:
    """How ruff would lay out the files of a folder otherwise."""
    return _ruff("format", "--no-cache", "--isolated", "--diff", str(folder))


def _ruff(*arguments: str) -> str:
    done = subprocess.run([sys.executable, "-m", "ruff", *arguments], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""
