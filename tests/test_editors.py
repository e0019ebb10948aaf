"""The VS Code extension: what it contains fits the language and its own manifest."""

import json
import re
from pathlib import Path

import pytest

from archspec.pipeline.compile import check

EXTENSION = Path(__file__).parent.parent / "editors" / "vscode"
SNIPPETS = json.loads((EXTENSION / "snippets" / "arch.json").read_text())
BEFORE = "import std { Linear }\n\ndim batch, seq\n\n"
AROUND = {
    "Block": "{}\n",
    "Layer": "{}\n",
    "Model": "block Block(n = 2)(x [n]) -> [n] {{ return x * a.weight: Linear(n, n)(x) }}\n\n{}\n",
    "Repeated layer": "block B(hidden = 2, layers = 3)(x [..., hidden]) -> [..., hidden] {{\n  return x\n    {}\n}}\n",
    "Residual": "block B(hidden = 2)(x [..., hidden]) -> [..., hidden] {{\n  return a: Linear(hidden, hidden)(x)\n    {}\n}}\n",
}


def inserted(snippet: dict[str, list[str]]) -> str:
    """What a snippet leaves if nothing is typed over it."""
    text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", "\n".join(snippet["body"]))
    return re.sub(r"\$\{?\d+\}?", "", text)


@pytest.mark.parametrize("name", SNIPPETS)
def test_a_snippet_is_valid(name: str, tmp_path: Path) -> None:
    text = inserted(SNIPPETS[name]).replace("Layer(..)", "Linear(hidden, hidden)")
    text = text.replace("Block() { expect params == 0 }", "Block() { expect params == 6 }")
    (tmp_path / "snippet.arch").write_text(BEFORE + AROUND[name].format(text).replace("a.weight", "a"))
    found = check(str(tmp_path / "snippet.arch")).diagnostics
    assert [d for d in found if d.severity == "error"] == [], text


def test_the_files_of_the_manifest_exist() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    contributes = manifest["contributes"]
    named = [contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]]
    named.append(contributes["snippets"][0]["path"])
    assert all((EXTENSION / path).is_file() for path in named)
    assert json.loads((EXTENSION / contributes["grammars"][0]["path"]).read_text())["scopeName"] == "source.arch"
    assert contributes["languages"][0]["id"] == contributes["grammars"][0]["language"] == "arch"
