"""The canonical layout: of the bundled specs, of the same texts in other layouts, and of texts with errors."""

import codecs
import os
import random
import re
import stat
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from mutations import SMALL, SPECS

import archspec
from archspec.testing import main

BUNDLED = sorted(set(SPECS) - {"small"})
WITHOUT_ERRORS = "block Sound(n)(x [n]) -> [n] {\n  return x |> a: Linear(n, n)\n}\n"


def in_another_layout(text: str, chance: random.Random) -> str:
    """The text with other spaces in its lines, and with line ends in its brackets."""
    depth = 0
    parts = re.findall(r'#[^\n]*|"[^"\n]*"|\n *(?:\|>)?| *\|> *| +|[^\s"#]', text)
    for i, part in enumerate(parts):
        depth += (part in ("(", "[")) - (part in (")", "]"))
        if part.isspace() and "\n" not in part and not re.match(r"[#|]", parts[i + 1]):
            following = "".join(parts[i + 1 : i + 3])
            ends = depth > 0 and chance.random() < 0.1 and following[0] != "("
            parts[i] = "\n" + " " * chance.randrange(9) if ends else " " * chance.randrange(1, 4)
        elif part == "," and depth > 0 and chance.random() < 0.2:
            parts[i] = " ,"
    return "".join(parts)


# Layout ---------------------------------------------------------------------------------------------------------------


@pytest.mark.sampled(40)
@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_specs_are_formatted(name: str) -> None:
    assert archspec.format(SPECS[name]) == SPECS[name]


@pytest.mark.parametrize("name", ["small", "attention.arch", "norm.arch", "recurrent.arch"])
def test_other_layouts_of_a_text_become_the_same(name: str) -> None:
    canonical = archspec.format(SPECS[name])
    for seed in range(3):
        text = in_another_layout(canonical, random.Random(seed))
        assert text != canonical
        assert archspec.format(text) == canonical, text


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_many_other_layouts_of_a_text_become_the_same(name: str) -> None:
    canonical = archspec.format(SPECS[name])
    for seed in range(40):
        text = in_another_layout(canonical, random.Random(seed))
        assert archspec.format(text) == canonical, text


def test_another_layout_of_a_model_compiles_to_the_same(tmp_path: Path) -> None:
    path = tmp_path / "small.arch"
    path.write_text(in_another_layout(SMALL, random.Random(0)), encoding="utf-8")
    before = archspec.load(f"{path}:small")
    assert main(["fmt", str(path)]) == 0
    after = archspec.load(f"{path}:small")
    assert after.tensors == before.tensors
    assert [*after.graph("op").edges] == [*before.graph("op").edges]


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", archspec.models())
def test_another_layout_of_a_bundled_model_compiles_to_the_same(name: str, tmp_path: Path) -> None:
    family = next(file for file, text in SPECS.items() if f'model "{name}"' in text)
    text = in_another_layout(SPECS[family], random.Random(name))
    path = tmp_path / "spec.arch"
    for content in (text, archspec.format(text)):
        path.write_text(content, encoding="utf-8")
        assert archspec.load(f"{path}:{name}").tensors == archspec.load(name).tensors


def test_an_item_that_would_begin_a_statement_stays_beside_the_one_before() -> None:
    long = "a" * 45
    text = f"fn f(dim, n) {{\n  return g({long}, {long}, dim if {long} else 3, n)\n}}\n"
    lines = [f"  return g({long},", f"           {long}, dim if {long} else 3,", "           n)"]
    assert archspec.format(text).split("\n")[1:4] == lines
    assert archspec.format(archspec.format(text)) == archspec.format(text)


def test_the_condition_of_a_long_step_stays_in_its_line() -> None:
    names = [f"some_long_name_{i}" for i in range(9)]
    text = f"fn f(x) {{\n  return x\n    |> drop({', '.join(names)}) if some_condition\n}}\n"
    assert "some_long_name_8) if some_condition\n" in archspec.format(text)


