"""Figures for papers: what is on them, and that nothing of it leaves the page, overlaps or is too small."""

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from paths import GOLDEN

import archspec
from archspec import testing
from archspec.drawing.figure.shapes import FILLS, GREY, INK
from archspec.drawing.plan.metrics import width as text_width

MODELS = sorted(archspec.models())
WIDTHS = ("3.3in", "6.9in")


def of_kind(figure: archspec.Figure, kind: str) -> list[Any]:
    return [shape for shape in figure.shapes if type(shape).__name__ == kind]


def faults(figure: archspec.Figure) -> list[str]:
    """What a reader would object to."""
    result: list[str] = []
    breadth = float(re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.to_svg())[0][0])
    height = float(re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.to_svg())[0][1])
    for text in of_kind(figure, "Text"):
        right = text.left + 2 * (text.x - text.left) if text.anchor == "middle" else text.x
        right = max(right, text.left)
        if text.size < 6:
            result.append(f"small: {text.text}")
        if text.left < -0.6 or right > breadth + 0.6 or not 0 <= text.y <= height - text.size * 0.7:
            result.append(f"outside: {text.text}")
    words = [(t, t.left, t.left + text_width(t.text, t.size, t.bold)) for t in of_kind(figure, "Text")]
    for i, (a, left, right) in enumerate(words):
        for b, other_left, other_right in words[i + 1 :]:
            y = min(a.y + a.size * 0.7, b.y + b.size * 0.7) - max(a.y, b.y)
            if min(right, other_right) - max(left, other_left) > 0.2 and y > 0.2:
                result.append(f"text over text: {a.text} {b.text}")
    boxes = [box for box in of_kind(figure, "Rect") if box.width > 4]
    for i, a in enumerate(boxes):
        if a.x < -0.6 or a.x + a.width > breadth + 0.6 or a.y < -0.6 or a.y + a.height > height + 0.6:
            result.append(f"outside: {a}")
        for b in boxes[i + 1 :]:
            x = min(a.x + a.width, b.x + b.width) - max(a.x, b.x)
            y = min(a.y + a.height, b.y + b.height) - max(a.y, b.y)
            is_inside = min(x, y) > 0 and (x, y) in ((a.width, a.height), (b.width, b.height))
            frames = {"frame", "mark"} & {a.kind, b.kind} or "panel" in a.kind + b.kind
            within = x > min(a.width, b.width) - 0.5 and y > min(a.height, b.height) - 0.5
            badge = {a.radius, b.radius} & {6.0, 7.4}
            if x > 0.5 and y > 0.5 and not is_inside and not within and not (badge and frames):
                result.append(f"overlap: {a} {b}")
    solid = [b for b in boxes if b.kind not in ("frame", "mark") and "panel" not in b.kind and b.radius != 6.0]
    for line in of_kind(figure, "Line"):
        if line.dashed:
            continue
        for (x1, y1), (x2, y2) in zip(line.points, line.points[1:], strict=False):
            for box in solid:
                x = min(max(x1, x2), box.x + box.width - 0.6) - max(min(x1, x2), box.x + 0.6)
                y = min(max(y1, y2), box.y + box.height - 0.6) - max(min(y1, y2), box.y + 0.6)
                if x >= 0 and y >= 0:
                    result.append(f"line through {box}")
    return result


CROWDED = (
    *("apertus", "conv-bert", "depth-anything", "mit-b", "qwen3-vl", "regnet", "segformer", "stablelm-2-12b", "swinv2"),
    *("vit-mae", "wavlm", "yolos", "aria", "dac", "deepseek-ocr", "deepseek-v3.2", "dfine", "dia-", "efficientnet"),
    *("encodec", "florence", "gemma-3n", "glm-4.1v", "glm-4.5v", "glm-5", "got-ocr", "gpt-neox-japanese", "mimi"),
    *("mobilenet", "musicgen-melody", "parakeet", "phi-4-multimodal", "qwen3-omni", "rtdetr", "sam-", "seamless"),
    *("vjepa2", "xlnet", "llama-4-scout"),
)
"""Models whose figures are too high, or in which a line crosses a box."""


