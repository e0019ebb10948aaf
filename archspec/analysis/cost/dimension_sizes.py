"""Sizes of dimensions from arguments and options; separate from `api`, so that `graph` does not import the costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from archspec.core.diagnostics import ArchError, make_error


def merge_sizes(dims: Mapping[str, int] | None, batch: int | None, seq: int | None) -> dict[str, int]:
    """Merge `dims` with `batch` and `seq`. Raises ArchError for two sizes of one dimension."""
    _check_mapping(dims or {})
    sizes = dict(dims or {})
    for name, size in (("batch", batch), ("seq", seq)):
        if size is not None and sizes.setdefault(name, size) != size:
            raise _conflict(name, size, sizes[name])
    return sizes


def _check_mapping(dims: object) -> None:
    if not isinstance(dims, Mapping):
        raise make_error("usage", f"expected a mapping from dimensions to sizes, found {dims!r:.40}")


def parse_sizes(settings: Iterable[str]) -> dict[str, int]:
    """Parse `--dim NAME=N` options. Raises ArchError."""
    sizes: dict[str, int] = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        name = name.strip()
        try:
            size = int(text)
        except ValueError:
            message = f"invalid --dim `{setting}`: expected NAME=N with a positive integer N"
            raise make_error("usage", message, help="write it as `--dim seq=512`") from None
        if sizes.setdefault(name, size) != size:
            raise _conflict(name, sizes[name], size)
    return sizes


def options_for_sizes(names: Iterable[str]) -> str:
    """Return the options that set the sizes of dimensions, for the help of an error."""
    return " ".join([f"--{name} N" if name in ("batch", "seq") else f"--dim {name}=N" for name in names])


def _conflict(name: str, first: int, second: int) -> ArchError:
    return make_error("usage", f"dimension `{name}` is specified as {first} and as {second}")


def is_integer(value: object, minimum: int) -> bool:
    """Whether an argument is an integer from a minimum on; callers may pass any object."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= minimum
