"""Folders that `build --to transformers` writes, as `transformers` uses them."""

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest
from trained import STEPS, TINY

import archspec

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors = pytest.importorskip("safetensors.torch")
pytestmark = pytest.mark.slow

SIZES = {"vocab": 97, "hidden": 32, "layers": 2, "heads": 4, "ffn": 48, "positions": 40}
NO_DROPOUT = {"hidden_dropout": 0.0, "attention_dropout": 0.0}
HEADS: dict[str, tuple[str, dict[str, int]]] = {
    "BertForMaskedLM": ("AutoModelForMaskedLM", {}),
    "BertForSequenceClassification": ("AutoModelForSequenceClassification", {"labels": 3}),
    "BertForTokenClassification": ("AutoModelForTokenClassification", {"labels": 5}),
    "BertForQuestionAnswering": ("AutoModelForQuestionAnswering", {}),
}


def spec(block: str, **overrides: Any) -> archspec.Model:
    arguments = {**SIZES, **NO_DROPOUT, **overrides}
    written = ", ".join(f"{name} = {value}" for name, value in arguments.items())
    return archspec.loads(f'import bert {{ {block} }}\nmodel "ours" = {block}({written})\n')


def folder_of(model: archspec.Model, tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    archspec.to_transformers(model, folder)
    return folder


def created(folder: Path, auto: str = "AutoModel", **settings: Any) -> Any:
    config = transformers.AutoConfig.from_pretrained(folder, trust_remote_code=True, **settings)
    return getattr(transformers, auto).from_config(config, trust_remote_code=True)


def loaded(folder: Path, auto: str = "AutoModel", **settings: Any) -> Any:
    """The model of a folder, which must load without a report."""
    found, info = getattr(transformers, auto).from_pretrained(
        folder, trust_remote_code=True, output_loading_info=True, **settings
    )
    assert not any(info.values()), info
    return found


def inputs_of(model: archspec.Model) -> dict[str, Any]:
    torch.manual_seed(3)
    given = {"input_ids": torch.randint(5, 97, (4, 16)), "token_type_ids": torch.randint(0, 2, (4, 16))}
    given["attention_mask"] = (torch.arange(16) < torch.tensor([[16], [13], [9], [16]])).long()
    return {name: value for name, value in given.items() if name in model.inputs}


def labels_for(block: str, labels: int = 3) -> dict[str, Any]:
    torch.manual_seed(4)
    if block == "BertForSequenceClassification":
        return {"labels": torch.randint(0, labels, (4,))}
    if block == "BertForQuestionAnswering":
        return {"start_positions": torch.tensor([0, 3, 5, 99]), "end_positions": torch.tensor([2, 3, 8, 99])}
    words = torch.randint(0, 97 if block == "BertForMaskedLM" else 5, (4, 16))
    return {"labels": words.masked_fill(torch.rand(4, 16) < 0.6, -100)}


def reference(block: str, labels: int = 2) -> Any:
    config = transformers.BertConfig(
        **TINY, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=labels
    )
    config._attn_implementation = "sdpa"
    torch.manual_seed(0)
    return getattr(transformers, block)(config)


@pytest.mark.parametrize("block", HEADS)
def test_bert_has_the_outputs_and_the_loss_of_the_reference(block: str, tmp_path: Path) -> None:
    auto, overrides = HEADS[block]
    model = spec(block, **overrides)
    ours = created(folder_of(model, tmp_path), auto).double().eval()
    theirs = reference(block, overrides.get("labels", 2)).double().eval()
    ours.load_state_dict(theirs.state_dict())
    given = {**inputs_of(model), **labels_for(block)}
    with torch.no_grad():
        found, expected = ours(**given), theirs(**given)
    for name in found:
        torch.testing.assert_close(found[name], expected[name], rtol=0, atol=1e-9)
    assert found.loss is not None and ours(**inputs_of(model)).loss is None
    assert isinstance(ours(**given, return_dict=False), tuple)


def test_checkpoints_of_the_reference_load(tmp_path: Path) -> None:
    model, theirs = spec("BertForMaskedLM"), reference("BertForMaskedLM").eval()
    folder = folder_of(model, tmp_path)
    theirs.save_pretrained(tmp_path / "theirs")
    ours = created(folder).eval()
    assert archspec.load_weights(ours, tmp_path / "theirs" / "model.safetensors").is_exact
    shutil.copy(tmp_path / "theirs" / "model.safetensors", folder)
    given = inputs_of(model)
    with torch.no_grad():
        expected = theirs(**given).logits
        for found in (ours, loaded(folder).eval()):
            torch.testing.assert_close(found(**given).logits, expected)


@pytest.mark.parametrize("kind", ["regression", "multi_label_classification"])
def test_texts_have_the_losses_of_the_reference(kind: str, tmp_path: Path) -> None:
    block = "BertForSequenceClassification"
    model = spec(block, labels=3)
    ours = created(folder_of(model, tmp_path), problem_type=kind).double()
    theirs = reference(block, 3).double()
    theirs.config.problem_type = kind
    ours.load_state_dict(theirs.state_dict())
    given = {**inputs_of(model), "labels": torch.rand(4, 3).double()}
    torch.testing.assert_close(ours(**given).loss, theirs(**given).loss)


def losses(model: Any, given: dict[str, Any]) -> list[float]:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    torch.manual_seed(1)
    model.train()
    found: list[float] = []
    for _ in range(STEPS):
        loss = model(**given).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def test_bert_trains_like_the_reference(tmp_path: Path) -> None:
    model = spec("BertForMaskedLM")
    ours, theirs = created(folder_of(model, tmp_path)).double(), reference("BertForMaskedLM").double()
    ours.load_state_dict(theirs.state_dict())
    given = {**inputs_of(model), **labels_for("BertForMaskedLM")}
    expected = losses(theirs, given)
    assert expected[-1] < expected[0] - 0.5
    assert losses(ours, given) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "name", ["BertForMaskedLM", "BertForSequenceClassification", "albert", "gpt2", "t5", "llama", "swin", "m2m_100"]
)
def test_saved_models_have_the_tensors_of_the_spec_and_load(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = SMALL[name]() if name in SMALL else spec(name)
    folder = folder_of(model, tmp_path)
    ours = created(folder)
    plain = archspec.to_torch(model)
    assert list(ours.state_dict()) == list(plain.state_dict())
    for again in (folder, tmp_path / "copy"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ours.save_pretrained(again)
        stored = safetensors.load_file(again / "model.safetensors")
        names = {t.name: t.shape for t in model.tensors if t.tied_to is None}
        names |= {buffer.name: buffer.shape for buffer in model.buffers}
        assert {name: tuple(tensor.shape) for name, tensor in stored.items()} == names
        found = loaded(again)
        for key, value in ours.state_dict().items():
            assert torch.equal(found.state_dict()[key], value), key
        for own, other in zip(plain.buffers(), found.buffers(), strict=True):
            assert torch.equal(own, other)
        trainable = {name: p.requires_grad for name, p in ours.named_parameters()}
        assert trainable == {name: p.requires_grad for name, p in found.named_parameters()}
        stored_pointers = [parameter.data_ptr() for parameter in found.parameters()]
        assert len(stored_pointers) == len(set(stored_pointers)) == len([*ours.parameters()])
    assert archspec.verify(model, tmp_path / "copy" / "model.safetensors").is_exact
    assert not [record for record in caplog.records if record.levelname in ("WARNING", "ERROR")]


SMALL = {
    "albert": lambda: archspec.load("albert-base-v2-mlm", vocab=97, factor=16, hidden=32, heads=4, ffn=48),
    "gpt2": lambda: archspec.load("gpt2", vocab=97, hidden=32, heads=4, layers=2, positions=40),
    "t5": lambda: archspec.load("t5-small", vocab=97, hidden=32, heads=4, layers=2, ffn=48),
    "llama": lambda: archspec.load("llama-3.2-1b", vocab=97, hidden=32, heads=4, groups=2, layers=2, ffn=48),
    "swin": lambda: archspec.load("swin-tiny", hidden=16, depths=[2, 2], heads=[2, 4]),
    "m2m_100": lambda: archspec.load("m2m100_418M", vocab=97, hidden=32, layers=2, heads=4, ffn=48),
}


def test_tensors_that_a_checkpoint_lacks_are_initialized_as_specified(tmp_path: Path) -> None:
    model = SMALL["gpt2"]()
    folder = folder_of(model, tmp_path)
    ours = created(folder)
    state = {name: value for name, value in ours.state_dict().items() if "c_attn" not in name and "lm_head" not in name}
    ours.save_pretrained(folder, state_dict=state)
    found = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)
    for name, value in found.state_dict().items():
        if "c_attn" not in name:
            assert torch.equal(value, ours.state_dict()[name])
        elif name.endswith("bias"):
            assert not value.any()
        else:
            assert 0.01 < float(value.std()) < 0.03


def test_sizes_and_labels_are_settings(tmp_path: Path) -> None:
    folder = folder_of(spec("BertForSequenceClassification", labels=3), tmp_path)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    assert config["id2label"] == {"0": "LABEL_0", "1": "LABEL_1", "2": "LABEL_2"}
    changed = created(folder, layers=3, num_labels=7)
    assert len(changed.bert.encoder.layer) == 3
    assert changed.classifier.weight.shape == (7, 32)
    changed.save_pretrained(tmp_path / "changed")
    again = loaded(tmp_path / "changed")
    assert again.classifier.weight.shape == (7, 32) and again.config.labels == 7
    assert created(folder, labels=4).classifier.weight.shape == (4, 32)
    with pytest.raises(ValueError, match="which tensors are tied"):
        created(folder, tie_word_embeddings=True)


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradient_checkpointing_is_by_block(reentrant: bool, tmp_path: Path) -> None:
    model = spec("BertForMaskedLM")
    folder = folder_of(model, tmp_path)
    ours = created(folder).train()
    given = {**inputs_of(model), **labels_for("BertForMaskedLM")}

    def gradients() -> tuple[list[Any], int]:
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        handle = ours.bert.encoder.layer[0].intermediate.dense.register_forward_hook(count)
        ours.zero_grad()
        ours(**given).loss.backward()
        handle.remove()
        return [parameter.grad.clone() for parameter in ours.parameters()], calls

    expected, once = gradients()
    ours.gradient_checkpointing_enable({"use_reentrant": reentrant})
    found, twice = gradients()
    ours.gradient_checkpointing_disable()
    assert (once, twice, gradients()[1]) == (1, 2, 1)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_it_compiles(tmp_path: Path) -> None:
    model = spec("BertForMaskedLM")
    ours = created(folder_of(model, tmp_path)).eval()
    given = {**inputs_of(model), **labels_for("BertForMaskedLM")}
    found = torch.compile(ours, fullgraph=True, backend="aot_eager")(**given)
    torch.testing.assert_close(found.loss, ours(**given).loss)


def test_the_trainer_runs(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    model = spec("BertForMaskedLM")
    folder = folder_of(model, tmp_path)
    ours = created(folder)
    given = {**inputs_of(model), **labels_for("BertForMaskedLM")}
    rows = [{name: value[i] for name, value in given.items()} for i in range(4)]
    arguments = transformers.TrainingArguments(
        str(tmp_path / "runs"),
        max_steps=3,
        per_device_train_batch_size=2,
        report_to=[],
        use_cpu=True,
        gradient_checkpointing=True,
        learning_rate=1e-3,
        disable_tqdm=True,
    )
    trainer = transformers.Trainer(ours, arguments, train_dataset=rows, eval_dataset=rows)
    before = trainer.evaluate()["eval_loss"]
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < before
    trainer.save_model(str(tmp_path / "trained"))
    for name, value in loaded(tmp_path / "trained").state_dict().items():
        assert torch.equal(value, ours.state_dict()[name])


def test_device_maps_split_between_blocks(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    model = spec("BertForMaskedLM")
    folder = folder_of(model, tmp_path)
    ours = created(folder).eval()
    ours.save_pretrained(folder)
    assert ours._no_split_modules == {"BertLayer"}
    places = accelerate.infer_auto_device_map(
        ours, {0: 40_000, "cpu": 10**9}, no_split_module_classes=list(ours._no_split_modules)
    )
    assert not [name for name in places if ".layer.0." in name or ".layer.1." in name]
    mapped = {"bert.embeddings": "cpu", "bert.encoder.layer.0": "cpu", "bert.encoder.layer.1": "disk", "cls": "cpu"}
    given = inputs_of(model)
    for device_map in (mapped, "auto"):
        found = transformers.AutoModel.from_pretrained(
            folder, trust_remote_code=True, device_map=device_map, offload_folder=str(tmp_path / "offload")
        )
        with torch.no_grad():
            torch.testing.assert_close(found(**given).logits, ours(**given).logits)


def test_causal_models_have_the_loss_of_the_reference(tmp_path: Path) -> None:
    model = SMALL["gpt2"]()
    folder = folder_of(model, tmp_path)
    ours = created(folder, "AutoModelForCausalLM").eval()
    config = transformers.GPT2Config(vocab_size=97, n_embd=32, n_head=4, n_layer=2, n_positions=40)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    ours.load_state_dict(theirs.state_dict())
    given = {**inputs_of(model), **labels_for("BertForMaskedLM")}
    torch.testing.assert_close(ours(**given).loss, theirs(**given).loss)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_causal_models_generate_what_the_reference_does(name: str, tmp_path: Path) -> None:
    model = SMALL[name]()
    folder = folder_of(model, tmp_path)
    ours = created(folder, "AutoModelForCausalLM").eval()
    prompts = torch.randint(5, 97, (2, 6), generator=torch.Generator().manual_seed(0))
    settings = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0, "eos_token_id": 96}
    found = ours.generate(prompts, **settings)
    expected = prompts
    while expected.shape[1] < found.shape[1]:
        with torch.no_grad():
            expected = torch.cat([expected, ours(expected).logits[:, -1:].argmax(-1)], 1)
    assert found.shape == (2, 14) and torch.equal(found, expected)
    if name == "gpt2":
        config = transformers.GPT2Config(vocab_size=97, n_embd=32, n_head=4, n_layer=2, n_positions=40)
        theirs = transformers.GPT2LMHeadModel(config).eval()
        ours.load_state_dict(theirs.state_dict())
        for beams in (1, 3):
            found, expected = (each.generate(prompts, num_beams=beams, **settings) for each in (ours, theirs))
            assert torch.equal(found, expected)
    with pytest.raises(ValueError, match="differ in length"):
        ours.generate(prompts, attention_mask=torch.tensor([[0] + 5 * [1], 6 * [1]]), **settings)
    ours.save_pretrained(folder)
    pipe = transformers.pipeline(
        "text-generation", model=str(folder), tokenizer=tokenizer_of(folder), trust_remote_code=True
    )
    assert pipe("a small", max_new_tokens=3)[0]["generated_text"].startswith("a small")


def tokenizer_of(folder: Path) -> Any:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "small", "text", "of", "few", "words", "who", "?"]
    (folder / "vocab.txt").write_text("\n".join(words + [f"w{i}" for i in range(97 - len(words))]), encoding="utf-8")
    return transformers.BertTokenizer(vocab=str(folder / "vocab.txt"))


@pytest.mark.parametrize(
    ("block", "task"),
    [
        ("BertForMaskedLM", "fill-mask"),
        ("BertForSequenceClassification", "text-classification"),
        ("BertForTokenClassification", "token-classification"),
        ("Bert", "feature-extraction"),
    ],
)
def test_pipelines_run(block: str, task: str, tmp_path: Path) -> None:
    overrides = HEADS[block][1] if block in HEADS else {}
    folder = folder_of(spec(block, **overrides), tmp_path)
    created(folder).save_pretrained(folder)
    pipe = transformers.pipeline(task, model=str(folder), tokenizer=tokenizer_of(folder), trust_remote_code=True)
    assert pipe("a small [MASK] of words")
    assert type(pipe.model).__name__ == block
