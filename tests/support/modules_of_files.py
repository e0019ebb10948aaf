"""Specs that are verified with modules of Python files."""

import json
from pathlib import Path
from typing import Any

from archspec import testing

OTHER = """
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location("other", {path!r})
module = module_from_spec(spec)
spec.loader.exec_module(module)


def build():
    return module.{name}(**{values}).eval()
"""


def verify(text: str, source: str, values: dict[str, Any], folder: Path, is_rounded: bool = False) -> None:
    """Assert that a spec is equivalent to the module of a file, or to another one that is built with these values.

    Modules with tables in float32 may be as close as rounding: `is_rounded`.
    """
    spec, other = folder / "spec.arch", folder / "other.py"
    spec.write_text(text, encoding="utf-8")
    if values:
        path, _, name = source.rpartition(":")
        arguments = {name.removesuffix("_"): value for name, value in values.items()}
        other.write_text(OTHER.format(path=path, name=name, values=arguments), encoding="utf-8")
        source = str(other)
    settings = [f"--set={name}={json.dumps(value)}" for name, value in values.items()]
    result = testing.run("verify", str(spec), *settings, "--module", source)
    rounded = is_rounded and "which may be rounding to float32" in result.output
    assert result.status == 0 or rounded or "but the outputs are equal" in result.output, result
