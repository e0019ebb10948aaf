"""`archspec lift`: messages, files, and packages that are not installed."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import archspec
from archspec import testing

torch = pytest.importorskip("torch")

FILE = """
import os, sys
import torch

class Net(torch.nn.Module):
    def __init__(self, vocab=50, hidden=16, layers=3):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocab, hidden)
        self.layers = torch.nn.Sequential(*[torch.nn.Linear(hidden, hidden) for _ in range(layers)])
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, ids, mask=None):
        return self.dropout(self.layers(self.embedding(ids)))

class Printing(torch.nn.Linear):
    def __init__(self, width):
        super().__init__(width, 3 * width)
        print("made")
        sys.__stdout__.write("made\\n")
        os.write(1, b"made\\n")

    def forward(self, x):
        print("called")
        return super().forward(x)

class Failing(torch.nn.Module):
    def forward(self, x):
        raise [KeyError(), ValueError("first line" + chr(10) + "second line")][x.shape[0] == 1]

def build():
    return Net().eval()

def variant(vocab=50, hidden=16, layers=3):
    return Net(vocab, hidden, layers)

def other():
    return 3

def broken():
    raise KeyError("x")

def prints(width=8):
    return Printing(width).eval()

def unsigned():
    return Net(50, 8, 2).eval()