UNALIGNED = [
    f"fn f(n) {{\n  a = {long}\n  long = n\n}}\n" for long in ("b" * 112, f"g({'b' * 50}, {'c' * 50}, nnnnnn)")
]
"""Aligned, the first statement would be too long, or in two lines."""


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("", ""),
        ("\n\n# alone\n\n\n", "# alone\n"),
        ("dim a\n\n\n\ndim b\n# c\n\n# d\ndim e", "dim a\n\ndim b\n# c\n\n# d\ndim e\n"),
        ("fn f(n) { return n }\nfn g(n) { return n }", "fn f(n) {\n  return n\n}\n\nfn g(n) {\n  return n\n}\n"),
        ("for", "for\n"),
        (f"fn f({'n' * 130}) {{ return {'n' * 130} }}", f"fn f({'n' * 130}) {{\n  return {'n' * 130}\n}}\n"),
        ("import std {}", "import std {}\n"),
        ('model "m" = M() { }', 'model "m" = M() {\n}\n'),
        ("fn f(n) {\n  return (n)   # all\n  # last\n}", "fn f(n) {\n  return (n)    # all\n  # last\n}\n"),
        (
            "fn f(n) { for i in 0..n { a = n } # no-residual\n}",
            "fn f(n) {\n  for i in 0..n {    # no-residual\n    a = n\n  }\n}\n",
        ),
        (
            f"fn f(n) {{\n  return n |> {'a' * 60} for i in 0..n |> {'b' * 60} # no-residual\n}}\n",
            f"fn f(n) {{\n  return n\n    |> {'a' * 60} for i in 0..n    # no-residual\n    |> {'b' * 60}\n}}\n",
        ),
        (
            f"fn f(n) {{\n  return n |> a: {'a' * 60}(n), n |> long: b(n) |> {'b' * 60}, n\n}}\n",
            f"fn f(n) {{\n  return n\n    |> a:    {'a' * 60}(n), n\n    |> long: b(n)\n    |> {'b' * 60}, n\n}}\n",
        ),
        (
            "fn f(a # x\n , b, # y\n) { return [1, # one\n 2,\n # end\n ] }",
            "fn f(a,    # x\n     b     # y\n    ) {\n"
            "  return [1,    # one\n          2\n          # end\n         ]\n}\n",
        ),
        ("fn f(n) { return [1, # one\n 2] }", "fn f(n) {\n  return [1,    # one\n          2]\n}\n"),
        (
            "fn f(n) { return [1,\n # two\n 2 # end\n] }",
            "fn f(n) {\n  return [1,\n          # two\n          2    # end\n         ]\n}\n",
        ),
        *[(text, text) for text in UNALIGNED],
        ("fn f(n) { a = =}", "fn f(n) {\na = =\n}\n"),
        ("fn f(n) { for i in 0.. .x { a = -n - -1 } }", "fn f(n) {\n  for i in 0.. .x {\n    a = -n - -1\n  }\n}\n"),
    ],
)
def test_small_texts(text: str, formatted: str) -> None:
    assert archspec.format(text) == formatted
    assert archspec.format(formatted) == formatted


# Errors ---------------------------------------------------------------------------------------------------------------


def test_statements_that_cannot_be_read_stay_as_they_are() -> None:
    text = 'block Odd(n)(x  [n])->[n]{\n    a = = x\n return x|>b:Linear(n,n)\n}\n\n\nlayer  ( x )\nmodel "m"=Odd(2)\n'
    assert archspec.format(text) == (
        "block Odd(n)(x [n]) -> [n] {\n    a = = x\n  return x |> b: Linear(n, n)\n}\n\n"
        'layer  ( x )\nmodel "m" = Odd(2)\n'
    )


def test_a_definition_without_its_brace_stays_as_it_is() -> None:
    text = f"block Open(n)(x  [n]) -> [n] {{\n  return  x\n\n{WITHOUT_ERRORS.replace('x |>', 'x   |>')}"
    assert archspec.format(text) == f"block Open(n)(x  [n]) -> [n] {{\n  return  x\n\n{WITHOUT_ERRORS}"


@pytest.mark.parametrize(
    "text", ["((((", "}", "fn f(n) {", 'x = "', "a\fb", "é ü\n  ß", "[" * 100, "+ " * 1000 + "+\n"]
)
def test_text_without_a_statement_stays_as_it_is(text: str) -> None:
    assert archspec.format(text) == text.rstrip("\n") + "\n"


