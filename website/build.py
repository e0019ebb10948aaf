"""Builds the documentation site: `python website/build.py -o site/`.

It needs the extra `docs` and Node.js with npm. Everything that the site uses is copied into it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import files
from pathlib import Path

from archspec.language.highlight.tokens import styles

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLAYGROUND = HERE / "playground"
MODULES = HERE / "node_modules"

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
COPIED = ("playground.css", "playground.py", "python.js", "run-worker.js", "run.js", "run.py", "worker.js")
LIBRARIES = ("networkx", "PyYAML")
"""What examples need besides the package."""


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "site", metavar="DIRECTORY")
    output = parser.parse_args().output.resolve()
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        sys.exit(f"not found: {', '.join(missing)}; install Node.js")
    build(output)


def build(output: Path) -> None:
    """Build the site in a directory, which is emptied before."""
    if not MODULES.exists() or (HERE / "package.json").stat().st_mtime > MODULES.stat().st_mtime:
        run("npm", "install", "--no-audit", "--no-fund", "--no-package-lock", cwd=HERE)
        MODULES.touch()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        archives = [*packed(folder)]
        examples = folder / "examples.json"
        pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
        run("node", PLAYGROUND / "examples.mjs", examples, *archives, *pages, cwd=HERE)
        path = os.pathsep.join([str(ROOT), *sys.path])
        environment = {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": path, "EXAMPLES": str(examples)}
        run(sys.executable, "-m", "mkdocs", "build", "-q", "-f", HERE / "mkdocs.yml", "-d", output, **environment)
        add_playground(output / "playground", archives)
        bundle(output / "playground", folder)


def packed(folder: Path) -> Iterator[Path]:
    """Make the archives of the package, and of what examples need besides."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    libraries = shutil.make_archive(str(folder / "libraries"), "zip", collected(folder / "libraries"))
    for source, name in ((wheel, "archspec.zip"), (libraries, "examples.zip")):
        run("node", PLAYGROUND / "archive.mjs", source, folder / name, cwd=HERE)
        yield folder / name


def add_playground(folder: Path, archives: list[Path]) -> None:
    """Add what the page of the playground and the buttons load."""
    shutil.copytree(MODULES / "pyodide", folder / "pyodide", ignore=lambda _, names: {*names} - {*PYODIDE})
    for path in [*archives, *(PLAYGROUND / name for name in COPIED)]:
        shutil.copy(path, folder)
    shutil.copy(ROOT / "specs" / "text" / "bert.arch", folder / "example.arch")


def collected(folder: Path) -> Path:
    """Copy what examples need into a folder: the modules that read and run them, and libraries."""
    folder.mkdir()
    for name in ("examples.py", "runnable.py"):
        shutil.copy(HERE / name, folder)
    for library in LIBRARIES:
        for path in files(library) or ():
            if "LICENSE" in path.name or (path.suffix == ".py" and "tests" not in path.parts):
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path.locate(), folder / path)
    return folder


def bundle(folder: Path, temporary: Path) -> None:
    """Join the scripts of the page; the colors of the language are those of the list of tokens."""
    patterns = [{"pattern": style.pattern, "token": style.token} for style in styles()]
    (temporary / "styles.json").write_text(json.dumps(patterns))
    run(
        MODULES / ".bin" / "esbuild",
        PLAYGROUND / "playground.js",
        "--bundle",
        "--format=esm",
        "--minify",
        "--log-level=warning",
        f"--alias:archspec-styles={temporary / 'styles.json'}",
        f"--outfile={folder / 'playground.js'}",
        cwd=HERE,
    )


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """Run a command; if it fails, so does the build."""
    if subprocess.run([*map(str, command)], cwd=cwd, env={**os.environ, **environment}).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


if __name__ == "__main__":
    main()
