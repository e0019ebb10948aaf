"""The page of a model: one HTML file that makes no requests, from a plan and the files in `scripts/`."""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from json import dumps
from typing import cast
from zlib import compress

from archspec.core.resources import package_path
from archspec.drawing.api import build_plan
from archspec.drawing.plan.amounts import sizes_of
from archspec.drawing.svg.theme import THEMES, Fill, RoleStyle, role_styles
from archspec.ir.module import Body
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import ModelLike, get_compilation

# The files that the definitions of a model are in.


def sources_of(body: Body) -> dict[str, str]:
    """Return the texts of the files in which a body and all bodies that it applies are written, by their labels."""
    found: dict[str, str] = {}
    seen: set[Body] = set()
    waiting = [body]
    while waiting:
        current = waiting.pop()
        if current in seen:
            continue
        seen.add(current)
        for call in current.calls:
            found[call.span.source.label] = call.span.source.text
            if call.body is not None:
                waiting.append(call.body)
    return dict(sorted(found.items()))


SCRIPTS = (
    "dom",
    "amounts",
    "plan",
    "state",
    "metrics",
    "elements",
    "frames",
    "tracks",
    "columns",
    "taps",
    "block",
    "horizontal",
    "lanes",
    "vertical",
    "paths",
    "layout",
    "paint",
    "ties",
    "legend",
    "draw",
    "view",
    "panel",
    "search",
    "save",
    "keys",
    "start",
)
"""The scripts, in the order in which they are joined; they share one scope."""

_FOLDER = package_path("drawing", "page", "scripts")


def page(model: ModelLike, /, version: int | None = None) -> str:
    """Return the page of a model as HTML: one file, which makes no requests.

    Raises ArchError as `archspec.load` does.
    """
    compiled = as_model(model)
    more = {"sizes": sizes_of(compiled), "sources": sources_of(get_compilation(compiled).body)}
    return page_of({**build_plan(compiled).to_data(), **more}, version)


def page_of(plan: Mapping[str, object], version: int | None = None) -> str:
    """Return the page of a plan as HTML.

    Its content security policy allows no requests. With a `version`, the page was served by `archspec view --watch`: it
    may ask that server for changes, and reloads itself when there is another version.
    """
    style, script = _read("page.css"), script_text()
    policy = f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data: blob:"
    if version is not None:
        policy += "; connect-src 'self'"
    parts = {
        "policy": policy,
        "version": "" if version is None else f' data-version="{version}"',
        "title": escape("".join([c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in str(plan["model"])])),
        "style": style,
        "plan": _packed(data_of(plan)),
        "script": script,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _read("page.html"))


def script_text() -> str:
    """Return all scripts as one, in a scope of their own."""
    return '(() => {\n"use strict";\n' + "\n".join(map(script_of, SCRIPTS)) + "})();\n"


def script_of(name: str) -> str:
    """Return one of the scripts."""
    return _read(f"{name}.js")


def data_of(plan: Mapping[str, object]) -> dict[str, object]:
    """Return what the scripts are given: a plan with the colors of its picture."""
    return {**plan, "themes": _themes(plan)}


def _themes(plan: Mapping[str, object]) -> dict[str, object]:
    """Return the colors of both themes, with the styles of the plan's roles."""
    shares = cast("Sequence[Mapping[str, str]]", plan.get("roles", ()))
    roles = [share["role"] for share in shares if "role" in share]
    return {
        name: {
            **{key: _plain(value) for key, value in theme._asdict().items() if key not in ("roles", "others")},
            "styles": {role: _plain(style) for role, style in role_styles(theme, roles).items()},
        }
        for name, theme in THEMES.items()
    }


def _plain(value: object) -> object:
    """Return a color, or a record of colors, as data."""
    if not isinstance(value, Fill | RoleStyle):
        return value
    return {key: _plain(item) for key, item in value._asdict().items()}


def _packed(plan: Mapping[str, object]) -> str:
    """Return a plan as compressed JSON in base64: a tenth of the size, and inert whatever names it contains."""
    text = dumps(plan, separators=(",", ":"))  # in ASCII: a lone surrogate has no other encoding
    return b64encode(compress(text.encode(), 9)).decode()


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _read(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as file:
        return file.read()
