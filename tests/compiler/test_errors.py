"""What is said about specs that are wrong: each code as docs/errors.md shows it; every mistake in one run, and once.

In a spec under tests/golden/errors, `#! code` ends a line with a mistake; nothing else is to be found fault with.
`pytest --update-golden` writes the messages anew, there and in docs/errors.md.
"""

import contextlib
import io
import os
import pickle
import re
from collections.abc import Callable
from pathlib import Path

import paths
import pytest

import archspec
from archspec import Diagnostic, Source, Span, testing
from archspec.testing import main

# docs/errors.md -------------------------------------------------------------------------------------------------------


# Every mistake in one run, and each once ------------------------------------------------------------------------------

GOLDEN = paths.GOLDEN / "errors"
ONCE = dict(
    part.split("\n", 1) for part in re.split(r"^=== ", (GOLDEN / "once.txt").read_text(), flags=re.MULTILINE)[1:]
)


def findings(folder: Path, text: str) -> list[Diagnostic]:
    """What `check` finds in a spec, in the order it says it."""
    (folder / "spec.arch").write_text(text, encoding="utf-8")
    with contextlib.chdir(folder):
        return testing.check("spec.arch")


def places(found: list[Diagnostic]) -> list[tuple[int, str]]:
    """Line and code of each finding; a place in another file is line 0."""
    spans = [(d.span, d.code) for d in found]
    return sorted((s.source.position(s.start)[0] if s and s.source.label == "spec.arch" else 0, c) for s, c in spans)


def marked(text: str) -> list[tuple[int, str]]:
    """Line and code of each mistake that a spec marks."""
    lines = [line.partition("#!")[2].split() for line in text.split("\n")]
    return sorted((number, code) for number, codes in enumerate(lines, 1) for code in codes)


def rendered(found: list[Diagnostic]) -> str:
    return "\n\n".join(d.render() for d in found)


@pytest.mark.parametrize("text", ONCE.values(), ids=ONCE)
def test_one_mistake_is_said_once(tmp_path: Path, text: str) -> None:
    found = findings(tmp_path, text)
    assert places(found) == marked(text), rendered(found)


