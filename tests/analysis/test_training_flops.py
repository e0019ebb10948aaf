"""FLOPs of training steps: against those that PyTorch counts, and what is refused."""

import json
import random
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from documented import PAGES
from examples import blocks
from paths import DATA
from small import load

import archspec
from archspec import ArchError, Polynomial

MEASURED = json.loads((DATA / "training_flops.json").read_text())


@pytest.mark.parametrize("case", MEASURED["cases"], ids=lambda case: "-".join(map(str, case.values())))
def test_measured_steps(case: dict[str, Any]) -> None:
    model = archspec.load(MEASURED["configurations"][case["configuration"]])
    options = {name: case[name] for name in ("frozen", "lora", "checkpoint") if name in case}
    step = archspec.training_flops(model, 2, case.get("seq", 16), **options).full
    assert step.hardware == case["step"]
    assert step.forward == case.get("forward", step.forward)


def test_a_step_of_a_published_model() -> None:
    step = archspec.training_flops("llama-3.1-8b", 1, 8192, checkpoint="blocks")
    assert step.per_token is not None and step.tokens == 8192
    assert (step.per_token.model, step.per_token.hardware) == (57_912_852_480, 72_408_367_104)
    assert step.half.divide(8192).model == 51_470_401_536
    assert step.blocks == ("model.layers.*",)
    formula = archspec.training_flops("llama-3.1-8b", checkpoint="blocks")
    assert isinstance(formula.full.hardware, Polynomial)
    assert formula.full.hardware.at({"batch": 1, "seq": 8192}) == step.full.hardware
    assert formula.per_token is not None and formula.per_token.model.at({"seq": 8192}) == step.per_token.model


def test_forward_is_that_of_a_forward_pass() -> None:
    for name in ("gpt2", "t5-small", "resnet-18", "mixtral-8x7b"):
        model = archspec.load(name)
        assert archspec.training_flops(model).full.forward == archspec.cost(model).work.flops
        half = archspec.cost(model, causal_half=True).work.flops
        assert archspec.training_flops(model).half.forward == half


@pytest.mark.parametrize(
    ("name", "blocks"),
    [
        ("albert-base-v2", ("encoder.albert_layer_groups.0.albert_layers.*",)),
        ("bart-base", ("model.encoder.layers.*", "model.decoder.layers.*")),
        ("mixtral-8x7b", ("model.layers.*",)),
        ("fnet-base", ("encoder.layer.*",)),
    ],
)
def test_blocks_are_the_outermost_numbered_modules(name: str, blocks: tuple[str, ...]) -> None:
    step = archspec.training_flops(name, checkpoint="blocks")
    assert step.blocks == blocks and step.full.recompute


ROUTES = """
dim batch
block Net(n = 4)(x [batch, n], z [batch, n]) -> [batch, n] {
  a: param [n, n]
  b: frozen param [n, n]
  c: param [n, n]
  d: param [n, n]
  h = linear(linear(x, .b), .a)
  i = argmax(axis = -1)(linear(x, .c))
  return linear(h, .b) + linear(z, .d) * reshape([batch, 1])(real(i))
}
"""


def test_backward_counts_factors_that_need_gradients_and_results_that_have_them() -> None:
    """Nothing before the first trained matrix; its own gradient; the input of a frozen one; none through indices."""
    one = 2 * 3 * 4 * 4
    step = archspec.training_flops(load(ROUTES), 3)
    assert (step.full.forward, step.full.backward, step.tokens, step.per_token) == (5 * one, 3 * one, None, None)
    assert archspec.training_flops(load(ROUTES), 3, frozen=["a"]).full.backward == one
    assert archspec.training_flops(load(ROUTES), 3, frozen=["a", "d"]).full.backward == 0


LOOP = """
dim batch, seq
block Net(n = 4)(x [batch, seq, n]) -> [batch, n] {
  a: param [n, n]
  h = full([batch, n], 0.0)
  for t in 0..seq {
    h = tanh(linear(h, .a) + pick(1, t)(x))
  }
  return h
}
"""


