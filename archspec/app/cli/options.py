"""Arguments shared by several commands, and parsers of their values, which raise ArgumentTypeError."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from archspec.analysis.cost.dtypes import BITS

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
    help = "ignore an unknown configuration field that has no effect; `*` matches any characters"
    add_repeatable(parser, "--ignore", "NAME", help)
    help = "report configuration fields that the class of transformers does not read as errors"
    parser.add_argument("--strict", action="store_true", help=strict + help)


def add_set(parser: argparse.ArgumentParser, metavar: str, help: str) -> None:
    """Add --set."""
    add_repeatable(parser, "--set", metavar, help, dest="settings")


def add_models_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading several models, and --set for one or all of them."""
    add_set(parser, "[K:]NAME=VALUE", "override a hyperparameter of every model, or only of the K-th (`2:layers=6`)")
    add_reading(parser)


def add_repeatable(
    parser: argparse.ArgumentParser,
    option: str,
    metavar: str,
    help: str,
    *,
    dest: str | None = None,
    type: Callable[[str], object] = str,
) -> None:
    """Add an option whose values are collected in a list each time that it is given."""
    parser.add_argument(option, metavar=metavar, action="append", default=[], dest=dest, type=type, help=help)


def add_dims(parser: argparse.ArgumentParser) -> None:
    """Add the options for sizes of dimensions."""
    parser.add_argument("--batch", metavar="B", type=_parse_size, help="size of the dimension `batch`")
    parser.add_argument("--seq", metavar="S", type=_parse_size, help="size of the dimension `seq`")
    help = "size of a dimension; results stay symbolic in dimensions without a size"
    add_repeatable(parser, "--dim", "NAME=N", help, dest="dims")


def add_depth(parser: argparse.ArgumentParser) -> None:
    """Add --depth of a tree."""
    parser.add_argument("--depth", metavar="N", type=parse_depth, help="combine everything nested deeper than N levels")


def add_cache_dtype(parser: argparse.ArgumentParser) -> None:
    """Add --cache-dtype."""
    help = "data type of the cache (default: data type of the weights, or bfloat16 if they are quantized)"
    parser.add_argument("--cache-dtype", metavar="TYPE", choices=(*BITS,), help=help)


def add_device(parser: argparse.ArgumentParser) -> None:
    """Add --device, which is required."""
    help = "a bundled device, such as h100, or a JSON file that describes one"
    parser.add_argument("--device", metavar="NAME", required=True, help=help)


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


def add_pictures(parser: argparse.ArgumentParser, drawing: str, *, has_force: bool = True) -> None:
    """Add the options for a picture, which `drawing` describes; `has_force` is whether to add --force."""
    parser.add_argument("--svg", metavar="FILE", help=drawing)
    parser.add_argument("--html", metavar="FILE", help="write a page with this picture and the tables")
    parser.add_argument("--dark", action="store_true", help="use a dark background; requires --svg")
    if has_force:
        parser.add_argument("--force", action="store_true", help="let --svg and --html overwrite files")


def add_trained(parser: argparse.ArgumentParser, only: str = "") -> None:
    """Add the options for what is trained; `only` says what they require."""
    help = f"parameters that are not trained: part of a name, `*` for any index (repeatable{only})"
    add_repeatable(parser, "--freeze", "PATTERN", help)
    help = f"train adapters of linear layers instead of the model (repeatable{only})"
    add_repeatable(parser, "--lora", "NAME=RANK", help, type=parse_rank)


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


def parse_number(text: str) -> int:
    """Parse a number of devices, sequences or positions."""
    return _parse_integer(text, 1, 2**60, f"expected a positive integer, found {text[:40]!r}")


def parse_fraction(text: str) -> float:
    """Parse a part of a whole."""
    try:
        fraction = float(text)
    except ValueError:
        fraction = 0.0
    if not 0 < fraction <= 1:
        raise argparse.ArgumentTypeError(f"expected a number above 0 and up to 1, found {text[:40]!r}")
    return fraction


def parse_past(text: str) -> int:
    """Parse a number of positions."""
    return _parse_integer(text, 0, 2**63 - 2, f"expected a number of positions from 0 to 2^63 - 2, found {text[:40]!r}")


def parse_pipeline(text: str) -> int | list[int]:
    """Parse a number of stages, or the number of blocks of each stage."""
    numbers = [parse_number(part) for part in text.split(",")]
    return numbers if len(numbers) > 1 else numbers[0]


def parse_rank(text: str) -> tuple[str, int]:
    """Parse the rank of adapters, `NAME=RANK`."""
    name, _, rank = text.rpartition("=")
    message = f"expected a linear layer and a rank, such as q_proj=8, found {text[:40]!r}"
    if not name:
        raise argparse.ArgumentTypeError(message)
    return name, _parse_integer(rank, 1, 2**31 - 1, message)


MAX_PIXELS = 2**20
"""The longest edge of an image."""


def parse_image(text: str) -> tuple[int, int]:
    """Parse the size of an image, `WIDTHxHEIGHT`; returns height and width in pixels."""
    message = f"expected the width and height of an image in pixels, such as 1024x768, found {text[:40]!r}"
    width, _, height = text.partition("x")
    return _parse_integer(height, 1, MAX_PIXELS, message), _parse_integer(width, 1, MAX_PIXELS, message)


def _parse_integer(text: str, minimum: int, maximum: float, message: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = None
    if number is None or not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(message)
    return number
