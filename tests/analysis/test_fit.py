"""`archspec fit`: bytes of weights and cache, the longest context, the largest batch; figures that engines report."""

import contextlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import archspec
from archspec import ArchError
from archspec.testing import main

GIB = 2**30


def kinds(fit: archspec.Fit) -> dict[str, tuple[int, str]]:
    return {line.name: (line.bytes, line.kind) for line in fit.lines}


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("llama", ["llama-3.1-8b", "--device", "h100", "--context", "131072", "--batch", "4"]),
        ("divided", ["deepseek-v3", "--device", "h200", "--count", "16", "--tensor", "8", "--dtype", "fp8"]),
        ("window", ["gpt-oss-20b", "--device", "rtx-4090", "--dtype", "int4", "--chunk", "2048"]),
        ("state", ["mamba-130m", "--device", "t4", "--fraction", "0.5"]),
        ("weights", ["llama-3.1-405b", "--device", "b200"]),
    ],
)
def test_reports(name: str, arguments: list[str], golden: Callable[[str, str], None]) -> None:
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown):
        assert main(["fit", *arguments]) == int(name in ("llama", "weights"))
    golden(f"fit-{name}.txt", shown.getvalue())


def test_figures_of_the_design() -> None:
    fit = archspec.fit("llama-3.1-8b", "h100", batch=4, context=131_072)
    assert kinds(fit) == {
        "weights, bfloat16": (16_060_522_496, "exact"),
        "cache, bfloat16, 4 x 131,072 positions": (68_719_476_736, "exact"),
    }
    assert (fit.usable, fit.missing, fit.fits) == (76_516_989_861, 8_263_009_371, False)
    assert (fit.longest_context, fit.limit, fit.largest_batch) == (115_311, "memory", 3)
    assert [(line.bytes, line.kind) for line in fit.left_out] == [(704_643_072, "at least")]
    with_chunk = archspec.fit("llama-3.1-8b", "h100", batch=4, context=131_072, chunk=8192)
    assert with_chunk.total == fit.total + 704_643_072 and not with_chunk.left_out


def test_what_vllm_reports() -> None:
    """Its error for Qwen3-30B-A3B names 24.00 GiB, and 8.04 GiB for 87,840 positions in blocks of 16.

    On an RTX 3090, it logs 1,952 blocks in 3.81 GiB for Llama 3.1 8B.
    """
    qwen = archspec.fit("qwen3-30b-a3b", "h100", context=262_144)
    assert qwen.cache.bytes(1, 262_144) == 25_769_803_776 == 24 * GIB
    assert qwen.cache.longest_context(int(8.04 * GIB), 1) == 87_818
    llama = archspec.fit("llama-3.1-8b", "rtx-3090", context=1952 * 16)
    assert llama.cache.bytes(1, 1952 * 16) == 3.8125 * GIB


def test_the_longest_context_and_largest_batch_are_the_last_that_fit() -> None:
    for name, device in (("llama-3.1-8b", "l4"), ("gpt-oss-20b", "a100-80gb"), ("deepseek-v2-lite", "a100-40gb")):
        fit = archspec.fit(name, device, batch=3)
        assert fit.fits and fit.context == fit.longest_context and fit.context
        assert not archspec.fit(name, device, batch=3, context=fit.context + 1).fits
        assert fit.largest_batch >= 3
        assert archspec.fit(name, device, batch=fit.largest_batch, context=fit.context).fits
        assert not archspec.fit(name, device, batch=fit.largest_batch + 1, context=fit.context).fits


def test_a_table_of_positions_limits_the_context() -> None:
    fit = archspec.fit("gpt2", "h100")
    assert (fit.context, fit.limit, fit.cache.positions) == (1024, "positions", 1024)
    with pytest.raises(ArchError, match=r"bad-size.*at seq = 1025"):
        archspec.fit("gpt2", "h100", context=1025)
    assert archspec.fit("opt-125m", "h100").context == 2048


def test_a_cache_that_does_not_grow() -> None:
    fit = archspec.fit("mamba-130m", "t4", batch=2)
    assert (fit.context, fit.longest_context, fit.limit) == (None, None, "")
    assert fit.cache.bytes(2, 1) == fit.cache.bytes(2, 10**9) == 2 * fit.cache.bytes(1, 10)