def test_a_loop_over_a_sequence() -> None:
    """Backward, two products in each iteration: at most, as the first state has no gradient."""
    step = archspec.training_flops(load(LOOP), 3, 5)
    assert step.full.backward == 2 * step.full.forward == 2 * 5 * 2 * 3 * 4 * 4
    assert step.is_bound and not archspec.training_flops(load(ROUTES), 3).is_bound


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        ({"frozen": ["nowhere"]}, "unknown-name", "no parameter of gpt2 matches `nowhere`"),
        ({"lora": {"nowhere": 4}}, "unknown-name", "no parameter of gpt2 matches `nowhere`"),
        ({"lora": {"c_attn": 0}}, "usage", "expected a rank from 1 for `c_attn`, found 0"),
        ({"lora": {"wte": 4}}, "unsupported", "no linear layer of gpt2 is among wte"),
        ({"checkpoint": "some"}, "usage", "unknown checkpointing `some`"),
        ({"seq": 2000}, "bad-size", "at seq = 2000"),
    ],
)
def test_refusals(options: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(ArchError) as caught:
        archspec.training_flops("gpt2", **options)
    assert caught.value.diagnostics[0].code == code
    assert caught.value.diagnostics[0].message.startswith(message)


def test_options_without_a_training_step_are_refused() -> None:
    with pytest.raises(ArchError, match="without a training step"):
        archspec.cost("gpt2", checkpoint="blocks")


# Against PyTorch ------------------------------------------------------------------------------------------------------

SIZES = {"batch": 2, "seq": 6, "source": 5, "target": 6, "texts": 3, "images": 2}
NAMES = [
    *("albert-base-v2", "bart-base", "bert-base-uncased", "clip-vit-base-patch32", "deberta-v3-base", "falcon-7b"),
    *("deepseek-v2-lite", "distilbert-base-uncased", "gemma-3-1b", "gpt-oss-20b", "gpt2", "llama-3.2-1b", "opt-350m"),
    "roberta-base-mlm",
    *("mixtral-8x7b", "modernbert-base", "phi-3-mini-4k", "qwen3-0.6b", "resnet-18", "swin-tiny", "t5-small"),
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", NAMES)
def test_random_frozen_parts(name: str, seed: int) -> None:
    """Models without grouped convolutions, whose weights' gradients `FlopCounterMode` counts once for each group."""
    torch = pytest.importorskip("torch")
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils._pytree import tree_leaves
    from torch.utils.flop_counter import FlopCounterMode
    from torch_texts import small

    model = archspec.load(name, **(small(name) or {}))
    module: Any = archspec.to_torch(model).eval()
    draw = random.Random(f"{name} {seed}")
    share = draw.choice([Fraction(0), Fraction(1, 5), Fraction(3, 5), Fraction(9, 10)])
    frozen = [key for key, _ in module.named_parameters() if draw.random() < share]
    for key, parameter in module.named_parameters():
        parameter.requires_grad_(key not in frozen)
    sizes = {key: SIZES[key] for key in archspec.cost(model).dims}
    dtypes = {"real": torch.float32, "int": torch.int64, "bool": torch.bool}
    inputs = {
        key: torch.ones([size.at(sizes) if isinstance(size, Polynomial) else size for size in type.shape]).to(
            dtypes[type.dtype]
        )
        for key, type in model.inputs.items()
    }
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        outputs = [x for x in tree_leaves(module(**inputs)) if isinstance(x, torch.Tensor) and x.requires_grad]
        forward = counter.get_total_flops()
        if outputs:
            torch.stack([x.sum() for x in outputs]).sum().backward()
    step = archspec.training_flops(model, dims=sizes, frozen=frozen).full
    assert (step.forward, step.model) == (forward, counter.get_total_flops())


@pytest.mark.slow
def test_live_modules() -> None:
    """What is trained is read from modules of `transformers` and `peft`."""
    torch = pytest.importorskip("torch")
    transformers, peft = pytest.importorskip("transformers"), pytest.importorskip("peft")
    from torch.utils.flop_counter import FlopCounterMode

    fields = {key: x for key, x in MEASURED["configurations"]["llama"].items() if key not in ("architectures",)}

    def make(*frozen: str, lora: bool = False) -> Any:
        module = transformers.AutoModelForCausalLM.from_config(
            transformers.AutoConfig.for_model(**fields), attn_implementation="eager"
        )
        for key, parameter in module.named_parameters():
            parameter.requires_grad_(not any(part in key for part in frozen))
        if lora:
            targets = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], modules_to_save=["lm_head"])
            module = peft.get_peft_model(module, targets)
        return module

    for module in (make(), make("layers.0.", "embed"), make(lora=True), torch.nn.DataParallel(make("q_proj"))):
        with FlopCounterMode(display=False) as counter:
            module(input_ids=torch.zeros(2, 16, dtype=torch.long)).logits.sum().backward()
        step = archspec.training_flops(module, 2, 16)
        assert step.full.model == counter.get_total_flops()
        assert step.trained == sum(x.numel() for x in module.parameters() if x.requires_grad)
    with pytest.raises(ArchError, match="does not say what its architecture is"):
        archspec.training_flops(torch.nn.Linear(3, 4))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["bert", "gemma", "gemma2", "gpt_neox"])
