"""The files with which `transformers` loads a generated PyTorch file: a configuration, its class and the model's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from archspec.codegen.build import torch_source
from archspec.codegen.interface import Interface, interface_of
from archspec.codegen.python.layout import bracketed, docstring
from archspec.codegen.scope.context import FunctionInput
from archspec.codegen.scope.names import is_hidden, python_name
from archspec.codegen.transformers.fragments import (
    GENERATION,
    PRETRAINED,
    RESERVED_CONFIG_NAMES,
    RESERVED_MODEL_NAMES,
    RESERVED_OUTPUT_NAMES,
    SWITCH,
    argument,
    collection,
    imported,
    parameter,
    quoted,
)
from archspec.codegen.transformers.heads import NEXT_WORDS, Head, head_of, word_table
from archspec.core.addresses import parent
from archspec.core.diagnostics import make_error
from archspec.pipeline.model import Model, get_compilation

_LOSSES = ("ForCausalLMLoss", "ForQuestionAnsweringLoss", "ForSequenceClassificationLoss")

_IMPORTED = """
    Any CHECKPOINTED ClassVar F GenerationMixin GradientCheckpointingLayer ModelOutput Network PreTrainedConfig
    PreTrainedModel Pretrained Tensor ValueError any bool can_return_tuple dataclass dict float getattr int list object
    str super torch tuple type
