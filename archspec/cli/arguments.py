"""The commands and their arguments."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module

from archspec import __version__
from archspec.configuration import Configuration
from archspec.counts.select import Rule
from archspec.record import Record

FORMATS = ("table", "json", "yaml", "csv", "markdown")

_SPEC = (
    "a bundled name, a path (`file.arch`, or `-` for standard input), `file.arch:model name`, a configuration "
    "(`config.json`, or its directory), or a name on the hub (`owner/name`)"
)
_NAMES = frozenset({"spec", "a", "b", "others", "config", "base"})
"""The arguments that name models."""


class Command(Record):
    """A command: its help, the function that adds its arguments, and its module if that has a different name.

    `repeats`: with `--watch`, it is run again after each change of a file.
    """

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    module: str = ""
    repeats: bool = False

    def run(self, options: argparse.Namespace) -> int:
        """Import the module of the command and run it. Returns the exit status."""
        run = import_module(f"archspec.cli.{self.module or options.command}").run
        if self.repeats and options.watch:
            return import_module("archspec.cli.watching").watched(options, run)
        return run(options)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments. `run` of the result is the command's function: it takes the result, returns the exit status.

    Raises SystemExit after printing --help, --version or a usage error.
    """
    root = argparse.ArgumentParser(
        prog="archspec",
        description="Exact parameter counts and graphs of neural network architectures written in .arch files.",
        formatter_class=_formatter,
        allow_abbrev=False,
    )
    root.set_defaults(run=_introduce)
    root.add_argument("--version", action="version", version=f"archspec-dsl {__version__}")
    subparsers = root.add_subparsers(prog="archspec", dest="command", metavar="COMMAND")
    named = [name for name in arguments[:1] if name in _COMMANDS]
    for name in named or _COMMANDS:  # setting up the other parsers takes time
        command = _COMMANDS[name]
        description = f"{command.help[0].upper()}{command.help[1:]}."
        parser = subparsers.add_parser(
            name, help=command.help, description=description, formatter_class=_formatter, allow_abbrev=False
        )
        parser.set_defaults(run=command.run)
        if name in arguments:
            command.arguments(parser)
    # `-:name` is not an option; a space in it keeps argparse from reading it as one.
    options = root.parse_args([f"-: {a[2:]}" if a.startswith("-:") else a for a in _with_values(arguments)])
    if getattr(options, "type", None) or getattr(options, "ignore", None):
        _configure(options)
    return options


def parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parser of each command, with its help as the description."""
    found: dict[str, argparse.ArgumentParser] = {}
    for name, command in _COMMANDS.items():
        found[name] = argparse.ArgumentParser(prog=f"archspec {name}", description=command.help, allow_abbrev=False)
        command.arguments(found[name])
    return found


def _configure(options: argparse.Namespace) -> None:
    """Let the names of models stand for configurations that are read as --type and --ignore specify."""

    def read_as(spec: str) -> Configuration:
        return Configuration(spec, options.type, tuple(options.ignore))

    for name in _NAMES & vars(options).keys():
        given: str | list[str] | None = getattr(options, name)
        if given is not None:
            setattr(options, name, read_as(given) if isinstance(given, str) else [*map(read_as, given)])


def _introduce(options: argparse.Namespace) -> int:
    """Write a short help, for a command line without a command. Returns the exit status."""
    with open(os.path.join(os.path.dirname(__file__), "introduction.txt"), encoding="utf-8") as text:
        sys.stdout.write(text.read())
    return 0


def _with_values(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with `--set NAME VALUE` as `--set NAME=VALUE`, and `--best -X` as `--best=-X`."""
    found: list[str] = []
    for argument in arguments:
        is_setting = found[-2:-1] == ["--set"] and re.fullmatch(_SETTING, found[-1])
        if (is_setting or (found[-1:] == ["--best"] and argument.startswith("-"))) and not argument.startswith("--"):
            found[-1] += f"={argument}"
        else:
            found.append(argument)
    return found


_SETTING = r"(?:\d+:)?[A-Za-z_]\w*"


def _formatter(prog: str) -> argparse.HelpFormatter:
    """Create the default formatter, without importing `shutil` to measure the terminal."""
    try:
        width = int(os.environ.get("COLUMNS") or os.get_terminal_size().columns)
    except (ValueError, OSError):
        width = 80
    return argparse.HelpFormatter(prog, width=max(width, 20) - 2)


