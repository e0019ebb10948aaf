"""No statement of a bundled spec is idle: without it, the spec is in error, or what comes out is not the same.

What comes out are the tables, inputs, outputs and graphs (opened into operations) of all models in `specs/`, of all
architectures of configurations, and of the models in PROBES, which use all of the standard library. Some are to fail: a
`require` that is gone shows by an error that is gone too, or another.
"""

import functools
import shutil
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from paths import SPECS

import archspec
import archspec.pipeline.compile
import archspec.pipeline.files
from archspec import Source, pipeline
from archspec.core import resources
from archspec.core.diagnostics import Report
from archspec.core.record import Node
from archspec.core.resources import KINDS
from archspec.formats.configs.family import known_types, read_family
from archspec.language.syntax import tree
from archspec.pipeline import cache
from archspec.pipeline.model import get_compilation

FILES = sorted(SPECS.rglob("*.arch"))

PROBES = """
import std { Linear, Embedding, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d, LayerNorm, RMSNorm, GroupNorm }
import std { gelu, gelu_tanh, gelu_fast, quick_gelu, relu, relu2, silu, mish, softplus, tanh, sigmoid }
import std { CausalConv1d, zero_padding }
import std { sinusoids, SinusoidalEmbedding, rotary, positions_after, key_mask, causal_mask, window_mask }
import std { first, last, mean, window_partition, window_reverse, LSTM, GRU, rnn, selective_scan }
import std { split_heads, merge_heads, repeat_heads, attention, SelfAttention, CrossAttention }
import std { FeedForward, GatedFeedForward }
import std { Dropout, BatchNorm, token_at, split_sinusoids }
import std { top_experts, GatedExperts }
import std { rotate, alibi, yarn_frequencies, yarn_scale, soft_cap, grid_sample, grid_angles, sectioned_angles }
import std { linear_weights, aligned_weights, cubic_weights }
import std { resize, chunk_mask, channel_norm, rms_norm, gated_rms_norm, state_space_scan }
import std { gated_delta_rule, put_rows, ConformerLayer }
import albert { AlbertForMaskedLM }
import bert { BertForMaskedLM }
import roberta { RobertaForMaskedLM }
import electra { ElectraForMaskedLM }
import t5 { T5EncoderModel }
import mixtral { MixtralForCausalLM }
import falcon { Falcon }
import gemma3 { Gemma3 }
import deepseek_v3 { DeepseekV3ForCausalLM }
import dinov2 { Dinov2 }

dim batch, seq, other

block Vectors(bias = true, padding = none)
             (x [batch, seq, 8], ids int [batch, seq])
             -> ([batch, seq, 8], [batch, seq, 8], [batch, seq, 8], [batch, seq, 8], [batch, 8], [batch, 8], [batch, 8],
                 [batch, 8]) {
  looked = words: Embedding(10, 8)(ids) |> linear: Linear(8, 8, bias) |> norm: LayerNorm(8, bias = bias)
  placed = places: SinusoidalEmbedding(10, 8, padding)(positions_after(1)(ids))
    |> rms:   RMSNorm(8)
    |> + sinusoids(seq, 8)
  plain  = x |> fc: FeedForward(8, 12, bias = bias) |> silu |> softplus |> gelu_tanh |> gelu_fast |> quick_gelu
  gated  = x |> glu: GatedFeedForward(8, 12, bias = bias) |> relu |> relu2 |> mish |> tanh |> sigmoid |> gelu
  return looked, placed, plain, gated, first(x), last(0)(x, ids), mean(x, ids), mean(x)
}

block Heads(hidden = 8, heads = 4, groups = 2, bias = true, causal = false, window = none, scale = none)
           (x [batch, seq, hidden], memory [batch, other, 6], mask int [batch, seq] = none)
           -> ([batch, seq, hidden], [batch, seq, hidden], [batch, seq, hidden], [batch, heads, seq, hidden // heads]) {
  keys = key_mask(mask) and causal_mask(seq) and window_mask(seq, 2) if mask != none
  own   = self:  SelfAttention(hidden, heads, groups, bias, causal, window)(x, keys)
  cross = cross: CrossAttention(hidden, heads, 6, bias)(x, memory)
  split = x |> split_heads(heads)
  few   = x |> few: Linear(hidden, hidden // heads * groups) |> split_heads(groups)
  plain = attention(scale, causal, window)(split, few, few) |> merge_heads
  return own, cross, plain, few |> repeat_heads(heads // groups) |> rotary(_, arange(seq))
}

block Dropped(n = 8)(x [batch, n, seq], index int [batch]) -> [batch, n] {
  y = x |> norm: BatchNorm(n) |> drop: Dropout(0.1) |> transpose
  return token_at(y, index)
}

block Recurrent(bias = true)
               (x [batch, seq, 8], steps [batch, seq, 8], rates [8, 4], enter [batch, seq, 4], read [batch, seq, 4],
                mask int [batch, seq] = none)
               -> ([batch, seq, 8], [batch, 8], [batch, 8], [batch, 8]) {
  short = zero_padding(x, key_mask(mask) if mask != none) |> short: CausalConv1d(8, 3, bias)
  y, h, c = lstm: LSTM(8, 8, bias)(selective_scan(short, steps, rates, enter, read))
  z, g = gru: GRU(8, 8, bias)(y)
  w, k = rnn(given = z, weight = full([8, 8], 0.5))
  v, _ = rnn(relu)(w, full([8, 8], 0.5), full([8], 0.5), k)
  return v, h, c, g
}

block Pictures(groups = 1, bias = true)
              (sound [batch, 4, 32], image [batch, 4, 32, 64])
              -> ([batch, 6, 16], [batch, 6, 16, 32], [batch, 6, 16, 16]) {
  line  = sound |> line:  Conv1d(4, 6, 4, stride = 2, padding = 4, dilation = 3, groups = groups, bias = bias)
  plane = image |> plane: Conv2d(4, 6, 4, stride = 2, padding = 4, dilation = 3, groups = groups, bias = bias)
  return line, plane, uneven: Conv2d(6, 6, 3, padding = 1, kernel_width = 4, stride_width = 2)(plane)
}

block Line(groups)(x [batch, 4, 32]) -> [batch, 6, 30] {
  return x |> conv: Conv1d(4, 6, 3, groups = groups)
}

block Plane(groups)(x [batch, 4, 32, 32]) -> [batch, 6, 30, 30] {
  return x |> conv: Conv2d(4, 6, 3, groups = groups)
}

block Wider(groups = 2, out = 6, bias = true)
           (sound [batch, 4, 8], image [batch, 4, 8, 8]) -> ([batch, out, 10], [batch, out, 10, 10]) {
  line  = sound |> line:  ConvTranspose1d(4, out, 3, groups = groups, bias = bias) |> norm: GroupNorm(2, out)
  plane = image |> plane: ConvTranspose2d(4, out, 3, groups = groups, bias = bias)
  return line, plane
}

block WiderLine(groups = 2, out = 6)(x [batch, 4, 8]) -> [batch, out, 10] {
  return x |> conv: ConvTranspose1d(4, out, 3, groups = groups)
}

block WiderPlane(groups = 2, out = 6)(x [batch, 4, 8, 8]) -> [batch, out, 10, 10] {
  return x |> conv: ConvTranspose2d(4, out, 3, groups = groups)
}

block Grouped(groups)(x [batch, 6, 8]) -> [batch, 6, 8] {
  return x |> norm: GroupNorm(groups, 6)
}

block Parted(height, window)
            (x [batch, height, 8, 3]) -> [batch * (height // window) * (8 // window), window, window, 3] {
  scale: param []
  return x * .scale |> window_partition(window)
}

block Joined(height, width)(x [16, 2, 2, 3]) -> [16 // (height // 2 * (width // 2)), height, width, 3] {
  scale: param []
  return x * .scale |> window_reverse(height, width)
}

block Sampled(aligned = false)(x [batch, 2, 5, 4], grid [batch, 6, 7, 2]) -> [batch, 2, 6, 7] {
  scale: param []
  return x * .scale |> grid_sample(aligned)(_, grid)
}

block Resized(weights = linear_weights)(x [batch, 3, 8, 8]) -> [batch, 3, 5, 12] {
  weight: param [3]
  bias:   param [3]
  return channel_norm(x, .weight, .bias) |> resize(5, 12, weights)
}

block Placed(n = 4)(x [batch, seq, n], marked bool [batch, seq], rows [other, n]) -> [batch, seq, n] {
  scale: param []
  return put_rows(rms_norm(x) * .scale, marked, rows)
}

block Turned(interleaved)
            (x [batch, 4, seq, 8], positions int [3, batch, seq], place [seq])
            -> ([batch, 4, seq, 8], [batch, 4, seq, 8], [seq, 5]) {
  scale: param [2]
  angles = sectioned_angles([2, 1, 1], interleaved)(positions, table([1.0, 0.5, 0.25, 0.125]))
    |> reshape([batch, 1, seq, 4])
  return rotate(x, cos(angles), sin(angles)), rotate(x), grid_angles(place, place, .scale, table([1.0, 0.5, 0.25]))
}

block Speech(heads = 2, kernel = 3, bias = true)
            (x [batch, seq, 8], positions [2 * seq - 1, 8], tokens bool [batch, seq] = none) -> [batch, seq, 8] {
  return layer: ConformerLayer(8, heads, 12, kernel, bias = bias)(x, positions, tokens)
}

block Chunked(size)(x [batch, 8, 8]) -> [batch, 8, 8] {
  scale: param []
  return where(chunk_mask(8, size), x * .scale, 0.0)
}

block Scanned(groups = 2, late = false)
             (x [batch, seq, 2, 4], enter [batch, seq, 2, 3], steps [batch, seq, 2], y [batch, seq, 2, 4])
             -> ([batch, seq, 8], [batch, seq, 2, 4]) {
  rates:  param [2]
  weight: param [8]
  scanned = state_space_scan(x, steps, -exp(.rates), enter, enter) |> rearrange("b s h c -> b s (h c)")
  normed  = gated_rms_norm(groups = groups, late = late)(scanned, scanned, .weight)
  return normed, gated_delta_rule(x, y, y, -steps, steps)
}

block Waves(features, padding = none)(x [8, features]) -> [8, features] {
  scale: param []
  return x * .scale + split_sinusoids(8, features, padding)
}

block Within(heads)(x [batch, seq, 8]) -> [batch, seq, 8] {
  return self: SelfAttention(8, heads)(x)
}

block Across(heads)(x [batch, seq, 8], memory [batch, other, 8]) -> [batch, seq, 8] {
  return cross: CrossAttention(8, heads)(x, memory)
}

block Few(groups)(x [batch, 4, seq, 8], memory [batch, groups, seq, 8]) -> [batch, 4, seq, 8] {
  scale: param []
  return attention(x, memory, memory) |> * .scale
}

block Chosen(joined = false, normalized = true)(x [batch, seq, 8]) -> [batch, seq, 8] {
  shares, experts = x |> gate: Linear(8, 4) |> top_experts(2, normalized)
  return ..: GatedExperts(8, 6, 4, joined = joined)(x, shares, experts)
}

block Decoding(heads = 6, adjacent = true, half = 2, rounded = true, factor = 4.0)
              (x [batch, seq, heads * 8], sinks [heads])
              -> ([batch, seq, heads * 8], [batch, heads, seq, 8]) {
  scale: param []
  split   = x |> split_heads(heads)
  angles  = reshape([seq, 1])(arange(seq)) * yarn_frequencies(2 * half, 100.0, factor, 8, rounded = rounded)
  rotated = rotate(adjacent, half < 4)(split, cos(angles) * yarn_scale(factor), sin(angles))
  attended = attention(cap = 30.0, causal = true)(rotated, rotated, split, bias = alibi(heads, seq), sinks = sinks)
  return attended |> merge_heads |> * .scale, soft_cap(2.0)(rotated)
}

block Split(heads)(x [batch, seq, 8]) -> [batch, seq, 8] {
  scale: param []
  return x |> split_heads(heads) |> merge_heads |> * .scale
}

model "vectors"         = Vectors()
model "vectors bare"    = Vectors(bias = false, padding = 1)
model "heads"           = Heads()
model "heads all"       = Heads(groups = 4)
model "heads causal"    = Heads(causal = true, window = 3, scale = 0.5, bias = false)
model "pictures"        = Pictures()
model "pictures bare"   = Pictures(groups = 2, bias = false)
model "wider"           = Wider()
model "wider bare"      = Wider(bias = false)
model "line in uneven"  = WiderLine(groups = 3)
model "plane in uneven" = WiderPlane(groups = 3)
model "line out uneven" = WiderLine(out = 7)
model "plane out uneven" = WiderPlane(out = 7)
model "groups uneven"   = Grouped(groups = 4)
model "windows"         = Parted(height = 4, window = 4)
model "windows uneven"  = Parted(height = 6, window = 4)
model "joined"          = Joined(height = 4, width = 8)
model "joined uneven"   = Joined(height = 5, width = 8)
model "recurrent"       = Recurrent()
model "recurrent bare"  = Recurrent(bias = false)
model "line uneven"     = Line(groups = 3)
model "plane uneven"    = Plane(groups = 3)
model "sampled"         = Sampled()
model "sampled aligned" = Sampled(aligned = true)
model "resized"   = Resized()
model "cubic"     = Resized(cubic_weights)
model "resized aligned" = Resized(aligned_weights)
model "placed"    = Placed()
model "turned"    = Turned(false)
model "alternately turned" = Turned(true)
model "speech"    = Speech()
model "speech uneven" = Speech(3)
model "speech kernel uneven" = Speech(kernel = 4)
model "chunked"   = Chunked(3)
model "scanned"   = Scanned()
model "scanned-late" = Scanned(1, true)
model "scanned uneven" = Scanned(3)
model "waves"           = Waves(features = 6)
model "waves padded"    = Waves(features = 6, padding = 1)
model "waves odd"       = Waves(features = 7)
model "within uneven"   = Within(heads = 3)
model "across uneven"   = Across(heads = 3)
model "few uneven"      = Few(groups = 3)
model "experts"         = Chosen()
model "experts joined"  = Chosen(joined = true, normalized = false)
model "decoding"        = Decoding()
model "decoding whole"  = Decoding(heads = 4, adjacent = false, half = 4, rounded = false, factor = 1.0)
model "decoding small"  = Decoding(half = 1)
model "split uneven"    = Split(heads = 3)
model "generator"       = ElectraForMaskedLM(layers = 1)
model "words untied"    = BertForMaskedLM(layers = 1, tied = false)
model "albert untied"   = AlbertForMaskedLM(layers = 1, tied = false)
model "roberta untied"  = RobertaForMaskedLM(layers = 1, tied = false)
model "dropped"         = Dropped()
model "generator small" = ElectraForMaskedLM(layers = 1, factor = 128, tied = false)
model "dinov2 live"     = Dinov2(layers = 1, gated = true, joined = false)
model "text encoder"    = T5EncoderModel(layers = 2)
model "mixtral joined"  = MixtralForCausalLM(layers = 1, experts = 2, joined = true, window = 3)
model "falcon distances"  = Falcon(hidden = 32, layers = 1, heads = 4, alibi = true)
model "falcon grouped"    = Falcon(hidden = 32, layers = 1, heads = 4, grouped = true, groups = 2)
model "falcon one norm"   = Falcon(hidden = 32, layers = 1, heads = 4, grouped = true, norms = 1)
model "falcon in turn, uneven"    = Falcon(hidden = 32, layers = 1, heads = 4, grouped = true, parallel = false)
model "falcon more norms, uneven" = Falcon(hidden = 32, layers = 1, heads = 4, grouped = true, norms = 3)
model "falcon sequential" = Falcon(hidden = 32, layers = 1, heads = 4, multi_query = false, parallel = false,
                                   hidden_dropout = 0.1, attention_dropout = 0.1)
model "falcon uneven"     = Falcon(hidden = 32, layers = 1, heads = 4, grouped = true, groups = 3)
model "gemma global"      = Gemma3(hidden = 32, layers = 2, heads = 2, groups = 1, size = 4, period = 2)
model "latent"            = DeepseekV3ForCausalLM(hidden = 32, layers = 2, heads = 2, dense_layers = 1, experts = 16)
model "latent whole"      = DeepseekV3ForCausalLM(hidden = 32, layers = 2, heads = 2, dense_layers = 1, experts = 16,
                                                  q_rank = none, normalized = false, tied = true)
"""

