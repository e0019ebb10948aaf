"""What a generated file makes is compared with the spec, with torch and without: nothing is written that differs."""

import ast
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch_texts
from bundled import each
from paths import read_spec
from small import load

import archspec
from archspec.codegen import build
from archspec.codegen.build import torch_source
from archspec.codegen.file import file_text
from archspec.codegen.stand_in import recording
from archspec.testing import main

TEXT = read_spec("stand_in_runs_text")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", each())
def test_every_bundled_model_is_compared(name: str) -> None:
    model = archspec.load(name)
    stored = recording.record(torch_source(model)).state_dict()
    assert {n: t.shape for n, t in stored.items()} == {t.name: t.shape for t in (*model.tensors, *model.buffers)}


def test_tables_of_booleans_are_computed() -> None:
    text = """
layer It(n = 4)(x [n]) -> [n] {
  w: param [n]
  rest: buffer bool [n] = TABLE
  return where(.rest, x * .w, 0.0)
}
"""
    tables = {
        "not(arange(n) < 2)": "~(torch.arange(n) < 2)",
        "arange(n) < 2 and arange(n) > 0": "(torch.arange(n) < 2) & (torch.arange(n) > 0)",
        "arange(n) < 2 or arange(n) > 2": "(torch.arange(n) < 2) | (torch.arange(n) > 2)",
    }
    for table, code in tables.items():
        assert f'self.register_buffer("rest", {code})' in torch_source(load(text.replace("TABLE", table)))


def test_tables_are_computed_by_convolutions() -> None:
    text = """
layer It(n = 4)(x [n]) -> [n] {
  w: param [n]
  rest: buffer [1, n, 2] = conv(reshape([1, n, 2])(real(arange(2 * n))), reshape([n, n, 1])(real(arange(n * n))))
  return x * .w * sum(axis = 1)(reshape([n, 2])(.rest))
}
"""
    source = torch_source(load(text))
    assert "F.conv1d(" in source
    assert recording.record(source).state_dict()["rest"].shape == (1, 4, 2)


WRONG = {
    "a size": ("torch.empty((n,))", "torch.empty((n + 1,))", "`a.weight` has shape [5], expected [4]"),
    "a name": ("self.table =", "self.tables =", "`table` is missing"),
    "one more": ("self.a =", "self.d = Scale(n)\n        self.a =", "`d.weight` is surplus"),
    "a parameter for a buffer": (
        'self.register_buffer("ids", torch.arange(n))',
        "self.ids = nn.Parameter(torch.arange(n), requires_grad=False)",
        "`ids` is a parameter",
    ),
    "a buffer for a parameter": ("self.table = nn.Parameter(", "self._buffers['table'] = kept(", "`table` is a buffer"),
    "an element type": ("torch.arange(n)", "torch.full((n,), 0.5)", "`ids` is of type "),
    "a wider type": ("torch.get_default_dtype()", "torch.float64", "`table` is of type "),
    "trained": (".requires_grad_(False)", "", "`c.weight` is trainable"),
    "frozen": ("self.a = Scale(n)", "self.a = Scale(n).requires_grad_(False)", "`a.weight` is frozen"),
    "a tie less": ("self.b.weight = self.a.weight", "pass", " is not tied as specified"),
    "a tie more": ("self.b.weight = self.a.weight", "self.b = self.c = self.a", " is "),
    "no such function": ("torch.arange(n)", "torch.ones(n)", "cannot be compared with the spec: AttributeError"),
    "an error": ("self.a =", "1 // 0\n        self.a =", "cannot be compared with the spec: ZeroDivisionError"),
    "no such module": ("self.a =", "import os\n        self.a =", "cannot be compared with the spec: KeyError"),
}


