"""The live example of the home page and the playground as HTML, with results of the compiler that is being built."""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter

from archspec.analysis.formula.api import formula
from archspec.core import resources
from archspec.language.highlight.lexer import ArchLexer
from archspec.pipeline.compile import loads

sys.path.insert(0, str(Path(__file__).parent / "playground"))

import playground

PLAYGROUND = Path(__file__).parent / "playground"

FAMILIES = ("bert", "llama", "mixtral", "vit", "transformer")
"""The families that are examples of the playground, besides its own."""

CHANGES = {
    "24 layers": ("layers = 12", "layers = 24"),
    "d = 1536": ("d = 768", "d = 1536"),
    "Make a mistake": ("Linear(d, 4 * d)", "Linear(d, 3 * d)"),
}
"""The changes to try of the home page: what is replaced in its example by what."""

OPEN = ("d", "layers")
"""The hyperparameters of the first example whose changes show the total even before the compiler has started."""

EXPECTATION = re.compile(r" *\{\s*expect [^}]*\}")


@cache
def examples() -> dict[str, str]:
    """Return the examples by name: bundled specs stand without the totals that they expect, which any change breaks."""
    specs = Path(resources.specs_root())
    texts = {"gpt": (PLAYGROUND / "gpt.arch").read_text().rstrip()}
    for name in FAMILIES:
        text = (specs / resources.bundled_path(str(specs), name)).read_text()
        texts[name] = EXPECTATION.sub("", text).rstrip()
    return texts


@cache
def changed(change: str) -> str:
    """Return the first example with a change; it is in it once."""
    text, (found, replacement) = examples()["gpt"], CHANGES[change]
    assert text.count(found) == 1, change
    return text.replace(found, replacement)


@cache
def _results(text: str) -> dict[str, Any]:
    """Return what the page shows of a text, as the worker computes it."""
    numbers = json.loads(playground.numbers(text, ""))
    figure = json.loads(playground.picture(numbers["model"], "figure"))["figure"] if numbers["model"] else None
    return {"text": text, "numbers": numbers, "figure": figure}


def _formula() -> dict[str, Any]:
    """Return the total of the first example for any width and depth, and what the values must be multiples of."""
    found = formula(loads(examples()["gpt"]), open=OPEN)
    multiples: dict[str, int] = {}
    for assumption in found.assumptions:
        assert assumption.operator == "divisible" and isinstance(assumption.right, int)
        multiples[str(assumption.left)] = assumption.right
    assert {*multiples} <= {*OPEN}
    return {"total": found.text(found.total, collect=False), "open": found.open, "multiples": multiples}


def render(kind: str) -> str:
    """Return the home page's example ("home"), or the playground ("playground")."""
    first = _results(examples()["gpt"])
    texts = [changed(change) for change in CHANGES] if kind == "home" else []
    saved = json.dumps([first | {"formula": _formula()}, *map(_results, texts)]).replace("<", "\\u003c")
    views = _VIEWS if kind == "playground" else ""
    page = '<div id="view-page" role="tabpanel" hidden><iframe id="page" title="Page of the model"></iframe></div>'
    code = '<div id="view-code" role="tabpanel" hidden><pre id="code"></pre></div>'
    return f"""<div class="workbench" id="workbench" data-kind="{kind}" data-state="saved">
<div class="head">{_menu(first) if kind == "playground" else '<b class="file">gpt.arch</b>'}
<span id="state" role="status">Saved result</span></div>
<div class="source"><div id="editor">{_static(first)}</div>
<div id="messages"></div>{_changes() if kind == "home" else ""}</div>
<div class="results" id="results"><div id="numbers">{first["numbers"]["html"]}</div>{views}
<div id="view-figure" role="{"tabpanel" if views else "group"}" aria-label="Figure">
<div id="figure">{first["figure"]}</div></div>{page + code if views else ""}</div>
<script type="application/json" id="saved">{saved}</script>
</div>"""


_VIEWS = (
    '<div class="views" role="tablist">'
    + "".join(
        f'<button type="button" role="tab" data-view="{view}" aria-controls="view-{view}" '
        f'aria-selected="{"true" if view == "figure" else "false"}">{title}</button>'
        for view, title in (("figure", "Figure"), ("page", "Page"), ("code", "PyTorch"))
    )
    + "</div>"
)


def _menu(first: dict[str, Any]) -> str:
    options = "".join(f"<option>{name}</option>" for name in examples())
    models = "".join(f"<option>{escape(name)}</option>" for name in first["numbers"]["models"])
    return f"""<label>Example <select id="example">{options}</select></label>
<label>Model <select id="model">{models}</select></label>
<button type="button" id="open">Open a file</button><input type="file" id="file" accept=".arch,.json,.txt" hidden>
<button type="button" id="share">Copy link</button>"""


def _changes() -> str:
    buttons = "".join(
        f"<button type=\"button\" data-replace='{escape(json.dumps(change))}'>{title}</button>"
        for title, change in CHANGES.items()
    )
    return f'<p class="try">Try {buttons}<button type="button" id="undo" hidden>Undo</button></p>'


def _static(result: dict[str, Any]) -> str:
    """Return the text as it looks in the editor, until the editor has been loaded."""
    lines = highlight(result["text"], ArchLexer(), HtmlFormatter(nowrap=True)).rstrip("\n").split("\n")
    roles: dict[str, str] = result["numbers"]["lines"]
    found = [
        f'<span class="line{f" role-line role-{roles[str(number)]}" if str(number) in roles else ""}">'
        f"<i>{number}</i>{line or ' '}</span>"
        for number, line in enumerate(lines, 1)
    ]
    return f'<pre class="highlight static" tabindex="0">{"".join(found)}</pre>'
