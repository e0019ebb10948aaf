"""`archspec new`: first files of variants, which are the models that they are variants of."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

import archspec
from archspec import testing
from archspec.testing import main

VARIANTS = {
    "model": ["bert-base-uncased", "--set", "layers=6"],
    "layer": ["bert-base-uncased", "--set", "layers=6", "--block", "Layer"],
    "function": ["bert-base-uncased", "--set", "activation=relu"],
    "library": ["bert-base-uncased", "--block", "SelfAttention"],
    "several": ["mixtral-8x7b", "--set", "layers=2", "--block", "Layer", "--block", "LlamaAttention"],
    "whole": ["bert-base-uncased-mlm", "--set", "hidden=96", "--block", "BertMaskedLMHead"],
    "bound": ["mixtral-8x7b", "--set", "layers=2", "--block", "Layer"],
    "own-name": ["bert-base-uncased", "--block", "BertLayer", "--set", "Layer=BertLayer"],
    "text-and-list": ["swin-tiny", "--block", "PatchMerging"],
}


def made(folder: Path, *arguments: str) -> Path:
    file = folder / "variant.arch"
    spec, *options = arguments
    assert main(["new", str(file), "--from", spec, *options]) == 0
    return file


@pytest.mark.parametrize("name", VARIANTS)
def test_a_file_is_the_model(name: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    arguments = VARIANTS[name]
    file = made(tmp_path, *arguments)
    golden(f"new-{name}.arch", file.read_text())
    assert not testing.check(str(file))
    settings = [setting.partition("=") for setting in arguments[1:] if "=" in setting]
    values = {name: int(value) if value.isdigit() else value for name, _, value in settings}
    assert not archspec.diff(archspec.load(arguments[0], **values), str(file))


def test_a_copy_can_be_changed(tmp_path: Path) -> None:
    file = made(tmp_path, "bert-base-uncased", "--block", "SelfAttention")
    text = file.read_text().replace("value: Linear(hidden, shared, bias)", "value: Linear(hidden, shared, false)")
    file.write_text(text.replace("109_482_240", "109_473_024"))
    assert archspec.load(file).params.total == 109_482_240 - 12 * 768


def test_a_variant_of_a_file(tmp_path: Path) -> None:
    first = made(tmp_path, "bert-base-uncased", "--set", "layers=2", "--block", "Layer")
    second = tmp_path / "second.arch"
    assert main(["new", str(second), "--from", str(first), "--block", "BertLayer", "--set", "hidden=96"]) == 0
    assert "import bert" in second.read_text() and "variant.arch" not in second.read_text()
    third = tmp_path / "third.arch"
    assert main(["new", str(third), "--from", str(first)]) == 0
    assert 'import "variant.arch" { BertLayer }' in third.read_text()


MISTAKES = {
    "not-a-spec": ["a.txt", "--from", "bert-base-uncased"],
    "unknown-model": ["a.arch", "--from", "bert-bse-uncased"],
    "unknown-definition": ["a.arch", "--from", "bert-base-uncased", "--block", "BertLayr"],
    "not-a-definition": ["a.arch", "--from", "bert-base-uncased", "--block", "layers"],
    "unused-definition": ["a.arch", "--from", "bert-base-uncased", "--block", "BertForMaskedLM"],
    "unknown-hyperparameter": ["a.arch", "--from", "bert-base-uncased", "--set", "layer=6"],
    "refused": ["a.arch", "--from", "bert-base-uncased", "--set", "hidden=100"],
}


def test_messages(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    golden: Callable[[str, str], None],
) -> None:
    monkeypatch.chdir(tmp_path)
    found: list[str] = []
    for name, arguments in MISTAKES.items():
        assert main(["new", *arguments]) in (1, 2), name
        found.append(f"-- {name}\n{capsys.readouterr().err}")
    assert not list(tmp_path.iterdir())
    golden("new-messages.txt", "\n".join(found))


def test_a_file_is_not_overwritten_by_accident(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.arch"
    file.write_text("mine")
    assert main(["new", str(file), "--from", "bert-base-uncased"]) == 2
    assert file.read_text() == "mine" and "use --force to overwrite it" in capsys.readouterr().err
    assert main(["new", str(file), "--from", "bert-base-uncased", "--force"]) == 0


def test_a_file_outside_the_directory_of_the_new_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = made(tmp_path, "bert-base-uncased", "--set", "layers=2", "--block", "Layer")
    (tmp_path / "below").mkdir()
    assert main(["new", str(tmp_path / "below" / "a.arch"), "--from", str(first)]) == 2
    assert "which is outside its directory" in capsys.readouterr().err


def test_a_definition_that_only_the_imported_file_names(tmp_path: Path) -> None:
    first = made(tmp_path, "bert-base-uncased", "--set", "layers=2")
    assert "SelfAttention" not in first.read_text()
    second = tmp_path / "second.arch"
    assert main(["new", str(second), "--from", str(first), "--block", "SelfAttention"]) == 0
    assert "\nblock SelfAttention(" in second.read_text()
    assert archspec.load(second).params == archspec.load(first).params


def test_what_is_read_from_standard_input_cannot_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import std { Linear }\nblock Net(n = 4)(x [n]) -> [n] {\n  return x |> up: Linear(n, n)\n}\n"
    text += 'model "m" = Net()\n'
    file = tmp_path / "a.arch"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["new", str(file), "--from", "-"]) == 2
    assert "`Net` of <stdin> cannot be imported" in capsys.readouterr().err and not file.exists()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert main(["new", str(file), "--from", "-", "--block", "Net"]) == 0
    assert archspec.load(file).params.total == 20


def test_operations_with_other_names_are_imported(tmp_path: Path) -> None:
    base = tmp_path / "base.arch"
    base.write_text(
        "import ops { tanh as Activation }\nimport std { Linear }\n\ndim batch\n\n"
        "block Net(n = 4)(x [batch, n]) -> [batch, n] {\n"
        '  return x\n    |> Activation\n    |> up: Linear(n, n)\n}\n\nmodel "net" = Net()\n'
    )
    found = tmp_path / "variant.arch"
    assert main(["new", str(found), "--from", str(base), "--block", "Net", "--set", "n=6"]) == 0
    text = found.read_text()
    assert "import ops { tanh as Activation }" in text and "import std { Linear }" in text
    assert archspec.load(found).params.total == 42
