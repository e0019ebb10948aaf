"""Imports go one way: a room may use those below it, and no other."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "archspec"

MAY_IMPORT = {
    "source": set(),
    "resources": set(),
    "dims": set(),
    "table": set(),
    "algebra": {"dims"},
    "cache": {"resources"},
    "syntax": {"source", "resources"},
    "ir": {"dims", "source"},
    "ops": {"ir", "dims"},
    "lower": {"algebra", "dims", "ir", "ops", "resources", "source", "syntax"},
    "work": {"dims", "ir", "ops"},
    "graph": {"ir", "source", "work"},
    "expand": {"ir", "table"},
    "analyses": {"dims", "formats", "graph", "ir", "ops", "source", "table", "work"},
    "formats": {"source"},
    "backends": {"graph", "ops", "ir", "dims", "table"},
    "model": {"lower", "graph", "expand", "ir", "source", "table"},
    "pytorch": {"dims", "ir", "lower", "model", "ops", "source", "syntax", "work"},
    "configs": {"lower", "source", "syntax"},
    "pipeline": {"cache", "configs", "ir", "lower", "model", "resources", "source", "syntax", "table"},
    "functions": {
        "algebra",
        "analyses",
        "formats",
        "lower",
        "model",
        "pipeline",
        "pytorch",
        "source",
        "table",
        "work",
    },
    "overrides": {"pipeline", "source", "syntax"},
    "audits": {"analyses", "lower", "overrides", "pipeline", "resources", "source", "syntax", "table"},
    "scaffolds": {"formats", "lower", "pipeline", "resources", "source", "syntax"},
    "cli": {
        "",
        "algebra",
        "analyses",
        "audits",
        "backends",
        "functions",
        "model",
        "overrides",
        "pipeline",
        "pytorch",
        "resources",
        "scaffolds",
        "source",
        "table",
        "work",
    },
    "__main__": {"cli"},
    "": {"audits", "functions", "model", "pipeline", "pytorch", "scaffolds", "source"},
}
"""What each room imports of ours; "" is the package itself."""


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "archspec"}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "archspec":
            inside = [f"archspec.{a.name}" for a in node.names if (PACKAGE / f"{a.name}.py").exists()]
            found |= set(inside) if node.module == "archspec" and inside else {node.module}
    return found


def test_every_import_goes_down() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        room = "" if parts == ("__init__",) else parts[0]
        for module in imported(path):
            other = room_of(module)
            if other != room and other not in MAY_IMPORT[room]:
                wrong.append(f"{path.relative_to(PACKAGE)} imports {module}")
    assert not wrong


def test_what_may_be_imported_makes_no_circle() -> None:
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {room for room, below in MAY_IMPORT.items() if room not in done and below - {""} <= done}
        assert ready, f"a circle among {set(MAY_IMPORT) - done}"
        done |= ready
