"""The VS Code extension: what it contains fits the language and its own manifest."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from paths import ROOT

from archspec import testing

EXTENSION = ROOT / "editors" / "vscode"
SNIPPETS = json.loads((EXTENSION / "snippets" / "arch.json").read_text())
BEFORE = "import std { Linear }\n\ndim batch, seq\n\n"
AROUND = {
    "Block": "{}\n",
    "Layer": "{}\n",
    "Model": "block Block(n = 2)(x [n]) -> [n] {{ return x * a.weight: Linear(n, n)(x) }}\n\n{}\n",
    "Repeated layer": "block B(hidden = 2, layers = 3)(x [..., hidden]) -> [..., hidden] {{\n  return x\n    {}\n}}\n",
    "Residual": "block B(n = 2)(x [..., n]) -> [..., n] {{\n  return a: Linear(n, n)(x)\n    {}\n}}\n",
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
    found = testing.check(str(tmp_path / "snippet.arch"))
    assert [d for d in found if d.severity == "error"] == [], text


def test_the_files_of_the_manifest_exist() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text())
    contributes = manifest["contributes"]
    named = [contributes["languages"][0]["configuration"], contributes["grammars"][0]["path"]]
    named.append(contributes["snippets"][0]["path"])
    assert all((EXTENSION / path).is_file() for path in named)
    assert json.loads((EXTENSION / contributes["grammars"][0]["path"]).read_text())["scopeName"] == "source.arch"
    assert contributes["languages"][0]["id"] == contributes["grammars"][0]["language"] == "arch"


NEOVIM = """
local command = {{ "{python}", "-m", "archspec", "lsp" }}
local client = vim.lsp.start_client({{ name = "archspec", cmd = command, root_dir = "." }})
vim.lsp.buf_attach_client(0, client)
local function wait(what) assert(vim.wait(30000, what, 20), "nothing arrived") end
local function ask(method, parameters)
  local found = vim.lsp.buf_request_sync(0, method, parameters, 30000)
  return found[client].result
end
wait(function() return #vim.diagnostic.get(0) > 0 end)
print("diagnostic: " .. vim.diagnostic.get(0)[1].message)
vim.fn.cursor(4, 13)
local range = vim.lsp.util.make_range_params()
range.context = {{ diagnostics = {{}} }}
local fix = ask("textDocument/codeAction", range)
vim.lsp.util.apply_workspace_edit(fix[1].edit, "utf-16")
wait(function() return #vim.diagnostic.get(0) == 0 end)
print("hover: " .. ask("textDocument/hover", vim.lsp.util.make_position_params()).contents.value:match("layer [^\\n]*"))
vim.fn.cursor(4, 20)
for _, item in ipairs(ask("textDocument/completion", vim.lsp.util.make_position_params())) do
  if item.label == "LayerNorm" then print("completion: " .. item.additionalTextEdits[1].newText) end
end
vim.fn.setline(4, "  return   a:Linear(n, n)(x)");
(vim.lsp.buf.format or vim.lsp.buf.formatting_sync)()
print("formatted: " .. vim.fn.getline(4))
vim.fn.cursor(3, 7)
local place = vim.lsp.util.make_position_params()
place.newName = "Dense"
vim.lsp.util.apply_workspace_edit(ask("textDocument/rename", place), "utf-16")
vim.cmd("write")
vim.cmd("quit!")
"""


@pytest.mark.slow
def test_neovim_shows_fixes_completes_formats_and_renames(tmp_path: Path) -> None:
    """In a real editor."""
    neovim = shutil.which("nvim")
    if neovim is None:
        pytest.skip("Neovim is not installed")
    wrong = (
        "import std {{ Linear }}\n\n"
        'block {name}(n = 2)(x [..., n]) -> [..., n] {{\n  return a: {callee}(n, n)(x)\n}}\n\nmodel "m" = {name}()\n'
    )
    (tmp_path / "m.arch").write_text(wrong.format(name="Layer", callee="Linaer"))
    (tmp_path / "try.lua").write_text(NEOVIM.format(python=sys.executable))
    command = [neovim, "--headless", "-u", "NONE", "m.arch", "-c", "luafile try.lua"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    said = done.stderr + done.stdout
    assert "diagnostic: unknown name `Linaer`" in said
    assert "hover: layer Linear(in_features, out_features" in said
    assert "completion: , LayerNorm" in said
    assert "formatted:   return a: Linear(n, n)(x)" in said
    assert (tmp_path / "m.arch").read_text() == wrong.format(name="Dense", callee="Linear"), said
