"""README.md and pages of docs/: every example is compiled, every output shown is what comes out.

`website/examples.py` describes the blocks. Here, ```arch and ```arch more have no findings, and ```arch wrong has some;
```yaml NAME is how configurations of a family are read.

- `model.safetensors` is what `write_checkpoint` writes, `llama.gguf` what `write_gguf` writes, `decoder.safetensors`
  holds the tensors of DECODER; `village.txt` is the text of the tutorial.

With `--update-golden`, what they show of the code is written anew: the grammar, two tables, and what commands print.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import checkpoints
import pytest
from documented import LANGUAGE, PAGES, ROOT, elementwise_work
from examples import FENCE, NEEDED, Block, Session, blocks, commands

import archspec
from archspec import Source
from archspec.analysis.diff import operations
from archspec.compiler.evaluate import interpreter, limits
from archspec.compiler.resolve import expressions as addresses
from archspec.compiler.resolve import files
from archspec.core.diagnostics import MAX_FILE_BYTES, Report
from archspec.formats import strict_json
from archspec.formats.configs.configuration import MAX_CONFIGURATION_BYTES
from archspec.formats.configs.family import known_types, read_family
from archspec.ir import fold
from archspec.ir.ops import OPS, rearrange, record
from archspec.language.syntax import build, expressions, lines, tree
from archspec.pipeline.files import parse_cached

TUTORIAL_PICTURE = ROOT / "docs" / "tutorial" / "deep.svg"

UPDATE = "run `pytest tests/project/test_docs.py --update-golden`"


def session_in(folder: Path) -> Session:
    """A session in a folder with the files that examples read and no page shows."""
    write_checkpoint(folder / "model.safetensors")
    write_gguf(folder / "llama.gguf")
    shutil.copy(ROOT / "docs" / "tutorial" / "village.txt", folder)
    checkpoints.write(folder / "decoder.safetensors", DECODER)
    return Session(folder)


def _layer(name: str) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {f"{name}.attn_norm.weight": (64,)}
    shapes |= {f"{name}.attn.{part}.weight": (rows, 64) for part, rows in (("q", 64), ("k", 16), ("v", 16), ("o", 64))}
    shapes |= {f"{name}.mlp_norm.weight": (64,), f"{name}.mlp.up.weight": (160, 64), f"{name}.mlp.up.bias": (160,)}
    return shapes | {f"{name}.mlp.down.weight": (64, 160), f"{name}.mlp.down.bias": (64,)}


DECODER: dict[str, tuple[int, ...]] = {"embed_tokens.weight": (1000, 64), "scale": ()}
for _number in range(4):
    DECODER |= _layer(f"layers.{_number}")
DECODER |= {"norm.weight": (64,), "head.weight": (1000, 64)}


def write_checkpoint(path: Path) -> None:
    """Writes BERT-base with its heads, its norms as they once were called; the tensors are a hole in the file."""
    tensors = [t for t in archspec.load("bert-base-uncased-pretraining").tensors if not t.tied_to]
    names = [t.name.replace("LayerNorm.weight", "LayerNorm.gamma") for t in tensors]
    names = [name.replace("LayerNorm.bias", "LayerNorm.beta") for name in names]
    head = checkpoints.header({name: t.shape for name, t in zip(names, tensors, strict=True)})
    path.write_bytes(checkpoints.safetensors(head, 0))
    os.truncate(path, path.stat().st_size + sum(4 * t.size for t in tensors))


def write_gguf(path: Path) -> None:
    """Writes what llama.cpp makes of Llama 3.2 1B, quantized; the tensors are a hole in the file."""
    shapes: dict[str, tuple[int, ...]] = {"rope_freqs.weight": (32,), "token_embd.weight": (128256, 2048)}
    for i in range(16):
        layer = {"attn_norm": (2048,), "ffn_norm": (2048,), "attn_q": (2048, 2048), "attn_output": (2048, 2048)}
        layer |= {"attn_k": (512, 2048), "attn_v": (512, 2048)}
        layer |= {"ffn_gate": (8192, 2048), "ffn_up": (8192, 2048), "ffn_down": (2048, 8192)}
        shapes |= {f"blk.{i}.{name}.weight": shape for name, shape in layer.items()}
    shapes["output_norm.weight"] = (2048,)
    types = {name: "Q4_K" for name, shape in shapes.items() if len(shape) == 2} | {"token_embd.weight": "Q6_K"}
    head, size = checkpoints.gguf_header(shapes, {"general.architecture": "llama"}, types)
    path.write_bytes(head)
    os.truncate(path, len(head) + size)


@pytest.mark.parametrize("name", PAGES)
def test_examples(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks marked `torch` or `onnx` (a word after the kind) are left to the test below."""
    check_examples(
        name, [block for block in blocks(PAGES[name].read_text()) if block.mark not in NEEDED], monkeypatch, tmp_path
    )