def test_checkpointing_of_transformers(kind: str) -> None:
    """Blocks whose last operation saves or does not save a tensor: norms after them, branches side by side."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from torch.utils.flop_counter import FlopCounterMode

    fields = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 50}
    fields |= {"num_key_value_heads": 2, "head_dim": 8} if kind.startswith("gemma") else {}
    config = transformers.AutoConfig.for_model(kind, vocab_size=99, **fields)
    make = transformers.AutoModelForMaskedLM if kind == "bert" else transformers.AutoModelForCausalLM
    module = make.from_config(config, attn_implementation="eager")
    module.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    module.train()
    for part in module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.eval()
    with FlopCounterMode(display=False) as counter:
        module(input_ids=torch.ones(2, 16, dtype=torch.long)).logits.sum().backward()
    assert archspec.training_flops(module, 2, 16, checkpoint="blocks").full.hardware == counter.get_total_flops()


# The code of the documentation ---------------------------------------------------------------------------------------

TINY = """
import std { Linear, Embedding }
dim batch, seq
block Net(vocab = 11, n = 6)(ids int [batch, seq]) -> [batch, seq, vocab] {
  return ids |> words: Embedding(vocab, n) |> inner: Linear(n, n) |> tanh |> head: Linear(n, vocab)
}
model "tiny" = Net
"""


def recipe(start: str) -> str:
    texts = [block.text for block in blocks(PAGES["docs/costs.md"].read_text()) if block.kind == "python"]
    (text,) = [text for text in texts if text.startswith(start)]
    return text


@pytest.mark.slow
def test_a_loop_of_pytorch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.arch").write_text(TINY)
    module: Any = archspec.to_torch("model.arch")
    module.words.weight.requires_grad_(False)
    batches = [(torch.ones(2, 5, dtype=torch.long), torch.ones(2, 5, dtype=torch.long))] * 3
    names = {"archspec": archspec, "torch": torch, "time": time, "module": module, "batches": batches, "batch": 2}
    names |= {"seq": 5, "peak": 1e9, "optimizer": torch.optim.SGD([x for x in module.parameters() if x.requires_grad])}
    with FlopCounterMode(display=False) as counter:
        exec(recipe("frozen ="), names)
    assert counter.get_total_flops() == 3 * names["flops"] and 0 < names["mfu"] < 1


@pytest.mark.slow
def test_a_trainer_of_transformers(tmp_path: Path) -> None:
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    from torch.utils.flop_counter import FlopCounterMode

    names: dict[str, Any] = {"archspec": archspec, "transformers": transformers, "time": time}
    exec(recipe("class MeasuredTrainer"), names)
    fields = {key: x for key, x in MEASURED["configurations"]["llama"].items() if key != "architectures"}
    config = transformers.AutoConfig.for_model(**fields)
    module = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    module.model.embed_tokens.requires_grad_(False)
    data = [{key: torch.ones(16, dtype=torch.long) for key in ("input_ids", "labels")} for _ in range(24)]
    settings: dict[str, Any] = {
        "per_device_train_batch_size": 2,
        "gradient_accumulation_steps": 2,
        "num_train_epochs": 1,
    }
    settings |= {"logging_steps": 2, "report_to": [], "use_cpu": True, "save_strategy": "no", "disable_tqdm": True}
    trainer = names["MeasuredTrainer"](
        model=module, args=transformers.TrainingArguments(str(tmp_path), **settings), train_dataset=data
    )
    trainer.seq, trainer.peak = 16, 1e12
    with FlopCounterMode(display=False) as counter:
        trainer.train()
    assert counter.get_total_flops() == 6 * trainer.flops
    assert ["mfu" in entry for entry in trainer.state.log_history] == [False, True, True, False]
    assert all(0 < entry.get("mfu", 0.5) < 1 for entry in trainer.state.log_history)