UNEVEN: dict[str, dict[str, Any]] = {
    "albert-base-v2": {"heads": 7},
    "distilbert-base-uncased": {"heads": 7},
    "modernbert-base": {"heads": 7},
    "transformer-seq2seq": {"heads": 7},
    "bart-base-model": {"heads": 7},
    "gpt2": {"heads": 7},
    "t5-small": {"furthest": 8},
    "pythia-160m": {"heads": 7},
    "bloom-560m": {"heads": 7},
    "falcon-7b": {"heads": 7},
    "vit-base-patch16-224": {"image": 225},
    "swin-tiny": {"window": 8},
    "swin-tiny-cls": {"heads": [3, 6, 12]},
    "clip-vit-base-patch32-text": {"heads": 7},
    "clip-vit-base-patch32-vision": {"image": 225},
    "wav2vec2-base": {"position_groups": 7},
    "wav2vec2-base-960h-ctc": {"kernels": [10]},
    "small-decoder": {"heads": 6},
    "small-vision": {"image": 225},
    "small-windows": {"heads": 5},
}
"""Overrides that a `require` in the models themselves forbids."""

GEMMA3N = {"layers": 4, "shared": 2, "ffn": [16]}
ZAMBA2 = {"layers": 2, "hybrid_layers": [False, True]}