unsigned.__signature__ = 0
"""
BERT = {"model_type": "bert", "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12}
CONFIGURATIONS = {
    "config": BERT,
    "empty": {},
    "unknown": {"model_type": "brt"},
    "list": [],
    "invalid": {**BERT, "hidden_size": "wide"},
    "bare": {"model_type": "timm_backbone", "architectures": ["Nothing", "__version__"]},
}
INPUTS = [
    ["net.py", "--input", "ids=int[batch"],
    ["net.py", "--input", "ids=string[batch,seq]"],
    ["net.py", "--input", "ids=int[batch,0]"],
    ["net.py", "--input", "ids=int[batch,]"],
]
SOURCES = [
    ["missing.py"],
    ["net.py"],
    ["net.py:nothing"],
    ["net.py:other"],
    ["net.py:broken"],
    ["net.py", "--input", "idx=int[batch,seq]"],
    ["net.py", "--input", "ids=[batch,seq]"],
    ["net.py:Failing", "--input", "x=real[1,2]"],
    ["net.py:Failing", "--input", "x=real[4,2]"],
    ["nothing:resnet18"],
    ["config.json", "--input", "x=real[3]"],
    ["missing.json"],
    ["empty.json"],
    ["unknown.json"],
    ["list.json"],
    ["invalid.json"],
    ["bare.json"],
]


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    return tmp_path / "net.py"


def messages(commands: list[list[str]]) -> str:
    """Return what commands that fail write."""
    text: list[str] = []
    for arguments in commands:
        result = testing.run("lift", *arguments)
        assert result.status != 0 and not result.output
        text.append(f"$ archspec lift {' '.join(arguments)}\n{result.errors}")
    return "\n".join(text)


@pytest.mark.usefixtures("net")
def test_errors_of_inputs(golden: Callable[[str, str], None]) -> None:
    golden("lift/inputs.txt", messages(INPUTS))


@pytest.mark.slow
def test_errors_of_sources(net: Path, golden: Callable[[str, str], None]) -> None:
    transformers = pytest.importorskip("transformers")
    for name, content in CONFIGURATIONS.items():
        (net.parent / f"{name}.json").write_text(json.dumps(content))
    golden("lift/sources.txt", messages(SOURCES).replace(transformers.__version__, "VERSION"))


@pytest.mark.parametrize(
    ("package", "source"), [("torch", "net.py"), ("timm", "timm:a"), ("torchvision", "torchvision:a")]
)
def test_packages_that_are_not_installed_are_named(package: str, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    assert "is required but not installed" in messages([[source]])


@pytest.mark.usefixtures("net")
def test_a_file_is_lifted() -> None:
    arguments = "lift", "net.py", "--input", "ids=int[batch,seq]", "-o", "net.arch"
    assert [testing.run(*arguments).status for _ in range(2)] == [0, 2]
    assert "Equal: proven" in testing.run("verify", "net.arch", "--module", "net.py:Net").output


@pytest.mark.usefixtures("net")
@pytest.mark.parametrize("factory", ["variant", "Net", "unsigned"])
def test_integers_among_arguments_are_hyperparameters(factory: str) -> None:
    model = archspec.loads(testing.run("lift", f"net.py:{factory}", "--input", "ids=int[rows,in]").output)
    expected = {"vocab": 50, "hidden": 16, "layers": 3} if factory != "unsigned" else {}
    assert dict(model.hyperparameters) == expected
    assert [str(size) for size in model.inputs["ids"].shape] == ["rows", "seq"]  # `in` cannot be a name


@pytest.mark.usefixtures("net")
def test_what_a_module_prints_is_not_in_the_spec(capfd: pytest.CaptureFixture[str]) -> None:
    assert testing.main(["lift", "net.py:prints", "--input", "x=real[batch,width]"]) == 0
    output, errors = capfd.readouterr()
    assert output.startswith("# Printing: lifted from Printing.\n") and "made" not in output and "called" not in output
    assert "made" in errors and "called" in errors
    Path("prints.arch").write_text(output)
    testing.main(["verify", "prints.arch", "--module", "net.py:prints"])
    output, errors = capfd.readouterr()
    assert output.startswith("Printing and Printing\n") and "made" not in output and "made" in errors


def test_a_file_may_have_the_name_of_an_imported_module(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "net", ModuleType("net"))
    assert testing.run("lift", str(net), "--input", "ids=int[batch,seq]").status == 0


@pytest.mark.parametrize(
    ("config", "images"), [({}, "[batch, 3, 224, 224]"), ({"input_size": (1, 32, 48)}, "[batch, 1, 32, 48]")]
)
def test_images_for_a_model_of_timm_have_its_size(config: Any, images: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Conv2d(config.get("input_size", (3,))[0], 4, 3)
    module.pretrained_cfg = config
    timm = SimpleNamespace(list_models=lambda: ["tiny"], create_model=lambda name, pretrained: module)
    monkeypatch.setitem(sys.modules, "timm", timm)
    assert f"(input {images})" in testing.run("lift", "timm:tiny").output
    result = testing.run("lift", "timm:tiny", "--input", "x=real[batch,8]")
    assert result.status and "--input cannot be combined with `timm:tiny`: its inputs are known" in result.errors


def test_models_of_torchvision_take_images(monkeypatch: pytest.MonkeyPatch) -> None:
    module = torch.nn.Conv2d(3, 4, 3)
    models = SimpleNamespace(list_models=lambda: ["tiny"], get_model=lambda name, weights: module)
    monkeypatch.setitem(sys.modules, "torchvision", SimpleNamespace(models=models))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    assert "(input [batch, 3, 224, 224])" in testing.run("lift", "torchvision:tiny").output
    assert "torchvision has no model `large`" in messages([["torchvision:large"]])


def test_configurations_need_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text(json.dumps(BERT))
    monkeypatch.setitem(sys.modules, "transformers", None)
    assert "transformers is required but not installed" in messages([[str(tmp_path)]])


@pytest.mark.slow
def test_modules_beside_a_configuration_are_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 48}
    (tmp_path / "config.json").write_text(json.dumps({**BERT, **sizes}))
    (tmp_path / "modules.json").write_text('[{"path": "1_LSTM", "type": "own.LSTM"}]')
    result = testing.run("lift", str(tmp_path))
    assert result.status == 0 and "warning[not-included]: module `1_LSTM` of " in result.errors


def test_training_is_refused() -> None:
    with pytest.raises(archspec.ArchError, match=r"cannot lift `Linear`: it is in training: call `eval\(\)` first$"):
        archspec.lift(torch.nn.Linear(3, 4), (torch.randn(2, 3),))