@pytest.mark.parametrize(
    "inside",
    [
        "    if n > 1 { a = 2 } # then\n  else {a =   3 }\n",
        "    if n > 1 # why\n { a = 2 } else {a =   3 }\n",
        "  a = 0\n    for i in 0..n # why\n { a =   a+ i }\n",
    ],
)
def test_a_branch_or_loop_with_comments_between_its_parts_stays(inside: str) -> None:
    text = f"fn f(n) {{\n{inside}  return a\n}}\n"
    assert archspec.format(text.replace("return a", "return   a")) == text


# The command ----------------------------------------------------------------------------------------------------------

UGLY = b"fn f(n){return n}\n"
NEAT = b"fn f(n) {\n  return n\n}\n"


def test_files_and_directories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("a.arch", "b/c.arch", ".hidden/d.arch", "env/lib/e.arch", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(UGLY)
    (tmp_path / "env" / "pyvenv.cfg").touch()
    assert main(["fmt", "--check", str(tmp_path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"not formatted: {tmp_path}/a.arch",
        f"not formatted: {tmp_path}/b/c.arch",
        "2 files to format",
    ]
    assert (tmp_path / "a.arch").read_bytes() == UGLY
    assert main(["fmt", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith("2 files formatted\n")
    assert main(["fmt", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "2 files unchanged\n"
    assert main(["fmt", "--check", "--diff", str(tmp_path)]) == 0
    unformatted = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*") if path.is_file()}
    assert {name for name in unformatted if (tmp_path / name).read_bytes() == UGLY} == {
        *(".hidden/d.arch", "env/lib/e.arch", "other.txt")
    }


def test_the_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.arch").write_bytes(UGLY[:-1])
    assert main(["fmt", "--diff", "a.arch"]) == 1
    out, err = capsys.readouterr()
    assert out == (
        "--- a.arch\n+++ a.arch (formatted)\n@@ -1 +1,3 @@\n-fn f(n){return n}\n\\ No newline at end of file\n"
        "+fn f(n) {\n+  return n\n+}\n"
    )
    assert err == "1 file to format\n"
    assert Path("a.arch").read_bytes() == UGLY[:-1]


@pytest.mark.parametrize(("options", "status", "out"), [([], 0, NEAT), (["--check"], 1, b"not formatted: <stdin>\n")])
def test_standard_input(
    options: list[str],
    status: int,
    out: bytes,
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(UGLY)))
    assert main(["fmt", "-", *options]) == status
    assert capfdbinary.readouterr().out == out


def test_errors_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.arch"
    path.write_bytes(b"dim a,,b\n" + UGLY)
    assert main(["fmt", str(path)]) == 1
    assert "error[syntax]: expected a name" in capsys.readouterr().err
    assert path.read_bytes() == b"dim a,,b\n" + NEAT
    path.write_bytes(b"\xff\xfe")
    assert main(["fmt", str(path)]) == 1
    assert "not-text" in capsys.readouterr().err
    assert path.read_bytes() == b"\xff\xfe"
    assert main(["fmt", str(tmp_path / "none.arch")]) == 2
    assert main(["fmt", str(tmp_path / "empty")]) == 2


def test_line_ends_and_the_byte_order_mark_stay(tmp_path: Path) -> None:
    path = tmp_path / "a.arch"
    path.write_bytes(codecs.BOM_UTF8 + UGLY.replace(b"\n", b"\r\n"))
    assert main(["fmt", str(path)]) == 0
    assert path.read_bytes() == codecs.BOM_UTF8 + NEAT.replace(b"\n", b"\r\n")
    assert archspec.format("dim a\r\ndim b\n") == "dim a\r\ndim b\r\n"


@pytest.mark.skipif(os.name == "nt", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, link = tmp_path / "a.arch", tmp_path / "b.arch"
    path.write_bytes(UGLY)
    path.chmod(0o640)
    link.symlink_to("a.arch")
    assert main(["fmt", str(link)]) == 0
    assert link.is_symlink()
    assert path.read_bytes() == NEAT
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.arch", "b.arch"]
