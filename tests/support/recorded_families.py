"""Small records of model types: a configuration, the tensors of its live model, and what that computes in float64.

Weights are not recorded: they are drawn from the names of the tensors.
"""

import json
import tempfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paths import ORACLE

FOLDER = ORACLE / "families"
HEADS = ("ForCausalLM", "ForConditionalGeneration", "ForImageClassification", "ForMaskedLM", "ForCTC")
MOST_WEIGHTS, MOST_NUMBERS = 20_000, 200
"""Weights of a record, beyond which a configuration is drawn again unless hints permit more, and numbers of an output
that are kept."""


def weights(name: str, shape: tuple[int, ...], buffer: bool = False) -> NDArray[np.float64]:
    """The weights of a tensor, from its live name; those of a buffer are positive."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    return rng.uniform(0.1, 0.5, shape) if buffer else rng.normal(0.0, 0.3, shape)


def records() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def read_record(type: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{type}.json").read_text())


def sample(output: NDArray[Any]) -> dict[str, Any]:
    """The shape of an output, and numbers that are evenly spread over it."""
    numbers = output.reshape(-1)[:: 1 + output.size // MOST_NUMBERS]
    return {"shape": list(output.shape), "numbers": [float(f"{number:.9g}") for number in numbers]}


def write_record(type: str) -> None:
    """Record the first small random configuration of the class that people use most."""
    from drawn_configs import Drawn, draw_inputs, torch, transformers
    from families import mapping
    from hints import hints, live_inputs, live_output
    from live import in_float64, live_buffers

    most = hints(type).get("weights", MOST_WEIGHTS)
    names = [name for name in mapping(type).architectures if hasattr(transformers, name)]
    chosen = next((name for head in HEADS for name in names if name.endswith(head)), names[0])
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(1000):
            drawn = Drawn(type, seed, Path(folder), chosen)
            live = drawn.live(drawn.config).double().eval()
            if sum(tensor.numel() for tensor in live.parameters()) > most:
                continue
            config, model, stated = json.loads(Path(drawn.path).read_text()), drawn.load(), drawn.overrides
            torch.manual_seed(0)
            inputs = draw_inputs(drawn, [*model.inputs])
            if {*inputs} == {*model.inputs}:
                break
        else:
            raise AssertionError(f"no small configuration of {type}, with all inputs")
    buffers = live_buffers(live)
    with torch.no_grad(), in_float64():
        for name, tensor in live.named_parameters():
            tensor.copy_(torch.from_numpy(weights(name, tuple(tensor.shape))))
        for name, tensor in live.named_buffers():
            if name in buffers and tensor.is_floating_point():
                tensor.copy_(torch.from_numpy(weights(name, tuple(tensor.shape), buffer=True)))
        expected = live(**live_inputs(torch, type, drawn.config, inputs))
    first: dict[int, str] = {}
    rows: list[list[Any]] = []
    for name, tensor in live.named_parameters(remove_duplicate=False):
        same = first.setdefault(id(tensor), name)
        rows.append([name, list(tensor.shape), None if same == name else same, tensor.requires_grad])
    outputs = {name: sample(live_output(type, expected, name).numpy()) for name in model.outputs}
    record = {
        "transformers": transformers.__version__,
        "config": config | {"architectures": [chosen]},
        "overrides": stated,
        "tensors": rows,
        "buffers": [[name, list(shape)] for name, shape in buffers.items()],
        "inputs": {name: value.tolist() for name, value in inputs.items()},
        "outputs": outputs,
    }
    FOLDER.mkdir(exist_ok=True)
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in record.items())
    (FOLDER / f"{type}.json").write_text(f"{{\n{lines}\n}}\n")