WITH_TORCH = [name for name in PAGES if any(block.mark == "torch" for block in blocks(PAGES[name].read_text()))]


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_TORCH)
def test_examples_that_need_pytorch(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    here = {mark for mark, package in NEEDED.items() if find_spec(package)}
    page = [block for block in blocks(PAGES[name].read_text()) if block.mark not in NEEDED.keys() - here]
    check_examples(name, page, monkeypatch, tmp_path)


def check_examples(name: str, page: list[Block], monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.syspath_prepend(folder)  # for generated modules
    session = session_in(folder)
    wrong = [f"{name}:{block.line}: {fault}" for block in page for fault in faults(block, session)]
    assert not wrong, "\n\n".join(wrong)


def faults(block: Block, session: Session) -> Iterator[str]:
    """What is not as a page shows it."""
    match block.kind:
        case "arch":
            session.write(block)
            found = session.findings()
            if bool(found) != (block.mark == "wrong"):
                yield found or "no findings"
        case "yaml" | "json" | "python":
            session.save(block)
            if block.kind == "yaml" and block.mark and block.text != configurations(block.mark):
                yield UPDATE
        case "console":
            yield from (f"{step.fault}\n{UPDATE}" for step in session.play(block) if step.fault)
        case "pycon":
            yield from (step.fault for step in session.play(block) if step.fault)
        case _:
            pass


def tutorial_picture(folder: Path) -> str:
    """The picture that the tutorial shows, as its commands draw it."""
    session = session_in(folder)
    for block in blocks(PAGES["docs/tutorial.md"].read_text()):
        if block.kind == "arch":
            session.write(block)
    session.output("archspec compare bert-base-uncased-mlm deep.arch --svg deep.svg --seq 128 --batch 1")
    return (folder / "deep.svg").read_text()


def test_the_picture_of_the_tutorial_is_current(tmp_path: Path) -> None:
    assert TUTORIAL_PICTURE.read_text() == tutorial_picture(tmp_path)


def test_the_text_of_the_tutorial_is_what_its_program_writes() -> None:
    folder = ROOT / "docs" / "tutorial"
    assert runpy.run_path(str(folder / "village.py"))["text"]() == (folder / "village.txt").read_text()


@pytest.mark.parametrize("name", PAGES)
def test_numbers_in_the_text_are_in_an_example_too(name: str) -> None:
    page = PAGES[name].read_text()
    tested = "".join(block.text for block in blocks(page)).replace("_", ",")
    prose = re.sub(r"^\|.*$", "", FENCE.sub("", page), flags=re.MULTILINE)
    stated = set(re.findall(r"\b\d{1,3}(?:,\d{3})+\b", prose))
    assert not {number for number in stated if number not in tested}


@pytest.mark.parametrize("name", PAGES)
def test_links(name: str) -> None:
    page = FENCE.sub("", PAGES[name].read_text())
    for target in re.findall(r"\]\(([^)]+)\)", page):
        path, _, anchor = target.partition("#")
        linked = (PAGES[name].parent / path) if path else PAGES[name]
        assert linked.exists(), target
        headings = re.findall(r"^#+ (.*)$", FENCE.sub("", linked.read_text()), re.MULTILINE) if anchor else []
        slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, target


def test_linked_files_outside_docs_are_copied_to_the_website() -> None:
    copied = set(re.findall(r'^    "[^"]+": "([^"]+)",$', (ROOT / "website" / "hooks.py").read_text(), re.MULTILINE))
    linked: set[str] = set()
    for page in PAGES.values():
        targets = re.findall(r"\]\(([^)#:]+)[^):]*\)", FENCE.sub("", page.read_text()))
        linked |= {(page.parent / target).resolve().relative_to(ROOT).as_posix() for target in targets}
    assert "LICENSE" in linked <= copied | {path for path in linked if path.startswith("docs/")}


# What is shown of other files -----------------------------------------------------------------------------------------


def grammar() -> str:
    return (ROOT / "grammars" / "arch.lark").read_text()


def test_the_grammar_shown_is_the_grammar() -> None:
    shown = [block.text for block in blocks(LANGUAGE.read_text()) if block.kind == "lark"]
    assert shown == [grammar()], UPDATE


def library() -> Iterator[str]:
    """The rows of the table of the standard library, in the order in which std.arch hands the names on."""
    for item in parse_cached(source("std.arch"), Report()).items:
        assert isinstance(item, tree.Import) and item.export
        if not item.path:
            for name in item.names:
                yield f"| op `{name.alias}` | {OPS[name.name].doc} |"
            continue
        file = source(item.source)
        defined = {d.name.text: d for d in parse_cached(file, Report()).items if isinstance(d, tree.Definition)}
        for name in item.names:
            definition = defined.pop(name.name)
            first = definition.doc.partition("\n\n")[0]
            yield f"| {definition.kind} `{signature(file.text, definition)}` | {' '.join(first.split())} |"
        assert not defined, f"{item.source} defines what std.arch does not hand on: {sorted(defined)}"


def source(path: str) -> Source:
    return Source(path, (ROOT / "specs" / path).read_text())


def signature(text: str, definition: tree.Definition) -> str:
    """Name, hyperparameters, inputs and outputs as written, on one line."""
    head = text[definition.name.start : text.index(" {\n", definition.name.start)]
    return " ".join(head.split()).replace(") (", ")(")


def limit_rows() -> Iterator[str]:
    """The rows of the table of resource limits."""
    for what, limit in {
        "file size, in KiB": MAX_FILE_BYTES // 1024,
        "imported files": files.MAX_FILES,
        "nested brackets": lines.MAX_DEPTH,
        "nested operators": expressions.MAX_DEPTH,
        "consecutive `else if` branches": build.MAX_BRANCH_LENGTH,
        "digits in an integer": expressions.MAX_INTEGER_LENGTH,
        "list items": interpreter.MAX_LIST_LENGTH,
        "hyperparameters per definition": files.MAX_HYPERPARAMETERS,
        "segments in an address": addresses.MAX_SEGMENTS,
        "characters in an address": addresses.MAX_ADDRESS_LENGTH,
        "axes per tensor": record.MAX_DIMENSIONS,
        "names and parentheses on a side of a pattern": rearrange.MAX_TOKENS,
        "nested definitions": limits.MAX_NESTED_DEFINITIONS,
        "distinct instances of definitions": limits.MAX_INSTANCES,
        "iterations of loops that declare something": limits.MAX_ITERATIONS,
        "characters of specs evaluated, for each iteration and set of hyperparameters": limits.MAX_PROCESSED_CHARACTERS,
        "tensors": limits.MAX_TENSORS,
        "characters in the names of all tensors": limits.MAX_CHARACTERS,
        "operations, with all definitions expanded": limits.MAX_OPERATIONS,
        "operations on symbolic sizes": limits.MAX_SYMBOLIC_OPERATIONS,
        "applications through which costs track values": fold.MAX_VISITED_CALLS,
        "operations in the two models that `diff` compares": operations.MAX_COMPARED_OPERATIONS,
    }.items():
        yield f"| {what} | {limit:,} |"


def configuration_limit_rows() -> Iterator[str]:
    """The rows of the table of limits of configurations."""
    for what, limit in {
        "file size, in KiB": MAX_CONFIGURATION_BYTES // 1024,
        "values, including those in lists and objects": strict_json.MAX_VALUES,
        "levels of nesting": strict_json.MAX_DEPTH,
        "characters in a number": strict_json.MAX_NUMBER_LENGTH,
    }.items():
        yield f"| {what} | {limit:,} |"


def configurations(type: str) -> str:
    """How configurations of a family are read."""
    return (ROOT / "specs" / "configs" / f"{type}.yaml").read_text()


def families() -> Iterator[str]:
    """The rows of the table of families."""
    specs = str(ROOT / "specs")
    for type in known_types(specs):
        names = read_family(specs, type, {}).architectures
        yield f"| `{type}` | {', '.join(f'`{name}`' for name in names)} |"


TABLES = {
    "| `model_type` | Architectures |": (PAGES["docs/import.md"], families),
    "| Definition | Description |": (LANGUAGE, library),
    "| Resource | Limit |": (LANGUAGE, limit_rows),
    "| Resource of a configuration | Limit |": (PAGES["docs/import.md"], configuration_limit_rows),
    "| Operation | Elementwise operations |": (PAGES["docs/costs.md"], elementwise_work),
}
"""Tables that are made from the code, by the row that they begin with."""


def table(header: str) -> str:
    return "\n".join([header, "|---|---|", *TABLES[header][1]()]) + "\n\n"


# The picture and the table of commands --------------------------------------------------------------------------------


def test_the_page_of_the_command_line_lists_every_command(tmp_path: Path) -> None:
    commands = re.findall(r"^    (\w+)\b", session_in(tmp_path).output("archspec --help"), re.MULTILINE)
    page = PAGES["docs/cli.md"].read_text()
    assert commands and commands == re.findall(r"^\| `archspec (\w+)", page, re.MULTILINE)


# The map of the code --------------------------------------------------------------------------------------------------


CONTRIBUTING = PAGES["docs/contributing.md"].read_text()
DESIGN = (ROOT / "docs" / "design.md").read_text()


def test_the_paths_named_exist() -> None:
    named = re.findall(r"`((?:archspec|benchmarks|docs|grammars|specs|tests)/[\w./-]*)`", CONTRIBUTING + DESIGN)
    there = {path for path in named if (ROOT / path).is_file() or list((ROOT / path).glob("[!_.]*"))}
    assert there and not {path for path in named if path not in there and not re.search("[A-Z]{4}", path)}


def test_the_files_named_in_the_design_exist() -> None:
    named = re.findall(r"`(\w+/[\w/]+\.py)`", DESIGN)
    assert len(named) > 25
    assert not {path for path in named if not (ROOT / "archspec" / path).is_file() and not (ROOT / path).is_file()}


def test_the_functions_named_are_in_their_files() -> None:
    named = re.findall(r"`(archspec/[\w/]+\.py)`: `(?:\w+\.)?(\w+)`", CONTRIBUTING)
    assert len(named) > 15
    assert not {
        (path, name) for path, name in named if not re.search(rf"(def|class) {name}\b", (ROOT / path).read_text())
    }


def test_every_package_is_in_the_map() -> None:
    ours = {path.parent.relative_to(ROOT) for path in (ROOT / "archspec").glob("*/__init__.py")}
    assert ours and not {str(path) for path in ours if f"`{path}/`" not in CONTRIBUTING}


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in (ROOT / "archspec").glob("*/__init__.py")))
def test_every_package_says_what_it_is_for_and_where_to_begin(folder: str) -> None:
    package = ROOT / "archspec" / folder
    text = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    begin = re.search(r"Begin\s+with\s+`([\w./]+)`", text)
    assert begin and (package / begin[1]).exists()
    named = re.findall(r"`([\w/]+(?:\.py|/))`", text)
    assert not {name for name in named if not list(package.glob(f"**/{name}"))}