SMALLER: dict[str, dict[str, Any]] = {
    "swin-tiny": {"depths": [1, 2], "heads": [3, 6], "image": 60},
    "swin-tiny-cls": {"depths": [1, 2], "heads": [3, 6]},
    **dict.fromkeys(("Zamba2", "Zamba2ForCausalLM", "Zamba2ForSequenceClassification"), ZAMBA2),
    **dict.fromkeys(("gemma-3n-e4b-text", "Gemma3n", "Gemma3nForCausalLM"), GEMMA3N),
    "opus-mt-en-de": {"layers": 2, "positions": 9},
    "clip-vit-base-patch32": {},
    "clip-vit-large-patch14": {},
    "siglip-base-patch16-224": {},
    "ClipForImageClassification": {},
    "SiglipForImageClassification": {},
    "SwinForMaskedImageModeling": {"depths": [1, 2], "heads": [3, 6]},
    "BartForCausalLM": {"decoder_layers": 2},
    "MBartForCausalLM": {"decoder_layers": 2},
    "MarianForCausalLM": {"decoder_layers": 2},
    "PegasusForCausalLM": {"positions": 9},
    "WhisperForCausalLM": {"decoder_layers": 2},
}
"""Overrides that give models without a number of layers fewer of them, and tables that are not square."""

