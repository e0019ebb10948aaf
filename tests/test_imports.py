"""Imports go one way: a room may use those below it, and no other."""

import ast
from pathlib import Path

import networkx
from modules import PACKAGE, nodes_of

from archspec.pipeline.cache import EXCLUDED_PACKAGES

MAY_IMPORT = {
    "adapters": {
        "addresses",
        "configs",
        "configuration",
        "elaborate",
        "explanations",
        "ir",
        "model",
        "pipeline",
        "record",
        "reporting",
        "resolve",
        "resources",
        "source",
        "table",
    },
    "addresses": set(),
    "algebra": {"record"},
    "quantization": {"record"},
    "libraries": {"source"},
    "pretty": set(),
    "python_code": {"pretty"},
    "torch_stand_in": {"ir", "ops"},
    "record": set(),
    "resources": set(),
    "source": {"record"},
    "table": {"record"},
    "cache": {"resources"},
    "checkpoints": {"addresses", "algebra", "hub", "reporting", "source", "table"},
    "ir": {"addresses", "algebra", "record", "source"},
    "reporting": {"record", "source"},
    "syntax": {"record", "resources", "source"},
    "formatting": {"pretty", "record", "source", "syntax"},
    "bodies": {"addresses", "algebra", "ir", "ops", "record", "source", "table"},
    "counts": {"addresses", "record", "reporting", "table"},
    "normal": {"algebra", "record"},
    "ops": {"algebra", "ir", "normal", "record"},
    "overrides": {"table", "literals", "source"},
    "literals": {"table", "source", "syntax"},
    "tabulate": {"addresses", "ir", "record", "table"},
    "resolve": {"ops", "quantization", "record", "resources", "source", "syntax"},
    "weights": {"addresses", "checkpoints", "libraries", "source", "table", "verification"},
    "work": {"algebra", "ir", "ops"},
    "check": {"resolve", "source", "syntax"},
    "configs": {"configuration", "quantization", "reporting", "resolve", "source", "syntax"},
    "configuration": {"record", "source"},
    "hub": {"source"},
    "graph": {"addresses", "algebra", "bodies", "ir", "record", "reporting", "source", "table", "work"},
    "elaborate": {
        "table",
        "addresses",
        "algebra",
        "bodies",
        "check",
        "ir",
        "literals",
        "ops",
        "record",
        "resolve",
        "source",
        "syntax",
    },
    "model": {
        "bodies",
        "configuration",
        "counts",
        "elaborate",
        "graph",
        "ir",
        "reporting",
        "resolve",
        "source",
        "syntax",
        "table",
        "tabulate",
    },
    "pipeline": {
        "cache",
        "checkpoints",
        "configs",
        "configuration",
        "elaborate",
        "hub",
        "ir",
        "literals",
        "model",
        "record",
        "resolve",
        "resources",
        "source",
        "syntax",
        "table",
    },
    "diffs": {
        "addresses",
        "algebra",
        "bodies",
        "equivalence",
        "ir",
        "model",
        "normal",
        "ops",
        "pictures",
        "pipeline",
        "reporting",
        "source",
        "table",
    },
    "explanations": {
        "addresses",
        "elaborate",
        "ir",
        "model",
        "ops",
        "pipeline",
        "reporting",
        "resources",
        "resolve",
        "source",
        "syntax",
        "table",
    },
    "flop_explanations": {"algebra", "costs", "explanations", "model", "pipeline", "reporting", "source"},
    "pictures": {
        "resources",
        "addresses",
        "algebra",
        "bodies",
        "costs",
        "elaborate",
        "graph",
        "ir",
        "model",
        "ops",
        "pipeline",
        "record",
        "reporting",
        "source",
        "table",
        "work",
    },
    "formulas": {
        "table",
        "addresses",
        "algebra",
        "bodies",
        "costs",
        "elaborate",
        "ir",
        "model",
        "ops",
        "pipeline",
        "reporting",
        "resolve",
        "source",
        "syntax",
        "tabulate",
        "work",
    },
    "pytorch": {
        "addresses",
        "table",
        "algebra",
        "bodies",
        "elaborate",
        "ir",
        "model",
        "ops",
        "pipeline",
        "resolve",
        "source",
        "syntax",
        "libraries",
        "python_code",
        "torch_stand_in",
    },
    "equivalence": {
        "algebra",
        "bodies",
        "ir",
        "model",
        "normal",
        "ops",
        "pipeline",
        "record",
        "reporting",
        "source",
        "libraries",
    },
    "lifting": {
        "addresses",
        "formatting",
        "algebra",
        "configs",
        "configuration",
        "equivalence",
        "ir",
        "model",
        "normal",
        "ops",
        "pipeline",
        "record",
        "source",
        "table",
        "libraries",
    },
    "scaffolds": {"addresses", "checkpoints", "elaborate", "pipeline", "resolve", "resources", "source", "syntax"},
    "verification": {
        "addresses",
        "checkpoints",
        "configs",
        "ir",
        "model",
        "pipeline",
        "reporting",
        "resources",
        "source",
        "table",
    },
    "audits": {
        "counts",
        "explanations",
        "model",
        "overrides",
        "pipeline",
        "reporting",
        "resources",
        "source",
        "syntax",
        "table",
    },
    "costs": {
        "adapters",
        "resources",
        "quantization",
        "configs",
        "addresses",
        "algebra",
        "bodies",
        "equivalence",
        "ir",
        "model",
        "normal",
        "ops",
        "pipeline",
        "pytorch",
        "record",
        "reporting",
        "source",
        "table",
        "work",
        "libraries",
    },
    "comparisons": {
        "addresses",
        "costs",
        "counts",
        "diffs",
        "ir",
        "model",
        "pictures",
        "pipeline",
        "reporting",
        "source",
        "table",
        "work",
    },
    "highlighting": {"record", "resources", "syntax"},
    "language_server": {
        "",
        "elaborate",
        "formatting",
        "ir",
        "ops",
        "pipeline",
        "record",
        "resolve",
        "resources",
        "source",
        "syntax",
    },
    "variants": {
        "diffs",
        "elaborate",
        "literals",
        "model",
        "ops",
        "pipeline",
        "reporting",
        "resolve",
        "resources",
        "source",
        "syntax",
        "table",
    },
    "onnx_export": {"", "equivalence", "ir", "model", "normal", "pipeline", "pytorch", "source", "table", "libraries"},
    "transformers_export": {
        "addresses",
        "costs",
        "ir",
        "model",
        "pipeline",
        "pytorch",
        "source",
        "table",
        "python_code",
    },
    "searches": {
        "algebra",
        "bodies",
        "costs",
        "counts",
        "elaborate",
        "formulas",
        "literals",
        "model",
        "pictures",
        "pipeline",
        "record",
        "reporting",
        "source",
        "syntax",
        "table",
        "variants",
        "work",
    },
    "cli": {
        "resources",
        "",
        "adapters",
        "algebra",
        "audits",
        "comparisons",
        "configuration",
        "costs",
        "counts",
        "diffs",
        "equivalence",
        "explanations",
        "flop_explanations",
        "formatting",
        "formulas",
        "graph",
        "language_server",
        "lifting",
        "model",
        "onnx_export",
        "overrides",
        "pictures",
        "pipeline",
        "pytorch",
        "record",
        "reporting",
        "scaffolds",
        "searches",
        "source",
        "transformers_export",
        "variants",
        "verification",
    },
    "pytest_plugin": {"pipeline", "source", "syntax"},
    "__main__": {"cli"},
    "": {
        "adapters",
        "addresses",
        "algebra",
        "audits",
        "comparisons",
        "configuration",
        "costs",
        "counts",
        "diffs",
        "equivalence",
        "explanations",
        "flop_explanations",
        "formatting",
        "formulas",
        "graph",
        "ir",
        "lifting",
        "model",
        "onnx_export",
        "pictures",
        "pipeline",
        "pytorch",
        "scaffolds",
        "searches",
        "source",
        "table",
        "transformers_export",
        "verification",
        "work",
        "weights",
    },
}
"""What each room imports of ours; "" is the package itself."""


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imported(path: Path) -> set[str]:
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "archspec"}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "archspec":
            inside = [f"archspec.{a.name}" for a in node.names if (PACKAGE / f"{a.name}.py").exists()]
            found |= set(inside) if node.module == "archspec" and inside else {node.module}
    return found


