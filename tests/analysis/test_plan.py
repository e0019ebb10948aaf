"""Plans of training: against the bytes that PyTorch and DeepSpeed held, and what is refused."""

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bundled import each
from paths import DATA

import archspec
from archspec import ArchError, Plan

MEASURED = json.loads((DATA / "plans.json").read_text())


def plan(case: dict[str, Any], **options: Any) -> Plan:
    """Return the plan of a measured configuration."""
    configuration = MEASURED["configurations"][case["configuration"]]
    if "num_local_experts" in configuration or "n_routed_experts" in configuration:
        options["joined"] = True  # as transformers stores experts
    return archspec.plan(configuration, "h100", **options)


def state(result: Plan, category: str) -> int:
    return sum(row.bytes for row in result.states if row.category == category)


def held(result: Plan, moment: str, category: str) -> int:
    rows = [row for m in result.moments if m.name == moment for row in m.rows]
    return sum(row.bytes for row in rows if row.category == category)


@pytest.mark.parametrize("case", MEASURED["fsdp2"], ids=lambda c: f"{c['configuration']}-{c['count']}")
def test_states_of_fsdp2(case: dict[str, Any]) -> None:
    result = plan(case, count=case["count"], engine="fsdp2", dtype=case["dtype"], compute_dtype=case["compute_dtype"])
    for category in ("weights", "gradients", "optimizer"):
        assert state(result, category) == case[category], category
    assert state(result, "steps of the optimizer") == case["steps"]
    assert result.smallest - state(result, "buffers of the model") == case["smallest"]


@pytest.mark.parametrize(
    "case", MEASURED["fsdppeak"], ids=lambda c: f"{c['configuration']}-{c['count']}-{c['compute_dtype']}-{c['reshard']}"
)
def test_whole_weights_and_buffers_of_fsdp2(case: dict[str, Any]) -> None:
    options = {name: case[name] for name in ("count", "compute_dtype", "reshard")}
    result = plan(case, engine="fsdp2", **options)
    block = held(result, "backward", "buffer of all-gather")
    blocks = block if case["reshard"] else held(result, "backward", "whole weights of blocks")  # none is prefetched
    assert held(result, "backward", "whole weights outside of blocks") + blocks == case["unsharded_param"]
    assert block == case["all_gather"]
    assert case["reduce_scatter"] in (0, held(result, "backward", "buffer of reduce-scatter"))


@pytest.mark.parametrize("case", MEASURED["deepspeed"], ids=lambda c: f"{c['configuration']}-{c['stage']}")
def test_states_of_zero(case: dict[str, Any]) -> None:
    result = plan(case, count=case["count"], engine=f"zero{case['stage']}")
    assert state(result, "weights") == case["weights"]
    assert state(result, "master weights") == case["master"]
    assert state(result, "optimizer") == case["optimizer"]
    assert case["gradients"] in (None, state(result, "gradients"))  # not measured in stage 3


_OPTIMIZERS = {
    "sgd": "SGD",
    "momentum": "SGDmomentum",
    "adam": "Adam",
    "adamw": "AdamW",
    "amsgrad": "AdamWamsgrad",
    "nadam": "NAdam",
    "adagrad": "Adagrad",
    "rmsprop": "RMSprop",
    "adafactor": "Adafactor",
}


@pytest.mark.parametrize("optimizer", _OPTIMIZERS)
@pytest.mark.parametrize("case", MEASURED["optimizers"], ids=lambda c: f"{c['configuration']}-{c['dtype']}")
def test_states_of_optimizers(case: dict[str, Any], optimizer: str) -> None:
    result = plan(case, optimizer=optimizer, dtype=case["dtype"])
    measured = [state(result, "optimizer"), state(result, "steps of the optimizer")]
    assert measured == case[_OPTIMIZERS[optimizer]]
    assert state(result, "weights") == case["weights"]


