"""`archspec completions SHELL`: completion scripts, generated from the parsers of all commands."""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Sequence

from archspec.app.cli.arguments import parsers
from archspec.app.cli.run.error import read_entries
from archspec.core.record import Record
from archspec.pipeline.index import models

SPECS, FILES = "specs", "files"
"""Kinds of values besides fixed words: models and files, or only files."""

_METAVARS = {
    **dict.fromkeys(("SPEC", "A", "B", "NAME", "WORD"), SPECS),
    **dict.fromkeys(("PATH", "FILE", "CHECKPOINT", "CONFIG", "FILE.py[:FACTORY]"), FILES),
}


class Value(Record):
    """A value and its completions: `words`, and models or files as `kind` names them."""

    name: str
    words: tuple[str, ...] = ()
    kind: str = ""


class Option(Record):
    """An option with all its names; `value` is None for a flag."""

    names: tuple[str, ...]
    help: str
    value: Value | None


class CompletedCommand(Record):
    """A command; `repeats` is true if its last operand can be repeated."""

    name: str
    help: str
    options: Sequence[Option]
    operands: Sequence[Value]
    repeats: bool


def run(options: Namespace) -> int:
    """Write the completion script of a shell."""
    commands = [_completed_command(name, parser) for name, parser in parsers().items()]
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[options.shell](commands, models())
    sys.stdout.write(script)
    return 0


def _completed_command(name: str, parser: argparse.ArgumentParser) -> CompletedCommand:
    actions = parser._actions  # pyright: ignore[reportPrivateUsage] -- argparse has no public list of them
    operands = [action for action in actions if not action.option_strings]
    options = [
        Option(tuple(action.option_strings), _unescape_help(action.help), None if action.nargs == 0 else _value(action))
        for action in actions
        if action.option_strings
    ]
    repeats = bool(operands) and operands[-1].nargs in ("*", "+")
    return CompletedCommand(
        name, _unescape_help(parser.description), options, [_value(action) for action in operands], repeats
    )


def _unescape_help(help: str | None) -> str:
    """Return a help text of argparse, with `%%` replaced by `%`."""
    return (help or "").replace("%%", "%")


def _value(action: argparse.Action) -> Value:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.choices is not None:
        return Value(metavar, tuple(map(str, action.choices)))
    if metavar == "CODE":
        return Value(metavar, tuple(read_entries()))
    is_name = action.option_strings and metavar == "NAME"  # of a field of a configuration
    return Value(metavar, (), "" if is_name else _METAVARS.get(metavar, ""))


# bash -----------------------------------------------------------------------------------------------------------------


def _bash(commands: Sequence[CompletedCommand], names: Sequence[str]) -> str:
    values: list[str] = []
    options: list[str] = []
    operands: list[str] = []
    for command in commands:
        for option in command.options:
            if option.value is not None:
                patterns = "|".join(f"{command.name}:{name}" for name in option.names)
                values.append(f"    {patterns}) {_bash_value(option.value)}; return ;;")
        listed = " ".join(name for option in command.options for name in option.names)
        options.append(f"    {command.name}) _archspec_words '{listed}' ;;")
        last = len(command.operands) - 1
        for i, operand in enumerate(command.operands):
            pattern = "*" if i == last and command.repeats else f"{i}"
            operands.append(f"    {command.name}:{pattern}) {_bash_value(operand)} ;;")
    return _BASH.format(
        commands=" ".join(command.name for command in commands),
        models=" ".join(names),
        values="\n".join(values),
        options="\n".join(options),
        operands="\n".join(operands),
        flags="|".join(
            f"{command.name}:{name}"
            for command in commands
            for option in command.options
            if option.value is None
            for name in option.names
        ),
    )


def _bash_value(value: Value) -> str:
    if value.words:
        return f"_archspec_words '{' '.join(value.words)}'"
    return {SPECS: "_archspec_specs", FILES: "_archspec_files"}.get(value.kind, ":")


