"""What the command line accepts."""

# Without `from __future__ import annotations`, which would have NamedTuple compile each annotation at import.
import argparse
import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from archspec import __version__
from archspec.counts.select import Rule

FORMATS = ("table", "json", "yaml", "csv", "markdown")

_SPEC = (
    "a bundled name, a path (`file.arch`, or `-` for standard input), `file.arch:model name`, or a configuration "
    "(`config.json`)"
)


class Command(NamedTuple):
    """A command: its help, what adds its arguments to a parser, and its module here if that has another name."""

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    module: str = ""

    def run(self, options: argparse.Namespace) -> int:
        """Runs the command, whose module is imported only now. Returns the exit status."""
        return import_module(f"archspec.cli.{self.module or options.command}").run(options)


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
    named = [name for name in arguments[:1] if name in _COMMANDS]
    for name in named or _COMMANDS:  # the others take time, and cannot be used
        command = _COMMANDS[name]
        description = f"{command.help[0].upper()}{command.help[1:]}."
        parser = subparsers.add_parser(
            name, help=command.help, description=description, formatter_class=_formatter, allow_abbrev=False
        )
        parser.set_defaults(run=command.run)
        if name in arguments:
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
    _output(parser)


def _build(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument("--to", choices=("torch",), default="torch", help="what to write (torch)")
    _output(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", metavar="CONFIG", help="a configuration that ends in .json")
    _output(parser)


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument("--force", action="store_true", help="let -o replace a file")


def _cost(parser: argparse.ArgumentParser) -> None:
    from archspec.costs.memory import ATTENTION, BYTES

    _spec(parser)
    _dims(parser)
    parser.add_argument("--dtype", choices=(*BYTES,), default="float32", help="the type of the weights (float32)")
    parser.add_argument(
        "--attention",
        choices=ATTENTION,
        help="count the memory of activations, with this form of attention (needs torch)",
    )
    parser.add_argument("--depth", metavar="N", type=_depth, help="sum up what is nested deeper than N levels")
    _format(parser)


def _dims(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", metavar="B", type=_size, help="the size of the dimension `batch`")
    parser.add_argument("--seq", metavar="S", type=_size, help="the size of the dimension `seq`")
    parser.add_argument(
        "--dim",
        metavar="NAME=N",
        action="append",
        default=[],
        dest="dims",
        help="the size of any dimension; what depends on one that has none is a formula",
    )


def _formula(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--open", metavar="NAME,...", action="append", default=[], help="the hyperparameters that are left open"
    )
    parser.add_argument(
        "--format", choices=("text", "latex", "json", "yaml"), default="text", help="how to write it (text)"
    )


def _verify(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a file, an index of shards, or a folder of these")
    parser.add_argument(
        "--rename",
        metavar="OLD=NEW",
        action="append",
        default=[],
        dest="renames",
        help="read names of the checkpoint that match OLD as NEW; each `*` keeps what it stands for (`model.*=*`)",
    )
    _format(parser)


def _scaffold(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", metavar="CHECKPOINT", help="a file, an index of shards, or a folder of these")
    _output(parser)


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


def _size(text: str) -> int:
    try:
        size = int(text)
    except ValueError:
        size = 0
    if not 1 <= size < 2**63:
        raise argparse.ArgumentTypeError(f"a size is an integer from 1 to 2^63 - 1, not {text[:40]!r}")
    return size


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


def _explain(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument("number", metavar="NUMBER", help="exact (108808704; 108,808,704) or rounded (110M, 0.34B)")
    _format(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an audit (`file.yaml`), or the name of a bundled one")
    _format(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=_SPEC)
    parser.add_argument("others", metavar="B", nargs="+", help="what it is compared with, of the same form")
    _settings(parser)
    parser.add_argument("--depth", metavar="N", type=_depth, default=1, help="open the parts N levels deep (1)")
    _dims(parser)
    parser.add_argument("--svg", metavar="FILE", help="draw the parts of two models as bars, in a file")
    parser.add_argument("--force", action="store_true", help="let --svg replace a file")
    _format(parser)


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=_SPEC)
    parser.add_argument("b", metavar="B", help="what it is compared with, of the same form")
    _settings(parser)
    _format(parser)


def _settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        metavar="[K:]NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="override a hyperparameter of every model, or of the K-th alone (`2:layers=6`)",
    )


_COMMANDS = {
    "list": Command("the bundled models and their totals", _format, "list_models"),
    "show": Command("the text of the spec that holds a bundled model", _show),
    "check": Command("check spec files and report every mistake in them", _check),
    "count": Command("a model's parameters: by layer, and what the total is made of", _count),
    "cost": Command("what a model costs: multiply-accumulates, FLOPs, and bytes of memory", _cost),
    "formula": Command("a model's parameters as a polynomial in its hyperparameters", _formula),
    "graph": Command("a model's graph as a picture (DOT, Mermaid) or as data (JSON)", _graph),
    "build": Command("a model as code that runs: a readable Python file for PyTorch", _build),
    "compare": Command("models side by side: hyperparameters, parameters by part and role, costs", _compare),
    "diff": Command("what differs between two models: tensors, and operations between layers", _diff),
    "import": Command("a spec from the configuration of a model (`config.json`)", _import, "import_config"),
    "explain": Command("which way of counting gives a published number of parameters", _explain),
    "audit": Command("a published calculation, line by line: what is right, what is not, and why", _audit),
    "verify": Command("whether a checkpoint holds the tensors of a model, from its headers alone", _verify),
    "scaffold": Command("a first spec of a checkpoint, from its headers: what it owns", _scaffold),
    "error": Command("what a diagnostic code means, with an example and the mend", _error),
}
"""The commands. `run` in a command's module takes the parsed arguments, writes to standard output, and returns the exit
status.
"""