def test_the_tests_named_exist() -> None:
    named = re.findall(r"`(test_[\w*]+\.py)`", CONTRIBUTING)
    assert named and not {name for name in named if not list((ROOT / "tests").rglob(name))}


def test_the_commits_named_exist() -> None:
    done = subprocess.run(["git", "log", "--format=%s"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode or not (ROOT / ".git").exists():
        pytest.skip("no history")
    subjects = re.findall(r'^Commit: "([^"]+)"', CONTRIBUTING, re.MULTILINE)
    assert len(subjects) == 6 and not {s for s in subjects if f"\n{s}" not in f"\n{done.stdout}"}


# Writing them anew ----------------------------------------------------------------------------------------------------


def renewed(page: str, session: Session) -> str:
    """A page with the grammar, the table and the outputs as they are now; outputs with `...` are left alone."""
    text, end = "", 0
    for block in blocks(page):
        text += page[end : block.start]
        text += _renewed(block, session)
        end = block.end
    text += page[end:]
    for header in TABLES:
        if header in text:
            start = text.index(header)
            text = text[:start] + table(header) + text[text.index("\n\n", start) + 2 :]
    return text


def _renewed(block: Block, session: Session) -> str:
    if block.kind == "lark":
        return grammar()
    if block.kind == "mermaid":
        return session.output("archspec graph bert-base-uncased --level block --to mermaid")
    if block.kind == "arch":
        session.write(block)
    if block.kind in ("yaml", "json"):
        session.save(block)
        return configurations(block.mark) if block.mark else block.text
    if block.kind != "console" or block.mark in NEEDED:
        return block.text
    ran = ((command, shown if "...\n" in shown else session.output(command)) for command, shown in commands(block))
    return "\n\n".join(f"$ {command}\n{output.rstrip()}" for command, output in ran) + "\n"


@pytest.fixture(scope="module", autouse=True)
def updated_pages(request: pytest.FixtureRequest) -> None:
    """Write them anew with --update-golden."""
    if not request.config.getoption("update_golden"):
        return
    for path in PAGES.values():
        with tempfile.TemporaryDirectory() as folder:
            path.write_text(renewed(path.read_text(), session_in(Path(folder))))
    with tempfile.TemporaryDirectory() as folder:
        TUTORIAL_PICTURE.write_text(tutorial_picture(Path(folder)))