WHOLE = (
    tree.Import
    | tree.DimensionDeclaration
    | tree.Definition
    | tree.Model
    | tree.Step
    | tree.Assign
    | tree.Declare
    | tree.TensorDeclaration
    | tree.Tie
    | tree.Require
    | tree.Role
    | tree.Return
    | tree.If
    | tree.For
)
"""What is taken out as it stands."""


class Deletion(NamedTuple):
    """A stretch to take out of a text; an item of a list goes with the comma after it."""

    start: int
    end: int
    item: bool = False

    def without(self, text: str) -> str:
        """The text without it; lines keep their numbers."""
        end = self.end
        if self.item:
            end += len(text[end:]) - len(text[end:].lstrip(" ,"))
        return text[: self.start] + "".join(c if c == "\n" else " " for c in text[self.start : end]) + text[end:]

    def describe(self, text: str) -> str:
        return f"{text.count(chr(10), 0, self.start) + 1}: {' '.join(text[self.start : self.end].split())[:70]}"


class Probe(NamedTuple):
    """A model to load, and what comes out of the specs as they are."""

    spec: str
    overrides: dict[str, Any]
    outcome: list[Any]


def deletions(node: Any) -> Iterator[Deletion]:
    """Every item of a file, statement, step of a chain, and entry of a list of names, `expect` lines excepted."""
    match node:
        case tree.DimensionDeclaration():
            yield from (Deletion(name.start, name.end, True) for name in node.names)
        case tree.Role():
            yield from (Deletion(address.start, address.end, True) for address in node.addresses)
        case tree.SignatureEntry() | tree.ImportedName():
            yield Deletion(node.start, node.end, True)
    if isinstance(node, WHOLE):
        yield Deletion(node.start, node.end)
    if isinstance(node, Node | tuple):
        for part in node:
            yield from deletions(part)