"""

_TAKEN_BY_FILES = frozenset((*_IMPORTED.split(), *_LOSSES))
"""The names that the generated files import or use of Python."""

_PLAIN_TENSOR = re.compile(r"[A-Za-z0-9_.]+(weight|bias)")
"""Names that `transformers` compares as they are; it reads others as regular expressions."""


def folder_files(model: Model) -> dict[str, str]:
    """Return the texts of the files in a folder of a model, by name.

    Raises ArchError (`untranslatable`) if the model has no form in PyTorch or in `transformers`.
    """
    source = torch_source(model)
    files = _Files(model, interface_of(model))
    return {
        f"{files.network_file}.py": source,
        f"{files.configuration_file}.py": "\n".join(files.configuration_class()) + "\n",
        f"{files.modeling_file}.py": "\n".join(files.model_class()) + "\n",
        "config.json": json.dumps(files.configuration(), indent=2, ensure_ascii=False) + "\n",
    }


class _Files:
    def __init__(self, model: Model, interface: Interface) -> None:
        self.model = model
        self.interface = interface
        self.head = head_of(model)
        others = [slot for slot in interface.inputs if slot.name != "input_ids"]
        self.generates = self.head is NEXT_WORDS and all(slot.optional for slot in others)
        _refuse_unsupported(model, interface)
        word = re.sub(r"\W+", "_", model.name, flags=re.ASCII).strip("_").lower()
        self.network_file, self.configuration_file = f"pytorch_{word}", f"configuration_{word}"
        self.modeling_file = f"modeling_{word}"
        self.model_type = f"archspec-{model.name}"
        taken: set[str] = {*_TAKEN_BY_FILES}

        def named(name: str) -> str:
            taken.add(free := python_name(name, taken))
            return free

        self.name = named(interface.name)
        self.config_name, self.output_name = named(f"{self.name}Config"), named(f"{self.name}Output")
        self.blocks = {block: (named(block), named(f"Plain{block}")) for block in interface.blocks}
        self.keys = {word: python_name(name, RESERVED_CONFIG_NAMES) for word, name in interface.parameters.items()}
        self.label_names = self._label_names()
        self.ties = {tensor.name: tensor.tied_to for tensor in model.tensors if tensor.tied_to is not None}

    def _label_names(self) -> dict[int, str]:
        if self.head is None or not self.head.has_label_names:
            return {}
        count = self.model.outputs["logits"].shape[-1]
        assert isinstance(count, int)
        return {i: f"LABEL_{i}" for i in range(count)}

    def _labels_key(self) -> str | None:
        """The key of the hyperparameter that is the number of labels."""
        if not self.label_names:
            return None
        names = [output.name for output in self.interface.outputs]
        return self.keys.get(self.interface.last_sizes[names.index("logits")])

    # The configuration ------------------------------------------------------------------------------------------------

    def configuration(self) -> dict[str, object]:
        """The content of `config.json`."""
        modeling = f"{self.modeling_file}.{self.name}"
        auto_classes = ["AutoModel", *([self.head.auto_class] if self.head is not None else [])]
        labels = self._labels_key()
        values = {self.keys[word]: value for word, value in self.interface.arguments.items()}
        values = {key: value for key, value in values.items() if key != labels}
        return {
            "architectures": [self.name],
            "auto_map": {
                "AutoConfig": f"{self.configuration_file}.{self.config_name}",
                **dict.fromkeys(auto_classes, modeling),
            },
            "model_type": self.model_type,
            "dtype": "float32",
            **values,
            **({"id2label": self.label_names} if self.label_names else {}),
            **({"label2id": {name: i for i, name in self.label_names.items()}} if self.label_names else {}),
            "tie_word_embeddings": bool(self.ties),
        }

    def configuration_class(self) -> list[str]:
        """The lines of the file with the class of configurations."""
        labels = self._labels_key()
        values = {self.keys[word]: value for word, value in self.interface.arguments.items()}
        parameters = [parameter(key, value) for key, value in values.items()]
        parameters += [f"tie_word_embeddings: bool = {bool(self.ties)}", "**settings: Any"]
        passed = [
            f'"{self.interface.parameters[word]}": {argument(key, values[key])}' for word, key in self.keys.items()
        ]
        number = [
            '        if "id2label" not in settings:',
            f'            settings.setdefault("num_labels", {labels})',
        ]
        attribute_map = [f'    attribute_map: ClassVar[dict[str, str]] = {{"{labels}": "num_labels"}}']
        return [
            *docstring([f"The configuration of {self.model.name} for transformers, written by archspec."], 0),
            "",
            "from __future__ import annotations",
            "",
            f"from typing import Any{', ClassVar' if labels else ''}",
            "",
            "from transformers import PreTrainedConfig",
            "",
            "",
            f"class {self.config_name}(PreTrainedConfig):",
            *docstring([f"The sizes of {self.interface.name}."], 1),
            "",
            f"    model_type = {quoted(self.model_type)}",
            *(attribute_map if labels else []),
            "",
            *bracketed("def __init__(", ["self", *parameters], ") -> None:", 1),
            *(number if labels else []),
            "        super().__init__(**settings)",
            *[f"        self.{key} = {key}" for key in values if key != labels],
            "        self.tie_word_embeddings = tie_word_embeddings",
            "",
            "    def constructor_arguments(self) -> dict[str, Any]:",
            '        """The arguments of the constructor of the network."""',
            *collection("return {", passed, "}", 2),
        ]

    # The model --------------------------------------------------------------------------------------------------------

    def model_class(self) -> list[str]:
        """The lines of the file with the class of models."""
        loss = self.head.function if self.head is not None else ""
        told = f"{self.model.name} for transformers, written by archspec around the PyTorch file of the model."
        return [
            *docstring([told], 0),
            "",
            "from __future__ import annotations",
            "",
            "from dataclasses import dataclass",
            *(["from typing import ClassVar"] if self.blocks or self.ties else []),
            "",
            "import torch",
            *(["import torch.nn.functional as F"] if loss.startswith("F.") else []),
            "from torch import Tensor",
            f"from transformers import {'GenerationMixin, ' if self.generates else ''}PreTrainedModel",
            *([f"from transformers.loss.loss_utils import {loss}"] if loss in _LOSSES else []),
            *(["from transformers.modeling_layers import GradientCheckpointingLayer"] if self.blocks else []),
            "from transformers.utils import ModelOutput, can_return_tuple",
            "",
            *imported(self.configuration_file, self.config_name),
            *[line for name, alias in self._aliases() for line in imported(self.network_file, f"{name} as {alias}")],
            *self._block_classes(),
            *self._output_class(),
            *PRETRAINED.split("\n"),
            "",
            "",
            f"class {self.name}(Network, Pretrained{', GenerationMixin' if self.generates else ''}):",
            *self._attributes(),
            "",
            *bracketed("def __init__(", ["self", f"config: {self.config_name}"], ") -> None:", 1),
            f"        if {'not ' if self.ties else ''}config.tie_word_embeddings:",
            '            raise ValueError("the specification decides which tensors are tied")',
            "        self.config = config",
            "        super().__init__(**config.constructor_arguments())",
            *(SWITCH if self.blocks else []),
            "        self.post_init()",
            *(["        self.generation_config.use_cache = False"] if self.generates else []),
            *self._embeddings(),
            "",
            *self._forward(),
            *(GENERATION.split("\n") if self.generates else []),
        ]

    def _aliases(self) -> list[tuple[str, str]]:
        plain = [(block, alias) for block, (_, alias) in self.blocks.items()]
        return sorted([(self.interface.name, "Network"), *plain], key=lambda pair: pair[0].lower())

    def _block_classes(self) -> list[str]:
        lines: list[str] = []
        for block, (name, plain) in self.blocks.items():
            told = docstring([f"{block} that can be computed again for its gradients."], 1)
            lines += ["", "", f"class {name}(GradientCheckpointingLayer, {plain}):", *told]
        if self.blocks:
            pairs = [f"{plain}: {name}" for name, plain in self.blocks.values()]
            lines += ["", "", *collection("CHECKPOINTED = {", pairs, "}", 0)]
        return lines

    def _fields(self) -> dict[str, str]:
        """The code of each output, by its name in the result."""
        outputs = self.interface.outputs
        if self.interface.is_record:
            return {
                python_name(o.name, RESERVED_OUTPUT_NAMES): f"found.{o.name}" for o in outputs if o.kind is not None
            }
        present = [o for o in outputs if o.kind is not None]
        if len(present) == 1:
            return {"output": "found"}
        return {f"output_{i}": f"found[{i}]" for i in range(len(present))}

    def _output_class(self) -> list[str]:
        names = [*(["loss"] if self.head is not None else []), *self._fields()]
        told = docstring([f"The outputs of {self.interface.name}."], 1)
        fields = [f"    {name}: Tensor | None = None" for name in names]
        return ["", "", "@dataclass", f"class {self.output_name}(ModelOutput):", *told, "", *fields]

    def _attributes(self) -> list[str]:
        told = [f"The model {self.model.name}.", *[" ".join(p.split()) for p in self.model.doc.split("\n\n")]]
        lines = [*docstring(told, 1), "", f"    config_class = {self.config_name}"]
        main = self.interface.inputs[0].name if self.interface.inputs else ""
        if main != "input_ids":
            lines.append(f"    main_input_name = {quoted(main)}")
        lines += [f"    supports_gradient_checkpointing = {bool(self.blocks)}", "    _supports_sdpa = True"]
        lines.append("    accepts_loss_kwargs = False")
        if self.blocks:
            names = [quoted(name) for name, _ in self.blocks.values()]
            lines += collection("_no_split_modules: ClassVar[list[str]] = [", names, "]", 1)
        return [*lines, *self._tied()]

    def _tied(self) -> list[str]:
        if not self.ties:
            return []
        ties: Mapping[str, str] = self.ties
        if not all(_PLAIN_TENSOR.fullmatch(name) for name in (*ties, *ties.values())):
            ties = {re.escape(name) + "$": re.escape(source) + "$" for name, source in ties.items()}
        pairs = [f"{quoted(name)}: {quoted(source)}" for name, source in ties.items()]
        return collection("_tied_weights_keys: ClassVar[dict[str, str]] = {", pairs, "}", 1)

    def _embeddings(self) -> list[str]:
        table = word_table(self.model)
        if table is None or table.rpartition(".")[2] != "weight":
            return []
        return [
            "",
            "    def get_input_embeddings(self) -> torch.nn.Module:",
            '        """The layer with the embeddings of words."""',
            f"        return self.get_submodule({quoted(parent(table))})",
        ]

    def _forward(self) -> list[str]:
        head, inputs = self.head, self.interface.inputs
        labels = head.labels if head is not None else ()
        by_name = [slot for slot in inputs if slot.by_name]
        parameters = ["self", *[_annotated(slot) for slot in inputs if not slot.by_name]]
        named = [*map(_annotated, by_name), *[f"{name}: Tensor | None = None" for name in labels]]
        parameters += ["*", *sorted(named, key=lambda parameter: "=" in parameter)] if named else []
        given = [slot.name for slot in inputs if not slot.by_name] + [f"{slot.name}={slot.name}" for slot in by_name]
        fields = [f"{name}={code}" for name, code in self._fields().items()]
        told = [_explained(head)] if head is not None else []
        return [
            "    @can_return_tuple",
            *bracketed("def forward(", parameters, f") -> {self.output_name}:", 1),
            *docstring(told, 2),
            *bracketed("found = super().forward(", given, ")", 2),
            *(_loss(head) if head is not None else []),
            *bracketed(f"return {self.output_name}(", [*(["loss=loss"] if head is not None else []), *fields], ")", 2),
        ]


def _refuse_unsupported(model: Model, interface: Interface) -> None:
    """Raise ArchError (`untranslatable`) where `transformers` would give a name another meaning."""
    table = get_compilation(model).table
    taken = interface.attributes & RESERVED_MODEL_NAMES
    if taken:
        message = f"`{min(taken)}` is an attribute of every model of transformers"
        raise make_error("untranslatable", message, help="rename it in the spec")
    for tensor in (*table.tensors, *table.buffers):
        word = next((word for word in tensor.name.split(".") if is_hidden(word)), None)
        if word is not None:
            message = f"transformers cannot find `{tensor.name}`: `{word}` is an attribute of every PyTorch module"
            raise make_error("untranslatable", message, help="rename it in the spec")
    if not table.tensors:
        raise make_error("untranslatable", "transformers cannot save a model without parameters")
    if table.buffer_ties:
        name = min(table.buffer_ties)
        raise make_error("untranslatable", f"transformers cannot save tied buffers, and `{name}` is one")
    for slot in interface.inputs:
        if slot.name == "return_dict":
            raise make_error(
                "untranslatable", "transformers uses an input with the name `return_dict`", help="rename it"
            )


def _annotated(slot: FunctionInput) -> str:
    return f"{slot.name}: Tensor | None = None" if slot.optional else f"{slot.name}: Tensor"


def _explained(head: Head) -> str:
    names = " and ".join(f"`{name}`" for name in head.labels)
    return f"The outputs, and with {names} the loss."


def _loss(head: Head) -> list[str]:
    condition = " and ".join(f"{name} is not None" for name in head.labels)
    return [
        "        loss = None",
        f"        if {condition}:",
        *bracketed(f"loss = {head.function}(", head.arguments, ")", 3),
    ]
