"""Sizes follow the arguments of factories in the ways that people write: rounded up, or the larger one of two."""

import importlib.util
from pathlib import Path
from random import Random
from typing import Any

import pytest
from paths import DATA

import archspec
from archspec import testing

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

FILE = DATA / "projects" / "formulas.py"
MODELS: dict[str, tuple[str, dict[str, tuple[Any, ...]]]] = {
    "llama": (
        "tokens=int[batch,seq]",
        {"dim": (48, 144), "n_heads": (6, 12), "n_kv_heads": (2, 3), "multiple_of": (8, 60), "n_layers": (1, 5)},
    ),
    "mamba": (
        "ids=int[batch,seq]",
        {"vocab_size": (9, 90), "d_model": (15, 16, 17, 100), "d_state": (3, 7), "d_conv": (2, 5), "expand_": (1, 3)},
    ),
    "gated": ("x=real[batch,seq,dim]", {"dim": (5, 12, 13, 100), "depth": (1, 5)}),
    "squeezed": ("x=real[batch,3,8,8]", {"width": (4, 40, 90), "reduction": (2, 8), "classes": (3, 5)}),
    "pair": ("x=real[batch,text] y=real[batch,image]", {"text": (5, 30), "image": (6, 20)}),
    "bert": (
        "input_ids=int[batch,seq] attention_mask=int[batch,seq]",
        {
            "vocab": (50, 90),
            "hidden": (12, 24),
            "layers": (1, 4),
            "heads": (2, 3),
            "inner": (7, 50),
            "positions": (9, 60),
        },
    ),
    "nano": ("idx=int[batch,seq]", {"n_embd": (12, 36), "n_head": (2, 3), "n_layer": (1, 4), "block_size": (9, 70)}),
    "sparse": ("x=real[batch,seq,dim]", {"dim": (5, 30), "ffn": (7, 50), "depth": (1, 4)}),
    "vit": ("image=real[batch,3,size,size]", {"size": (16, 32), "patch": (4, 8), "dim": (12, 24), "depth": (1, 3)}),
    "numbered": ("Ids=int[batch,seq]", {"vocab": (50, 90), "dim": (5, 30), "depth": (1, 5)}),
    "of_cifar": ("x=real[batch,3,32,32]", {"blocks": (1, 4), "width": (5, 24), "classes": (3, 7)}),
    "stages": (
        "x=real[batch,3,32,32]",
        {
            "depths": ([1, 2, 4, 3], [3, 1, 1, 5], [2, 2, 2, 2]),
            "widths": ([5, 6, 7, 8], [9, 9, 16, 3], [4, 8, 16, 32]),
            "classes": (3, 7),
        },
    ),
    "dilated": (
        "x=real[batch,seq,features]",
        {"features": (3, 5), "channels": (8, 20), "levels": (2, 5), "kernel": (2, 5), "classes": (3, 7)},
    ),
}
"""The inputs of each model, and values of the arguments that its spec follows."""


def build(name: str, values: dict[str, Any]) -> Any:
    spec = importlib.util.spec_from_file_location("formulas", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with torch.device("meta"):
        return getattr(module, name)(**{key.removesuffix("_"): value for key, value in values.items()})


@pytest.mark.parametrize("name", MODELS)
def test_tensors_follow_the_arguments(name: str) -> None:
    inputs, choices = MODELS[name]
    result = testing.run("lift", f"{FILE}:{name}", *[f"--input={text}" for text in inputs.split()])
    assert not result.status, result.errors
    random = Random(name)
    for _ in range(3):
        values = {key: random.choice(options) for key, options in choices.items()}
        model = archspec.loads(result.output, **values)
        built = build(name, values)
        buffers = {*dict(built.named_buffers())}
        theirs = {key: tuple(tensor.shape) for key, tensor in built.state_dict().items() if key not in buffers}
        assert {tensor.name: tuple(tensor.shape) for tensor in model.tensors} == theirs, values


def test_what_has_no_formula_keeps_its_value(tmp_path: Path) -> None:
    file = tmp_path / "odd.py"
    file.write_text(
        "from torch import nn\n\n\n"
        "def build(width=24, classes=5):\n"
        "    odd = sum(int(digit) for digit in str(width)) + 3\n"
        "    return nn.Sequential(nn.Linear(width, odd), nn.Tanh(), nn.Linear(odd, classes)).eval()\n"
    )
    result = testing.run("lift", str(file), "--input=input=real[batch,width]")
    assert "Not followed: width = 24" in result.errors
    assert archspec.loads(result.output, classes=7).params.total == 24 * 9 + 9 + 9 * 7 + 7


def test_fixed_keeps_all_arguments() -> None:
    result = testing.run("lift", f"{FILE}:pair", "--input=x=real[batch,text]", "--input=y=real[batch,image]", "--fixed")
    assert "Not followed: text = 96, image = 64 (--fixed)" in result.errors
    model = archspec.loads(result.output)
    assert not model.hyperparameters and model.params.total == 97 * 96 + 65 * 96 + 97 * 64


NAMED = """
from torch import nn

class Named(nn.Module):
    def __init__(self, fc, fc_1):
        super().__init__()
        self.fc_0, self.fc_1 = nn.Linear(8, fc[0]), nn.Linear(fc[0], fc[1])
        self.last = nn.Linear(fc[1], fc_1)

    def forward(self, x):
        return self.last(self.fc_1(self.fc_0(x).relu()))

def named(fc=(12, 20), fc_1=12):
    return Named(fc, fc_1)
"""


def test_a_list_beside_names_like_those_of_its_items(tmp_path: Path) -> None:
    path = tmp_path / "named.py"
    path.write_text(NAMED)
    result = testing.run("lift", f"{path}:named", "--input=x=[batch,8]")
    assert not result.errors
    model = archspec.loads(result.output, fc=[5, 7], fc_1=3)
    shapes = {"fc_0.weight": (5, 8), "fc_1.weight": (7, 5), "last.weight": (3, 7)}
    assert {tensor.name: tensor.shape for tensor in model.tensors if "weight" in tensor.name} == shapes
    with pytest.raises(archspec.ArchError, match="len"):
        archspec.loads(result.output, fc=[5, 7, 9])


CYCLES = """
from torch import nn

class Dilated(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.conv = nn.Conv1d(channels, channels, 3, padding=dilation, dilation=dilation)

    def forward(self, x):
        return x + self.conv(x).relu()

class Stack(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)

def cyclic(channels=12, depth=4):
    return Stack(*[Dilated(channels, 2 ** (i % 4)) for i in range(depth)])

def bounded(channels=12, depth=6):
    return Stack(*[Dilated(channels, min(2**i, 8)) for i in range(depth)])
"""


@pytest.mark.parametrize("name", ["cyclic", "bounded"])
def test_dilations_that_only_begin_as_powers(name: str, tmp_path: Path) -> None:
    path = tmp_path / "cycles.py"
    path.write_text(CYCLES)
    result = testing.run("lift", f"{path}:{name}", "--input=x=[batch,channels,seq]")
    assert not result.status
    model = archspec.loads(result.output)
    verified = testing.run("verify", "-", "--module", f"{path}:{name}", stdin=result.output)
    assert "Equal: proven" in verified.output, verified
    assert "depth" not in model.hyperparameters or "2 ** i" not in result.output
