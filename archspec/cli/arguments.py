"""What the command line accepts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from archspec import __version__
from archspec.analyses.select import Rule
from archspec.cli import commands

FORMATS = ("table", "json", "yaml", "csv", "markdown")

_SPEC = "a bundled name, a path (`file.arch`, or `-` for standard input), or `file.arch:model name`"


def parser() -> argparse.ArgumentParser:
    """The parser; what it returns has `run`, the command's function, which takes it and returns the exit status."""
    root = argparse.ArgumentParser(
        prog="archspec",
        description="Exact parameter counts and graphs of neural network architectures written in .arch files.",
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"archspec {__version__}")
    subparsers = root.add_subparsers(prog="archspec", dest="command", metavar="COMMAND", required=True)

    def command(name: str, help: str) -> argparse.ArgumentParser:
        sub = subparsers.add_parser(name, help=help, description=f"{help[0].upper()}{help[1:]}.", allow_abbrev=False)
        sub.set_defaults(run=getattr(commands, f"run_{name}"))
        return sub

    listing = command("list", "the bundled models and their totals")
    _format(listing)
    show = command("show", "the text of the spec that holds a bundled model")
    show.add_argument("name", metavar="NAME", help="a bundled model")
    check = command("check", "check spec files and report every mistake in them")
    check.add_argument("paths", metavar="PATH", nargs="+", help="a spec file, or `-` for standard input")
    _count(command("count", "a model's parameters: by layer, and what the total is made of"))
    _graph(command("graph", "a model's graph as a picture (DOT, Mermaid) or as data (JSON)"))
    error = command("error", "what a diagnostic code means, with an example and the mend")
    error.add_argument(
        "code", metavar="CODE", nargs="?", help="the code between brackets in a message; all, without one"
    )
    return root


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