@pytest.mark.sampled(10)
@pytest.mark.parametrize("name", [name for name in MODELS if not name.startswith(CROWDED)])
def test_figures_of_bundled_models_can_be_printed(name: str) -> None:
    model = archspec.load(name)
    unused = {
        **{"esm2_t6_8M": 2, "esm2_t6_8M-mlm": 2},  # the contact head, which the outputs do not need
        **{"csm-1b": 294, "moshika": 312, "musicgen-small": 100},  # the codec, and the decoder of codes
        **{"janus-pro-1b": 352, "qwen2.5-omni-7b-thinker": 1},  # what draws images, marks of sounds
    }
    for width in WIDTHS:
        figure = archspec.figure(model, width)
        assert faults(figure) == []
        assert figure.height <= 4.5 * 72
        assert len(figure.omitted) == unused.get(name, 0)
        assert figure.to_svg() == archspec.figure(model, width).to_svg()


VARIANTS = {
    "bert-base-uncased": {"layers": (1, 40), "heads": (1, 12), "vocab": (10, 250_000)},
    "gpt2": {"layers": (1, 120), "vocab": (10, 250_000), "positions": (8, 100_000)},
    "llama-3.1-8b": {"layers": (1, 130), "ffn": (8, 60_000), "vocab": (10, 900_000)},
    "t5-small": {"layers": (1, 50), "ffn": (8, 60_000), "heads": (1, 64)},
    "mixtral-8x7b": {"layers": (1, 60), "experts": (2, 900)},
    "vit-base-patch16-224": {"layers": (1, 40), "hidden": (12, 1200)},
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200))
def test_figures_of_random_variants_can_be_printed(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(sorted(VARIANTS))
    ranges = VARIANTS[name]
    values = {key: rng.randint(*ends) for key, ends in ranges.items() if key in archspec.load(name).hyperparameters}
    if "hidden" in values:
        values["hidden"] -= values["hidden"] % 12
    if name.startswith("bert"):
        values["heads"] = rng.choice([1, 2, 3, 4, 6, 8, 12])
    figure = archspec.figure(
        archspec.load(name, **values), rng.choice([*WIDTHS, "84mm", "slide"]), grey=rng.random() < 0.5
    )
    assert faults(figure) == [], (name, values)


OWN = """
import std { Linear, Embedding, gelu }

dim batch, seq

layer Norm(n)(x [..., n]) -> [..., n] {
  weight: param [n]
  return x / sqrt(sum(axis = -1, keep = true)(x * x) / n + 1e-6) * .weight
}

block Layer(n)(x [batch, seq, n]) -> [batch, seq, n] {
  q = norm_a: Norm(n)(x)
  scores = matmul(a: Linear(n, n)(q), transpose(b: Linear(n, n)(q))) / sqrt(real(n))
  y = x + (softmax(axis = -1)(scores) |> matmul(_, c: Linear(n, n)(q)) |> d: Linear(n, n))
  return y + (y |> norm_b: Norm(n) |> e: Linear(n, 4 * n) |> gelu |> f: Linear(4 * n, n))
}

block Net(n = 16, layers = 3)(ids int [batch, seq]) -> (scores [batch, seq, 100]) {
  x = ids |> words: Embedding(100, n) + .places[0..seq] if false else ids |> words: Embedding(100, n)
  for i in 0..layers {
    x = layers[i]: Layer(n)(x)
  }
  return x |> out: Linear(n, 100)
}

model "own" = Net()
"""


def words(figure: archspec.Figure) -> list[str]:
    return [text.text for text in of_kind(figure, "Text")]


def test_a_spec_without_roles_and_usual_names_has_a_figure_that_says_what_it_is() -> None:
    text = OWN.replace(" + .places[0..seq] if false else ids |> words: Embedding(100, n)", "")
    shown = words(archspec.figure(archspec.loads(text)))
    assert {"Token embedding", "Self-attention", "Feed-forward", "RMSNorm", "LM head", "× 3"} <= {*shown}
    assert {"1 head × 16", "16 → 64 → 16, GELU", "16 → 100", "GELU"} <= {*shown}


def test_a_figure_says_the_facts_of_a_model() -> None:
    shown = words(archspec.figure("gemma-2-2b"))
    assert {"Grouped-query attention", "GeGLU feed-forward", "RoPE", "× 26", "local (4,096), dark: global"} <= {*shown}
    shown = words(archspec.figure("mixtral-8x7b"))
    assert {"Mixture of experts", "top 2 of 8", "Router", "each SwiGLU, 4,096 → 14,336 → 4,096"} <= {*shown} | {
        "each SwiGLU, 4,096 → 14,336 → 4,096"
    }


def test_labels_are_titles() -> None:
    text = OWN.replace(" + .places[0..seq] if false else ids |> words: Embedding(100, n)", "")
    for old, label in (
        ("block Net(n = 16, layers = 3)(ids int [batch, seq]) -> (scores [batch, seq, 100]) {", 'Tokens" for ids'),
        ('Tokens" for ids', 'Scores" for scores'),
        ("-> [batch, seq, n] {", 'Encoder layer"'),
        ('Encoder layer"', 'query" for a'),
        ("-> [..., n] {", 'Root mean square"'),
    ):
        text = text.replace(old, f'{old}\n  label "{label}', 1)
    shown = words(archspec.figure(archspec.loads(text), "6.9in"))
    assert {"Tokens", "Scores", "query", "Root mean square", "Self-attention", "Feed-forward"} <= {*shown}
    assert "Ids" not in shown and faults(archspec.figure(archspec.loads(text))) == []
    assert "3 × encoder layer" in words(archspec.figure(archspec.loads(text), detail=4))
    stack = text.replace('  label "Tokens"', '  label "Encoder" for layers\n  label "Tokens"')
    shown = words(archspec.figure(archspec.loads(stack), detail=4))
    assert "Encoder" in shown and any(word.startswith("3 layers, ") for word in shown)
    assert {"Multi-head latent attention", "Mixture of experts"} <= {*words(archspec.figure("deepseek-v3", "6.9in"))}
    assert words(archspec.figure("swin-tiny")).count("Patch merging") == 3


def contrast(a: str, b: str) -> float:
    """The ratio of two colors (WCAG 2.2)."""
    low, high = sorted(luminance(color) for color in (a, b))
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_widths_heights_and_details() -> None:
    model = archspec.load("bert-base-uncased")
    assert archspec.figure(model, "84mm").width == pytest.approx(84 / 25.4 * 72)
    slide = archspec.figure(model, "slide")
    assert (slide.width, slide.height <= 540) == (960, True)
    heights = [archspec.figure(model, detail=level).height for level in range(6)]
    assert heights == sorted(heights, reverse=True)
    low = archspec.figure(model, height="2.1in")
    assert low.height <= 2.1 * 72 and low.detail == 5
    assert all(
        contrast(text, fill) > 4.5 for text in (INK, GREY) for kind, (fill, _) in FILLS.items() if kind != "mark"
    )
    grey = archspec.figure(model, grey=True).to_svg()
    colors = set(re.findall("#([0-9a-f]{6})", grey))
    assert all(color[:2] == color[2:4] == color[4:] for color in colors)


def test_the_command_writes_each_format(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    assert testing.run("figure", "bert-base-uncased").output == archspec.figure("bert-base-uncased").to_svg()
    tex = tmp_path / "x.tex"
    assert testing.run("figure", "gpt2", "-o", str(tex), "--title").status == 0
    golden("figures/gpt2.tex", tex.read_text(encoding="utf-8"))
    assert testing.run("figure", "gpt2", "-o", str(tex)).status == 2
    golden("figures/bert.svg", archspec.figure("bert-base-uncased").to_svg())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "x.jpg"), "unknown extension `.jpg`"),
        (("-o", "x"), "`x` has no extension"),
        (("--width", "3.3"), "`3.3` is not a width"),
        (("--width", "1in"), "a width of 1in is out of range"),
        (("--height", "tall"), "`tall` is not a height"),
        (("--detail", "9"), "unknown detail 9"),
        (("t5-base",), "the figure has no room for its 2 columns"),
    ],
)
def test_mistakes_are_named(arguments: tuple[str, ...], message: str) -> None:
    result = testing.run("figure", "gpt2", *arguments)
    assert result.status == 2 and message in result.errors


