"""How the parameter counts of the models in a Git repository change between two revisions, as Markdown.

    python changes.py --base REVISION [--head REVISION] [PATH...]

Nothing is written if no model changes.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import archspec
from archspec.core.diagnostics import Report, Source
from archspec.language.syntax import tree
from archspec.language.syntax.parse import parse

MARKER = "<!-- archspec -->"
"""The first line of the comment, by which it is found again."""

MOST_DETAILS = 20
"""The number of models whose differences are listed in full."""

Count = int | str | None
"""A parameter count, the first error of a model that does not compile, or None if there is no such model."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", required=True)
    parser.add_argument("--head", default="HEAD")
    parser.add_argument("paths", metavar="PATH", nargs="*", default=["."])
    options = parser.parse_args(arguments)
    with TemporaryDirectory() as folder:
        before, after = Path(folder, "before"), Path(folder, "after")
        extract(options.base, options.paths, before)
        extract(options.head, options.paths, after)
        sys.stdout.write(report(before, after))
    return 0


def extract(revision: str, paths: Sequence[str], target: Path) -> None:
    """Write the specs of a revision into a directory."""
    target.mkdir()
    listed = git("ls-tree", "-r", "-z", "--name-only", "--full-name", revision, "--", *paths).decode()
    specs = [name for name in listed.split("\0") if name.endswith(".arch")]
    if not specs:
        return
    root = git("rev-parse", "--show-toplevel").decode().rstrip("\n")
    archive = git("-C", root, "archive", "--format=tar", revision, "--", *(f":(literal){name}" for name in specs))
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(target, filter="data")


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, stdout=subprocess.PIPE).stdout


def report(before: Path, after: Path) -> str:
    """Return the changes between two directories of specs; nothing if there are none."""
    rows: list[str] = []
    details: list[str] = []
    ours, theirs = set(models_in(before)), set(models_in(after))
    for path, name in sorted(ours | theirs):
        old = count(before, path, name) if (path, name) in ours else None
        new = count(after, path, name) if (path, name) in theirs else None
        text = difference(before, after, path, name) if isinstance(old, int) and isinstance(new, int) else ""
        if old == new and not text:
            continue
        rows.append(f"| {cell(path)} | {cell(name)} | {shown(old)} | {shown(new)} | {change(old, new)} |")
        if text and len(details) < MOST_DETAILS:
            details.append(f"<details><summary>{escaped(name)}</summary>\n\n```text\n{text}\n```\n\n</details>")
    if not rows:
        return ""
    head = [MARKER, "### Parameter counts", "", "| File | Model | Before | After | Change |", "|---|---|--:|--:|--:|"]
    return "\n".join([*head, *rows, *(f"\n{detail}" for detail in details)]) + "\n"


def models_in(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the path and name of each model in a directory."""
    for path in sorted(folder.rglob("*.arch")):
        text = path.read_text(encoding="utf-8-sig", errors="replace")
        for item in parse(Source(str(path), text), Report()).items:
            if isinstance(item, tree.Model):
                yield path.relative_to(folder).as_posix(), str(item.name.value)


def count(folder: Path, path: str, name: str) -> int | str:
    try:
        return archspec.load(f"{folder / path}:{name}").params.total
    except archspec.ArchError as error:
        return error.diagnostics[0].message.replace(f"{folder}/", "")


def difference(before: Path, after: Path, path: str, name: str) -> str:
    """Return the tensors and operations that differ; nothing if none do."""
    found = archspec.diff(f"{before / path}:{name}", f"{after / path}:{name}")
    text = str(found) if found else ""
    return text.replace(f"{before}/", "a/").replace(f"{after}/", "b/").replace("```", "'''")


def shown(value: Count) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else cell(f"error: {value}")


def change(old: Count, new: Count) -> str:
    if isinstance(old, int) and isinstance(new, int):
        share = f" ({(new - old) / old:+.2%})" if old and new != old else ""
        return f"{new - old:+,}{share}" if new != old else "0"
    return "new" if old is None else "removed" if new is None else ""


def cell(text: str) -> str:
    return escaped(text).replace("|", "\\|").replace("\n", " ")


def escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


if __name__ == "__main__":
    sys.exit(main())
