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


def _conflict(name: str, first: int, second: int) -> ArchError:
    return make_error("usage", f"dimension `{name}` is specified as {first} and as {second}")
