"""Pictures as SVG, PNG and PDF: the file, its colors, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from archspec.testing import main

# The file


@pytest.mark.slow
def test_the_same_bytes_each_time() -> None:
    code = "import archspec; from archspec.drawing.api import picture; print(picture(archspec.load('t5-small'), 'op'))"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(runs) == 1


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = main(["graph", "bert-base-uncased", *arguments])
    out, err = capsys.readouterr()
    return status, out, err


def test_the_extension_is_the_format(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for extension, start in (
        (".svg", "<svg "),
        (".SVG", "<svg "),
        (".dot", "digraph"),
        (".mmd", "---\ntitle"),
        (".json", "{"),
    ):
        path = tmp_path / f"bert{extension}"
        assert run(capsys, "-o", str(path))[0] == 0
        assert path.read_text().startswith(start)
    path = tmp_path / "bert.txt"
    assert run(capsys, "-o", str(path), "--to", "svg")[0] == 0
    assert path.read_text().startswith("<svg ")


PICTURES = "use `--to svg, png, pdf`"
ALL = "svg, png, pdf, html, dot, mermaid, json, graphml, gexf, netron, model-explorer, mmd, gv"


@pytest.mark.parametrize(
    ("options", "message", "help"),
    [
        ("--level op --depth 1", "--depth cannot be combined with --level op", "use `--level block`"),
        ("--to dot --dark", "--dark requires a picture", PICTURES),
        ("--to json --color params", "--color requires a picture", PICTURES),
        ("-o a.gv --color params --dark", "--dark requires a picture", PICTURES),
        ("--to html --level op", "--level, --depth and --fold do not apply to html", "open blocks on the page"),
        ("-o a.html --no-fold", "--level, --depth and --fold do not apply to html", "open blocks on the page"),
        ("--to html --depth 0", "--level, --depth and --fold do not apply to html", "open blocks on the page"),
        ("--to png", "PNG requires a file", "use `-o FILE.png`"),
        ("--to pdf -o -", "PDF requires a file", "use `-o FILE.pdf`"),
        ("-o a.svgz", "unknown extension `.svgz`", "did you mean `svg`?"),
        ("-o a.xyz", "unknown extension `.xyz`", f"use `--to`, or one of {ALL}"),
        ("-o a", "`a` has no extension", f"use `--to`, or one of {ALL}"),
        ("--to svg --seq 8", "--color role does not depend on sizes", "use `--color flops`"),
        ("--to svg --batch 8", "--color role does not depend on sizes", "use `--color flops`"),
        ("--to svg --color params --dim seq=8", "--color params does not depend on sizes", "use `--color flops`"),
        ("--to svg --color flops", "--color flops requires sizes of `batch`, `seq`", "use `--batch N --seq N`"),
        ("--to svg --color bytes --seq 8", "--color bytes requires sizes of `batch`", "use `--batch N`"),
    ],
)
def test_options_that_do_not_fit(
    options: str,
    message: str,
    help: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(capsys, *options.split()) == (2, "", f"error[usage]: {message}\nhelp: {help}\n")


def test_png_and_pdf(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setitem(sys.modules, "cairosvg", None)
    for format in ("PDF", "PNG"):
        assert run(capsys, "-o", str(tmp_path / f"a.{format.lower()}"))[2] == (
            f"error[usage]: {format} requires `rsvg-convert` or the Python package `cairosvg`\n"
            "help: install one of them, or write SVG with `-o FILE.svg`\n"
        )
    fake = SimpleNamespace(
        svg2png=lambda bytestring, scale: b"\x89PNG %d " % scale + bytestring[:4],
        svg2pdf=lambda bytestring: b"%PDF " + bytestring[:4],
    )
    monkeypatch.setitem(sys.modules, "cairosvg", fake)
    for name, expected in (("a.png", b"\x89PNG 2 <svg"), ("a.pdf", b"%PDF <svg")):
        assert run(capsys, "-o", str(tmp_path / name))[0] == 0
        assert (tmp_path / name).read_bytes() == expected
    program = tmp_path / "rsvg-convert"
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    for name, expected in (("b.pdf", "--format pdf\n"), ("b.png", "--format png --zoom 2\n")):
        assert run(capsys, "-o", str(tmp_path / name))[0] == 0
        assert (tmp_path / name).read_text() == expected
    for ending, reason in (("", "exit status 3"), ("echo no >&2\n", "no")):
        program.write_text(f"#!/bin/sh\n{ending}exit 3\n")
        found = run(capsys, "-o", str(tmp_path / "c.pdf"))
        assert found[2] == f"error[usage]: `rsvg-convert` could not convert the picture: {reason}\n"