def test_every_import_goes_down() -> None:
    wrong = []
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]:
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


def test_entries_of_the_cache_depend_on_no_package_that_their_state_leaves_out() -> None:
    """Trees and tables are made by `pipeline`, and by what it imports."""
    used, pending = set(), ["pipeline"]
    while pending:
        room = pending.pop()
        if room not in used:
            used.add(room)
            pending += MAY_IMPORT.get(room, ())
    assert MAY_IMPORT.keys() >= EXCLUDED_PACKAGES
    assert not EXCLUDED_PACKAGES & used


def test_no_modules_import_each_other_in_a_circle() -> None:
    modules = {
        ".".join(("archspec", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in PACKAGE.rglob("*.py")
    }
    uses = networkx.DiGraph()
    for module, path in modules.items():
        for node in nodes_of(path):
            for alias in node.names if isinstance(node, ast.ImportFrom) and node.module else ():
                inner = f"{node.module}.{alias.name}"
                uses.add_edge(module, inner if inner in modules else node.module)
    assert [sorted(part) for part in networkx.strongly_connected_components(uses) if len(part) > 1] == []


def test_few_modules_are_imported_inside_functions() -> None:
    found = [
        f"{path.relative_to(PACKAGE)}:{inner.lineno}"
        for path in PACKAGE.rglob("*.py")
        for node in nodes_of(path)
        if isinstance(node, ast.FunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.ImportFrom) and (inner.module or "").startswith("archspec")
    ]
    assert len(set(found)) < 40, found
