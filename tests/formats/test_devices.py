"""Devices: the bundled table, and files of users."""

import json
from pathlib import Path

import pytest
from paths import ROOT

from archspec import ArchError
from archspec.formats.devices import device_names, load_device

FILES = sorted((ROOT / "specs" / "devices").iterdir())

SPARSE = {
    "rtx-3090": {142.0},
    "rtx-4090": {1321.2},
    "rtx-5090": {419.0, 838.4, 838.0},
    "l4": {485.0},
    "l40s": {1466.0},
    "a100-40gb": {1248.0},
    "a100-80gb": {1248.0},
    "h100": {989.0, 1979.0, 3957.8, 3958.0},
    "h200": {989.0, 1979.0, 3957.8, 3958.0},
    "b200": {18000.0},
    "mi300x": {5229.8},
}
"""Tera-operations per second that vendors print with 2:4 sparsity, and that are dense for no type."""

DENSE = {
    "h100": 989.4,
    "h200": 989.4,
    "a100-80gb": 312.0,
    "l4": 121.0,
    "l40s": 362.05,
    "b200": 2250.0,
    "rtx-4090": 165.2,
}
"""Dense peaks of bfloat16, of which the vendors print the double with sparsity."""


def test_no_peak_of_a_bundled_device_is_a_sparse_one() -> None:
    for name in device_names():
        peak = {type: operations / 1e12 for type, operations in load_device(name).peak.items()}
        assert not SPARSE.get(name, set()) & {*peak.values()}, name
        assert peak.get("bfloat16", DENSE.get(name)) == DENSE.get(name, peak.get("bfloat16")), name
        for narrow in ("fp8", "int8"):  # half the bits: twice the dense operations; 4 times with sparsity
            if narrow in peak and name != "rtx-4090":
                assert peak[narrow] <= 2.03 * peak["float16"], name
    assert load_device("rtx-4090").peak["fp8"] == 2 * 165.15e12


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_figure_of_a_bundled_device_has_a_source(path: Path) -> None:
    fields = json.loads(path.read_text())
    figures = {"memory", "bandwidth", "peak", "link"} & fields.keys()
    assert {key for key, text in fields["sources"].items() if text} == figures
    assert load_device(path) == load_device(path.stem)


def test_a_device_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "card.json"
    path.write_text('{"memory": 8e9, "peak": {"bfloat16": 1.5e13}}')
    device = load_device(path)
    assert device == load_device(str(path)) == load_device(device)
    assert (device.name, device.memory, device.bandwidth, device.link) == ("card", 8_000_000_000, None, None)
    assert device.peak == {"bfloat16": 15_000_000_000_000}


@pytest.mark.parametrize(
    "text, message",
    [
        ('{"memory": "80 GB"}', 'expected the memory as a positive number, found "80 GB"'),
        ('{"memory": 0}', "expected the memory as a positive number, found 0"),
        ('{"memory": true}', "found true"),
        ('{"memory": 1e9, "peak": {"bfloat16": NaN}}', "expected the peak of bfloat16 as a positive number, found NaN"),
        ('{"memory": 1e9, "peak": {"bf16": 1e12}}', "unknown element type `bf16`"),
        ('{"memory": 1e9, "peak": 1e12}', "expected operations per second by element type, found 1e12"),
        ('{"memory": 1e9, "bandwith": 1e12}', "unknown field of a device `bandwith`"),
        ('{"bandwidth": 1e12}', "the device has no `memory`"),
        ("[]", "expected a device: an object with its figures, found []"),
        ('{"memory": 1e9, "memory": 2e9}', "member `memory` is specified more than once"),
        ('{"memory": 1e9, "sources": {"peak": 1}}', "expected a text as peak, found 1"),
    ],
)
def test_an_invalid_device_is_located(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "card.json"
    path.write_text(text)
    with pytest.raises(ArchError) as caught:
        load_device(path)
    (diagnostic,) = caught.value.diagnostics
    assert message in diagnostic.message
    assert diagnostic.span is not None and diagnostic.span.source.label == str(path)


def test_an_unknown_device_has_a_suggestion_and_a_way_to_describe_it() -> None:
    with pytest.raises(ArchError) as caught:
        load_device("h-100")
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.message == "unknown device `h-100`"
    assert diagnostic.help is not None and "did you mean `h100`?" in diagnostic.help and "card.json" in diagnostic.help
    with pytest.raises(ArchError, match=r"card\.json"):
        load_device("missing/card.json")
