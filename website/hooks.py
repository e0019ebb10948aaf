"""The hooks of MkDocs: pages that are not in docs/, and the markdown that MkDocs does not read as GitHub does."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
HERE = ROOT / "website"

ELSEWHERE = {
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
    "playground.md": "website/playground/playground.md",
    "LICENSE": "LICENSE",
}
"""The files of the site that are elsewhere in the repository."""

FENCE = re.compile(r"^```(?P<kind>\w+)(?: (?P<marks>[^\n]*))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(
    r'^```.*?^```$|`[^`\n]*`|(?P<before>\]\(|<img src=")(?P<target>[^)"#:\s]+)(?=[)"#])', re.MULTILINE | re.DOTALL
)
"""A link or an image; also code, in which there are none."""
HEADING = re.compile(r"^## (\w+)$", re.MULTILINE)
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
    """Correct links and fences, and link examples to the playground."""
    source = ELSEWHERE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    if not page.file.src_uri.startswith("families/"):
        markdown = LINK.sub(partial(_link, folder=Path(source).parent, page=page.file.src_uri), markdown)
    if page.file.src_uri == "models.md":
        markdown = HEADING.sub(r"\g<0>\n\n[Spec, costs and differences](families/\1.md)", markdown)
    playground = get_relative_url("playground/", page.url)
    earlier = ""

    def fence(found: re.Match[str]) -> str:
        nonlocal earlier
        kind, marks, text = found["kind"], found["marks"] or "", found["text"]
        block = f"```{kind}\n{text}```"
        if kind != "arch":
            return block
        text = f"{earlier}\n{text}" if marks == "more" else text
        earlier = text
        if "=" in marks or LOCAL_IMPORT.search(text):  # needs files that the playground does not have
            return block
        return f'{block}\n\n<a class="open-in-playground" href="{playground}#{packed(text)}">Open in the playground</a>'

    return FENCE.sub(fence, markdown)


def packed(text: str) -> str:
    """Return a text as in the links of the playground: compressed, in base64."""
    stream = compressobj(9, wbits=-15)
    return urlsafe_b64encode(stream.compress(text.encode()) + stream.flush()).decode().rstrip("=")


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
