"""Parsers of arguments whose errors are diagnostics that suggest what was probably meant."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from itertools import takewhile
from typing import Any, NoReturn

from archspec.app.cli.commands import COMMANDS, Command
from archspec.core.diagnostics import ArchError, closest_match, make_error, suggest
from archspec.core.reports.text import listed
from archspec.core.resources import package_path
from archspec.pipeline.index import models


class Parser(argparse.ArgumentParser):
    """The parser of `archspec`, or of one of its commands."""

    def error(self, message: str) -> NoReturn:
        """Raise ArchError instead of printing the usage, which is long."""
        message = message.replace("the following arguments are required:", "missing argument:")
        examples = self.examples()
        example = f"for example, `{examples[0]}`; " if examples else ""
        raise make_error("usage", message, help=f"{example}`{self.prog} --help` lists all arguments")

    def format_help(self) -> str:
        """Return the help, with examples at its end."""
        self.epilog = "\n  ".join(["examples:", *self.examples()])
        return super().format_help()

    def examples(self) -> list[str]:
        """Return examples of the command, as lines for a shell."""
        with open(package_path("app", "cli", "examples.txt"), encoding="utf-8") as file:
            return [line.rstrip("\n") for line in file if line.split()[:2] == self.prog.split()]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if action.dest == "command":
            raise _unknown_command_error(value)
        choices = [*map(str, action.choices)]
        option = "/".join(action.option_strings) or action.metavar
        message = f"invalid {option} `{value}`: expected {listed(choices, 'or')}"
        raise make_error("usage", message, help=suggest(value, choices))


def check_options(name: str, arguments: Sequence[str], parser: argparse.ArgumentParser) -> None:
    """Report an unknown option of a command, before arguments that are missing. Raises ArchError."""
    options = _options_of(parser)
    for argument in takewhile(lambda argument: argument != "--", arguments):
        option = argument.partition("=")[0]
        if re.fullmatch(r"-[A-Za-z]|--[A-Za-z][\w-]*", option) and option not in options:
            message = f"unknown option `{option}` of `archspec {name}`"
            raise make_error("usage", message, help=_suggest_option(name, option, options))


def unexpected_argument_error(name: str | None, argument: str) -> ArchError:
    """Return an ArchError about an argument that is too many, for the caller to raise."""
    near = suggest(argument, ["--help", "--version"]) if name is None else None
    help = near or f"`archspec {name or ''} --help` lists all arguments".replace("  ", " ")
    return make_error("usage", f"unexpected argument `{argument}`", help=help)


def _options_of(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    actions = parser._actions  # pyright: ignore[reportPrivateUsage] -- argparse has no public list of them
    return {option: action for action in actions for option in action.option_strings}


def _suggest_option(name: str, option: str, options: dict[str, argparse.Action]) -> str:
    value = option.removeprefix("--")
    for other, action in options.items():  # `--json` for `--format json`
        if action.choices is not None and value in action.choices:
            return f"did you mean `{other} {value}`?"
    if option in ("-o", "--output"):
        picture = "`--svg FILE` draws a picture; " if "--svg" in options else ""
        return f"{picture}to write the output to a file, append `> FILE`"
    others = {other: _options_of(command_parser(other, command)) for other, command in COMMANDS.items()}
    names = [*dict.fromkeys(long for owned in others.values() for long in owned if long.startswith("--"))]
    owned = option if option in names else closest_match(option, [*options]) or closest_match(option, names, 0.75)
    if owned in options:
        return f"did you mean `{owned}`?"
    owners = [f"`{other}`" for other in others if owned in others[other]]
    hint = f"{owned} is an option of {listed(owners)}; " if owners else ""
    return f"{hint}`archspec {name} --help` lists the options"


def command_parser(name: str, command: Command) -> argparse.ArgumentParser:
    """Return a parser of the arguments of a command, with its help as the description."""
    parser = argparse.ArgumentParser(prog=f"archspec {name}", description=command.help)
    command.arguments(parser)
    return parser


def _unknown_command_error(name: str) -> ArchError:
    from difflib import get_close_matches  # imported late: only errors need it

    described = [other for other, command in COMMANDS.items() if name.lower() in re.split(r"\W+", command.help.lower())]
    near = get_close_matches(name, COMMANDS, 2) or described[:3]
    help = "`archspec --help` lists the commands"
    if f"--{name}" in ("--version", "--help"):
        help = f"did you mean `archspec --{name}`?"
    elif name in models() or any(sign in name for sign in "./:"):
        help = f"to count the parameters of a model: `archspec count {name}`"
    elif near:
        help = f"did you mean {listed([f'`{other}`' for other in near], 'or')}?"
    return make_error("usage", f"unknown command `{name}`", help=help)
