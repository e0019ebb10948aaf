"""Parsing of the command line: the command and its arguments."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence

from archspec import __distribution__, __version__
from archspec.app.cli.commands import COMMANDS
from archspec.app.cli.usage import Parser, check_options, command_parser, unexpected_argument_error
from archspec.core.resources import package_path
from archspec.formats.configs.configuration import Configuration
from archspec.pipeline.index import resolve_name
from archspec.pipeline.locate import split_spec

_MODEL_ARGUMENTS = frozenset({"spec", "a", "b", "others", "config", "base"})
"""Names of the arguments that specify models."""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. `run` of the result runs the command: it takes the result and returns the exit status.

    Raises SystemExit after printing --help or --version, and ArchError for invalid usage.
    """
    if list(arguments[:1]) == ["help"]:
        arguments = [*arguments[1:2], "--help"]
    root = Parser(
        prog="archspec",
        description="Exact parameter counts and graphs of neural network architectures.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    root.set_defaults(run=_print_short_help)
    root.add_argument("--version", action=_PrintVersion, nargs=0, help="show the version and its location, and exit")
    subparsers = root.add_subparsers(prog="archspec", dest="command", metavar="COMMAND")
    named = [name for name in arguments[:1] if name in COMMANDS]
    for name in named or COMMANDS:  # creating the parsers of all commands takes time
        command = COMMANDS[name]
        parser = subparsers.add_parser(
            name,
            help=command.help,
            description=f"{command.help[0].upper()}{command.help[1:]}.",
            formatter_class=_formatter,
            allow_abbrev=False,
        )
        parser.set_defaults(run=command.run)
        if name in arguments:
            command.arguments(parser)
            check_options(name, arguments, parser)
    # `-:name` is a spec, but argparse parses it as an option unless it contains a space
    joined = [f"-: {a[2:]}" if a.startswith("-:") else a for a in _join_option_values(arguments)]
    options, surplus = root.parse_known_args(joined)
    if surplus:
        raise unexpected_argument_error(options.command, surplus[0])
    if any(getattr(options, name, None) for name in ("type", "ignore", "strict")):
        _apply_reading_options(options)
    return options


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, with its help as the description."""
    return {name: command_parser(name, command) for name, command in COMMANDS.items()}


class _PrintVersion(argparse.Action):
    """An option that prints the version in one line, however long the path is."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print(f"{__distribution__} {__version__} from {package_path()}")
        parser.exit()


def _apply_reading_options(options: argparse.Namespace) -> None:
    """Replace the specs of models by configurations with the values of --type, --ignore and --strict."""

    def configuration(spec: str) -> Configuration:
        return Configuration(spec, options.type, tuple(options.ignore), options.strict)

    for name in _MODEL_ARGUMENTS & vars(options).keys():
        value: str | list[str] | None = getattr(options, name)
        if value is not None:
            setattr(options, name, configuration(value) if isinstance(value, str) else [*map(configuration, value)])


def resolve_names(options: argparse.Namespace) -> list[str]:
    """Replace other names of bundled models by the names that they mean; return a note on each."""
    notes: list[str] = []

    def resolve(name: object) -> object:
        model = resolve_name(name) if isinstance(name, str) and split_spec(name)[0] is None else None
        if model in (None, name):
            return name
        notes.append(f"note: reading `{name}` as the bundled model `{model}`")
        return model

    for name in sorted({*_MODEL_ARGUMENTS, "name"} & vars(options).keys()):
        value: str | list[str] = getattr(options, name)
        setattr(options, name, [*map(resolve, value)] if isinstance(value, list) else resolve(value))
    return notes


def _print_short_help(options: argparse.Namespace) -> int:
    """Print a short help, for a command line without a command; return the exit status."""
    with open(package_path("app", "cli", "introduction.txt"), encoding="utf-8") as text:
        sys.stdout.write(text.read())
    return 0


def _join_option_values(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--set NAME VALUE` as `--set NAME=VALUE`, and `--best -X` as `--best=-X`."""
    result: list[str] = []
    for argument in arguments:
        is_override = result[-2:-1] == ["--set"] and re.fullmatch(_OVERRIDE_NAME, result[-1])
        if (is_override or (result[-1:] == ["--best"] and argument.startswith("-"))) and not argument.startswith("--"):
            result[-1] += f"={argument}"
        else:
            result.append(argument)
    return result


_OVERRIDE_NAME = r"(?:\d+:)?[A-Za-z_]\w*"


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Create the formatter of help. Its own width would import `shutil`, which is slow."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        width = 80
    return argparse.RawDescriptionHelpFormatter(prog, width=max(width, 20) - 2)