def items(path: Path) -> tuple[tree.Item, ...]:
    return pipeline.files.parse_cached(Source(path.name, path.read_text(encoding="utf-8")), Report()).items


def outcome(spec: str, overrides: dict[str, Any]) -> Iterator[Any]:
    """What comes out of a model: what is wrong with it, or its table, inputs and outputs, and then its graph, but for
    the places it comes from.
    """
    try:
        model = archspec.load(spec, **overrides)
        yield get_compilation(model).table, model.inputs, model.outputs, model.warnings
        made = model.graph("op")
    except archspec.ArchError as error:
        yield [(d.code, d.message) for d in error.diagnostics]
        return
    nodes = {n: {k: v for k, v in data.items() if k != "source"} for n, data in made.nodes(data=True)}
    yield nodes, list(made.edges(data=True))


def changes(probes: list[Probe]) -> bool:
    """Whether anything comes out of the probes other than before."""
    return any(now != before for p in probes for now, before in zip_longest(outcome(p.spec, p.overrides), p.outcome))


def add_models(folder: Path) -> None:
    """Writes a model of each architecture of a configuration into the files, where they have none."""
    families = [read_family(str(SPECS), type, {}) for type in known_types(str(SPECS))]
    known = {(a.file, a.definition) for family in families for a in family.architectures.values()}
    for name, definition in sorted(known):
        path = next(folder.rglob(f"{name}.arch"))
        text = path.read_text(encoding="utf-8")
        if f"= {definition}(" not in text:
            path.write_text(f'{text}\nmodel "{definition}" = {definition}()\n', encoding="utf-8")


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the specs, with the probes, that the bundled names stand for; nothing is kept between runs."""
    folder = tmp_path_factory.mktemp("specs") / "specs"
    shutil.copytree(SPECS, folder)
    (folder / "probes.arch").write_text(PROBES, encoding="utf-8")
    add_models(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resources, "specs_root", lambda: str(folder))
        patch.setattr("archspec.ir.structure.roles.default_roles", lambda _: {})  # roles as declared
        patch.setattr(cache, "read", lambda *_: None)
        patch.setattr(cache, "write", lambda *_: None)
        yield folder


@pytest.fixture(scope="module")
def probes(copy: Path) -> Callable[[Path], list[Probe]]:
    """The models of a file. Stacks of a few layers stand for the whole ones."""

    @functools.cache
    def models(path: Path) -> list[Probe]:
        found: list[Probe] = []
        for name in (str(item.name.value) for item in items(path) if isinstance(item, tree.Model)):
            spec = name if path.parent.name in KINDS else f"{path}:{name}"
            stacked = path.stem != "probes" and "layers" in archspec.load(spec).hyperparameters
            smaller = SMALLER.get(name, {"layers": 2} if stacked else {})
            for overrides in (smaller, UNEVEN.get(name)):
                if overrides is not None:
                    found.append(Probe(spec, overrides, list(outcome(spec, overrides))))
        return found

    return models


@pytest.mark.parametrize("which", ["probes.arch", pytest.param("**/*.arch", marks=pytest.mark.slow)])
def test_the_probes_give_what_they_are_meant_to(which: str, copy: Path, probes: Callable[[Path], list[Probe]]) -> None:
    wrong: list[tuple[str, object]] = []
    for spec, overrides, (result, *_) in (probe for path in sorted(copy.glob(which)) for probe in probes(path)):
        fails = spec.endswith("uneven") or overrides in UNEVEN.values()
        codes = {code for code, _ in result} if isinstance(result, list) else set()
        wrong += [(spec, result)] if codes != ({"require"} if fails else set()) else []
    assert wrong == []


EVERYDAY = ("activation", "dropout", "ffn", "linear", "mask", "pooling")
"""The files of the library that are taken apart every day; their probes notice the loss of any statement."""


def marked(path: Path) -> object:
    """The other files take minutes: they are for `-m exhaustive`."""
    return path if path.stem in EVERYDAY else pytest.param(path, marks=[pytest.mark.slow, pytest.mark.exhaustive])


@pytest.mark.parametrize("path", [*map(marked, FILES)], ids=lambda p: p.stem)
def test_every_statement_matters(path: Path, copy: Path, probes: Callable[[Path], list[Probe]]) -> None:
    target = copy / path.relative_to(SPECS)
    text = target.read_text(encoding="utf-8")
    own = [target, copy / "probes.arch"]
    others = [] if path.stem in EVERYDAY else [file for file in sorted(copy.rglob("*.arch")) if file not in own]
    asked = [probe for file in (*own, *others) for probe in probes(file)]
    idle = []
    try:
        for deletion in deletions(items(path)):
            target.write_text(deletion.without(text), encoding="utf-8")
            if not pipeline.compile.check(str(target)).failed and not changes(asked):
                idle.append(deletion.describe(text))
    finally:
        target.write_text(text, encoding="utf-8")
    assert not idle


EXPECTING = [path for path in FILES if "expect" in path.read_text(encoding="utf-8")]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("path", EXPECTING, ids=lambda p: p.stem)
def test_every_expectation_is_checked(path: Path, copy: Path) -> None:
    """An `expect` says what comes out: without it the same does, but with any other number it is an error."""
    target = copy / path.relative_to(SPECS)
    text = changed = target.read_text(encoding="utf-8")
    models = [item for item in items(path) if isinstance(item, tree.Model)]
    assert all(model.expects for model in models)
    numbers = [expect.condition.right for model in models for expect in model.expects]
    for number in reversed(numbers):
        changed = f"{changed[: number.end]} + 1{changed[number.end :]}"
    try:
        target.write_text(changed, encoding="utf-8")
        found = pipeline.compile.check(str(target)).diagnostics
    finally:
        target.write_text(text, encoding="utf-8")
    assert [d.code for d in found] == ["expect"] * len(numbers)