@pytest.mark.parametrize("case", WRONG)
def test_nothing_is_written_where_a_tensor_differs(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, message = WRONG[case]

    def broken(*arguments: Any) -> str:
        text = file_text(*arguments)
        assert old in text
        return text.replace(old, new, 1).replace("def build", "def kept(x, **_):\n    return x\n\n\ndef build")

    monkeypatch.setattr(build, "file_text", broken)
    spec, path = tmp_path / "spec.arch", tmp_path / "net.py"
    spec.write_text(TEXT, encoding="utf-8")
    for options in ([], ["-o", str(path)]):
        assert main(["build", str(spec), *options]) == 1
        out, err = capsys.readouterr()
        assert message in err and out == "" and not path.exists()


def test_files_are_compared_where_torch_is_not_installed(tmp_path: Path) -> None:
    """The command imports nothing of torch."""
    spec = tmp_path / "spec.arch"
    spec.write_text(TEXT, encoding="utf-8")
    code = (
        "import sys\nsys.modules['torch'] = None\nfrom archspec.app.cli import main\n"
        f"assert main(['build', {str(spec)!r}, '-o', {str(tmp_path / 'net.py')!r}]) == 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "net.py").exists()


def test_a_file_runs_with_nothing_but_what_it_needs() -> None:
    for code in ("open('x')", "__import__('os')", "eval('1')", "getattr(1, 'real')", "import os"):
        with pytest.raises((NameError, KeyError)):
            recording.record(f"{code}\ndef build(): pass")
    with pytest.raises(TypeError, match="makes no module"):
        recording.record("def build():\n    return 1")


def test_documentation_cannot_end_a_docstring_or_act_on_a_terminal() -> None:
    marks = '\x1b[31m \u202e " \\ """ '
    text = TEXT.replace("layer Scale", f"## It is {marks}so.\nlayer Scale").replace('"net"', '"net\u202e"')
    source = torch_source(load(text))
    assert all(c.isprintable() or c == "\n" for c in source)
    (scale,) = (n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "Scale")
    assert ast.get_docstring(scale) == 'It is \\x1b[31m \\u202e " \\ """ so.'


# Beside the real one ------------------------------------------------------------------------------------------------


def told(module: Any, torch: Any) -> dict[str, Any]:
    """What is compared of a module: of each tensor shape, type, training, and the first name it has."""
    kinds = {torch.get_default_dtype(): "real", torch.float64: "float64", torch.int64: "int", torch.bool: "bool"}
    stored = module.state_dict(keep_vars=True)
    parameters = dict(module.named_parameters(remove_duplicate=False))
    first: dict[int, str] = {}
    for name, tensor in stored.items():
        first.setdefault(id(tensor), name)
    return {
        name: (tuple(t.shape), kinds[t.dtype], name in parameters, t.requires_grad, first[id(t)])
        for name, t in stored.items()
    }


def made_by_torch(source: str) -> Any:
    import torch

    namespace: dict[str, Any] = {}
    with torch.device("meta"):
        exec(source, namespace)
        return namespace["build"]()


def test_a_dictionary_of_modules_has_modules() -> None:
    text = "from torch import nn\ndef build():\n    found = nn.ModuleDict()\n    found['a'] = 3\n    return found\n"
    with pytest.raises(TypeError, match="a dictionary of modules has modules"):
        recording.record(text)


def test_only_a_bool_says_whether_a_tensor_is_trained() -> None:
    text = "import torch\ndef build():\n    return torch.empty(3).requires_grad_(3)\n"
    with pytest.raises(TypeError, match="takes a bool, not int"):
        recording.record(text)


@pytest.mark.slow
@pytest.mark.parametrize("name", archspec.models())
def test_the_stand_in_agrees_with_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    source = torch_source(archspec.load(name))
    assert told(recording.record(source), recording.torch) == told(made_by_torch(source), torch)


@pytest.mark.slow
def test_the_stand_in_agrees_with_torch_for_every_text(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    for text in torch_texts.texts():
        source = torch_source(text.load(tmp_path))
        assert told(recording.record(source), recording.torch) == told(made_by_torch(source), torch), text.name


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_the_stand_in_agrees_with_torch_on_files_that_are_wrong(seed: int, tmp_path: Path) -> None:
    """Files with a line taken out or a number changed: the same tensors as in torch, or an error."""
    torch = pytest.importorskip("torch")
    choose = random.Random(seed)
    sources = [torch_source(text.load(tmp_path)) for text in torch_texts.texts()]
    compared = 0
    for _ in range(150):
        lines = choose.choice(sources).split("\n")
        made = [i for i, line in enumerate(lines) if re.search(r"self|nn\.|own\(|torch\.", line)]
        i = choose.choice(made)
        if choose.random() < 0.5:
            lines[i] = re.sub(
                r"\b\d+\b|\bn\b|False|True", choose.choice(["3", "True", "False", "(3,)"]), lines[i], count=1
            )
        else:
            lines[i] = ""
        source = "\n".join(lines)
        try:
            recorded = told(recording.record(source), recording.torch)
        except Exception:
            continue
        compared += 1
        assert recorded == told(made_by_torch(source), torch), source
    assert compared > 20


def test_loops_that_would_end_before_their_start_are_refused() -> None:
    """As the spec refuses them: Python's `range` would be empty."""
    spec = read_spec("stand_in_runs_blocks")
    text = torch_source(archspec.loads(spec))
    recording.record(text.replace("return Net()", "return Net(a=3)"))
    for call in ("Net(a=2)", "Net(b=1)"):
        with pytest.raises(ValueError, match="required: 0 <= k - 3"):
            recording.record(text.replace("return Net()", f"return {call}"))
    with pytest.raises(ValueError, match="required: first <= k"):
        recording.record(text.replace("Inner(b, 2)", "Inner(b, 7)"))
    assert text.count("raise ValueError") == 4
    assert 'if k - 2 < 1:\n        raise ValueError("required: 1 <= k - 2")\n' in text
