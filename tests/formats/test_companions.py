"""Files beside a `config.json` whose parameters its model does not include are named, by every command."""

import json
from pathlib import Path
from typing import Any

import pytest
from checkpoints import gguf, safetensors

import archspec
from archspec.testing import main

BASE = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 300}
ADAPTER = {"peft_type": "LORA", "base_model_name_or_path": "./base", "r": 4, "target_modules": ["q_proj"]}
TRANSFORMER = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}
POOLING = {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}
NORMALIZE = {"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))


def messages(folder: Path) -> list[str]:
    """The warnings about a folder, without the folder itself."""
    warnings = archspec.load(folder).warnings
    assert {each.code for each in warnings} <= {"not-included"}
    return [each.message.replace(f"{folder}/", "") for each in warnings]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "model" / "config.json", BASE)
    return tmp_path / "model"


def test_an_adapter_beside_a_configuration_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    total = archspec.load(folder).params.total
    assert messages(folder) == []
    assert main(["count", str(folder), "--depth", "0"]) == 0  # this writes the cache
    assert capsys.readouterr().err == ""
    write(folder / "adapter_config.json", ADAPTER)
    message = "the adapter of adapter_config.json is not included: config.json describes the model without it"
    assert messages(folder) == [message]
    for command in ("count", "count", "cost", "import"):
        assert main([command, str(folder)]) == 0
        captured = capsys.readouterr()
        assert captured.err.startswith("warning[not-included]: the adapter of "), command
    help = captured.err.splitlines()[1]
    assert main([*help.rpartition("`archspec ")[2].rstrip("`").split()]) == 0
    captured = capsys.readouterr()
    assert f"1,024 trainable (1.02K) of {total + 1024:,} parameters" in captured.out
    assert captured.err == ""


def test_dense_modules_of_sentence_transformers_are_counted_in_a_warning(folder: Path) -> None:
    for path, fields in (
        ("2_Dense", {"in_features": 64, "out_features": 32, "bias": True}),
        ("3_Dense", {"in_features": 32, "out_features": 16, "bias": False, "activation_function": "torch.nn.Identity"}),
        ("4_Dense", {"in_features": 32, "out_features": 16, "activation_function": "torch.nn.PReLU"}),
        ("5_Dense", {"in_features": "32", "out_features": 16}),
    ):
        write(folder / path / "config.json", fields)
    names = [*("2_Dense", "3_Dense", "4_Dense", "5_Dense", "6_Dense"), "../model/2_Dense"]
    dense = [{"path": name, "type": "sentence_transformers.models.Dense"} for name in names]
    write(folder / "modules.json", [TRANSFORMER, POOLING, *dense, NORMALIZE])
    numbers = [", 2,080 parameters", ", 512 parameters", "", "", "", ""]
    assert messages(folder) == [
        f"module `{name}` of modules.json is not included: Dense{number}"
        for name, number in zip(names, numbers, strict=True)
    ]


def test_modules_that_are_not_known_are_named(folder: Path) -> None:
    write(folder / "modules.json", [TRANSFORMER, POOLING, NORMALIZE])
    assert messages(folder) == []
    write(folder / "modules.json", [TRANSFORMER, {"path": "1_LSTM", "type": "own.models.LSTM"}, {"type": "A"}, 3])
    assert messages(folder) == [
        "module `1_LSTM` of modules.json is not included: LSTM",
        "module `A` of modules.json is not included: A",
        "module `unknown` of modules.json is not included: unknown",
    ]
    for text in ("{", '{"a": 1}', "\0"):
        write(folder / "modules.json", text)
        assert messages(folder) == ["the modules of modules.json are not included: it is not a list of modules"]


def test_verify_names_the_modules_that_it_does_not_compare(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "modules.json", [TRANSFORMER, {"path": "1_LSTM", "type": "own.models.LSTM"}])
    (folder / "model.safetensors").write_bytes(safetensors(b"{}", 0))
    main(["verify", str(folder), str(folder)])
    assert "warning[not-included]: module `1_LSTM`" in capsys.readouterr().err


def test_a_configuration_without_sizes_beside_a_gguf_file(folder: Path) -> None:
    """Such folders have a `config.json` with a type alone, so the sizes would be its defaults."""
    (folder / "small-Q4.gguf").write_bytes(gguf({"blk.0.attn_norm.weight": (64,)}))
    assert messages(folder) == []
    write(folder / "config.json", {"model_type": "gpt2", "transformers_version": "4.48.3"})
    message = "the sizes of small-Q4.gguf are not included: config.json has none, so they are the defaults"
    assert messages(folder) == [message]
    (help,) = [each.help or "" for each in archspec.load(folder).warnings]
    assert archspec.count(help.rpartition(" ")[2].rstrip("`")).table.params.total == 64
    (folder / "config.json").unlink()
    assert archspec.count(folder).table.params.total == 64


def test_a_directory_with_several_configurations_lists_them(tmp_path: Path) -> None:
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(tmp_path)
    assert caught.value.diagnostics[0].help == "expected a config.json, an adapter_config.json or a checkpoint in it"
    write(tmp_path / "model_index.json", {"_class_name": "Pipeline"})
    write(tmp_path / "text_encoder" / "config.json", BASE)
    write(tmp_path / "vae" / "config.json", {"_class_name": "Autoencoder"})
    write(tmp_path / "base.json", BASE)
    with pytest.raises(archspec.ArchError, match="no model in the directory") as caught:
        archspec.load(tmp_path)
    paths = f"{tmp_path}/base.json, {tmp_path}/text_encoder/config.json"
    assert caught.value.diagnostics[0].help == f"name one of its configurations: {paths}"
