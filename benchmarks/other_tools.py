"""The figures of another tool for models of transformers: `python benchmarks/other_tools.py TOOL MODEL...`.

Prints JSON for each model: `parameters` and `macs`, or the `error` of the tool. Each tool has its own process, because
some of them change PyTorch. The weights are random.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Any, NamedTuple

SEQ = 128
"""The length of all sequences; the batch size is 1."""

LLAMA_405B: dict[str, Any] = {
    "vocab_size": 128256,
    "hidden_size": 16384,
    "intermediate_size": 53248,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
}

SMALL: dict[str, Any] = {
    "vocab_size": 32000,
    "hidden_size": 512,
    "intermediate_size": 1408,
    "num_hidden_layers": 8,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "use_cache": False,
}


class Case(NamedTuple):
    """A class, the fields of its configuration that differ from the defaults, its attention, and the length of texts.

    Most tools follow attention best if it is "eager"; the default of `transformers` is "sdpa". A model of torchvision
    has an image of 224 x 224 pixels in place of a text.
    """

    cls: str
    config: str = "torchvision"
    fields: Mapping[str, Any] = MappingProxyType({})
    attention: str = "eager"
    seq: int = SEQ


MODELS = {
    "bert-base-uncased": Case("BertModel", "BertConfig"),
    "gpt2": Case("GPT2LMHeadModel", "GPT2Config", {"use_cache": False}),
    "t5-small": Case("T5ForConditionalGeneration", "T5Config", {"use_cache": False}),
    "llama-3.1-405b": Case("LlamaForCausalLM", "LlamaConfig", LLAMA_405B),
    "BERT-base": Case("BertModel", "BertConfig", {}, "sdpa", 512),
    "small Llama": Case("LlamaForCausalLM", "LlamaConfig", SMALL, "sdpa", 512),
    "small Mixtral": Case("MixtralForCausalLM", "MixtralConfig", SMALL, "sdpa", 512),
    "ResNet-152": Case("resnet152"),
    "ResNet-50": Case("resnet50"),
    "ViT-B/16": Case("vit_b_16"),
    "VGG16": Case("vgg16"),
    "AlexNet": Case("alexnet"),
    "Chinese RoBERTa": Case("BertModel", "BertConfig", {"vocab_size": 21128}),
    "a small network": Case("small_network", "here"),
}


class Figures(NamedTuple):
    """Parameters, and multiply-accumulates of a forward pass; None for what a tool does not report."""

    parameters: int | None
    macs: float | None


def small_network() -> Any:
    """Return the network in the documentation of fvcore, by the figures of its layers."""
    from torch import nn

    convolutions = [nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3), nn.ReLU(), nn.MaxPool2d(2)]
    linear = [nn.Flatten(), nn.Linear(576, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)]
    return nn.Sequential(*convolutions, *linear)


def image_module(name: str) -> Any:
    if MODELS[name].config == "here":
        return globals()[MODELS[name].cls]()
    import torchvision

    return getattr(torchvision.models, MODELS[name].cls)().eval()


def is_text(name: str) -> bool:
    return MODELS[name].config not in ("torchvision", "here")


def module(name: str, device: str = "cpu") -> Any:
    """Return a module with random weights, or with none on the device `meta`."""
    if not is_text(name):
        return image_module(name)
    import torch
    import transformers

    case = MODELS[name]
    with torch.device(device):
        made = getattr(transformers, case.cls)._from_config(
            getattr(transformers, case.config)(**case.fields), attn_implementation=case.attention
        )
    return made.eval()


def image_shape(name: str) -> tuple[int, ...]:
    return (1, 32, 32) if name == "a small network" else (3, 224, 224)


def inputs(name: str) -> dict[str, Any]:
    import torch

    if not is_text(name):
        return {"input" if name == "a small network" else "x": torch.zeros(1, *image_shape(name))}
    ids = torch.ones(1, MODELS[name].seq, dtype=torch.long)
    return {"input_ids": ids, "decoder_input_ids": ids} if name == "t5-small" else {"input_ids": ids}


def positional(name: str, model: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return a module for tools that pass inputs by position, and the inputs."""
    import torch

    if name != "t5-small":
        return model, tuple(inputs(name).values())

    class Positional(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, ids: Any, decoder_ids: Any) -> Any:
            return self.model(input_ids=ids, decoder_input_ids=decoder_ids)

    return Positional(), tuple(inputs(name).values())


