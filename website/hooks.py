"""The hooks of MkDocs: pages outside docs/, examples, and the markdown that MkDocs does not read as GitHub does."""

from __future__ import annotations

import json
import os
import re
import sys
from base64 import urlsafe_b64encode
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from zlib import compressobj

from mkdocs.structure.files import File, Files
from mkdocs.utils import get_relative_url

sys.path.insert(0, str(Path(__file__).parent))

import families
import workbench
from examples import FENCE

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
HERE = ROOT / "website"

ELSEWHERE = {
    "index.md": "website/playground/home.md",
    "start.md": "docs/README.md",
    "overview.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
    "playground.md": "website/playground/playground.md",
    "LICENSE": "LICENSE",
    "lift_classes.yaml": "tests/data/lift_classes.yaml",
    "lift_timm.yaml": "tests/data/lift_timm.yaml",
    "lift_bundled.yaml": "tests/data/lift_bundled.yaml",
}
"""The files of the site that are elsewhere in the repository."""

LINK = re.compile(
    r'^```.*?^```$|`[^`\n]*`|(?P<before>\]\(|<img src=")(?P<target>[^)"#:\s]+)(?=[)"#])', re.MULTILINE | re.DOTALL
)
"""A link or an image; also code, in which there are none."""
RUN = (
    '<div class="run"><button type="button" class="md-button" data-example="{}">Run</button>'
    '<pre aria-live="polite" hidden></pre></div>'
)
EXAMPLES = json.loads(Path(os.environ["EXAMPLES"]).read_text())
"""The runnable examples of each page, by path."""
GENERATED = "This page is generated from the specs"
"""Where the page of models has the cards of families in place of its tables."""
LOCAL_IMPORT = re.compile(r'^import "', re.MULTILINE)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """List the pages of the families in the navigation."""
    pages = [{name: f"families/{name}.md"} for name in families.names()]
    for section in config.nav or []:
        for entries in section.values():
            if isinstance(entries, list) and "families" in entries:
                entries[entries.index("families") :] = [{"Families": pages}]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files that are elsewhere, and the pages of the families."""
    for name, path in ELSEWHERE.items():
        files.append(File.generated(config, name, abs_src_path=str(ROOT / path)))
    for name, content in families.files().items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Correct links and fences, give examples a button that runs them, and link specs to the playground."""
    source = ELSEWHERE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if not page.file.src_uri.startswith("families/"):
        markdown = LINK.sub(partial(_link, folder=Path(source).parent, page=page.file.src_uri), markdown)
    if page.file.src_uri == "models.md":
        script = f'<script type="module" src="{get_relative_url("gallery.js", page.url)}"></script>'
        cards = families.gallery(get_relative_url("families/", page.url))
        return f"{markdown[: markdown.index(GENERATED)]}{cards}{script}\n"
    playground = get_relative_url("playground/", page.url)
    runnable = EXAMPLES.get(str(ROOT / source), [])
    numbers = {example["place"]: number for number, example in enumerate(runnable)}
    place = -1
    earlier = ""

    def fence(found: re.Match[str]) -> str:
        nonlocal earlier, place
        place += 1
        kind, mark, text = found["kind"], found["mark"] or "", found["text"]
        block = f"```{kind}\n{text}```"
        if kind in ("console", "pycon") and place in numbers:
            return f"{block}\n\n{RUN.format(numbers[place])}"
        if kind != "arch":
            return block
        text = f"{earlier}\n{text}" if mark == "more" else text
        earlier = text
        if "=" in mark or LOCAL_IMPORT.search(text):  # needs files that the playground does not have
            return block
        return f'{block}\n\n<a class="open-in-playground" href="{playground}#{packed(text)}">Open in the playground</a>'

    markdown = FENCE.sub(fence, markdown)
    return f"{markdown}\n\n{_scripts(runnable, playground)}" if 'class="run"' in markdown else markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Put the live example into the home page and the playground."""
    for kind in ("home", "playground"):
        mark = f'<div id="workbench-{kind}"></div>'
        if mark in html:
            html = html.replace(mark, workbench.render(kind))
    return html


def packed(text: str) -> str:
    """Return a text as in the links of the playground: compressed, in base64."""
    stream = compressobj(9, wbits=-15)
    return urlsafe_b64encode(stream.compress(text.encode()) + stream.flush()).decode().rstrip("=")


def _scripts(runnable: list[dict[str, object]], playground: str) -> str:
    """Return what the buttons of a page need: its examples, and the script that runs them."""
    text = json.dumps(runnable).replace("<", "\\u003c")
    return (
        f'<script type="application/json" id="examples">{text}</script>\n\n'
        f'<script type="module" src="{playground}run.js"></script>'
    )


def _link(found: re.Match[str], folder: Path, page: str) -> str:
    """Return a link of the repository as one of the site."""
    if not found["target"]:
        return found[0]
    parts: list[str] = []
    for part in (folder / found["target"]).parts:
        parts = parts[:-1] if part == ".." else [*parts, part]
    path = "/".join(parts)
    inside = {original: name for name, original in ELSEWHERE.items()}
    target = inside.get(path, path.removeprefix("docs/"))
    if found["before"].startswith("<img"):  # which MkDocs leaves as it is
        target = get_relative_url(target, page.removesuffix("index.md").removesuffix(".md"))
    return found["before"] + target
