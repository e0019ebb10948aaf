"""Arguments shared by several commands, and parsers of their values, which raise ArgumentTypeError."""

from __future__ import annotations

import argparse

FORMATS = ("table", "json", "yaml", "csv", "markdown")

SPEC = (
    "a bundled name, a path (`file.arch`, or `-` for standard input), `file.arch:model name`, a configuration "
    "(`config.json`, or its directory), or a name on the hub (`owner/name`)"
)
"""Help text of an argument that specifies a model."""


def add_spec(parser: argparse.ArgumentParser) -> None:
    """Add SPEC with its options."""
    parser.add_argument("spec", metavar="SPEC", help=SPEC)
    add_set(parser, "NAME=VALUE", "override a hyperparameter")
    add_reading(parser)


def add_base(parser: argparse.ArgumentParser) -> None:
    """Add --base."""
    parser.add_argument(
        "--base", metavar="SPEC", help="base model of an adapter (default: the model named in its configuration)"
    )


def add_reading(parser: argparse.ArgumentParser, strict: str = "") -> None:
    """Add the options for reading a configuration; `strict` describes a further effect of --strict."""
    parser.add_argument("--type", help="`model_type` of a configuration, instead of the one in it")
    parser.add_argument(
        "--ignore",
        metavar="NAME",
        action="append",
        default=[],
        help="ignore an unknown configuration field that has no effect; `*` matches any characters",
    )
    help = "report configuration fields that the class of transformers does not read as errors"
    parser.add_argument("--strict", action="store_true", help=strict + help)


def add_set(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    """Add --set."""
    parser.add_argument("--set", metavar=metavar, action="append", default=[], dest="settings", help=help)


def add_dims(parser: argparse.ArgumentParser) -> None:
    """Add the options for sizes of dimensions."""
    parser.add_argument("--batch", metavar="B", type=_parse_size, help="size of the dimension `batch`")
    parser.add_argument("--seq", metavar="S", type=_parse_size, help="size of the dimension `seq`")
    parser.add_argument(
        "--dim",
        metavar="NAME=N",
        action="append",
        default=[],
        dest="dims",
        help="size of a dimension; results stay symbolic in dimensions without a size",
    )


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options for the output file."""
    parser.add_argument("-o", "--output", metavar="FILE", help="write to a file instead of standard output")
    parser.add_argument("--force", action="store_true", help="let -o overwrite a file")


def add_watch(parser: argparse.ArgumentParser) -> None:
    """Add --watch."""
    parser.add_argument("--watch", action="store_true", help="run again whenever a file changes, until interrupted")


def add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Add CHECKPOINT."""
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="a file, an index of shards, their directory, or a name on the hub"
    )


def add_pictures(parser: argparse.ArgumentParser) -> None:
    """Add the options for pictures of several models."""
    parser.add_argument(
        "--svg", metavar="FILE", help="draw the models side by side as SVG, with the differences marked"
    )
    parser.add_argument("--html", metavar="FILE", help="write a page with this picture and the tables")
    parser.add_argument("--dark", action="store_true", help="use a dark background; requires --svg")
    parser.add_argument("--force", action="store_true", help="let --svg and --html overwrite files")


def add_format(parser: argparse.ArgumentParser) -> None:
    """Add the options for the format of a table."""
    parser.add_argument("--format", choices=FORMATS, default="table", help="output format (default: table)")
    add_wide(parser)


def add_wide(parser: argparse.ArgumentParser) -> None:
    """Add --wide."""
    parser.add_argument(
        "--wide", action="store_true", help="print full tables, even if they are wider than the terminal"
    )


def parse_depth(text: str) -> int:
    """Parse a number of levels."""
    return _parse_integer(text, 0, float("inf"), f"expected a depth of at least 0, found {text!r}")


def parse_jobs(text: str) -> int:
    """Parse a number of processes."""
    return _parse_integer(text, 1, 1024, f"expected a number of processes from 1 to 1024, found {text[:40]!r}")


def _parse_size(text: str) -> int:
    return _parse_integer(text, 1, 2**63 - 1, f"expected a size from 1 to 2^63 - 1, found {text[:40]!r}")


def parse_past(text: str) -> int:
    """Parse a number of positions."""
    return _parse_integer(text, 0, 2**63 - 2, f"expected a number of positions from 0 to 2^63 - 2, found {text[:40]!r}")


def _parse_integer(text: str, minimum: int, maximum: float, message: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(message)
    return number
