"""Completions, in the shells themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest

import archspec
from archspec.testing import main

MODELS = {"bert-base-uncased", *(name for name in archspec.models() if name.startswith("bert-base-uncased-"))}

CASES: dict[str, set[str]] = {
    "co": {"count", "cost", "compare", "completions"},
    "count bert-base-unc": MODELS,
    "compare gpt2 bert-base-uncased bert-base-unc": MODELS,
    "diff gpt2 bert-base-uncased bert-base-unc": set(),
    "diff --dark --set layers=1 gpt2 bert-base-unc": MODELS,
    "show bert-base-unc": MODELS,
    "count --by l": {"layer"},
    "graph --to g": {"graphml", "gexf"},
    "check --format s": {"sarif"},
    "error wrong": {"wrong-kind"},
    "completions ": {"bash", "zsh", "fish"},
    "fmt ne": {"nested/", "net.arch"},
    "count ./ne": {"./nested/", "./net.arch"},
    "view --wat": {"--watch"},
}


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completions", shell]) == 0
    return capsys.readouterr().out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "net.arch").touch()
    (tmp_path / "nested").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(shell: list[str], text: str, folder: Path) -> str:
    done = subprocess.run(shell, input=text, cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.skipif(not shutil.which("bash"), reason="requires bash")
def test_bash(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    for line in CASES:
        words = " ".join(f"'{word}'" for word in f"archspec {line}".split(" "))
        text += f'COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _archspec; echo "${{COMPREPLY[*]}}"\n'
    found = run(["bash", "--norc"], f"compopt() {{ :; }}\n{text}", folder).splitlines()
    for line, words in zip(found, CASES.values(), strict=True):
        assert set(line.split()) == {word.rstrip("/") for word in words}


@pytest.mark.skipif(not shutil.which("bash"), reason="requires bash")
def test_bash_with_an_equals_sign(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("bash", capsys)
    text += 'COMP_WORDS=(archspec count --by = l); COMP_CWORD=4; _archspec; echo "${COMPREPLY[*]}"\n'
    text += 'COMP_WORDS=(archspec count --by =); COMP_CWORD=3; _archspec; echo "${COMPREPLY[*]}"\n'
    assert run(["bash", "--norc"], text, folder).splitlines() == ["layer", "tensor layer block role"]


@pytest.mark.skipif(not shutil.which("fish"), reason="requires fish")
def test_fish(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = script("fish", capsys)
    text += "".join(f"complete -C 'archspec {line}'; echo end\n" for line in CASES)
    home = folder / "home"
    home.mkdir()
    blocks = run(["env", f"HOME={home}", "fish", "--no-config"], text, folder).split("end\n")
    for block, (line, words) in zip(blocks, CASES.items(), strict=False):
        found = {candidate.split("\t")[0] for candidate in block.splitlines()}
        if not line.startswith("diff gpt2"):  # fish does not count operands
            assert found - {"home/"} == words, line


ZSH = r"""
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "LISTMAX=1000; stty cols 200; autoload -U compinit; compinit -u -D; source ./script; PS1=rea''dy"
zpty -r shell text '*ready*'
"""


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("zsh"), reason="requires zsh")
def test_zsh(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "script").write_text(script("zsh", capsys))
    for line, words in CASES.items():
        keys = f"zpty -w -n shell $'archspec {line}\\t\\t\\C-u'; zpty -w shell \"echo fin''ished\"\n"
        keys += "zpty -r shell text '*finished*'; print -r -- \"$text\"\n"
        output = run(["timeout", "60", "zsh", "-f"], ZSH + keys, folder)
        listed = output.replace(f"archspec {line}", "", 1)
        for word in words:
            assert word.rstrip("/").removeprefix("./") in listed or len(words) == 1, (line, output)
