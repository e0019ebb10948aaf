"""Costs of the generated modules: what PyTorch counts and keeps when it runs them is what `archspec cost` says."""

import json
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from small import load

import archspec
from archspec import Polynomial

torch = pytest.importorskip("torch")

EXAMPLES = [f"specs/std/examples.arch:small-{name}" for name in ("decoder", "vision", "speech", "resnet", "windows")]
SIZES = {"batch": 3, "seq": 24, "source": 20, "target": 17, "frames": 34, "samples": 800, "texts": 3, "images": 2}
FEWER = {"batch": 2, "seq": 20, "source": 18, "target": 15}


def sizes_of(model: archspec.Model) -> dict[str, int]:
    return {name: SIZES[name] for name in archspec.cost(model).dims}


def inputs_of(model: archspec.Model, sizes: dict[str, int], device: str) -> dict[str, Any]:
    """Every input, the optional ones too."""
    dtypes = {"real": torch.float32, "int": torch.int64, "bool": torch.bool}
    given: dict[str, Any] = {}
    for name, type in model.inputs.items():
        shape = [size.at(sizes) if isinstance(size, Polynomial) else size for size in type.shape]
        given[name] = torch.ones(shape, dtype=dtypes[type.dtype], device=device)
    return given


@pytest.mark.slow
@pytest.mark.parametrize("spec", [*archspec.models(), *EXAMPLES])
def test_flops_are_what_pytorch_counts_on_the_meta_device(spec: str) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = archspec.load(spec)
    sizes = sizes_of(model)
    with torch.device("meta"):
        module = archspec.to_torch(model).eval()
    with FlopCounterMode(display=False) as counter:
        module(**inputs_of(model, sizes, "meta"))
    assert counter.get_total_flops() == archspec.cost(model, dims=sizes).work.flops


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "flops"),
    [
        ("bert-base-uncased", 96_637_943_808),
        ("bert-large-uncased", 335_009_546_240),
        ("albert-base-v2", 96_738_607_104),
        ("bert-base-uncased-mlm", 121_244_221_440),
    ],
)
def test_flops_of_a_sequence_of_512(spec: str, flops: int) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    model = archspec.load(spec)
    with torch.device("meta"):
        module = archspec.to_torch(model).eval()
    with FlopCounterMode(display=False) as counter:
        module(**inputs_of(model, {"batch": 1, "seq": 512}, "meta"))
    assert counter.get_total_flops() == archspec.cost(model, batch=1, seq=512).work.flops == flops


TINY = {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 40}
KEPT = [
    ("bert-base-uncased", TINY),
    ("bert-base-uncased-pretraining", TINY),
    ("albert-base-v2", {**TINY, "factor": 16}),
    ("roberta-base", {**TINY, "types": 2}),
    ("transformer-seq2seq", {"words": 53, "hidden": 32, "layers": 2, "heads": 4, "inner": 48}),
    ("specs/std/examples.arch:small-decoder", {}),
    ("specs/std/examples.arch:small-vision", {"image": 32, "layers": 2}),
    ("specs/std/examples.arch:small-speech", {}),
    ("specs/std/examples.arch:small-resnet", {}),
]
MIXTRAL = {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "groups": 2, "ffn": 48, "experts": 3}
EXPERTS = [("mixtral-8x7b", {**MIXTRAL, "joined": joined}) for joined in (False, True)]
"""What these keep has no formula: sizes of groups are data."""


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("attention", ["flash", "math"])
@pytest.mark.parametrize(("spec", "overrides"), [*KEPT, *EXPERTS])
def test_activations_are_what_hooks_see(spec: str, overrides: dict[str, Any], attention: str, dtype: str) -> None:
    """Run for real, on a CPU: each storage that a hook is shown, once, but for those of parameters."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    from archspec.pytorch.run.activations import fused_attention

    model = archspec.load(spec, **overrides)
    sizes = sizes_of(model)
    backend = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}[attention]
    with sdpa_kernel(backend), fused_attention() if attention == "flash" else nullcontext():
        kept = kept_by_hooks(model, sizes, getattr(torch, dtype))
    found = archspec.cost(model, dims=sizes, dtype=dtype, attention=attention).activations
    assert found is not None and found.attention == attention
    assert found.bytes == kept


def kept_by_hooks(model: archspec.Model, sizes: dict[str, int], element: Any) -> int:
    """The bytes of all storages that a hook is shown, but for those of parameters or computed from weights alone.

    What is computed from weights alone has the same values for other inputs of other sizes, and others for other
    weights.
    """
    module = archspec.to_torch(model).to(element).eval()
    others = deepcopy(module)
    for tensor in (*others.parameters(), *others.buffers()):
        if tensor.is_floating_point():
            tensor.data = torch.rand_like(tensor) + 0.5
    saved = shown_to_hooks(module, model, sizes, element)
    fewer = shown_to_hooks(module, model, {**sizes, **FEWER}, element, is_other=True)
    changed = shown_to_hooks(others, model, sizes, element)
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage() for tensor in saved}
    buffers = {tensor.untyped_storage().data_ptr() for tensor in module.buffers()}
    computed = {
        tensor.untyped_storage().data_ptr()
        for tensor, same, other in zip(saved, fewer, changed, strict=True)
        if not tensor.numel() or not torch.equal(tensor, same) or torch.equal(tensor, other)
    }
    parameters = {tensor.untyped_storage().data_ptr() for tensor in module.parameters()}
    return sum(storages[pointer].nbytes() for pointer in (computed | buffers) & storages.keys() - parameters)


def shown_to_hooks(
    module: Any, model: archspec.Model, sizes: dict[str, int], element: Any, is_other: bool = False
) -> list[Any]:
    """The tensors that a hook is shown, in order, in a call of a module."""
    inputs = inputs_of(model, sizes, "cpu")
    for name, x in inputs.items():
        inputs[name] = x.to(element) * (0.5 if is_other else 1.0) if x.is_floating_point() else x
        if is_other and x.dtype is torch.int64:
            inputs[name] = x * 0
    saved: list[Any] = []

    def keep(tensor: Any) -> Any:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        outputs = module(**inputs)
    del outputs
    return saved


FUSED = {
    **{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 101, "max_position_embeddings": 64},
    **{"hidden_size": 48, "intermediate_size": 100, "num_hidden_layers": 3, "num_attention_heads": 6},
    **{"num_key_value_heads": 2, "tie_word_embeddings": False},
}


@pytest.mark.parametrize(("seq", "kept"), [(16, 336_256), (32, 672_512)])
def test_fused_attention_keeps_what_transformers_keeps(tmp_path: Path, seq: int, kept: int) -> None:
    """Saved tensors of `transformers` 5.23.0 with sdpa, which has cosines and sines twice as wide."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FUSED))
    found = archspec.cost(str(path), 2, seq, attention="flash").activations
    tables = 2 * seq * 4 * 4
    assert found is not None and found.bytes == kept - tables > 0.98 * kept


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mistral-7b-v0.1", "qwen3-0.6b"])
def test_fused_attention_keeps_nothing_for_pairs_of_tokens(name: str) -> None:
    overrides = {"layers": 1, "vocab": 100}
    sizes = [archspec.cost(archspec.load(name, **overrides), 1, n, attention="flash").activations for n in (64, 128)]
    assert sizes[0] is not None and sizes[1] is not None
    assert sizes[1].bytes == 2 * sizes[0].bytes


