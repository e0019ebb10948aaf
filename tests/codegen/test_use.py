"""What people do with PyTorch modules: compiling, exporting, training, copying, saving, building without memory."""

import builtins
import copy
import io
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch_compare
import torch_texts
from building import build
from bundled import SIZES_ONLY
from paths import DATA, read_spec
from small import load

import archspec
from archspec import Model, Polynomial

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

BUNDLED = torch_texts.bundled()
FEW = ["bert-base-uncased", "albert-base-v2", "transformer-seq2seq", "small-decoder", "small-vision", "small-speech"]
FEW += ["small-resnet", "small-windows"]
OWN = ["everything", "addresses:gap", "addresses:odd", "attention:stack", "attention:gqa", "statements:branches"]


def model_of(name: str) -> Model:
    if name in BUNDLED:
        spec, small = BUNDLED[name]
        return archspec.load(spec, **small)
    file, _, model = name.partition(":")
    return archspec.load(f"{DATA / 'translated' / file}.arch" + (f":{model}" if model else ""))


def inputs_of(model: Model, module: Any, sizes: tuple[int, ...] = torch_compare.SIZES[0]) -> dict[str, Any]:
    given = torch_compare.named_inputs(model, module, sizes)
    return {name: x.float() if x.is_floating_point() else x for name, x in given.items()}


def same(one: Any, other: Any, within: float = 1e-5) -> None:
    for a, b in zip(as_tuple(one), as_tuple(other), strict=True):
        torch.testing.assert_close(a, b, rtol=within, atol=within)


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)


@pytest.mark.parametrize("name", FEW + OWN)
def test_compiling_as_one_graph(name: str) -> None:
    model = model_of(name)
    module = archspec.to_torch(model).eval()
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    for sizes in torch_compare.SIZES:
        inputs = inputs_of(model, module, sizes)
        with torch.no_grad():
            same(compiled(**inputs), module(**inputs))


@pytest.mark.parametrize("name", [name for name in FEW + OWN if name != "addresses:odd"])
def test_exporting_with_open_dimensions(name: str) -> None:
    """Every dimension that the spec leaves open stays open in the exported program.

    `torch.export` itself takes no modules whose parts are called as methods of modules are (`type`), or by keywords.
    """
    model = model_of(name)
    module = archspec.to_torch(model).eval()
    inputs = inputs_of(model, module, (2, 5, 7, 3, 4, 6))
    auto = torch.export.Dim.AUTO
    shapes = {
        name: {i: auto for i, size in enumerate(type.shape) if not isinstance(size, int)}
        for (name, _), type in zip(inputs.items(), model.inputs.values(), strict=True)
    }
    program = torch.export.export(module, (), inputs, dynamic_shapes=shapes)
    for sizes in ((2, 5, 7, 3, 4, 6), (3, 4, 6, 5, 2, 7)):
        given = inputs_of(model, module, sizes)
        with torch.no_grad():
            same(program.module()(**given), module(**given))


@pytest.mark.parametrize("name", [*BUNDLED, *OWN])
def test_training_reaches_every_trainable_parameter_and_none_of_the_frozen(name: str) -> None:
    model = model_of(name)
    torch.manual_seed(0)
    module = archspec.to_torch(model).train()
    loss = sum((x.float() * torch.randn(x.shape)).sum() for x in as_tuple(module(**inputs_of(model, module))))
    loss.backward()
    parameters = dict(module.named_parameters(remove_duplicate=False))
    unused = torch_compare.unused_tensors(model)
    read = {torch_compare.canonical_of(model, t.name) for t in model.tensors if t.name not in unused}
    for tensor in model.tensors:
        grad = parameters[tensor.name].grad
        assert (grad is not None) == (tensor.trainable and torch_compare.canonical_of(model, tensor.name) in read), (
            tensor.name
        )
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    torch.optim.SGD([p for p in module.parameters() if p.grad is not None], lr=0.1).step()
    after = module.state_dict()
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    frozen = {tensor.name for tensor in model.tensors if not tensor.trainable}
    assert moved and not moved & (frozen | {buffer.name for buffer in model.buffers})


@pytest.mark.parametrize("name", FEW + OWN)
def test_copies_and_saved_weights_give_the_same(name: str) -> None:
    model = model_of(name)
    module = archspec.to_torch(model).eval()
    inputs = inputs_of(model, module)
    with torch.no_grad():
        expected = module(**inputs)
        twin = copy.deepcopy(module)
        same(twin(**inputs), expected, 0)
        torch_compare.same_tensors(model, twin.double())
        file = io.BytesIO()
        torch.save(module.state_dict(), file)
        file.seek(0)
        other = archspec.to_torch(model).eval()
        other.load_state_dict(torch.load(file, weights_only=True))
        same(other(**inputs), expected, 0)


