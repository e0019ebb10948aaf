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
from hashlib import sha256
from importlib.metadata import files
from pathlib import Path

import workbench

from archspec.language.highlight.tokens import styles

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PLAYGROUND = HERE / "playground"
MODULES = HERE / "node_modules"

PYODIDE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
SCRIPTS = ("workbench.js", "worker.js", "run.js", "run-worker.js")
"""The scripts that pages and workers load; each has its parts in it."""

KEPT = (
    "index.html",
    "*.css",
    "assets/stylesheets/*.css",
    "assets/javascripts/bundle.*.js",
    "assets/images/favicon.png",
    "playground/index.html",
    "playground/work*.js",
    "playground/examples.json",
    "playground/pyodide/pyodide.mjs",
    "playground/*.zst",
)
"""What is kept for use without a network."""

MODULES_OF_PLAYGROUND = ("playground.py", "results.py")
MODULES_OF_EXAMPLES = ("examples.py", "runnable.py")
CONFIGURATION = json.dumps({"model_type": "bert", "hidden_size": 64, "num_attention_heads": 2})


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
        add_playground(output / "playground", archives, folder)
        add_offline(output, folder)


def packed(folder: Path) -> Iterator[Path]:
    """Make the archives of the package with the modules of the playground, and of what examples need besides."""
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    shutil.unpack_archive(wheel, folder / "archspec", "zip")
    collect(folder / "archspec", [PLAYGROUND / name for name in MODULES_OF_PLAYGROUND], "PyYAML")
    collect(folder / "examples", [HERE / name for name in MODULES_OF_EXAMPLES], "networkx")
    for name in ("archspec", "examples"):
        sources = shutil.make_archive(str(folder / f"{name}-sources"), "zip", folder / name)
        run("node", PLAYGROUND / "archive.mjs", sources, folder / f"{name}.zip", cwd=HERE)
        yield folder / f"{name}.zip"


def collect(folder: Path, modules: list[Path], library: str) -> None:
    """Copy modules and an installed library into a folder."""
    folder.mkdir(exist_ok=True)
    for path in modules:
        shutil.copy(path, folder)
    for path in files(library) or ():
        if "LICENSE" in path.name or (path.suffix == ".py" and "tests" not in path.parts):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path.locate(), folder / path)


def add_playground(folder: Path, archives: list[Path], temporary: Path) -> None:
    """Add what the playground, the home page and the buttons load."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(MODULES / "pyodide", folder / "pyodide", ignore=lambda _, names: {*names} - {*PYODIDE})
    for path in [*archives, PLAYGROUND / "run.py"]:
        shutil.copy(path, folder)
    (folder / "examples.json").write_text(json.dumps(workbench.examples()))
    add_snapshot(folder, archives[0], temporary)
    bundle(folder, temporary)


def add_snapshot(folder: Path, archive: Path, temporary: Path) -> None:
    """Add the snapshot of Python, which has what every example, an error and a configuration need."""
    shutil.unpack_archive(archive, temporary / "packages")
    wrong = workbench.examples()["gpt"].replace("LayerNorm(d)", "LayerNrm(d)")
    texts = [*workbench.examples().values(), workbench.changed("Make a mistake"), wrong, CONFIGURATION]
    paths = [temporary / f"text-{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    script = PLAYGROUND / "snapshot.mjs"
    run("node", script, temporary / "packages", folder, temporary / "snapshot.json", *paths, cwd=HERE)


def bundle(folder: Path, temporary: Path) -> None:
    """Join the scripts; the colors of the language are those of the list of tokens."""
    patterns = [{"pattern": style.pattern, "token": style.token} for style in styles()]
    (temporary / "styles.json").write_text(json.dumps(patterns))
    join(folder, *SCRIPTS, styles=temporary / "styles.json", snapshot=temporary / "snapshot.json")


def add_offline(site: Path, temporary: Path) -> None:
    """Add the script that keeps the home page and the playground, with what they load."""
    paths = sorted(path for pattern in KEPT for path in site.glob(pattern))
    version = sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]
    names = [path.relative_to(site).as_posix().removesuffix("index.html") or "./" for path in paths]
    (temporary / "offline.json").write_text(json.dumps({"version": version, "files": names}))
    join(site, "offline.js", offline=temporary / "offline.json")


def join(folder: Path, *scripts: str, **data: Path) -> None:
    """Write scripts with their parts and their data into a folder."""
    run(
        MODULES / ".bin" / "esbuild",
        *(PLAYGROUND / name for name in scripts),
        "--bundle",
        "--format=esm",
        "--minify",
        "--log-level=warning",
        "--external:./pyodide/*",
        *(f"--alias:archspec-{name}={path}" for name, path in data.items()),
        f"--outdir={folder}",
        cwd=HERE,
    )


def run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    """Run a command; if it fails, so does the build."""
    if subprocess.run([*map(str, command)], cwd=cwd, env={**os.environ, **environment}).returncode:
        sys.exit(f"failed: {' '.join(map(str, command))}")


if __name__ == "__main__":
    main()
