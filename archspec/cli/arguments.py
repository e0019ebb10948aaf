"""What the command line accepts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from archspec import __version__
from archspec.analyses.select import Rule
from archspec.cli import commands, formula

FORMATS = ("table", "json", "yaml", "csv", "markdown")

_SPEC = "a bundled name, a path (`file.arch`, or `-` for standard input), or `file.arch:model name`"


class Command(NamedTuple):
    """A command: what runs it, its help, and what adds its arguments to a parser."""

    run: Callable[[argparse.Namespace], int]
    help: str
    arguments: Callable[[argparse.ArgumentParser], None]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options, with `run`, the command's function, which takes them and returns the exit status.

    Raises SystemExit after --help, --version or wrong usage, when all has been said.
    """
    root = argparse.ArgumentParser(
        prog="archspec",
        description="Exact parameter counts and graphs of neural network architectures written in .arch files.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"archspec-dsl {__version__}")
    subparsers = root.add_subparsers(prog="archspec", dest="command", metavar="COMMAND", required=True)
    for name, command in _COMMANDS.items():
        description = f"{command.help[0].upper()}{command.help[1:]}."
        parser = subparsers.add_parser(
            name, help=command.help, description=description, formatter_class=_formatter, allow_abbrev=False
        )
        parser.set_defaults(run=command.run)
        if name in arguments:  # the others cost time and could not be used
            command.arguments(parser)
    # `-:name` is no option, which argparse sees by a space in it.
    return root.parse_args([f"-: {a[2:]}" if a.startswith("-:") else a for a in arguments])


def _formatter(prog: str) -> argparse.HelpFormatter:
    """As argparse makes it, but for importing `shutil` to measure the terminal."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        width = 80
    return argparse.HelpFormatter(prog, width=max(width, 20) - 2)


def _count(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--by", choices=("tensor", "layer", "block", "role"), help="a flat table; without it, a tree of the layers"
    )
    parser.add_argument("--depth", metavar="N", type=_depth, help="sum up what is nested deeper than N levels")
    parser.add_argument(
        "--select", metavar="GLOB", action=_Rule, dest="rules", default=[], help="count tensors of these names"
    )
    parser.add_argument(
        "--exclude",
        metavar="GLOB",
        action=_Rule,
        dest="rules",
        default=[],
        help="leave these out; `*` crosses dots, and of --select and --exclude the last that matches decides",
    )
    _format(parser)


def _graph(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument("--level", choices=("layer", "block", "op"), default="layer", help="what a node is (layer)")
    parser.add_argument("--depth", metavar="N", type=_depth, help="with --level block: open N levels of blocks")
    parser.add_argument("--to", choices=("dot", "mermaid", "json"), default="dot", help="what to write (dot)")
    parser.add_argument(
        "--fold",
        action=argparse.BooleanOptionalAction,
        help="draw a stack of equal blocks once; so it is in pictures, and not in json, unless said otherwise",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument("--force", action="store_true", help="let -o replace a file")


def _formula(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--open", metavar="NAME,...", action="append", default=[], help="the hyperparameters that are left open"
    )
    parser.add_argument(
        "--format", choices=("text", "latex", "json", "yaml"), default="text", help="how to write it (text)"
    )


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a bundled model")


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="PATH", nargs="+", help="a spec file, or `-` for standard input")


def _error(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="the code between brackets in a message; none: all codes"
    )


def _spec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help=_SPEC)
    parser.add_argument(
        "--set", metavar="NAME=VALUE", action="append", default=[], dest="settings", help="override a hyperparameter"
    )


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="table", help="how to write it (table)")


def _depth(text: str) -> int:
    try:
        depth = int(text)
    except ValueError:
        depth = 0
    if depth < 1:
        raise argparse.ArgumentTypeError(f"a depth is a number from 1, not {text!r}")
    return depth


class _Rule(argparse.Action):
    """Collects --select and --exclude in one list, as their order matters."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        rule = Rule(option_string == "--select", str(values))
        namespace.rules = [*namespace.rules, rule]


_COMMANDS = {
    "list": Command(commands.run_list, "the bundled models and their totals", _format),
    "show": Command(commands.run_show, "the text of the spec that holds a bundled model", _show),
    "check": Command(commands.run_check, "check spec files and report every mistake in them", _check),
    "count": Command(commands.run_count, "a model's parameters: by layer, and what the total is made of", _count),
    "graph": Command(commands.run_graph, "a model's graph as a picture (DOT, Mermaid) or as data (JSON)", _graph),
    "formula": Command(formula.run_formula, "a model's parameters as a polynomial in its hyperparameters", _formula),
    "error": Command(commands.run_error, "what a diagnostic code means, with an example and the mend", _error),
}