def meta_inputs(model: Model) -> dict[str, Any]:
    """Inputs without memory: 2 along every open dimension, but enough samples for a frame of speech."""
    dtypes = {"real": torch.float32, "int": torch.int64, "bool": torch.bool}
    dims = [size for type in model.inputs.values() for size in type.shape if isinstance(size, Polynomial)]
    names = {name for size in dims for name in re.findall(r"[a-z_]\w*", str(size))}
    sizes = {name: 800 if name == "samples" else 2 for name in names}
    shapes = {
        name: [size.at(sizes) if isinstance(size, Polynomial) else size for size in type.shape]
        for name, type in model.inputs.items()
    }
    return {
        name: torch.zeros(shapes[name], dtype=dtypes[type.dtype], device="meta") for name, type in model.inputs.items()
    }


FEWER_LAYERS = {"deepseek-v3": 5, "qwen3-30b-a3b": 2}
"""Models with tens of thousands of modules, because they store every expert by itself: layers that are enough."""

WHOLE = [name for name in archspec.models() if name not in SIZES_ONLY or name == "llama-3.1-405b"]


@pytest.mark.parametrize("name", WHOLE)
def test_models_of_full_size_are_built_without_memory(name: str) -> None:
    """Every family, and the largest of the models that differ from others in their sizes only."""
    model = archspec.load(name, **({"layers": FEWER_LAYERS[name]} if name in FEWER_LAYERS else {}))
    with torch.device("meta"):
        module = archspec.to_torch(model)
    assert {tensor.device.type for tensor in module.state_dict().values()} == {"meta"}
    assert sum(p.numel() for p in module.parameters()) == model.params.total
    assert sum(p.numel() for p in module.parameters() if p.requires_grad) == model.params.trainable
    inputs = meta_inputs(model)
    outputs = module(**inputs)
    assert {x.device.type for x in as_tuple(outputs)} == {"meta"}


# How weights start out ----------------------------------------------------------------------------------------------


def test_weights_start_out_as_the_spec_says() -> None:
    model = load(read_spec("use_model"))
    torch.manual_seed(0)
    net = archspec.to_torch(model)
    near = {"normal": (0, 0.02), "cut": (0, 0.44), "even": (1, 4 / math.sqrt(12))}
    for name, (mean, std) in near.items():
        tensor = getattr(net, name)
        assert float(tensor.mean()) == pytest.approx(mean, abs=0.05)
        assert float(tensor.std()) == pytest.approx(std, rel=0.06), name
    assert float(net.cut.abs().max()) <= 1
    assert -1 <= float(net.even.min()) < -0.9 < 2.9 < float(net.even.max()) <= 3
    assert net.seven.unique().tolist() == [7] and net.zero.unique().tolist() == [0] and net.one.unique().tolist() == [1]
    assert float(net.glorot.abs().max()) == pytest.approx(math.sqrt(6 / 4050), rel=0.01)
    assert torch.equal(net.ramp, torch.arange(4000) / 4000) and net.middle.unique().tolist() == [0.5]
    assert net.mean.unique().tolist() == [0]
    assert float(net.plain.abs().max()) == pytest.approx(1 / math.sqrt(50), rel=0.01)  # as in nn.Linear
    assert float(net.bias.abs().max()) == pytest.approx(1 / math.sqrt(4000), rel=0.01)


def test_weights_start_out_anew_and_the_same_for_the_same_seed() -> None:
    model = model_of("bert-base-uncased")
    torch.manual_seed(1)
    one, other = archspec.to_torch(model), archspec.to_torch(model)
    torch.manual_seed(1)
    again = archspec.to_torch(model)
    word = "embeddings.word_embeddings.weight"
    assert not torch.equal(one.state_dict()[word], other.state_dict()[word])
    assert all(torch.equal(tensor, again.state_dict()[name]) for name, tensor in one.state_dict().items())
    assert float(one.state_dict()[word].std()) == pytest.approx(0.02, rel=0.2)


def test_hidden_states_are_had_from_hooks() -> None:
    model = model_of("bert-base-uncased")
    module = archspec.to_torch(model).eval()
    states: list[Any] = []
    for layer in module.encoder.layer:
        layer.register_forward_hook(lambda *call: states.append(call[2]))
    outputs = module(**inputs_of(model, module))
    assert len(states) == 2
    assert torch.equal(states[-1], outputs.last_hidden_state)


# Files and packages -------------------------------------------------------------------------------------------------


def test_the_file_stands_on_its_own(tmp_path: Path) -> None:
    """It needs torch alone, and a class in it takes other numbers."""
    source = build(BUNDLED["bert-base-uncased"][0], **BUNDLED["bert-base-uncased"][1])
    assert {line.split()[1].split(".")[0] for line in source.splitlines() if line.startswith(("import ", "from "))} == {
        "__future__",
        "torch",
        "typing",
    }
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    other = namespace["Bert"](vocab=20, hidden=24, layers=3, heads=4, ffn=30, positions=9)
    assert len(other.encoder.layer) == 3 and other.pooler.dense.weight.shape == (24, 24)
    with pytest.raises(ValueError, match="divisible by heads"):
        namespace["Bert"](hidden=24, heads=5)


def test_a_missing_torch_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *arguments: Any, **options: Any) -> Any:
        if name.split(".")[0] == "torch":
            raise ImportError(name)
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(archspec.ArchError) as caught:
        archspec.to_torch(model_of("bert-base-uncased"))
    (found,) = caught.value.diagnostics
    assert found.code == "missing-package" and "archspec-dsl[torch]" in (found.help or "")