def test_what_one_mistake_is_called(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    said = (f"=== {name}\n{rendered(findings(tmp_path, text))}\n" for name, text in ONCE.items())
    golden("errors/once_said.txt", "".join(said))


MISPLACED = """
a: Dense(«x»)
a: Dense(n, «m = x»)
a: Dense(n, n, «x»)
«a: Dense(m = n)»
a: Dense(n, «k = 1»)
a: Dense(n, n, true, «1»)
«unknown»()
""".strip().split("\n")


@pytest.mark.parametrize("step", MISPLACED)
def test_the_place_of_a_mistake(tmp_path: Path, step: str) -> None:
    text = (
        "import std { Linear }\nlayer Dense(n, m, bias = true)(x [..., n]) -> [..., m] {\n"
        "  dense: Linear(n, m, bias)\n  return x |> .dense\n}\n"
        f'block It(n = 2)(x [n]) -> [n] {{\n  return x |> {step}\n}}\nmodel "it" = It()\n'
    )
    (found,) = findings(tmp_path, text.replace("«", "").replace("»", ""))
    assert found.span is not None
    start, end = found.span.start, found.span.end
    marked = found.span.source.text[:start] + "«" + found.span.source.text[start:end] + "»"
    assert marked == text[: len(marked)], rendered([found])


@pytest.mark.parametrize("name", [path.stem for path in sorted(GOLDEN.glob("*.arch"))])
def test_every_mistake_is_said_in_one_run(tmp_path: Path, name: str, golden: Callable[[str, str], None]) -> None:
    text = (GOLDEN / f"{name}.arch").read_text(encoding="utf-8")
    found = findings(tmp_path, text)
    assert places(found) == marked(text), rendered(found)
    starts = [(d.severity == "warning", d.span.start) for d in found if d.span]
    assert starts == sorted(starts), "errors stand in the order of the file, and then warnings"
    golden(f"errors/{name}.txt", rendered(found) + "\n")


# Files that cannot be used --------------------------------------------------------------------------------------------

GOOD = "layer Head(width)(x [..., width]) -> [..., width] {\n  scale: param [width]\n  return x * .scale\n}\n"


def importing(path: str) -> str:
    return f'import "{path}" {{ Head }}\nmodel "m" = Head(3)\n'


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    for data in (b"\xff\xfe\x00", b"PK\x03\x04\x00\x00", b"\x89PNG\r\n\x1a\n", "model".encode("utf-16-le"), b"a\0b"):
        (tmp_path / "spec.arch").write_bytes(data)
        with contextlib.chdir(tmp_path):
            assert [d.code for d in testing.check("spec.arch")] == ["not-text"]


def test_a_byte_order_mark_and_line_ends_of_other_systems_do_no_harm(tmp_path: Path) -> None:
    text = GOOD + 'model "m" = Head(3) { expect params == 3 }\n'
    for data in (
        b"\xef\xbb\xbf" + text.encode(),
        text.replace("\n", "\r\n").encode(),
        text.replace("\n", "\r").encode(),
    ):
        (tmp_path / "spec.arch").write_bytes(data)
        assert testing.check(str(tmp_path / "spec.arch")) == []


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    assert places(findings(tmp_path, "#" * 300_000)) == [(0, "budget")]
    (tmp_path / "head.arch").write_text("#" * 300_000)
    assert places(findings(tmp_path, importing("head.arch"))) == [(1, "budget")]


def test_a_file_that_is_missing(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        (found,) = testing.check("nowhere.arch")
    assert found.render() == "error[missing-file]: file not found: nowhere.arch"
    assert places(findings(tmp_path, importing("nowhere.arch"))) == [(1, "missing-file")]


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "parts.arch").mkdir()
    with contextlib.chdir(tmp_path):
        (found,) = testing.check("parts.arch")
    assert found.render() == "error[unreadable]: expected a file, found the directory parts.arch"
    assert places(findings(tmp_path, importing("parts.arch"))) == [(1, "unreadable")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with names here")
def test_a_pipe_or_a_device(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.arch")
    assert [d.code for d in testing.check(str(tmp_path / "pipe.arch"))] == ["unreadable"]
    assert places(findings(tmp_path, importing("pipe.arch"))) == [(1, "unreadable")]
    (tmp_path / "zero.arch").symlink_to("/dev/zero")
    assert [d.code for d in testing.check(str(tmp_path / "zero.arch"))] == ["unreadable"]


def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "head.arch").write_text(GOOD)
    (tmp_path / "head.arch").chmod(0)
    if os.access(tmp_path / "head.arch", os.R_OK):
        pytest.skip("this user may read everything")
    assert [d.code for d in testing.check(str(tmp_path / "head.arch"))] == ["unreadable"]
    assert places(findings(tmp_path, importing("head.arch"))) == [(1, "unreadable")]


@pytest.mark.parametrize(
    "name", ["a\\\\b.arch", "x" * 300 + ".arch", "\u202e.arch", " .arch", "a/../../b.arch", "", "."]
)
def test_odd_names(tmp_path: Path, name: str) -> None:
    (found,) = findings(tmp_path, importing(name))
    assert found.code in ("missing-file", "unreadable", "import-outside", "syntax")
    assert found.span is not None and found.span.source.label == "spec.arch"


@pytest.mark.parametrize("how", ["up", "absolute", "link", "linked folder", "home"])
def test_imports_stay_in_the_folder(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "head.arch").write_text(GOOD)
    (folder / "link.arch").symlink_to(tmp_path / "head.arch")
    (folder / "linked").symlink_to(tmp_path)
    path = {
        "up": "../head.arch",
        "absolute": str(tmp_path / "head.arch"),
        "link": "link.arch",
        "linked folder": "linked/head.arch",
        "home": "../inner/../head.arch",
    }[how]
    assert places(findings(folder, importing(path))) == [(1, "import-outside")]


def test_imports_within_the_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "head.arch").write_text(GOOD)
    (tmp_path / "a" / "b" / "on.arch").write_text('export "../../head.arch" { Head }\n')
    (tmp_path / "link.arch").symlink_to(tmp_path / "head.arch")
    for path in ("head.arch", "./a/../head.arch", "a/b/on.arch", "link.arch"):
        assert findings(tmp_path, importing(path)) == []


def test_an_imported_file_may_not_look_further_than_the_spec(tmp_path: Path) -> None:
    folder = tmp_path / "inner"
    folder.mkdir()
    (tmp_path / "head.arch").write_text(GOOD)
    (folder / "on.arch").write_text('export "../head.arch" { Head }\n')
    (found,) = findings(folder, importing("on.arch"))
    assert (found.code, str(found.span)) == ("import-outside", "on.arch:1:1")


def test_a_spec_from_standard_input_imports_bundled_files_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "head.arch").write_text(GOOD)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(importing("head.arch").encode())))
    assert main(["check", "-"]) == 1
    assert capsys.readouterr().err.startswith("error[import-outside]: ")


def test_what_another_file_has_in_error_is_said_of_it_only(tmp_path: Path) -> None:
    broken = "layer Part(n)(x [n]) -> [n] {\n  return x +\n}\nlayer Lost(n)(x [n] -> [n] { return x }\n"
    (tmp_path / "part.arch").write_text(broken)
    text = 'import "part.arch" { Part, Lost, None }\nblock Net(n = 4)(x [n]) -> [n] {\n'
    text += '  return x |> a: Part(n) |> b: Lost(n)\n}\nmodel "m" = Net()\n'
    found = findings(tmp_path, text)
    assert sorted((str(d.span), d.code) for d in found) == [
        ("part.arch:2:13", "syntax"),
        ("part.arch:4:14", "syntax"),
        ("spec.arch:1:34", "unknown-import"),
    ]


