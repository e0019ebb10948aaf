"""Names that PyTorch and `transformers` use themselves are known."""

import subprocess
import sys
from typing import Any

import pytest

from archspec.codegen.scope.names import RESERVED_MODULE_NAMES
from archspec.codegen.transformers.fragments import RESERVED_CONFIG_NAMES, RESERVED_MODEL_NAMES, RESERVED_OUTPUT_NAMES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow


def test_names_that_modules_have_are_known() -> None:
    code = "import torch; print(*dir(torch.nn.Module()))"  # other libraries add to it where they are imported
    own = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in own if not name.startswith("_")} <= RESERVED_MODULE_NAMES
    assert [name for name in RESERVED_MODULE_NAMES if not hasattr(torch.nn.Module(), name)] == []


def test_names_that_transformers_takes() -> None:
    transformers = pytest.importorskip("transformers")

    class Configuration(transformers.PreTrainedConfig):  # type: ignore[name-defined]
        model_type = "x"

    class Model(transformers.PreTrainedModel, transformers.GenerationMixin):
        config_class = Configuration

        def __init__(self, config: Any) -> None:
            super().__init__(config)  # pyright: ignore[reportUnknownMemberType]
            self.post_init()

    def public(something: object) -> set[str]:
        return {name for name in dir(something) if not name.startswith("_")}

    assert public(Model(Configuration())) - public(torch.nn.Module()) <= RESERVED_MODEL_NAMES
    generation = set(transformers.GenerationConfig._get_default_generation_params())
    assert public(Configuration()) | generation <= RESERVED_CONFIG_NAMES
    assert public(transformers.utils.ModelOutput) <= RESERVED_OUTPUT_NAMES
