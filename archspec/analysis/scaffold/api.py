"""Scaffolds: generated specs that declare exactly the tensors of a checkpoint, with unknown properties marked."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from archspec.analysis.scaffold.layers import LIBRARY, load_library
from archspec.analysis.scaffold.structure import Structure, map_ties, tie_statements
from archspec.analysis.scaffold.tensors import TensorSketch, check_entries, classify_tensors
from archspec.analysis.scaffold.text import OUTERMOST, Writer
from archspec.core.arguments import check_arguments
from archspec.core.diagnostics import (
    MAX_FILE_BYTES,
    ArchError,
    Diagnostic,
    Note,
    escape_for_terminal,
    internal_error,
    make_error,
)
from archspec.formats.checkpoints.checkpoint import read
from archspec.formats.checkpoints.entries import Checkpoint
from archspec.pipeline.compile import compile_text

_HEADER = """\
# {title}
# The tensors match the checkpoint exactly. A checkpoint does not specify the following; complete it by hand:
# - the dataflow: apply each `unused` layer and tensor, and replace `x` by the inputs and outputs;
# - hyperparameters that do not affect shapes: they have the defaults of the library;
# - whether equal sizes are the same hyperparameter: here they share a name;
# - which tensors are trained: real tensors are parameters here, unless declared as `buffer`.
# `unknown` marks what to check. Where several layers have the same shapes, the most likely one was chosen.
"""


@check_arguments
def scaffold(path: str | os.PathLike[str]) -> str:
    """Generate a spec of a checkpoint: an `.arch` source that declares its tensors with names, shapes and ties.

    `path` is a safetensors, `torch.save` or GGUF file, an index of shards, or a directory with one of these.
    Only headers are read. Layers of the standard library are recognized, and repeated modules become loops over blocks.
    Nothing is applied, because a checkpoint does not specify the dataflow. The result has been compiled and compared
    with the checkpoint.

    Raises ArchError if the checkpoint cannot be read, or has tensors that a spec cannot declare.
    """
    checkpoint = read(os.fspath(path))
    check_entries(checkpoint)
    sketches = classify_tensors(checkpoint.entries)
    text = _text(checkpoint, sketches)
    size = len(text.encode())
    if size > MAX_FILE_BYTES:
        message = f"scaffold of {checkpoint.label} too large: {size:,} bytes, the limit is {MAX_FILE_BYTES:,}"
        raise make_error("budget", message, notes=(Note("too few modules repeat under numbered addresses"),))
    _verify(checkpoint, sketches, text)
    return text


def _text(checkpoint: Checkpoint, sketches: Mapping[str, TensorSketch]) -> str:
    patterns, names = load_library()
    block, sizes = Structure(patterns, sketches).build(checkpoint.entries)
    writer = Writer(block, sizes, names)
    ties = map_ties(checkpoint.entries, sketches)
    definitions = writer.definitions([*tie_statements(ties)])
    parameters = [entry for entry in checkpoint.entries if sketches[entry.name].kind == "param"]
    total = sum(entry.elements for entry in parameters if entry.name not in ties)
    label = escape_for_terminal(checkpoint.label)
    parts = [_HEADER.format(title=f"{label}: {len(sketches):,} tensors, by `archspec scaffold`.")]
    if writer.imports:
        parts.append(f"import {LIBRARY} {{ {', '.join(writer.imports)} }}\n")
    parts += ["dim batch\n", definitions]
    expected = f"expect params  == {total:_}\n  expect tensors == {len(parameters):_}"
    parts.append(f'model "{_name(checkpoint.label)}" = {OUTERMOST}() {{\n  {expected}\n}}\n')
    return "\n".join(parts)


def _name(label: str) -> str:
    """Derive a name for the model from its file or directory."""
    path = os.path.abspath(label)
    stem = os.path.basename(path).split(".")[0]
    if stem in ("model", "pytorch_model"):
        stem = os.path.basename(os.path.dirname(path)) if os.path.dirname(label) else stem
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", stem)[:80].strip("-") or "model"


def _verify(checkpoint: Checkpoint, sketches: Mapping[str, TensorSketch], text: str) -> None:
    """Compile the spec and compare it with the checkpoint. Raises ArchError."""
    try:
        model = compile_text(text, "the scaffold")
    except ArchError as error:
        exceeded = [
            Diagnostic("budget", f"the scaffold of {checkpoint.label}: {diagnostic.message}", help=diagnostic.help)
            for diagnostic in error.diagnostics
            if diagnostic.code == "budget"
        ]
        if exceeded:
            raise ArchError(exceeded) from None
        raise internal_error(f"the scaffold of {checkpoint.label} does not compile") from error
    ours = {(t.name, t.shape, "param") for t in model.tensors} | {(b.name, b.shape, "buffer") for b in model.buffers}
    theirs = {(entry.name, entry.shape, sketches[entry.name].kind) for entry in checkpoint.entries}
    ties = {tensor.name: tensor.tied_to for tensor in model.tensors if tensor.tied_to}
    if ours != theirs or ties != map_ties(checkpoint.entries, sketches):
        raise internal_error(f"the scaffold of {checkpoint.label} has wrong tensors")