# Tools ----------------------------------------------------------------------------------------------------------------


def on_meta(name: str) -> Figures:
    return Figures(module(name, "meta").num_parameters(), None)


def flop_counter(name: str) -> Figures:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model = module(name)
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        model(**inputs(name))
    return Figures(None, counter.get_total_flops() / 2)


def torchinfo(name: str) -> Figures:
    from torchinfo import summary

    found = summary(module(name), input_data=inputs(name), verbose=0)
    return Figures(found.total_params, found.total_mult_adds)


def torchsummary(name: str) -> Figures:
    from contextlib import redirect_stdout
    from io import StringIO

    from torchsummary import summary

    with redirect_stdout(StringIO()) as printed:
        summary(module(name), (MODELS[name].seq,) if is_text(name) else image_shape(name), device="cpu")
    return Figures(int(printed.getvalue().split("Total params: ")[1].split()[0].replace(",", "")), None)


def fvcore(name: str) -> Figures:
    from fvcore.nn import FlopCountAnalysis, parameter_count

    model, given = positional(name, module(name))
    analysis = FlopCountAnalysis(model, given).unsupported_ops_warnings(False).uncalled_modules_warnings(False)
    return Figures(parameter_count(model)[""], analysis.total())


def ptflops(name: str) -> Figures:
    from ptflops import get_model_complexity_info

    macs, parameters = get_model_complexity_info(
        module(name),
        (MODELS[name].seq,),
        input_constructor=lambda _: inputs(name),
        as_strings=False,
        print_per_layer_stat=False,
        backend="aten",
    )
    return Figures(parameters, macs)


def calflops(name: str) -> Figures:
    from calflops import calculate_flops

    _, macs, parameters = calculate_flops(
        module(name), kwargs=inputs(name), print_results=False, output_as_string=False
    )
    return Figures(parameters, macs)


def thop(name: str) -> Figures:
    from thop import profile

    model, given = positional(name, module(name))
    macs, parameters = profile(model, inputs=given, verbose=False)
    return Figures(int(parameters), macs)


def onnx(name: str) -> Figures:
    """The elements of the initializers of an exported graph, which Netron shows."""
    import math

    import torch

    model, given = positional(name, module(name))
    for parameter in model.parameters():  # the exporter omits biases that are 0
        torch.nn.init.normal_(parameter)
    program = torch.onnx.export(model, given, dynamo=True, verbose=False)
    assert program is not None
    return Figures(sum(math.prod(value.shape) for value in program.model.graph.initializers.values()), None)


TOOLS: dict[str, tuple[str, Callable[[str], Figures]]] = {
    "transformers": ("transformers", on_meta),
    "flop_counter": ("torch", flop_counter),
    "torchinfo": ("torchinfo", torchinfo),
    "torchsummary": ("torchsummary", torchsummary),
    "fvcore": ("fvcore", fvcore),
    "ptflops": ("ptflops", ptflops),
    "calflops": ("calflops", calflops),
    "thop": ("thop", thop),
    "onnx": ("onnx", onnx),
}
"""The package of each tool, and its figures."""


def version_of(tool: str) -> str | None:
    """Return the version of the package of a tool, without the date of its build; None if it is not installed."""
    try:
        return re.match(r"[\d.]*\d", version(TOOLS[tool][0]))[0]  # pyright: ignore[reportOptionalSubscript]
    except PackageNotFoundError:
        return None


def main() -> None:
    tool, *names = sys.argv[1:]
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    out, sys.stdout = sys.stdout, sys.stderr
    answers: dict[str, object] = {}
    for name in names:
        try:
            answers[name] = TOOLS[tool][1](name)._asdict()
        except Exception as error:
            answers[name] = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
    print(json.dumps(answers), file=out)


if __name__ == "__main__":
    main()
