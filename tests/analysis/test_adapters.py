"""Adapters: what they train is what peft counts, and nothing in their configurations is passed over."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from checkpoints import write as write_checkpoint
from recorded_adapters import FIGURES, base_config, measured

import archspec
from archspec.testing import main

CASES = yaml.safe_load(FIGURES.read_text())

SMALL_BERT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}


def write(folder: Path, **fields: Any) -> Path:
    """An adapter in a folder; by default, of GPT-2."""
    config = {"peft_type": "LORA", "base_model_name_or_path": "gpt2", "r": 8, "target_modules": ["c_attn"], **fields}
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def error(folder: Path, base: Any = None, **overrides: Any) -> archspec.Diagnostic:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.adapter(folder, base, **overrides)
    return caught.value.diagnostics[0]


# Figures --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_the_figures_are_those_of_peft(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    (tmp_path / "config.json").write_text(json.dumps(base_config(case)))
    folder = write(
        tmp_path / "adapter", base_model_name_or_path=str(tmp_path), task_type=case.get("task"), **case["lora"]
    )
    found = archspec.adapter(folder)
    assert (found.params.trainable, found.params.total) == (case["peft"]["trainable"], case["peft"]["total"])
    assert found.params.total == found.params.trainable + found.params.frozen
    assert sum(row.params for row in found.targets) == found.params.trainable
    assert found.table.is_consistent()
    assert found.stored.is_consistent()
    if case["lora"].get("bias") is None:  # with biases, peft saves some of modules_to_save several times
        assert len(found.stored.tensors) == case["peft"]["tensors"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_peft_agrees(name: str, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    figures, tensors, saved = measured(CASES[name], tmp_path)
    assert figures == CASES[name]["peft"]
    folder = write(tmp_path / "adapter", **saved)
    found = archspec.adapter(folder)
    assert (found.params.trainable, found.params.total) == (figures["trainable"], figures["total"])
    assert {tensor.name: list(tensor.shape) for tensor in found.stored.tensors} == tensors


# Base models ----------------------------------------------------------------------------------------------------------


def test_a_base_model_that_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = error(write(tmp_path, base_model_name_or_path="somebody/something"))
    assert (found.code, found.message) == ("unknown-model", "unknown model `somebody/something`")
    assert found.help is not None
    assert found.help.startswith("name the base model with --base SPEC")
    (tmp_path / "wrong.arch").write_text('dim a\nblock A()(x [4]) -> [4] {\n  return x + y + z\n}\nmodel "a" = A()\n')
    with pytest.raises(archspec.ArchError) as caught:
        archspec.adapter(write(tmp_path, base_model_name_or_path=str(tmp_path / "wrong.arch")))
    messages = [each.message for each in caught.value.diagnostics if each.code == "unknown-name"]
    assert messages == ["unknown name `y`", "unknown name `z`"]
    assert error(write(tmp_path, base_model_name_or_path=None)).message == "the adapter names no base model"
    assert error(write(tmp_path, base_model_name_or_path="-")).code == "usage"
    assert error(write(tmp_path), "bert-base-uncased").message.startswith("no module of bert-base-uncased is a target")


# Errors ---------------------------------------------------------------------------------------------------------------


def test_names_in_the_checkpoint(tmp_path: Path) -> None:
    def names(**fields: Any) -> dict[str, tuple[int, ...]]:
        found = archspec.adapter(write(tmp_path, **fields), layers=1)
        return {t.name.removeprefix("base_model.model.transformer."): t.shape for t in found.stored.tensors}

    assert names(target_modules=["wte", "c_attn"], use_dora=True) == {
        "wte.lora_embedding_A": (8, 50_257),
        "wte.lora_embedding_B": (768, 8),
        "wte.lora_magnitude_vector": (768,),
        "h.0.attn.c_attn.lora_A.weight": (8, 768),
        "h.0.attn.c_attn.lora_B.weight": (2304, 8),
        "h.0.attn.c_attn.lora_magnitude_vector": (2304,),
    }
    assert names(lora_bias=True, modules_to_save=["wpe"], bias="lora_only") == {
        "wpe.weight": (1024, 768),
        "h.0.attn.c_attn.base_layer.bias": (2304,),
        "h.0.attn.c_attn.lora_A.weight": (8, 768),
        "h.0.attn.c_attn.lora_B.weight": (2304, 8),
        "h.0.attn.c_attn.lora_B.bias": (2304,),
    }
    found = archspec.adapter(tmp_path, layers=1)
    assert [tensor.name for tensor in found.table.tensors if ".wpe." in tensor.name] == [
        "base_model.model.transformer.wpe.original_module.weight",
        "base_model.model.transformer.wpe.modules_to_save.weight",
    ]


@pytest.mark.parametrize(("length", "shown"), [(60, "(" + "x" * 59), (61, "(" + "x" * 56 + "...")])
def test_long_patterns_are_shown_in_part(length: int, shown: str, tmp_path: Path) -> None:
    found = error(write(tmp_path, rank_pattern={"(" + "x" * (length - 1): 2}))
    assert found.message.startswith(f"invalid regular expression `{shown}`: missing )")


def test_tensors_that_are_tied_in_a_module_to_save_have_one_copy(tmp_path: Path) -> None:
    write(
        tmp_path,
        base_model_name_or_path="bert-base-uncased-mlm",
        target_modules=["query"],
        modules_to_save=["predictions"],
    )
    found = archspec.adapter(tmp_path)
    (copy,) = [row for row in found.targets if row.what == "copy"]
    assert copy.params == 768 * 768 + 3 * 768 + 30_522 * 768 + 30_522  # the bias of the decoder is that of the head


# Commands -------------------------------------------------------------------------------------------------------------


def test_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(write(tmp_path / "small", task_type="CAUSAL_LM", modules_to_save=["wpe"], bias="all"))
    assert main(["count", folder]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "small, an adapter of gpt2",
        "",
        "module                 type       trained  matrix      rank     each  trainable   share",
        "c_attn           12 x  Conv1D     LoRA     2304 x 768     8   24,576    294,912  24.9 %",
        "bias             73 x             biases                                102,144   8.6 %",
        "transformer.wpe  1 x   Embedding  a copy                     786,432    786,432  66.5 %",
        "",
        "1,183,488 trainable (1.18M) of 125,521,152 parameters (126M), 0.9429 %",
        "98 tensors in the checkpoint of the adapter",
    ]
    assert main(["count", folder, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["params"] == {"total": 125_521_152, "trainable": 1_183_488, "frozen": 124_337_664}
    assert document["trainable_percent"] == 100 * 1_183_488 / 125_521_152
    assert len(document["tensors"]) == 98
    assert main(["count", folder, "--by", "tensor", "--select", "*.lora_A.*", "--format", "csv"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 13
    assert main(["count", folder, "--base", "gpt2-medium", "--format", "csv"]) == 0
    assert "c_attn,Conv1D,lora,24," in capsys.readouterr().out
    assert main(["count", "gpt2", "--base", "gpt2"]) == 2


def test_narrow_terminals(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    folder = str(write(tmp_path / "small", modules_to_save=["wpe"], bias="all"))
    pages: list[str] = []
    for width in (72, 64, 56, 48, 36):
        monkeypatch.setenv("COLUMNS", str(width))
        assert main(["count", folder]) == 0
        pages.append(f"=== {width}\n{capsys.readouterr().out}")
    golden("narrow/adapter.txt", "\n".join(pages))


def test_verify(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write(tmp_path / "small")
    tensors = {tensor.name: tensor.shape for tensor in archspec.adapter(folder).stored.tensors}
    write_checkpoint(folder / "adapter_model.safetensors", tensors)
    assert main(["verify", str(folder), str(folder)]) == 0
    assert main(["verify", str(folder), str(folder), "--base", "gpt2-medium"]) == 1
    assert "24 tensors missing, 24 tensors with a different shape" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["cost", "build", "check", "graph", "import", "formula"])
def test_other_commands_refer_to_the_base_model(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command, str(write(tmp_path / "small"))]) == 2
    assert "is an adapter, not a model\nhelp: count or verify it" in capsys.readouterr().err


def test_the_cost_of_an_adapter_refers_to_the_base_model(tmp_path: Path) -> None:
    adapter: Any = archspec.adapter(write(tmp_path / "small"))
    with pytest.raises(archspec.ArchError) as caught:
        archspec.cost(adapter)
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "expected a model, found an object of type Adapter"
    assert diagnostic.help is not None and diagnostic.help.endswith("of an adapter, its base model")


def test_a_folder_with_a_configuration_is_a_model(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2", "n_layer": 1}))
    assert archspec.load(tmp_path).params.total == 46_473_216
    assert archspec.adapter(tmp_path / "adapter_config.json").params.trainable == 294_912
    with pytest.raises(archspec.ArchError, match="is not an adapter"):
        archspec.adapter(tmp_path)


def test_an_adapter_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    commit = "0" * 40
    home = tmp_path / "models--some--adapter"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text(commit)
    (home / "snapshots").mkdir()
    write(home / "snapshots" / commit)
    assert archspec.adapter("some/adapter").params.trainable == 294_912
    assert archspec.adapter("some/adapter").name == "adapter"


@pytest.mark.parametrize("option", ["", "--by role", "--depth 1", "--select *.lora_A.*"])
def test_any_option_of_a_count_shows_the_tensors(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path)
    assert main(["count", str(tmp_path), "--set", "layers=1", "--format", "json", *option.split()]) == 0
    document = json.loads(capsys.readouterr().out)
    assert ("targets" in document) == (not option)


def test_two_embeddings_with_one_table_are_not_adapted(tmp_path: Path) -> None:
    text = "import std { Embedding }\ndim seq\nblock Net()(a int [seq], b int [seq]) -> [seq, 4] {\n"
    text += "  tie two.weight = one.weight\n  return one: Embedding(9, 4)(a) + two: Embedding(9, 4)(b)\n}\n"
    (tmp_path / "net.arch").write_text(text + 'model "net" = Net()\n')
    found = error(write(tmp_path, target_modules=["one"]), str(tmp_path / "net.arch"))
    assert found.message == "cannot adapt `one`: several embeddings share its table"


def test_the_architecture_of_a_configuration(tmp_path: Path) -> None:
    def base(task: str, **fields: Any) -> str:
        stated = {} if "architectures" in fields else {"model_type": "bert"}
        (tmp_path / "config.json").write_text(json.dumps({**stated, **SMALL_BERT, **fields}))
        folder = tmp_path / "adapter"
        write(folder, base_model_name_or_path=str(tmp_path), target_modules=["query"], task_type=task)
        return archspec.adapter(folder).base.removeprefix(tmp_path.name)

    assert base("CAUSAL_LM", architectures=["BertLMHeadModel"]) == ""
    assert base("CAUSAL_LM") == base("CAUSAL_LM", architectures=["BertModel"]) == " (BertLMHeadModel)"
    assert base("FEATURE_EXTRACTION") == base("FEATURE_EXTRACTION", architectures=["BertModel"]) == ""
    assert base("FEATURE_EXTRACTION", architectures=["BertForMaskedLM"]) == " (BertModel)"
    for fields in ({"num_labels": 3}, {"id2label": {"0": "a", "1": "b"}}):
        assert base("SEQ_CLS", **fields) == " (BertForSequenceClassification)"
    with pytest.raises(archspec.ArchError) as caught:
        base("TOKEN_CLS")
    assert caught.value.diagnostics[0].help == (
        "use `--set labels=N`, or name the base model with --base SPEC, with its head"
    )
    with pytest.raises(archspec.ArchError) as caught:
        base("SEQ_2_SEQ_LM")
    (found,) = caught.value.diagnostics
    assert found.message == (
        "no architecture of bert ends with `ForConditionalGeneration`, as the task type SEQ_2_SEQ_LM needs"
    )
    assert found.help == "name the base model with --base SPEC, with its head"
