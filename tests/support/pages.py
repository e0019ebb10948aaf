"""What the tests of pages share: the plan inside a page, and a model with names that are meant to do harm."""

import json
import re
from base64 import b64decode
from typing import Any
from zlib import decompress

from archspec.drawing.page.page import page as page
from archspec.drawing.page.page import page_of as page_of

HOSTILE = (
    "</script><script>document.title = 'harmed'</script>",
    "\"' onload='document.title=1' \"><img src=x onerror=\"document.title='harmed'\">",
    "\u202egnihtyna\u202c \u2066isolated\u2069",
    "{{script}} {{plan}} <!-- <![CDATA[ ]]> &amp; &#60;",
    "x" * 200,
    "\ud800 \x00 \x1b[31m \u2028",
)


def plan_in(page: str) -> dict[str, Any]:
    """The plan that a page holds."""
    packed = re.search(r'<script type="application/octet-stream" id="plan">([A-Za-z0-9+/=]*)</script>', page)
    assert packed
    return json.loads(decompress(b64decode(packed[1])))


def renamed(plan: dict[str, Any], name: str) -> dict[str, Any]:
    """A plan in which every text that is shown is `name`."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, list):
            return [spoilt(item) for item in value]
        if isinstance(value, dict):
            return {
                key: name if key in TEXTS and isinstance(item, str) else spoilt(item) for key, item in value.items()
            }
        return value

    plan = spoilt(plan)
    for node in plan["nodes"]:
        for lines in ("lines", "heading"):
            node[lines] = [[name[:20], width] for _, width in node.get(lines, [])]
        node["hyperparameters"] = {name: name}
    plan["hyperparameters"] = {name: name}
    plan["sources"] = {name: name}
    return plan


TEXTS = {"model", "doc", "title", "type", "name", "address", "argument", "differs", "source", "tied_to"}
