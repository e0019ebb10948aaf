"""`verify --module` and `build --prove`: modules from Python files against specs."""

import importlib
import json
import re
import sys
from pathlib import Path

import pytest
from building import prove

torch = pytest.importorskip("torch")

from archspec import testing
from archspec.testing import main

SPEC = """
import std { Linear }
dim batch
block Net(n = 4)(x [batch, n]) -> [batch, n] {
  return x |> tanh |> part: Linear(n, n)
}
model "net" = Net()
"""
MODULE = """
import torch
from beside import WIDTH

class Net(torch.nn.Module):
    def __init__(self, act=torch.tanh):
        super().__init__()
        self.part = torch.nn.Linear(WIDTH, WIDTH)
        self.act = act
    def forward(self, x):
        return self.part(self.act(x))

def build():
    return Net()

def other():
    return Net(torch.sigmoid)

def failing():
    raise KeyError("width")

def nothing():
    return WIDTH

def sized(width, depth, *rest, act=torch.tanh):
    return Net(act)

NUMBER = 3
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.arch").write_text(SPEC)
    (tmp_path / "beside.py").write_text("WIDTH = 4\n")
    (tmp_path / "net.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("1 / 0\n")
    (tmp_path / "empty.py").write_text("from math import sin\n")
    (tmp_path / "net.txt").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_module_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "net.arch", "--module", "net.py"]) == 0
    assert "Equal: proven for all finite inputs" in capsys.readouterr().out
    assert main(["verify", "net.arch", "--module", "net.py:other"]) == 1
    out = capsys.readouterr().out
    assert "Different: the outputs differ by" in out
    assert "first output that differs: output" in out
    assert re.search(r"first value that only net computes: part \(specs/std/linear.arch:\d+\)\n", out)
    assert "first value that only Net computes: part (net.py:11)\n" in out
    assert main(["verify", "net.arch", "--module", "net.py:other", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["a"], found["b"], found["verdict"], found["output"]) == ("net", "Net", "different", "output")
    assert found["a_differs_at"]["source"].startswith("specs/std/linear.arch:") and found["error"] > 0
    assert found["b_differs_at"] == {"address": "part", "source": "net.py:11"}
    assert main(["verify", "net.arch", "--module", "net.py", "--format", "csv"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head == "a,b,verdict,reason,output,error" and row.startswith("net,Net,equal,")
    assert main(["verify", "net.arch", "--module", "net.py", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [found[key] for key in ("reason", "output", "a_differs_at", "b_differs_at", "error")] == [None] * 5


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("missing.py", "there is no file `missing.py`"),
        ("missing.py:other", "there is no file `missing.py`"),
        ("net.txt", "`net.txt` is not a Python file"),
        ("broken.py", "running `broken.py` fails: ZeroDivisionError: division by zero"),
        ("net.py:none", "`net.py` defines no `none`"),
        ("net.py:unlike", "name a function or class of the file: `net.py:failing`, `net.py:nothing`, `net.py:sized`"),
        ("empty.py", "`empty.py` defines no `build`\nhelp: write `--module FILE.py:factory`"),
        ("net.py:faling", "did you mean `net.py:failing`?"),
        ("net.py:sized", "`sized` in `net.py` cannot be called without `width`, `depth`\nhelp: give its parameters"),
        ("net.py:failing", "running `net.py` fails: KeyError: 'width'"),
        ("net.py:nothing", "`nothing` in `net.py` does not return a torch.nn.Module"),
        ("net.py:NUMBER", "`NUMBER` in `net.py` does not return a torch.nn.Module"),
    ],
)
def test_files_that_make_no_module(module: str, reason: str) -> None:
    path = list(sys.path)
    result = testing.run("verify", "net.arch", "--module", module)
    assert result.status == 2 and reason in result.errors and result.errors.startswith("error[usage]")
    assert sys.path == path


def test_either_a_checkpoint_or_a_module_is_verified(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["net.safetensors", "--module", "net.py"]):
        assert main(["verify", "net.arch", *arguments]) == 2
        assert "expected either a checkpoint or --module" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["torch", "transformers", "onnx"])
def test_what_is_built_is_proven(target: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written if it is not."""
    if target == "onnx":
        pytest.importorskip("onnxscript")
    place = folder / {"torch": "it.py", "transformers": "it", "onnx": "it.onnx"}[target]
    command = ["build", "net.arch", "--to", target, "--prove", "-o", str(place)]
    assert main(command) == 0 and place.exists()
    source = importlib.import_module("archspec.app.cli.run.build").torch_source
    monkeypatch.setattr(
        "archspec.app.cli.run.build.torch_source", lambda model: source(model).replace("tanh(", "sigmoid(")
    )
    assert main([*command[:-1], str(folder / "other.py")]) == 1 and not (folder / "other.py").exists()


def test_computed_tables_have_values_in_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
import std { Linear }
dim batch
block Net(n = 4)(x [batch, n]) -> [batch, n] {
  scale: const [n] = table([0.5, 1.0, -2.0, 0.25])
  y = x * .scale
  return y |> part: Linear(n, n)
}
model "scaled" = Net()
"""
    assert not prove(text).status
    source = importlib.import_module("archspec.app.cli.run.build").torch_source
    monkeypatch.setattr("archspec.app.cli.run.build.torch_source", lambda model: source(model).replace("-2.0", "-2.5"))
    assert prove(text).errors.startswith("error[unproven]: the PyTorch file of scaled is not proven to be")