def _count(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    _base(parser)
    _watch(parser)
    parser.add_argument(
        "--by", choices=("tensor", "layer", "block", "role"), help="print a flat table instead of the tree of layers"
    )
    parser.add_argument("--depth", metavar="N", type=_depth, help="combine everything nested deeper than N levels")
    parser.add_argument(
        "--select",
        metavar="GLOB",
        action="append",
        type=partial(Rule, True),
        dest="rules",
        default=[],
        help="count the tensors with matching names",
    )
    parser.add_argument(
        "--exclude",
        metavar="GLOB",
        action="append",
        type=partial(Rule, False),
        dest="rules",
        default=[],
        help="do not count these; `*` also matches dots, and the last matching --select or --exclude applies",
    )
    _format(parser)


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", metavar="WORD", nargs="?", default="", help="list the models and families with this name"
    )
    _format(parser)


def _graph(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--level", choices=("layer", "block", "op"), help="type of a node (layer, or block with --depth)"
    )
    parser.add_argument("--depth", metavar="N", type=_depth, help="expand N levels of blocks")
    parser.add_argument(
        "--to",
        "--format",
        choices=("svg", "png", "pdf", "html", "dot", "mermaid", "mmd", "json", "graphml", "gexf"),
        default="",
        help="output format (from the extension of FILE; otherwise dot)",
    )
    parser.add_argument(
        "--fold",
        action=argparse.BooleanOptionalAction,
        help="show a stack of equal blocks once (default, except for json)",
    )
    parser.add_argument(
        "--color",
        choices=("role", "params", "flops", "bytes"),
        default="role",
        help="what colors show: roles, or shares of parameters, FLOPs or bytes of results (svg, png, pdf)",
    )
    parser.add_argument("--dark", action="store_true", help="use a dark background (svg, png, pdf)")
    _dims(parser)
    _output(parser)
    _watch(parser)


def _view(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument("--watch", action="store_true", help="renew the page whenever the spec is saved")


def _build(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--to",
        choices=("torch", "transformers"),
        default="torch",
        help="a PyTorch file (torch, the default), or a folder for -o that transformers loads",
    )
    parser.add_argument("--prove", action="store_true", help="prove that the code computes what the spec does")
    _output(parser)


def _lift(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="FILE.py[:FACTORY], a function or class that returns a module (build); a `config.json` of transformers; "
        "`timm:NAME` or `torchvision:NAME`",
    )
    parser.add_argument(
        "--input",
        metavar="NAME=DTYPE[SIZES]",
        action="append",
        default=[],
        dest="inputs",
        help="an input of the module of a file: `ids=int[batch,seq]`, `x=real[batch,64]`",
    )
    _output(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", metavar="CONFIG", help="a `config.json`, its directory, `-` for standard input, or a name on the hub"
    )
    _reading(parser)
    _output(parser)


def _output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument("--force", action="store_true", help="let -o overwrite a file")


def _cost(parser: argparse.ArgumentParser) -> None:
    from archspec.costs.memory import ATTENTION, BITS

    _spec(parser)
    _dims(parser)
    parser.add_argument("--dtype", choices=(*BITS,), default="float32", help="data type of the weights (float32)")
    parser.add_argument(
        "--past", metavar="N", type=_past, help="the cost of a decoding step: one position after N others, with a cache"
    )
    parser.add_argument(
        "--cache-dtype",
        choices=(*BITS,),
        help="data type of the cache (as the weights; bfloat16 if they are quantized)",
    )
    parser.add_argument(
        "--attention",
        choices=ATTENTION,
        help="include the memory of activations, with this attention implementation (requires torch)",
    )
    parser.add_argument(
        "--causal-half", action="store_true", help="count the products of causal attention as half (in full)"
    )
    parser.add_argument("--depth", metavar="N", type=_depth, help="combine everything nested deeper than N levels")
    _format(parser)


def _dims(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--batch", metavar="B", type=_size, help="size of the dimension `batch`")
    parser.add_argument("--seq", metavar="S", type=_size, help="size of the dimension `seq`")
    parser.add_argument(
        "--dim",
        metavar="NAME=N",
        action="append",
        default=[],
        dest="dims",
        help="size of any dimension; values that depend on dimensions without a size are formulas",
    )


def _formula(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--open", metavar="NAME,...", action="append", default=[], help="hyperparameters to keep symbolic"
    )
    parser.add_argument(
        "--format", choices=("text", "latex", "json", "yaml"), default="text", help="output format (text)"
    )
    _wide(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    _base(parser)
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        nargs="?",
        help="a file, an index of shards, their directory, or a name on the hub",
    )
    parser.add_argument(
        "--module",
        metavar="FILE.py[:FACTORY]",
        help="instead of a checkpoint: prove that the PyTorch module that a function or class returns (build) is equal",
    )
    parser.add_argument(
        "--rename",
        metavar="OLD=NEW",
        action="append",
        default=[],
        dest="renames",
        help="rename tensors of the checkpoint from OLD to NEW; each `*` keeps the text that it matches (`model.*=*`)",
    )
    _format(parser)


def _scaffold(parser: argparse.ArgumentParser) -> None:
    _checkpoint(parser)
    _output(parser)


def _checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="a file, an index of shards, their directory, or a name on the hub"
    )


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a bundled model, file or definition")


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a spec file, a directory of them, a configuration, or `-` for standard input",
    )
    _reading(parser)
    parser.add_argument("--strict", action="store_true", help="exit with status 1 after warnings, too")
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text", help="output format (text)"
    )
    _watch(parser)


