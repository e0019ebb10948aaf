"""The architecture of a module that is trained, and which of its parameters are."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, cast

from archspec.core.diagnostics import make_error
from archspec.core.resources import specs_root
from archspec.formats.configs.names import find_names
from archspec.pipeline.compile import as_model
from archspec.pipeline.model import Model, get_compilation

if TYPE_CHECKING:
    from archspec.pipeline.model import ModelLike

_WRAPPERS = {"module", "_orig_mod", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "base_layer"}
"""Segments that wrappers add to names."""

_COPY = re.compile(r"\.modules_to_save\.[^.]+")
"""The segments of peft in the name of a copy that is trained."""

_ADAPTED = "base_model.model."
"""The prefix of names in modules of peft."""


def describe_module(
    module: object, frozen: Collection[str], lora: Mapping[str, int]
) -> tuple[Model, Collection[str], Mapping[str, int]]:
    """Return the model of a module of `transformers` or `peft`, its frozen parameters, and the ranks of its adapters.

    Names are those of the model. Raises ArchError for other modules.
    """
    base = _unwrap(module)
    to_dict = getattr(getattr(base, "config", None), "to_dict", None)
    if to_dict is None:
        message = f"a `{type(module).__name__}` does not say what its architecture is"
        help = "pass the spec, and `frozen=[name for name, p in module.named_parameters() if not p.requires_grad]`"
        raise make_error("usage", message, help=help)
    classes = [kind.__name__ for kind in type(base).__mro__ if kind.__module__.startswith("transformers.")]
    config = {**to_dict(), "architectures": [*classes, type(base).__name__][:1]}
    trained: dict[str, bool] = {}
    ranks: dict[str, int] = {}
    named: Any = cast("Any", module).named_parameters()
    for name, parameter in named:
        name = ".".join([part for part in name.split(".") if part not in _WRAPPERS]).removeprefix(_ADAPTED)
        if ".original_module." in name:  # of which a copy is trained
            continue
        name = _COPY.sub("", name)
        layer, is_adapter, _ = name.partition(".lora_A.")
        if is_adapter:
            ranks[layer] = int(parameter.shape[0])
        elif ".lora_" not in name:
            trained[name] = bool(parameter.requires_grad)
    model = as_model(cast("ModelLike", config))
    if frozen or lora or (all(trained.values()) and not ranks):
        return model, frozen, lora
    return model, *_rename(model, trained, ranks)


def _unwrap(module: Any) -> Any:
    """Return the module inside wrappers for several devices, for compilation, and for adapters."""
    for name in ("module", "_orig_mod"):
        module = getattr(module, name, module)
    return module.get_base_model() if hasattr(module, "get_base_model") else module


def _rename(model: Model, trained: Mapping[str, bool], ranks: Mapping[str, int]) -> tuple[list[str], dict[str, int]]:
    """Return the frozen parameters and the ranks of adapters by the names of the model."""
    table = get_compilation(model).table
    lists = find_names(table.modules[0].type, specs_root())
    frozen: list[str] = []
    adapters: dict[str, int] = {}
    for tensor in table.tensors:
        live = tensor.name if tensor.name in trained or not lists else lists[0].live(tensor.name)
        if live not in trained:
            if tensor.tied_to is None:
                message = f"the module has no parameter `{live}`, as {model.name} has"
                raise make_error("unsupported", message, help="pass the spec, and `frozen`")
            continue
        layer = live.rpartition(".")[0]
        if layer in ranks and len(tensor.shape) == 2:
            adapters[tensor.layer] = ranks[layer]
        if not trained[live]:
            frozen.append(tensor.name)
    return frozen, adapters
