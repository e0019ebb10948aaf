"""Scaffolds: a first spec of a checkpoint, with its tensors exactly, and what cannot be known marked as such."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from archspec.checkpoints.checkpoint import read
from archspec.checkpoints.entries import Checkpoint
from archspec.pipeline import compile_text
from archspec.scaffolds.fitting import check
from archspec.scaffolds.layers import LIBRARY, library, names
from archspec.scaffolds.structure import Structure
from archspec.scaffolds.tensors import Tensor, tensors
from archspec.scaffolds.text import OUTERMOST, Writer
from archspec.scaffolds.ties import statements, tied
from archspec.source import LARGEST_FILE, ArchError, Diagnostic, fail, printable

_HEADER = """\
# {title}
# Its tensors are exactly those of the checkpoint. What a checkpoint does not tell is left to whoever finishes this:
# - how anything is connected: what is `unused` waits to be applied, and `x` stands for the inputs and outputs;
# - hyperparameters that no shape shows: they have the defaults of the library;
# - whether sizes that are equal are one: here they share a name;
# - what is trained, and what is a buffer: real numbers count as parameters, unless a line says otherwise.
# `not known` marks where several things have the same shapes, and the first was taken.
"""


def scaffold(path: str | os.PathLike[str]) -> str:
    """Draft a spec for a checkpoint: an `.arch` file that declares its tensors, with names, shapes and ties.

    `path` is a safetensors or `torch.save` file, an index of shards, or a directory with one of these. Only headers are
    read. Layers of the standard library are recognized, and repetition is written as loops over blocks. Nothing is
    applied, because a checkpoint does not describe what is computed. The draft compiles, and was compared with the
    checkpoint.

    Raises ArchError if the checkpoint cannot be read, or has a tensor that a spec cannot declare.
    """

    checkpoint = read(os.fspath(path))
    check(checkpoint)
    found = tensors(checkpoint.entries)
    text = _text(checkpoint, found)
    size = len(text.encode())
    if size > LARGEST_FILE:
        message = f"the scaffold of {checkpoint.label} would have {size:,} bytes, and a spec at most {LARGEST_FILE:,}"
        raise fail("budget", message, help="too little of the checkpoint repeats under numbered names")
    _prove(checkpoint, found, text)
    return text


def _text(checkpoint: Checkpoint, found: Mapping[str, Tensor]) -> str:

    block, sizes = Structure(library(), found).of(checkpoint.entries)
    writer = Writer(block, sizes, names())
    ties = tied(checkpoint.entries, found)
    definitions = writer.definitions([*statements(ties)])
    parameters = [entry for entry in checkpoint.entries if found[entry.name].kind == "param"]
    total = sum(entry.elements for entry in parameters if entry.name not in ties)
    label = printable(checkpoint.label)
    parts = [_HEADER.format(title=f"{label}: {len(found):,} tensors, by `archspec scaffold`.")]
    if writer.imports:
        parts.append(f"import {LIBRARY} {{ {', '.join(writer.imports)} }}\n")
    parts += ["dim batch\n", definitions]
    expected = f"expect params  == {total:_}\n  expect tensors == {len(parameters):_}"
    parts.append(f'model "{_name(checkpoint.label)}" = {OUTERMOST}() {{\n  {expected}\n}}\n')
    return "\n".join(parts)


def _name(label: str) -> str:
    """A name for the model, from its file's or folder's."""
    path = os.path.abspath(label)
    stem = os.path.basename(path).split(".")[0]
    if stem in ("model", "pytorch_model"):
        stem = os.path.basename(os.path.dirname(path)) if os.path.dirname(label) else stem
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem)[:80].strip("-") or "model"


def _prove(checkpoint: Checkpoint, found: Mapping[str, Tensor], text: str) -> None:
    """Compiles the text and compares it with the checkpoint. Raises ArchError."""

    try:
        model = compile_text(text, "the scaffold")
    except ArchError as error:
        over = [
            Diagnostic("budget", f"the scaffold of {checkpoint.label}: {fault.message}", help=fault.help)
            for fault in error.diagnostics
            if fault.code == "budget"
        ]
        if over:
            raise ArchError(over) from None
        raise fail("internal", f"the scaffold of {checkpoint.label} does not compile; please report this") from error
    ours = {(t.name, t.shape, "param") for t in model.tensors} | {(b.name, b.shape, "buffer") for b in model.buffers}
    theirs = {(entry.name, entry.shape, found[entry.name].kind) for entry in checkpoint.entries}
    ties = {tensor.name: tensor.tied_to for tensor in model.tensors if tensor.tied_to}
    if ours != theirs or ties != tied(checkpoint.entries, found):
        raise fail("internal", f"the scaffold of {checkpoint.label} has other tensors; please report this")