def test_what_is_divided_and_what_is_whole() -> None:
    one, two = (archspec.fit("llama-3.1-8b", "h100", tensor=n, batch=1, context=8191) for n in (1, 2))
    assert [fit.cache.bytes(1, 8191) for fit in (one, two)] == [1_073_610_752, 536_805_376]
    assert two.total < one.total and two.devices == 2
    latent = [archspec.fit("deepseek-v2-lite", "h100", tensor=n, context=1000) for n in (1, 2)]
    assert latent[0].cache == latent[1].cache
    assert latent[1].lines[-1].note == "the same on each device"


def test_quantized_weights_are_counted_as_stored() -> None:
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "torch_dtype": "float16",
        "quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False, "sym": True},
    }
    fit, cost = archspec.fit(config, "l4"), archspec.cost(config)
    assert cost.stored is not None and fit.lines[0].bytes == cost.stored.total
    assert (fit.dtype, fit.cache.dtype, fit.lines[0].kind) == ("stored", "bfloat16", "exact")
    assert archspec.fit(config, "l4", dtype="float16").lines[0].bytes == cost.memory.weights // 2


def test_an_adapter_beside_its_base(tmp_path: Path) -> None:
    lora = {"peft_type": "LORA", "r": 8, "lora_alpha": 16, "target_modules": ["q_proj", "v_proj"]}
    (tmp_path / "adapter_config.json").write_text(json.dumps({**lora, "task_type": "CAUSAL_LM"}))
    fit = archspec.fit("llama-3.1-8b", "h100", lora=[tmp_path])
    assert fit.lines[1].bytes == 2 * 32 * 8 * (4096 + 4096 + 4096 + 1024) and fit.lines[1].kind == "exact"
    assert archspec.fit("llama-3.1-8b", "h100", tensor=2, lora=[tmp_path]).lines[1].kind == "at most"


def test_a_configuration_without_a_head_is_noted() -> None:
    fit = archspec.fit({"model_type": "llama"}, "h100")
    assert any("a head is not included" in note for note in fit.notes)


def test_json_and_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", "gpt2", "--device", "t4", "--context", "512", "--format", "json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert document["fits"] and document["total"] == sum(line["bytes"] for line in document["lines"])
    assert (document["device"]["name"], document["context"], document["positions"]) == ("t4", 512, 1024)
    assert main(["fit", "gpt2", "--device", "t4", "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "name,bytes,kind,note"


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"device": "h10"}, "unknown device `h10`"),
        ({"tensor": 16}, "tensor parallelism of 16 does not divide `groups = 8`"),
        ({"tensor": 2, "count": 3}, "3 devices cannot be divided into groups of 2"),
        ({"fraction": 0}, "expected a fraction above 0 and at most 1, found 0"),
        ({"batch": 0}, "expected an integer from 1 as `batch`, found 0"),
        ({"dtype": "fp16"}, "unknown dtype `fp16`"),
        ({"dims": {"seq": 8}}, "cannot set the size of dimension `seq`"),
        ({"dims": {"rows": 8}}, "unknown dimension `rows`"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArchError) as caught:
        archspec.fit("llama-3.1-8b", **{"device": "h100", **arguments})
    assert caught.value.diagnostics[0].message.startswith(message)


def test_a_model_without_a_cache() -> None:
    with pytest.raises(ArchError, match=r"the model has no decoding step[^$]*help: use a model that decodes"):
        archspec.fit("bert-base-uncased", "h100")


@pytest.mark.slow
@pytest.mark.parametrize("name", archspec.models())
def test_every_decoder(name: str) -> None:
    """Totals are the sum of their lines, and never fall when batch, context or dtype grow."""
    model = archspec.load(name)
    try:
        base = archspec.fit(model, "b200", context=64)
    except ArchError as error:
        assert "no decoding step" in str(error) or "needs sizes of the dimensions" in str(error)
        return
    assert base.total == sum(line.bytes for line in base.lines) and all(line.bytes >= 0 for line in base.lines)
    totals = [
        archspec.fit(model, "b200", **sizes).total
        for sizes in (
            {"context": 64, "dtype": "fp8"},
            {"context": 64},
            {"context": 65},
            {"context": 128, "batch": 2},
            {"context": 128, "batch": 2, "dtype": "float32"},
            {"context": 128, "batch": 2, "dtype": "float32", "chunk": 32},
        )
    ]
    assert totals == sorted(totals)
    decoding = archspec.cost(model, batch=2, past=100, dtype="bfloat16").decoding
    assert decoding is not None and decoding.cache_bytes == base.cache.bytes(2, 100)
