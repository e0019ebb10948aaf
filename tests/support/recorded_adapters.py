"""Record what peft counts for the adapters in figures.yaml, with peft installed.

Run `python tests/support/recorded_adapters.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml
from paths import DATA

FIGURES = DATA / "adapters" / "figures.yaml"
CONFIGS = DATA / "configs"


def base_config(case: dict[str, Any]) -> dict[str, Any]:
    """The configuration of the base model of a case."""
    config = json.loads((CONFIGS / f"{case['config']}.json").read_text())
    if "architecture" in case:
        config["architectures"] = [case["architecture"]]
    if "labels" in case:
        config["num_labels"] = case["labels"]
    return config


def measured(case: dict[str, Any], folder: Path) -> tuple[dict[str, int], dict[str, list[int]], dict[str, Any]]:
    """The figures of peft, the tensors of its checkpoint, and the configuration that it saves."""
    import peft
    import torch
    import transformers

    (folder / "config.json").write_text(json.dumps(base_config(case)))
    config = transformers.AutoConfig.from_pretrained(folder)
    lora = peft.LoraConfig(task_type=case.get("task"), base_model_name_or_path=str(folder), **case["lora"])
    with torch.device("meta"):
        model = getattr(transformers, config.architectures[0])(config)
        adapted = peft.get_peft_model(model, lora)
    trainable, total = adapted.get_nb_trainable_parameters()
    state = peft.get_peft_model_state_dict(adapted, save_embedding_layers=False)
    saved = json.loads(json.dumps(lora.to_dict(), default=list))
    figures = {"trainable": trainable, "total": total, "tensors": len(state)}
    return figures, {name: list(tensor.shape) for name, tensor in state.items()}, saved


def record() -> None:
    """Write the figures of all cases."""
    from tempfile import TemporaryDirectory

    text = FIGURES.read_text()
    heading = "".join(line for line in text.splitlines(keepends=True) if line.startswith("#"))
    cases = yaml.safe_load(text)
    for case in cases.values():
        with TemporaryDirectory() as folder:
            case["peft"] = measured(case, Path(folder))[0]
    body = "".join(
        yaml.safe_dump({name: case}, sort_keys=False, width=118, default_flow_style=None) + "\n"
        for name, case in cases.items()
    )
    FIGURES.write_text(heading + "\n" + body.rstrip() + "\n")


if __name__ == "__main__":
    record()
