"""The examples at the end of each `--help` run."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints import write
from paths import ROOT

from archspec import testing

EXAMPLES = (ROOT / "archspec/app/cli/examples.txt").read_text(encoding="utf-8").splitlines()

SPEC = """import std { Linear, relu }

dim batch

block Net(width = 8)(x [batch, width]) -> [batch, width] {
  return x |> up: Linear(width, 16) |> relu |> down: Linear(16, width)
}

model "net" = Net()
"""

MODULE = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


def build():
    return Net().eval()
"""

CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "num_hidden_layers": 2, "hidden_size": 24}


def test_each_help_has_two_examples() -> None:
    commands = re.findall(r"^    ([a-z]+)(?: |$)", testing.run("--help").output, re.MULTILINE)
    assert commands == [line.split()[1] for line in EXAMPLES[::2]] == [line.split()[1] for line in EXAMPLES[1::2]]
    for i, command in enumerate(commands):
        examples = "".join(f"\n  {line}" for line in EXAMPLES[2 * i : 2 * i + 2])
        assert testing.run(command, "--help").output.endswith(f"\n\nexamples:{examples}\n")
        assert testing.run("help", command) == testing.run(command, "--help")


@pytest.mark.parametrize("line", [pytest.param(e, marks=[pytest.mark.slow] * (" lift " in e)) for e in EXAMPLES])
def test_examples_run(line: str, tmp_path: Path) -> None:
    if re.search(" lift | --module | lsp", line):
        for package in ("pygls",) if " lsp" in line else ("torch", "transformers"):
            pytest.importorskip(package)
    (tmp_path / "model.arch").write_text(SPEC)
    (tmp_path / "module.py").write_text(MODULE)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    write(tmp_path / "model.safetensors", testing.tensors(str(tmp_path / "model.arch")))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "BROWSER": "true", "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "archspec", *shlex.split(line)[1:]]
    result = subprocess.run(
        command, cwd=tmp_path, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0 or re.search("^archspec (audit|diff) ", line), result.stderr
    assert not result.stderr
    assert result.stdout or "-o " in line or " fmt" in line or " lsp" in line
