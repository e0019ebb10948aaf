"""The list of commands, with their help texts and arguments."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from importlib import import_module

from archspec.analysis.cost.dtypes import ATTENTION, BITS, CHECKPOINTS, FLOATS
from archspec.analysis.count.select import SelectionRule
from archspec.app.cli.options import (
    FORMATS,
    SPEC,
    add_base,
    add_cache_dtype,
    add_checkpoint,
    add_depth,
    add_device,
    add_dims,
    add_format,
    add_models_options,
    add_output,
    add_pictures,
    add_reading,
    add_repeatable,
    add_set,
    add_spec,
    add_trained,
    add_watch,
    add_wide,
    parse_depth,
    parse_fraction,
    parse_image,
    parse_jobs,
    parse_number,
    parse_past,
    parse_pipeline,
)
from archspec.core.record import Record
from archspec.core.resources import KINDS


class Command(Record):
    """A command: its help, the function that adds its arguments, and its module if the module has a different name.

    A `watchable` command runs again after each change of a file if the option `--watch` is set.
    """

    help: str
    arguments: Callable[[argparse.ArgumentParser], None]
    module: str = ""
    watchable: bool = False

    def run(self, options: argparse.Namespace) -> int:
        """Import the module of the command, run it, and return the exit status."""
        run = import_module(f"archspec.app.cli.run.{self.module or options.command}").run
        if self.watchable and options.watch:
            return import_module("archspec.app.cli.watching").run_watching(options, run)
        return run(options)


def _count(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_base(parser)
    add_watch(parser)
    parser.add_argument(
        "--by", choices=("tensor", "layer", "block", "role"), help="print a flat table instead of the tree of layers"
    )
    add_depth(parser)
    help = "count the tensors with matching names"
    add_repeatable(parser, "--select", "GLOB", help, dest="rules", type=partial(SelectionRule, True))
    help = (
        "do not count tensors with matching names; `*` also matches dots; the last matching --select or"
        " --exclude applies"
    )
    add_repeatable(parser, "--exclude", "GLOB", help, dest="rules", type=partial(SelectionRule, False))
    add_format(parser)


def _list(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word",
        metavar="WORD",
        nargs="?",
        default="",
        help=f"list only models and families whose name contains WORD, or of one kind: {', '.join(KINDS)}",
    )
    add_format(parser)


def _graph(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument(
        "--level",
        choices=("layer", "block", "op"),
        help="type of the nodes (default: layer, or block with --depth; in svg, png, pdf, what fits)",
    )
    parser.add_argument("--depth", metavar="N", type=parse_depth, help="expand N levels of blocks")
    parser.add_argument("--open", action="store_true", help="open all blocks; for svg, png, pdf")
    parser.add_argument(
        "--to",
        "--format",
        metavar="FORMAT",
        choices=(
            *("svg", "png", "pdf", "html", "dot", "mermaid", "mmd"),
            *("json", "graphml", "gexf", "netron", "model-explorer"),
        ),
        default="",
        help="svg, png, pdf, html, dot, mermaid, json, graphml, gexf, netron or model-explorer (default: from the"
        " extension of FILE, or dot without -o)",
    )
    parser.add_argument(
        "--fold",
        action=argparse.BooleanOptionalAction,
        help="show a stack of equal blocks once (default: only in svg, png, pdf, dot and mermaid)",
    )
    parser.add_argument(
        "--color",
        choices=("role", "params", "flops", "bytes"),
        default="role",
        help="color by role, or by share of parameters, FLOPs or activation bytes; for svg, png, pdf (default: role)",
    )
    parser.add_argument("--dark", action="store_true", help="use a dark background; for svg, png, pdf")
    add_dims(parser)
    add_output(parser)
    add_watch(parser)


def _figure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help=SPEC)
    parser.add_argument(
        "other", metavar="OTHER", nargs="?", help="a model to draw beside SPEC, with what differs marked"
    )
    add_models_options(parser)
    parser.add_argument(
        "--width",
        default="3.3in",
        metavar="LENGTH",
        help="width as printed: 3.3in (a column), 6.9in (a page), 84mm, ..., or slide (default: 3.3in)",
    )
    parser.add_argument("--height", metavar="LENGTH", help="show less if the figure is higher (default: 4.5in)")
    parser.add_argument("--detail", metavar="N", type=int, help="0 (the most) to 5 (the least); default: what fits")
    parser.add_argument("--title", action="store_true", help="write the name of the model above the figure")
    parser.add_argument("--legend", action="store_true", help="say below the figure what its colors mean")
    parser.add_argument("--grey", action="store_true", help="draw without color")
    add_output(parser)


def _view(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument("--watch", action="store_true", help="reload the page whenever the spec is saved")


def _build(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument(
        "--to",
        choices=("torch", "transformers", "onnx"),
        default="torch",
        help="write a PyTorch file, a folder that transformers can load (requires -o), or an ONNX file (requires -o)"
        " (default: torch)",
    )
    parser.add_argument(
        "--prove", action="store_true", help="write the code only if it is proven to be equivalent to the spec"
    )
    add_output(parser)


def _lift(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="FILE.py[:FACTORY], where FACTORY returns a module (default: build); a transformers `config.json`; "
        "`timm:NAME` or `torchvision:NAME`",
    )
    help = "declare an input of the module in FILE.py: `ids=int[batch,seq]`, `x=real[batch,64]`"
    add_repeatable(parser, "--input", "NAME=DTYPE[SIZES]", help, dest="inputs")
    parser.add_argument(
        "--fixed", action="store_true", help="lift the module as it is: faster, with numbers for all sizes"
    )
    add_output(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "config", metavar="CONFIG", help="a `config.json`, its directory, `-` for standard input, or a name on the hub"
    )
    add_reading(parser)
    add_output(parser)


def _cost(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_dims(parser)
    parser.add_argument(
        "--dtype", choices=(*BITS,), default="float32", help="data type of the weights (default: float32)"
    )
    parser.add_argument(
        "--image",
        metavar="WIDTHxHEIGHT",
        type=parse_image,
        help="cost with an image of so many pixels (`images` is 1 unless --dim sets it)",
    )
    parser.add_argument(
        "--past",
        metavar="N",
        type=parse_past,
        help="cost of one decoding step, with a key-value cache of N positions",
    )
    add_cache_dtype(parser)
    parser.add_argument(
        "--attention",
        choices=ATTENTION,
        help="include the memory of activations, with this attention implementation (requires torch)",
    )
    parser.add_argument(
        "--causal-half",
        action="store_true",
        help="count only half of the matrix products of causal attention",
    )
    parser.add_argument("--training", action="store_true", help="FLOPs of a training step: forward and backward")
    add_trained(parser, "; with --training")
    parser.add_argument(
        "--checkpoint",
        choices=CHECKPOINTS,
        default="none",
        help="activation checkpointing, which computes blocks again (default: none; with --training)",
    )
    parser.add_argument(
        "--device",
        metavar="NAME",
        help="add the least time on a device: a name such as h100, or a file that describes one",
    )
    parser.add_argument(
        "--utilization",
        metavar="PART",
        type=float,
        help="estimate the time with this part of the device's peak (default: 1; with --device)",
    )
    parser.add_argument(
        "--bandwidth-utilization",
        metavar="PART",
        type=float,
        help="estimate the time with this part of the device's bandwidth (default: 1; with --device)",
    )
    add_depth(parser)
    add_format(parser)


def _plan(parser: argparse.ArgumentParser) -> None:
    from archspec.analysis.plan.options import ENGINES, OPTIMIZERS, SCHEDULES

    add_spec(parser)
    add_base(parser)
    add_device(parser)
    parser.add_argument(
        "--count", metavar="N", type=parse_number, help="number of devices (default: as few as the next numbers need)"
    )
    parser.add_argument(
        "--engine", choices=ENGINES, default="ddp", help="how the model is divided among the devices (default: ddp)"
    )
    parser.add_argument(
        "--tensor",
        metavar="N",
        type=parse_number,
        default=1,
        help="divide heads among N devices (default: 1)",
    )
    parser.add_argument(
        "--expert", metavar="N", type=parse_number, default=1, help="divide experts among N devices (default: 1)"
    )
    parser.add_argument(
        "--pipeline",
        metavar="N",
        type=parse_pipeline,
        default=1,
        help="divide blocks among N stages, or N,N,... blocks for each stage (default: 1)",
    )
    parser.add_argument(
        "--microbatches", metavar="N", type=parse_number, default=1, help="microbatches of a step (default: 1)"
    )
    parser.add_argument("--schedule", choices=SCHEDULES, default="1f1b", help="of a pipeline (default: 1f1b)")
    add_dims(parser)
    parser.add_argument(
        "--dtype", choices=FLOATS, help="data type of the weights (default: float32, or bfloat16 with ZeRO)"
    )
    parser.add_argument(
        "--compute-dtype",
        choices=FLOATS,
        help="data type that fsdp2 computes in (default: bfloat16 of float32 weights)",
    )
    parser.add_argument("--optimizer", choices=(*OPTIMIZERS,), default="adamw", help="(default: adamw)")
    parser.add_argument(
        "--checkpoint",
        metavar="KIND",
        default="none",
        help="blocks computed again: none, blocks, every=K, selective=matmul, selective=attention",
    )
    parser.add_argument(
        "--attention", choices=ATTENTION, default="flash", help="attention implementation (default: flash)"
    )
    parser.add_argument("--fused-loss", action="store_true", help="without whole logits")
    parser.add_argument(
        "--no-reshard", dest="reshard", action="store_false", help="fsdp2 keeps whole weights until backward"
    )
    add_trained(parser)
    parser.add_argument("--by", choices=("block",), help="list where states are")
    add_pictures(parser, "draw the bytes against the memory of the device, as SVG")
    add_format(parser)


def _fit(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_device(parser)
    parser.add_argument("--count", metavar="N", type=parse_number, help="number of devices (default: as --tensor)")
    parser.add_argument(
        "--tensor", metavar="N", type=parse_number, default=1, help="divide the model among N devices (default: 1)"
    )
    parser.add_argument("--batch", metavar="B", type=parse_number, default=1, help="sequences at a time (default: 1)")
    parser.add_argument(
        "--context",
        metavar="N",
        type=parse_number,
        help="cached positions of each sequence (default: the most that fit)",
    )
    parser.add_argument(
        "--dtype",
        choices=(*BITS,),
        help="data type of the weights (default: as stored if quantized, or bfloat16)",
    )
    add_cache_dtype(parser)
    parser.add_argument(
        "--fraction",
        metavar="F",
        type=parse_fraction,
        default=0.9,
        help="usable part of the device's memory (default: 0.9)",
    )
    parser.add_argument(
        "--chunk", metavar="N", type=parse_number, help="include the activations of a prefill of N positions"
    )
    add_repeatable(parser, "--dim", "NAME=N", "size of another dimension", dest="dims")
    add_repeatable(parser, "--lora", "ADAPTER", "load an adapter beside the weights")
    add_format(parser)


def _formula(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_repeatable(parser, "--open", "NAME,...", "hyperparameters to keep symbolic")
    parser.add_argument(
        "--format", choices=("text", "latex", "json", "yaml"), default="text", help="output format (default: text)"
    )
    add_wide(parser)


def _verify(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    add_base(parser)
    parser.add_argument(
        "checkpoint",
        metavar="CHECKPOINT",
        nargs="?",
        help="a file, an index of shards, their directory, or a name on the hub",
    )
    parser.add_argument(
        "--module",
        metavar="FILE.py[:FACTORY]",
        help="instead of a checkpoint, prove that the module returned by FACTORY (default: build) is equivalent to"
        " the model",
    )
    help = "rename tensors of the checkpoint from OLD to NEW; each `*` keeps the text that it matches (`model.*=*`)"
    add_repeatable(parser, "--rename", "OLD=NEW", help, dest="renames")
    add_format(parser)


def _scaffold(parser: argparse.ArgumentParser) -> None:
    add_checkpoint(parser)
    add_output(parser)


def _show(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="a bundled model, file or definition")


def _check(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="+",
        help="a spec file, a directory of spec files, a configuration, or `-` for standard input",
    )
    add_reading(parser, "treat warnings as errors (exit with status 1), and ")
    parser.add_argument(
        "--format", choices=("text", "json", "sarif", "github"), default="text", help="output format (default: text)"
    )
    add_watch(parser)


def _fmt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        default=["."],
        help="a spec file, a directory of spec files, or `-` for standard input (default: the current directory)",
    )
    parser.add_argument(
        "--check", action="store_true", help="do not write files; exit with status 1 if any file would change"
    )
    parser.add_argument("--diff", action="store_true", help="like --check, and print the changes")


def _completions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish")


def _error(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "code", metavar="CODE", nargs="?", help="the code in brackets in a diagnostic; omit it to list all codes"
    )


def _explain(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    parser.add_argument("number", metavar="NUMBER", help="exact (108808704; 108,808,704) or rounded (110M, 0.34B)")
    parser.add_argument("--flops", action="store_true", help="explain a FLOP count instead of a parameter count")
    add_dims(parser)
    add_format(parser)


def _audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="an audit file (`file.yaml`), or the name of a bundled audit")
    add_format(parser)


def _compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=SPEC)
    parser.add_argument("others", metavar="B", nargs="+", help="one or more models to compare with A, specified like A")
    add_models_options(parser)
    parser.add_argument(
        "--depth", metavar="N", type=parse_depth, default=1, help="expand components N levels deep (default: 1)"
    )
    add_dims(parser)
    add_pictures(parser, "draw the models side by side as SVG, with the differences marked")
    add_format(parser)


def _search(parser: argparse.ArgumentParser) -> None:
    add_spec(parser)
    help = "vary a hyperparameter over an inclusive range (`2..24`, `256..1024:64`), a list or an expression"
    add_repeatable(parser, "--vary", "NAME=VALUES", help)
    add_repeatable(parser, "--where", "CONDITION", "keep only designs that satisfy CONDITION (`params < 30M`)")
    help = "maximize EXPRESSION (`-params` minimizes); with several, find the Pareto front"
    add_repeatable(parser, "--best", "EXPRESSION", help)
    parser.add_argument("--near", metavar="EXPRESSION=N", help="find the designs closest to a value (`params=50M`)")
    parser.add_argument("--all", action="store_true", help="also list every design that satisfies the conditions")
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=parse_jobs,
        default=1,
        help="use N processes to compile designs that have no formula (default: 1)",
    )
    add_pictures(parser, "plot the designs as SVG", has_force=False)
    parser.add_argument(
        "--format", choices=(*FORMATS, "parquet"), default="table", help="output format (default: table)"
    )
    add_wide(parser)
    add_output(parser)


def _new(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the spec to write")
    parser.add_argument("--from", metavar="SPEC", required=True, dest="spec", help=SPEC)
    add_set(parser, "NAME=VALUE", "override a hyperparameter")
    help = "copy a definition of the model into FILE, ready to edit; repeat it for several"
    add_repeatable(parser, "--block", "NAME", help, dest="blocks")
    add_reading(parser)
    parser.add_argument("--force", action="store_true", help="overwrite a file")


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help=SPEC)
    parser.add_argument("b", metavar="B", help="the model to compare with A, specified like A")
    add_models_options(parser)
    add_pictures(parser, "draw the models side by side as SVG, with the differences marked")
    add_format(parser)


def _lsp(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--stdio", action="store_true", help="communicate over standard input and output (the only transport)"
    )


COMMANDS = {
    "list": Command("list the bundled models and their parameter counts", _list, "list_models"),
    "show": Command("print the source of a bundled spec or definition", _show),
    "check": Command("report all errors in one or more files", _check, watchable=True),
    "fmt": Command("format specs in the canonical layout", _fmt),
    "count": Command("count parameters, as a tree or by tensor, layer, block or role", _count, watchable=True),
    "cost": Command("compute multiply-accumulates, FLOPs, elementwise operations and memory", _cost),
    "fit": Command("compute whether a model fits a device, the longest context and the largest batch", _fit),
    "plan": Command("compute the memory of each device in training, by category", _plan),
    "formula": Command("derive the parameter count as a polynomial in open hyperparameters", _formula),
    "graph": Command("write the computation graph as a picture or as data", _graph, watchable=True),
    "figure": Command("draw a figure of a model for a paper, as SVG, PDF, PNG or TikZ", _figure),
    "view": Command("open an interactive picture of a model in a browser", _view),
    "build": Command("generate PyTorch code", _build),
    "search": Command("search combinations of hyperparameters for the best designs", _search),
    "new": Command("start a variant of a model in a new file", _new),
    "compare": Command("compare models side by side: hyperparameters, parameters, costs", _compare),
    "diff": Command("list the tensors and operations that differ between two models", _diff),
    "import": Command("convert a Hugging Face `config.json` to a spec", _import, "import_config"),
    "lift": Command("convert a PyTorch module to a spec", _lift),
    "explain": Command("find the counting conventions that give a published number", _explain),
    "audit": Command("check a published calculation line by line", _audit),
    "verify": Command("check that a checkpoint stores exactly the tensors of a model", _verify),
    "scaffold": Command("draft a spec from a checkpoint", _scaffold),
    "lsp": Command("run the language server for .arch files", _lsp),
    "completions": Command("print the completion script of a shell", _completions),
    "error": Command("explain a diagnostic code, with an example", _error),
}
"""The commands by name. `run` in the module of a command takes the parsed arguments, writes to standard output and
returns the exit status.
"""