@pytest.mark.parametrize("case", MEASURED["lora"], ids=lambda c: f"{c['dtype']}-{len(c['saved_modules'])}")
def test_adapters(case: dict[str, Any], tmp_path: Path) -> None:
    if case["saved_modules"]:
        fields = {"peft_type": "LORA", "r": 4, "target_modules": ["q_proj", "v_proj"], "modules_to_save": ["lm_head"]}
        (tmp_path / "adapter_config.json").write_text(json.dumps(fields))
        base = MEASURED["configurations"][case["configuration"]]
        result = archspec.plan(str(tmp_path), "h100", dtype=case["dtype"], base=base)
    else:
        result = plan(case, dtype=case["dtype"], lora={"q_proj": 4, "v_proj": 4})
    assert state(result, "weights") == case["frozen"] + case["trained"]
    assert state(result, "gradients") == case["gradients"]
    assert state(result, "optimizer") == case["optimizer"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", MEASURED["activations"], ids=lambda c: f"{c['configuration']}-{c['checkpoint']}-{c['attention']}-{c['seq']}"
)
def test_activations(case: dict[str, Any]) -> None:
    """The generated module keeps what that of `transformers` keeps, but for cosines, sines and masks."""
    pytest.importorskip("torch")
    checkpoint = case["checkpoint"]
    checkpoint = f"selective={checkpoint}" if checkpoint in ("matmul", "attention") else checkpoint
    seq, attention = case["seq"], {"eager": "math", "sdpa": "flash"}[case["attention"]]
    fields = MEASURED["configurations"][case["configuration"]]
    result = plan(case, batch=2, seq=seq, checkpoint=checkpoint, attention=attention)
    kept = sum(row.bytes for row in result.moments[0].rows if row.category != "loss")
    measured = case["alive"] - 4 * 2 * seq * fields["vocab_size"] + 8 * 2 * seq  # logits are not saved, and ids are
    head = fields.get("head_dim", fields["hidden_size"] // fields["num_attention_heads"])
    shared = 4 * (2 * seq * head + 2 * seq * seq + 4 * seq)  # cosines and sines, a mask, and positions
    blocks = fields["num_hidden_layers"] if case["checkpoint"] == "none" else 1
    assert abs(kept - measured) <= shared * blocks
    assert held(result, "at the loss", "loss") == 12 * 2 * seq * fields["vocab_size"]
    assert result.total >= case["peak"]


@pytest.mark.parametrize("case", MEASURED["loss"], ids=lambda c: c["dtype"])
def test_the_loss_has_its_own_line(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)  # which the loss does not need
    sizes = {"batch": case["batch"], "seq": case["seq"], "dtype": case["dtype"]}
    whole, fused = plan(case, **sizes), plan(case, fused_loss=True, **sizes)
    assert held(whole, "at the loss", "loss") == 12 * case["logits"]
    assert case["bytes_per_logit"] == pytest.approx(12, rel=0.02)
    assert held(fused, "at the loss", "loss") == 0
    assert any("fused loss" in text for text in fused.uncounted)


@pytest.mark.parametrize("name", each())
def test_totals_are_sums_and_never_fall(name: str) -> None:
    model = archspec.load(name)
    for engine in ("ddp", "zero1", "zero2", "zero3", "fsdp2"):
        totals: list[int] = []
        for count in (8, 1):
            if engine == "fsdp2" and any(not tensor.shape for tensor in model.tensors):
                with pytest.raises(ArchError, match="without axes"):
                    archspec.plan(model, "h100", count=count, engine=engine)
                continue
            result = archspec.plan(model, "h100", count=count, engine=engine)
            assert result.total == sum(row.bytes for row in (*result.states, *result.peak.rows))
            assert result.state_bytes == sum(group.total for group in result.groups) >= result.smallest
            assert all(row.bytes >= 0 for m in result.moments for row in (*result.states, *m.rows))
            if not engine.startswith("zero"):
                wide = archspec.plan(model, "h100", count=count, engine=engine, dtype="float64")
                assert wide.total >= result.total
            totals.append(result.state_bytes)
        assert totals == sorted(totals)
    alone = archspec.plan(model, "h100")
    trained = model.params.trainable
    assert state(alone, "weights") == 4 * model.params.total
    assert (state(alone, "gradients"), state(alone, "optimizer")) == (4 * trained, 8 * trained)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ddp", "fsdp2"])
def test_totals_never_fall_with_the_batch_or_the_length(engine: str) -> None:
    pytest.importorskip("torch")
    for checkpoint in ("none", "blocks", "every=2"):
        sizes = [(1, 16), (1, 64), (3, 64), (3, 65)]
        totals = [
            archspec.plan("gpt2", "h100", *size, engine=engine, count=2, checkpoint=checkpoint).total for size in sizes
        ]
        assert totals == sorted(totals)


def test_frozen_parameters_have_no_gradients() -> None:
    result = archspec.plan("gpt2", "h100", frozen=["wte", "h.*.attn"], by="block")
    frozen = sum(t.params for t in archspec.load("gpt2").tensors if "wte" in t.name or ".attn." in t.name)
    assert state(result, "gradients") == state(result, "weights") - 4 * frozen
    with pytest.raises(ArchError, match="no parameter of gpt2 is trained"):
        archspec.plan("gpt2", "h100", frozen=["transformer", "lm_head"])


def test_without_pytorch_activations_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    result = archspec.plan("gpt2", "h100", 1, 64)
    assert not result.has_activations and result.fits is None
    assert held(result, "at the loss", "loss") == 12 * 64 * 50257
    assert any("PyTorch" in text for text in result.uncounted)


def test_a_plan_of_a_published_model() -> None:
    """The states of the worked example in `docs/fit.md`."""
    result = archspec.plan("llama-3.1-8b", "h100", count=8, engine="fsdp2", by="block")
    assert state(result, "weights") == 4_015_130_624 and state(result, "optimizer") == 8_030_261_248
    assert [group.times for group in result.groups if group.name.endswith("layers.*")] == [32]


@pytest.mark.parametrize("case", MEASURED["tp"], ids=lambda c: f"{c['configuration']}-{c['plan']}-{c['ranks']}")
def test_ranks_of_tensor_and_expert_parallelism(case: dict[str, Any]) -> None:
    ranks, measured = case["ranks"], case["parameters"][0]
    if case["plan"] == "ep":
        result = plan(case, count=ranks, expert=ranks)
        model = archspec.load(MEASURED["configurations"][case["configuration"]], joined=True)
        also = [t for t in model.tensors if "_proj.weight" in t.name or t.layer in ("lm_head", "model.embed_tokens")]
        assert (
            state(result, "weights") - measured == 4 * sum(t.size for t in also) // ranks
        )  # transformers divides them
    elif case["configuration"] == "deepseek_v3":  # transformers leaves latent attention whole
        assert state(plan(case, count=ranks, tensor=ranks), "weights") < measured
    elif ranks == 4:  # the engine loads these, and fails in the first step
        with pytest.raises(ArchError, match="does not divide"):
            plan(case, count=ranks, tensor=ranks)
    else:
        assert state(plan(case, count=ranks, tensor=ranks), "weights") == measured


def test_experts_of_one_device() -> None:
    """Whole and joined experts are divided alike, and not divisible numbers are rounded up."""
    for expert in (2, 3, 8):
        whole, joined = [
            archspec.plan("mixtral-8x7b", "h100", count=expert, expert=expert, joined=joined)
            for joined in (False, True)
        ]
        assert state(whole, "weights") == state(joined, "weights")
        most = -(-8 // expert)  # of 8 experts
        total = archspec.load("mixtral-8x7b").params.total
        assert state(whole, "weights") == 4 * (total - (8 - most) * 32 * 3 * 4096 * 14336)
    with pytest.raises(ArchError, match="without any"):
        archspec.plan("mixtral-8x7b", "h100", count=16, expert=16)
    with pytest.raises(ArchError, match="not a multiple of 2 x 3"):
        archspec.plan("mixtral-8x7b", "h100", count=8, tensor=2, expert=3)


def test_adapters_of_quantized_weights(tmp_path: Path) -> None:
    fields = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
    configuration = {**MEASURED["configurations"]["llama"], "quantization_config": fields, "dtype": "bfloat16"}
    file = tmp_path / "quantized.json"
    file.write_text(json.dumps(configuration))
    stored = archspec.cost(configuration).stored
    result = archspec.plan(file, "h100", dtype="bfloat16", lora={"q_proj": 4})
    assert stored is not None and state(result, "quantized base model") == stored.total
    assert state(result, "weights") == state(result, "gradients") == 4 * 3 * 4 * (48 + 48)
    for options in ({}, {"lora": {"q_proj": 4}, "engine": "fsdp2"}, {"lora": {"q_proj": 4}, "frozen": ["lm_head"]}):
        with pytest.raises(ArchError, match="quantized"):
            archspec.plan(file, "h100", **options)
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "target_modules": ["q_proj"]}')
    with pytest.raises(ArchError, match="quantized"):
        archspec.plan(tmp_path / "adapter_config.json", "h100", base=file)


@pytest.mark.slow
@pytest.mark.parametrize("case", MEASURED["pp"], ids=lambda c: f"{c['schedule']}-{c['stages']}-{c['microbatches']}")
def test_stages_of_a_pipeline(case: dict[str, Any]) -> None:
    pytest.importorskip("torch")
    number, schedule = case["microbatches"], case["schedule"].lower()
    blocks = [stop - start for start, stop in pairwise(case["cuts"])]
    options = {"count": case["stages"], "pipeline": blocks, "schedule": schedule, "optimizer": "sgd"}
    states = plan(case, **options, microbatches=number)
    assert [stage.total for stage in states.stages] == [2 * params for params in case["parameters"]]
    result = plan(case, **options, microbatches=number, batch=2, seq=16, fused_loss=True)
    logits = [0] * (case["stages"] - 1) + [4 * 2 * 16 * 130]  # the cross entropy saves its probabilities
    measured = zip(result.stages, case["parameters"], case["peak_saved"], logits, strict=True)
    for stage, parameters, saved, loss in measured:
        assert stage.total - 2 * parameters == pytest.approx(saved - stage.alive * loss, rel=0.013)


def test_pipelines_that_cannot_be_divided() -> None:
    stages = archspec.plan("gpt2", "h100", 1, 8, count=6, pipeline=3, frozen=["wpe"]).stages
    assert [stage.blocks for stage in stages] == [5, 6, 1]  # the head takes as long as 5.5 blocks
    for options, message in [
        ({"pipeline": 13}, "more than the 12 blocks"),
        ({"pipeline": [6, 5]}, "stages of 6, 5 blocks"),
        ({"pipeline": [12, 0]}, "stages of 12, 0 blocks"),
        ({"microbatches": 2}, "without a pipeline"),
    ]:
        number = options.get("pipeline", 1)
        count = number if isinstance(number, int) else len(number)
        with pytest.raises(ArchError, match=message):
            archspec.plan("gpt2", "h100", 1, 8, count=count, **options)
    with pytest.raises(ArchError, match="depend on seq"):
        archspec.plan("gpt2", "h100", count=2, pipeline=2)
    with pytest.raises(ArchError, match="no single stack"):
        archspec.plan("t5-small", "h100", count=2, pipeline=[6, 6])