def test_a_circle_of_files_and_many_of_them(tmp_path: Path) -> None:
    for i in range(100):
        (tmp_path / f"f{i}.arch").write_text(f'export "f{i + 1}.arch" {{ Head }}\n')
    (tmp_path / "f100.arch").write_text('export "f0.arch" { Head }\n')
    (found,) = findings(tmp_path, importing("f0.arch"))
    assert found.code == "budget"
    (tmp_path / "f40.arch").write_text('export "f0.arch" { Head }\n')
    (found,) = findings(tmp_path, importing("f0.arch"))
    assert found.code == "import-cycle"
    (tmp_path / "f40.arch").write_text(GOOD)
    assert findings(tmp_path, importing("f0.arch")) == []


# What a finding looks like --------------------------------------------------------------------------------------------


def test_a_line_that_is_too_long_is_cut_around_the_caret(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, GOOD + f"# {'a' * 400}\n" + f'model "m" = Head(3 + {"1 * " * 50}nought)\n')
    excerpt = found.render().split("\n")[3:5]
    assert max(map(len, excerpt)) < 180
    assert excerpt[0][excerpt[1].index("^") :].startswith("nought)")
    assert excerpt[1].count("^") == len("nought")


@pytest.mark.parametrize(
    ("length", "start", "end", "shown", "caret"),
    [
        (160, 0, 2, (0, 160), (0, 2)),
        (160, 155, 170, (0, 160), (155, 5)),
        (161, 0, 161, (0, 160), (0, 160)),
        (161, 41, 43, (1, 161), (40, 2)),
        (161, 160, 161, (1, 161), (159, 1)),
        (161, 161, 165, (1, 161), (160, 1)),
        (500, 40, 41, (0, 160), (40, 1)),
        (500, 41, 500, (1, 161), (40, 120)),
        (500, 400, 450, (340, 500), (60, 50)),
    ],
)
def test_160_characters_of_a_line_are_shown(
    length: int, start: int, end: int, shown: tuple[int, int], caret: tuple[int, int]
) -> None:
    text = "".join(chr(97 + i % 26) for i in range(length))
    said = Diagnostic("syntax", "wrong", Span(Source("a.arch", f"{text}\nmore"), start, end)).render()
    assert said == "\n".join(
        [
            "error[syntax]: wrong",
            f" --> a.arch:1:{start + 1}",
            "  |",
            f"1 | {text[slice(*shown)]}",
            f"  | {' ' * caret[0]}{'^' * caret[1]}",
        ]
    )


def test_what_could_act_on_a_terminal_is_shown_as_escapes(tmp_path: Path) -> None:
    found = findings(tmp_path, 'model "\x1b[31mred\u202e" = Nothing()\n' + "\x1b[2J\n")
    text = rendered(found)
    assert text.replace("\n", "").isprintable()


def test_no_number_where_something_is_wrong(tmp_path: Path) -> None:
    for name in ("encoder", "small", "broken"):
        path = tmp_path / f"{name}.arch"
        path.write_text((GOLDEN / f"{name}.arch").read_text())
        for model in ("", ":encoder", ":tall"):
            with pytest.raises(archspec.ArchError):
                archspec.load(f"{path}{model}")


def test_errors_pass_from_one_process_to_another() -> None:
    text = 'dim n\nblock A(x [n]) -> [n] { return x + z }\nmodel "a" = A()'
    with pytest.raises(archspec.ArchError) as caught:
        archspec.loads(text)
    copied = pickle.loads(pickle.dumps(caught.value))
    assert str(copied) == str(caught.value)
    assert [(d.code, str(d.span)) for d in copied.diagnostics] == [("unknown-name", "<text>:2:36")]


IMPORTS = f"import std {{ {', '.join(f'Nothing{i}' for i in range(120))} }}\n"
NET = "block Net()(x [4]) -> [4] {\n  return x\n}\n"
MANY = {
    "imports": IMPORTS + NET + 'model "net" = Net()\n',
    "steps": NET.replace("return x", f"return x {' '.join(f'|> f{i}' for i in range(120))}") + 'model "net" = Net()\n',
}


@pytest.mark.parametrize("case", MANY)
def test_too_many_diagnostics_are_cut_off(case: str, tmp_path: Path) -> None:
    (tmp_path / "net.arch").write_text(MANY[case])
    path = f"{tmp_path}/net.arch"
    for text in (path, f"{path}:net"):
        with pytest.raises(archspec.ArchError) as caught:
            archspec.load(text)
        for found in (caught.value.diagnostics, testing.check(text)):
            assert len(found) == 101
            assert found[-1].message == "too many diagnostics: only the first 100 are shown"