def test_what_no_box_stands_for_is_said() -> None:
    result = testing.run("figure", "esm2_t6_8M")
    assert "warning[not-drawn]: the figure leaves out 121 of 7,511,801 parameters: contact_head" in result.errors


def test_only_what_scores_the_vocabulary_is_called_a_head_of_a_language_model() -> None:
    shown = words(archspec.figure("albert-base-v2-pretraining"))
    assert shown.count("LM head") == 1 and "128 → 30,000" in shown and "768 → 2" in shown


PAIRS = [
    ("bert-base-uncased", "roberta-base"),
    ("llama-3.1-8b", "gemma-2-2b"),
    ("llama-3.1-8b", "mixtral-8x7b"),
    ("bart-base", "t5-base"),
    ("swin-tiny", "vit-base-patch16-224"),
    ("bert-base-uncased", "bert-base-uncased"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_models_stand_beside_each_other_with_what_differs_marked(first: str, second: str) -> None:
    figure = archspec.figure(first, "6.9in", beside=second)
    assert faults(figure) == []
    shown = words(figure)
    assert shown.count(first) + shown.count(second) == (2 if first != second else 4)
    assert ("differs" in shown) == (first != second)
    assert (figure.hidden == ()) == (first == second)


def test_marks_are_on_what_differs() -> None:
    figure = archspec.figure("llama-3.1-8b", beside="mixtral-8x7b")
    marks = [rect for rect in of_kind(figure, "Rect") if rect.kind == "mark" and rect.width > 15]
    marked = {
        text.text
        for text in of_kind(figure, "Text")
        for rect in marks
        if rect.x < text.x < rect.x + rect.width and rect.y < text.y < rect.y + rect.height
    }
    assert {"LM head", "SwiGLU feed-forward", "Mixture of experts", "Token embedding"} <= marked
    assert not {"RMSNorm", "Grouped-query attention", "× 32"} & marked
    assert "theta" in figure.hidden
    deeper = archspec.figure("bert-base-uncased", beside=archspec.load("bert-base-uncased", layers=6))
    assert deeper.hidden == () and len([r for r in of_kind(deeper, "Rect") if r.kind == "mark"]) == 3
    assert "differs: eps, padding" in testing.run("figure", "bert-base-uncased", "roberta-base").errors


def test_what_one_of_two_figures_leaves_out_is_counted_for_each() -> None:
    one = archspec.figure("esm2_t6_8M")
    two = archspec.figure("esm2_t6_8M", "6.9in", beside="esm2_t6_8M")
    assert (two.omitted, two.omitted_params) == (2 * one.omitted, 2 * one.omitted_params)


def test_a_legend_says_what_the_colors_are() -> None:
    plain, figure = (archspec.figure("mixtral-8x7b", legend=legend) for legend in (False, True))
    assert faults(figure) == []
    assert {"attention", "experts", "embedding", "linear map", "norm"} == {*words(figure)} - {*words(plain)}


@pytest.mark.parametrize("path", sorted(GOLDEN.joinpath("figures").glob("*.arch")), ids=lambda path: path.stem)
def test_figures_of_other_architectures(path: Path, golden: Callable[[str, str], None]) -> None:
    figure = archspec.figure(path)
    assert faults(figure) == [] and figure.omitted == () and figure.height <= 4.5 * 72
    golden(f"figures/{path.stem}.txt", "\n".join(words(figure)) + "\n")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs LaTeX")
def test_figures_compile_alone_and_by_input(tmp_path: Path) -> None:
    def compiled(name: str) -> str:
        run = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", name]
        result = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, errors="replace", check=False)
        assert result.returncode == 0, result.stdout[-2000:]
        return result.stdout

    names = ["gpt2", "gemma-2-2b", "swin-tiny"]
    drawn = list(dict.fromkeys([*names, *[*MODELS][::3]]))
    for name in drawn:
        tmp_path.joinpath(f"{name}.tex").write_text(archspec.figure(name).to_tikz(), encoding="utf-8")
    assert all("(1 page" in compiled(f"{name}.tex") for name in names)
    inputs = "\n\n".join(rf"\input{{{name}.tex}}" for name in drawn)
    document = (
        "\\documentclass[twocolumn]{article}\\usepackage{tikz}\\begin{document}\n" + inputs + "\n\\end{document}\n"
    )
    tmp_path.joinpath("all.tex").write_text(document, encoding="utf-8")
    assert "Output written on all.pdf" in compiled("all.tex")