_BASH = """\
# Completions of archspec for bash: source <(archspec completions bash)

_archspec_words() {{
  local word
  for word in $1; do
    if [[ $word == "$current"* ]]; then COMPREPLY+=("$word"); fi
  done
}}

_archspec_files() {{
  local file
  compopt -o filenames 2>/dev/null
  while IFS= read -r file; do COMPREPLY+=("$file"); done < <(compgen -f -- "$current")
}}

_archspec_specs() {{
  _archspec_words '{models}'
  _archspec_files
}}

_archspec() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}}
  local -i i given=0
  COMPREPLY=()
  if [[ $previous == "=" ]]; then previous=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  if [[ $current == "=" ]]; then current=; fi
  if ((COMP_CWORD == 1)); then
    _archspec_words '{commands} --help --version'
    return
  fi
  case $command:$previous in
{values}
  esac
  if [[ $current == -* ]]; then
    case $command in
{options}
    esac
    return
  fi
  for ((i = 2; i < COMP_CWORD; i++)); do
    case $command:${{COMP_WORDS[i]}} in
      {flags}) ;;
      *:-*) ((i++)); if [[ ${{COMP_WORDS[i]}} == "=" ]]; then ((i++)); fi ;;
      *) ((given++)) ;;
    esac
  done
  case $command:$given in
{operands}
  esac
}}

complete -F _archspec archspec
"""


# zsh ------------------------------------------------------------------------------------------------------------------


def _zsh(commands: Sequence[CompletedCommand], names: Sequence[str]) -> str:
    descriptions = "\n".join(f"    {_quote(f'{command.name}:{command.help}')}" for command in commands)
    cases: list[str] = []
    for command in commands:
        arguments: list[str] = []
        for option in command.options:
            for name in option.names:
                sign = "" if option.value is None else "=" if name.startswith("--") else "+"
                value = "" if option.value is None else f":{_zsh_value(option.value)}"
                arguments.append(_quote(f"*{name}{sign}[{_zsh_escape(option.help)}]{value}"))
        last = len(command.operands) - 1
        for i, operand in enumerate(command.operands):
            repetition = "*" if i == last and command.repeats else ""
            arguments.append(_quote(f"{repetition}:{_zsh_value(operand)}"))
        cases.append(f"    {command.name})\n      _arguments " + " \\\n        ".join(arguments) + " ;;")
    return _ZSH.format(commands=descriptions, models=" ".join(names), cases="\n".join(cases))


def _zsh_value(value: Value) -> str:
    words = f"({' '.join(value.words)})" if value.words else ""
    functions = {SPECS: "_archspec_specs", FILES: "_files"}
    return f"{_zsh_escape(value.name)}:{words or functions.get(value.kind, ' ')}"


def _zsh_escape(text: str) -> str:
    for character in "\\[]:":
        text = text.replace(character, "\\" + character)
    return text


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


_ZSH = """\
#compdef archspec
# Completions of archspec for zsh: source <(archspec completions zsh)

_archspec_specs() {{
  local -a models
  models=({models})
  _alternative 'models:model:compadd -a models' 'files:file:_files'
}}

_archspec() {{
  local -a commands
  commands=(
{commands}
  )
  if ((CURRENT == 2)); then
    _alternative 'commands:command:{{_describe command commands}}' 'options:option:(--help --version)'
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{cases}
  esac
}}

if [[ $funcstack[1] == _archspec ]]; then _archspec "$@"; else compdef _archspec archspec; fi
"""


# fish -----------------------------------------------------------------------------------------------------------------


def _fish(commands: Sequence[CompletedCommand], names: Sequence[str]) -> str:
    command_names = " ".join(command.name for command in commands)
    lines = [
        "# Completions of archspec for fish: archspec completions fish | source",
        "complete -c archspec -f",
        f"set -l commands {command_names}",
        'complete -c archspec -n "not __fish_seen_subcommand_from $commands" -l help -d "show a help message"',
        'complete -c archspec -n "not __fish_seen_subcommand_from $commands" -l version -d "show the version"',
    ]
    for command in commands:
        lines.append(
            f'complete -c archspec -n "not __fish_seen_subcommand_from $commands" -a {command.name} '
            f"-d {_fish_quote(command.help)}"
        )
    for command in commands:
        start = f'complete -c archspec -n "__fish_seen_subcommand_from {command.name}"'
        for option in command.options:
            flags = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            lines.append(f"{start} {flags} -d {_fish_quote(option.help)}{_fish_value(option.value, names)}")
        for operand in dict.fromkeys(command.operands):
            lines.append(f"{start}{_fish_value(operand, names, operand=True)}")
    return "\n".join(lines) + "\n"


def _fish_value(value: Value | None, names: Sequence[str], operand: bool = False) -> str:
    if value is None:
        return ""
    words = value.words or (tuple(names) if value.kind == SPECS else ())
    required = "" if operand else " -r"
    files = " -F" if value.kind else " -f"
    return f"{required}{files}" + (f" -a {_fish_quote(' '.join(words))}" if words else "")


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