def test_activations_of_experts() -> None:
    """What is kept does not depend on how tokens are distributed."""
    text = """
dim batch, best
layer Experts(count = 5, n = 6, m = 8)(x [batch, 1, n], chosen int [batch, best]) -> [batch, best, m] {
  weight: param [count, m, n]
  bias:   param [count, m]
  return expert_linear(x, chosen, .weight, .bias)
}
"""
    model, sizes = load(text), {"batch": 7, "best": 2}
    found = archspec.cost(model, dims=sizes, attention="math").activations
    assert found is not None and found.bytes == kept_by_hooks(model, sizes, torch.float32)


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["flash", "math"])
@pytest.mark.parametrize(("spec", "overrides"), KEPT)
def test_formulas_of_activations_are_what_numbers_are(spec: str, overrides: dict[str, Any], attention: str) -> None:
    model = archspec.load(spec, **overrides)
    if "small-speech" in spec:
        with pytest.raises(archspec.ArchError, match="no formula in frames"):
            archspec.cost(model, batch=3, attention=attention)
        return
    found = archspec.cost(model, attention=attention).activations
    assert found is not None and isinstance(found.bytes, Polynomial)
    for more in (0, 5):
        sizes = {name: least + more * i for i, (name, least) in enumerate(found.least.items(), 1)}
        numbers = archspec.cost(model, dims=sizes, attention=attention).activations
        assert numbers is not None and found.bytes.at(sizes) == numbers.bytes
    try:
        half = archspec.cost(model, batch=1, attention=attention).activations
    except archspec.ArchError as error:  # the kernel of a convolution may be chosen by the sizes then
        assert "transformer" in spec and "no formula in source, target" in str(error)
        return
    whole = archspec.cost(model, dims=dict.fromkeys(sizes_of(model), 7) | {"batch": 1}, attention=attention).activations
    assert half is not None and whole is not None and "batch" not in half.least
    sevens = dict.fromkeys(sizes_of(model), 7)
    assert (half.bytes.at(sevens) if isinstance(half.bytes, Polynomial) else half.bytes) == whole.bytes


def test_activations_of_weights_cut_off_and_of_inputs_python_names_otherwise() -> None:
    text = """
import std { Linear }
dim batch
block Net(n = 6)(class [batch, n], import [batch, n] = none) -> [batch, n] {
  train: param [n, n] ~ truncated_normal(0.02)
  y = class |> part.eval: Linear(n, n) |> matmul(_, .train)
  return y * y + import if import != none else y
}
"""
    found = archspec.cost(load(text), batch=3, attention="math").activations
    assert found is not None and found.bytes == 3 * 6 * 4 * 3  # what is given, and the results of both products


@pytest.mark.slow
def test_a_form_of_attention_that_cannot_run_is_refused(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.raises(archspec.ArchError, match=r"t5-small cannot run with flash[\s\S]*--attention math"):
        archspec.cost("t5-small", batch=1, seq=5, dims={"target": 6}, attention="flash")
    assert not recwarn.list


@pytest.mark.slow
def test_activations_of_bert_base_grow_with_the_form_of_attention() -> None:
    costs = {a: archspec.cost("bert-base-uncased", batch=8, seq=512, attention=a) for a in ("flash", "math")}
    flash, math = (cost.activations.bytes for cost in costs.values() if cost.activations is not None)
    assert flash < math
