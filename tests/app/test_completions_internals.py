"""Steps of the code that the tests of completions cannot reach through public names."""

import argparse
import re
from collections.abc import Callable

import pytest

from archspec.app.cli.arguments import parsers
from archspec.app.cli.run import completions
from archspec.testing import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completions", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_completed(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for name, parser in parsers().items():
        assert name in text
        for option in re.findall(r"--[a-z-]+", parser.format_help()):
            assert (f"-l {option[2:]}" if shell == "fish" else option) in text, option
    if shell == "zsh":  # `--option=VALUE`, and `-oVALUE`
        assert "'*--by=[" in text and "'*-o+[" in text


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_some_commands(
    shell: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden: Callable[[str, str], None]
) -> None:
    some = {name: parser for name, parser in parsers().items() if name in ("count", "diff", "error", "import")}
    odd = argparse.ArgumentParser(description="100 %% of it: `a\\b`")
    odd.add_argument("-o", "--odd", metavar="FILE", help="it's 5 %% of [aX]: a\\b")
    odd.add_argument("paths", nargs="+", metavar="PATH", help="files")
    monkeypatch.setattr(completions, "parsers", lambda: {**some, "odd": odd})
    monkeypatch.setattr(completions, "models", lambda: ["one", "two"])
    monkeypatch.setattr(completions, "read_entries", lambda: ["bad-size", "syntax"])
    golden(f"completions/{shell}", script(shell, capsys))