def _watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--watch", action="store_true", help="run again whenever a file changes, until interrupted")


def _fmt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["."],
        help="a spec file, a directory of them, or `-` for standard input (the current directory)",
    )
    parser.add_argument("--check", action="store_true", help="change no file; exit with status 1 if one would change")
    parser.add_argument("--diff", action="store_true", help="like --check, and print what would change")


def _completions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _error(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="the code in brackets in a diagnostic; omit it to list all codes"
    )


def _spec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help=_SPEC)
    _set(parser, "NAME=VALUE", "override a hyperparameter")
    _reading(parser)


def _base(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", metavar="SPEC", help="base model of an adapter (the one that the adapter names)")


def _reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--type", help="`model_type` of a configuration that does not specify one")
    parser.add_argument(
        "--ignore",
        metavar="NAME",
        action="append",
        default=[],
        help="ignore an unknown field of a configuration, because it has no effect; `*` matches any characters",
    )


def _set(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    parser.add_argument("--set", metavar=metavar, action="append", default=[], dest="settings", help=help)


def _format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (table)")
    _wide(parser)


def _wide(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--wide", action="store_true", help="print tables in full, also if they exceed the terminal")


def _jobs(text: str) -> int:
    return _integer(text, 1, 1024, f"expected a number of processes from 1 to 1024, found {text[:40]!r}")


def _depth(text: str) -> int:
    return _integer(text, 0, float("inf"), f"expected a depth of at least 0, found {text!r}")


def _size(text: str) -> int:
    return _integer(text, 1, 2**63 - 1, f"expected a size from 1 to 2^63 - 1, found {text[:40]!r}")


def _past(text: str) -> int:
    return _integer(text, 0, 2**63 - 2, f"expected a number of positions from 0 to 2^63 - 2, found {text[:40]!r}")


def _integer(text: str, least: int, most: float, message: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(message)
    return number


def _explain(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument("number", metavar="NUMBER", help="exact (108808704; 108,808,704) or rounded (110M, 0.34B)")
    parser.add_argument("--flops", action="store_true", help="explain a number of FLOPs instead of parameters")
    _dims(parser)
    _format(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an audit file (`file.yaml`), or the name of a bundled audit")
    _format(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=_SPEC)
    parser.add_argument("others", metavar="B", nargs="+", help="the models to compare it with, specified like A")
    _set(parser, "[K:]NAME=VALUE", "override a hyperparameter of every model, or only of the K-th (`2:layers=6`)")
    _reading(parser)
    parser.add_argument("--depth", metavar="N", type=_depth, default=1, help="expand components N levels deep (1)")
    _dims(parser)
    _pictures(parser)
    _format(parser)


def _pictures(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--svg", metavar="FILE", help="draw the models side by side, with what differs marked, as SVG")
    parser.add_argument("--html", metavar="FILE", help="write a page with this picture and the tables")
    parser.add_argument("--dark", action="store_true", help="use a dark background (--svg)")
    parser.add_argument("--force", action="store_true", help="let --svg and --html overwrite files")


def _search(parser: argparse.ArgumentParser) -> None:
    _spec(parser)
    parser.add_argument(
        "--vary",
        metavar="NAME=VALUES",
        action="append",
        default=[],
        help="vary a hyperparameter: a range with its end (2..24, 256..1024:64), a list, or an expression",
    )
    parser.add_argument(
        "--where", metavar="CONDITION", action="append", default=[], help="keep designs with this (params < 30M)"
    )
    parser.add_argument(
        "--best",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="prefer large values (`-params`: small ones); several give the designs that no other is better than",
    )
    parser.add_argument("--near", metavar="EXPRESSION=N", help="the designs that are nearest to a value (params=50M)")
    parser.add_argument("--all", action="store_true", help="write all designs that satisfy the conditions, too")
    parser.add_argument(
        "--jobs", metavar="N", type=_jobs, default=1, help="compile designs without formulas in N processes (1)"
    )
    parser.add_argument("--svg", metavar="FILE", help="plot the designs as SVG")
    parser.add_argument("--html", metavar="FILE", help="write a page with the plot and the table")
    parser.add_argument("--dark", action="store_true", help="use a dark background (--svg)")
    parser.add_argument("--format", choices=(*FORMATS, "parquet"), default="table", help="output format (table)")
    _wide(parser)
    _output(parser)


def _new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the spec to write")
    parser.add_argument("--from", metavar="SPEC", required=True, dest="spec", help=_SPEC)
    _set(parser, "NAME=VALUE", "override a hyperparameter")
    parser.add_argument("--block", metavar="NAME", help="copy a definition of the model, to be changed")
    _reading(parser)
    parser.add_argument("--force", action="store_true", help="overwrite a file")


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=_SPEC)
    parser.add_argument("b", metavar="B", help="the model to compare it with, specified like A")
    _set(parser, "[K:]NAME=VALUE", "override a hyperparameter of every model, or only of the K-th (`2:layers=6`)")
    _reading(parser)
    _pictures(parser)
    _format(parser)


def _lsp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--stdio", action="store_true", help="use standard input and output (always the case)")


_COMMANDS = {
    "list": Command("list the bundled models and their parameter counts", _list, "list_models"),
    "show": Command("print the source of a bundled spec or definition", _show),
    "check": Command("report all errors in one or more files", _check, repeats=True),
    "fmt": Command("format specs in the canonical layout", _fmt),
    "count": Command("count parameters, as a tree or by tensor, layer, block or role", _count, repeats=True),
    "cost": Command("compute multiply-accumulates, FLOPs, elementwise operations and memory", _cost),
    "formula": Command("derive the parameter count as a polynomial in open hyperparameters", _formula),
    "graph": Command("write the computation graph as a picture or as data", _graph, repeats=True),
    "view": Command("open an interactive picture of a model in a browser", _view),
    "build": Command("generate PyTorch code", _build),
    "search": Command("search combinations of hyperparameters for the best designs", _search),
    "new": Command("write the first file of a variant of a model", _new),
    "compare": Command("compare models side by side: hyperparameters, parameters, costs", _compare),
    "diff": Command("list the tensors and operations that differ between two models", _diff),
    "import": Command("convert a Hugging Face `config.json` to a spec", _import, "import_config"),
    "lift": Command("describe a PyTorch module by a spec", _lift),
    "explain": Command("find the counting conventions that give a published number", _explain),
    "audit": Command("check a published calculation line by line", _audit),
    "verify": Command("check that a checkpoint stores exactly the tensors of a model", _verify),
    "scaffold": Command("draft a spec from a checkpoint", _scaffold),
    "lsp": Command("serve an editor: the language server of .arch files", _lsp),
    "completions": Command("write the completions of a shell", _completions),
    "error": Command("explain a diagnostic code, with an example", _error),
}
"""The commands. `run` in a command's module takes the parsed arguments, writes to standard output, and returns the
exit status.
"""
