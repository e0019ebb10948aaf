"""Steps of the code that the tests of errors cannot reach through public names."""

import ast
import contextlib
import io
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from modules import PACKAGE, nodes_of
from paths import ROOT

import archspec
from archspec.app.cli import USAGE_CODES
from archspec.app.cli.run.error import split_sections
from archspec.core import resources
from archspec.testing import main

DOCUMENT = ROOT / "docs" / "errors.md"


ENTRIES = split_sections(DOCUMENT.read_text(encoding="utf-8"))


WITHOUT_EXAMPLE = {"internal", "lift", "missing-package", "not-lifted", "unproven"}
"""No spec brings them about, or it takes seconds."""


class Example(NamedTuple):
    """Files by name, what is run on them, and what it says; from a document's section, or its mended half."""

    files: dict[str, bytes]
    command: str

    def output(self, folder: Path) -> tuple[str, int]:
        """What the command writes to standard error, and its exit status."""
        for name, text in self.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(text)
        said = io.StringIO()
        with contextlib.chdir(folder), contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = main(shlex.split(self.command)[1:])
        return said.getvalue(), status


_BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def halves(entry: str) -> tuple[Example, str, Example]:
    """The bad example of an entry, the message, and the mended example (which has the bad one's other files)."""
    examples: list[Example] = []
    files: dict[str, bytes] = {}
    command = "archspec check spec.arch"
    message: str | None = None
    for kind, options, text in _BLOCK.findall(entry):
        if kind == "text":
            assert message is None, "one message an entry"
            message = text
            examples.append(Example(files, command))
            files = dict(files)
        elif kind == "console":
            command = text.removeprefix("$ ").strip()
        else:
            given = dict(option.split("=") for option in options.split())
            encoding = given.get("encoding", "utf-8")
            data = bytes.fromhex(text) if encoding == "hex" else text.encode(encoding)
            files[given.get("file", "spec.arch")] = data
    assert message is not None, "an entry shows a message"
    return examples[0], message, Example(files, command)


def codes() -> tuple[set[str], set[str]]:
    """The codes in the source, and patterns of those that are put together."""
    found: set[str] = set()
    patterns: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in nodes_of(path):
            for argument in _codes_given(node):
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    found.add(argument.value)
                elif isinstance(argument, ast.JoinedStr):
                    words = [v.value if isinstance(v, ast.Constant) else "[a-z]+" for v in argument.values]
                    patterns.add("".join(map(str, words)))
                elif isinstance(argument, ast.IfExp):
                    sides = (argument.body, argument.orelse)
                    found |= {str(side.value) for side in sides if isinstance(side, ast.Constant)}
    return found - {""}, patterns


REPORTERS = {"error", "fault", "make_error", "warn", "StaticError", "Diagnostic", "_report"}


def _codes_given(node: ast.AST) -> Iterator[ast.expr]:
    """What stands in the place of a code: a reporter's first argument, a `code=`, the default of a parameter `code`."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            if name in REPORTERS and node.args:
                yield node.args[0]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "code")
        case ast.FunctionDef():
            names = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            yield from (d for a, d in zip(names, node.args.defaults, strict=True) if a.arg == "code")
        case ast.Assign(targets=[ast.Name(id="code")]):
            yield node.value
        case _:
            pass


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    found, patterns = codes()
    assert found - set(ENTRIES) == set()
    extra = set(ENTRIES) - found
    assert {code for code in extra if not any(re.fullmatch(p, code) for p in patterns)} == set()
    for pattern in patterns:
        assert any(re.fullmatch(pattern, code) for code in extra), pattern


def test_entries_stand_in_alphabetical_order() -> None:
    assert list(ENTRIES) == sorted(ENTRIES)


@pytest.mark.parametrize("code", sorted(set(ENTRIES) - WITHOUT_EXAMPLE))
def test_the_entry_says_what_the_tool_says(code: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    bad, message, mended = halves(ENTRIES[code])
    said, status = bad.output(tmp_path)
    if request.config.getoption("--update-golden") and said != message:
        entry = ENTRIES[code].replace(f"```text\n{message}```", f"```text\n{said}```")
        DOCUMENT.write_text(DOCUMENT.read_text(encoding="utf-8").replace(ENTRIES[code], entry), encoding="utf-8")
        pytest.skip("written anew")
    assert said == message
    assert re.findall(r"^(?:error|warning)\[(.+?)\]", said, re.MULTILINE) == [code]
    assert status == (0 if said.startswith("warning") else 2 if code in USAGE_CODES else 1)
    assert mended.output(tmp_path) == ("", 0)


@pytest.mark.parametrize("code", sorted(ENTRIES))
def test_the_command_prints_the_entry(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["error", code]) == 0
    assert capsys.readouterr().out == ENTRIES[code]


def test_a_file_beside_the_bundled_ones_is_checked_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    specs = tmp_path / "specs"
    shutil.copytree(resources.specs_root(), specs)
    text = "dim batch\nlayer L(n = 4)(x [batch, n], y [batch]) -> [batch, n] {\n  w: param [n]\n  return x * .w\n}\n"
    (specs / "mine.arch").write_text(f'{text}model "mine" = L()\n', encoding="utf-8")
    monkeypatch.setattr(resources, "specs_root", lambda: str(specs))
    for spec in ("mine", str(specs / "mine.arch")):
        with pytest.raises(archspec.ArchError, match="unused input `y`"):
            archspec.load(spec)
