"""Devices: one JSON file each, bundled in `specs/devices/` or written by a user. `docs/fit.md` describes the fields."""

from __future__ import annotations

import os

from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import ArchError, Report, Source, decode, make_error, read_bytes, suggest
from archspec.core.record import Record
from archspec.core.resources import specs_root
from archspec.formats.strict_json import JsonValue, Member, read_json

PEAK_TYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "fp8", "int8", "fp4", "int4")
"""Element types of matrix products with a peak; `tf32` computes with float32 matrices."""

_FOLDER = "devices"
_FIGURES = ("memory", "bandwidth", "link")
_TEXTS = ("product",)
_FIELDS = (*_TEXTS, *_FIGURES, "peak", "sources")
MAX_DEVICE_BYTES = 2**16
_EXAMPLE = '`card.json`: {"memory": 85018877624, "bandwidth": 3.35e12, "peak": {"bfloat16": 989.4e12}}'


class Device(Record):
    """A device: `memory` in bytes, as PyTorch reports its total capacity.

    `bandwidth` is that of its memory in bytes per second. `peak` has the dense matrix operations per second (2 per
    multiply-accumulate) by element type, a key of PEAK_TYPES. `link` is the bytes per second to other devices, both
    directions added. Figures without a source are missing: None, or no key in `peak`.
    """

    name: str
    memory: int
    bandwidth: int | None
    peak: dict[str, int]
    link: int | None
    product: str


@check_arguments
def load_device(device: str | os.PathLike[str] | Device) -> Device:
    """Load a bundled device by name, or a device from a JSON file, whose name has a folder or ends in `.json`.

    Raises ArchError for an unknown name (`usage`), a missing or unreadable file, and an invalid field with its
    location (`wrong-kind`, `unknown-name`, `missing-argument`).
    """
    if isinstance(device, Device):
        return device
    path = os.fspath(device)
    if path.endswith(".json") or os.sep in path or not isinstance(device, str):
        name = os.path.splitext(os.path.basename(path))[0]
        return _build_device(name, _read_json_file(path, path))
    names = device_names()
    if device not in names:
        suggestion = suggest(device, names) or f"use {', '.join(names)};"
        help = f"{suggestion} otherwise, describe it in a file such as {_EXAMPLE}"
        raise make_error("usage", f"unknown device `{device:.40}`", help=help)
    file = os.path.join(_FOLDER, f"{device}.json")
    return _build_device(device, _read_json_file(os.path.join(specs_root(), file), file))


def device_names() -> list[str]:
    """Return the sorted names of the bundled devices."""
    files = os.listdir(os.path.join(specs_root(), _FOLDER))
    return sorted(file.removesuffix(".json") for file in files if file.endswith(".json"))


def _read_json_file(path: str, label: str) -> JsonValue:
    report = Report()
    data = read_bytes(path, label, report, max_bytes=MAX_DEVICE_BYTES)
    text = None if data is None else decode(data, label, report, max_bytes=MAX_DEVICE_BYTES)
    if text is None:
        raise ArchError(report.diagnostics)
    return read_json(Source(label, text))


def _build_device(name: str, value: JsonValue) -> Device:
    fields = _members(value, "a device: an object with its figures")
    _check_names(fields, _FIELDS, "field of a device")
    if "memory" not in fields:
        help = "add the bytes that PyTorch reports as total capacity"
        raise make_error("missing-argument", "the device has no `memory`", value.span, help=help)
    figures = {field: _read_figure(fields[field].value, field) for field in _FIGURES if field in fields}
    peak = _members(fields["peak"].value, "operations per second by element type") if "peak" in fields else {}
    _check_names(peak, PEAK_TYPES, "element type")
    sources = _members(fields["sources"].value, "a text for each figure") if "sources" in fields else {}
    _check_names(sources, (*_FIGURES, "peak"), "figure")
    for field, text in [*sources.items(), *((field, fields[field]) for field in _TEXTS if field in fields)]:
        _read_text(text.value, field)
    return Device(
        name,
        figures["memory"],
        figures.get("bandwidth"),
        {type: _read_figure(member.value, f"peak of {type}") for type, member in peak.items()},
        figures.get("link"),
        _read_text(fields["product"].value, "product") if "product" in fields else name,
    )


def _members(value: JsonValue, expected: str) -> dict[str, Member]:
    if not isinstance(value.plain, dict):
        raise make_error("wrong-kind", f"expected {expected}, found {value.written()}", value.span)
    return value.plain


def _check_names(members: dict[str, Member], names: tuple[str, ...], kind: str) -> None:
    for name, member in members.items():
        if name not in names:
            help = suggest(name, [*names]) or f"use {', '.join(names)}"
            raise make_error("unknown-name", f"unknown {kind} `{name:.40}`", member.name, help=help)


def _read_figure(value: JsonValue, field: str) -> int:
    """Return a positive number, rounded to an integer."""
    number = value.plain
    if isinstance(number, bool) or not isinstance(number, int | float) or not 1 <= number < 2**63:
        unit = "bytes" if field == "memory" else "units per second"
        message = f"expected the {field} as a positive number, found {value.written()}"
        raise make_error("wrong-kind", message, value.span, help=f"write {unit} without a prefix, such as 3.35e12")
    return round(number)


def _read_text(value: JsonValue, field: str) -> str:
    if not isinstance(value.plain, str):
        raise make_error("wrong-kind", f"expected a text as {field}, found {value.written()}", value.span)
    return value.plain
