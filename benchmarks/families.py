"""The generated forward of a model of each family against `transformers`' own, with the same weights, in float32; and
the first count of the largest bundled model.

The models are those of the configurations that the tests have, at their published sizes, layers included. Both sides
attend with `scaled_dot_product_attention`; `transformers` is told not to keep keys and values for a next token.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import largest
import torch
import transformers
from measure import medians, report, verdict

import archspec

CONFIGURATIONS = Path(__file__).parent.parent / "tests" / "data" / "configs"
TARGET = 1.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--seq", type=int, default=128)
    options = parser.parse_args()
    rows: list[list[str]] = []
    for path in sorted(CONFIGURATIONS.glob("*.json")):
        rows += forward(path, options.seq, options.rounds)
    for state, small, large in largest.measure(options.rounds):
        name = f"{largest.LARGE}, first count, {state}"
        rows.append([name, f"{large * 1000:.1f}", f"{small * 1000:.1f}", *judged(large / small, largest.TARGET)])
    title = f"Forward of 1 x {options.seq}, {torch.get_num_threads()} threads; count against {largest.SMALL}'s"
    title += f"; medians of {options.rounds} interleaved runs"
    report(title, ["", "ms", "reference ms", "ratio", "target"], rows)


def forward(path: Path, seq: int, rounds: int) -> list[list[str]]:
    """The rows of one configuration: with no mask, and with one whose last quarter is padding."""
    theirs, ours = models(path)
    rows: list[list[str]] = []
    for padded in (False, True):
        inputs = inputs_of(archspec.load(str(path)).inputs, seq, padded)
        with torch.no_grad():
            assert torch.allclose(scores(ours(**inputs)), scores(theirs(**inputs)), atol=1e-3, rtol=1e-3)
            mine, other = medians([lambda i=inputs: ours(**i), lambda i=inputs: theirs(**i)], rounds)
        name = f"{path.stem}{', padded' if padded else ''}"
        rows.append([name, f"{mine * 1000:.1f}", f"{other * 1000:.1f}", *judged(mine / other, TARGET)])
    return rows


def judged(ratio: float, target: float) -> tuple[str, str]:
    return f"{ratio:.3f}", verdict(ratio, target)


def models(path: Path) -> tuple[Any, Any]:
    """The model of `transformers` that a configuration describes, and the generated one, which shares its weights."""
    fields = json.loads(path.read_text())
    kind = getattr(transformers, fields["architectures"][0])
    config = kind.config_class.from_pretrained(path, attn_implementation="sdpa", use_cache=False)
    theirs = kind(config).eval()
    ours = archspec.to_torch(archspec.load(str(path))).eval()
    state = theirs.state_dict()
    ours.load_state_dict({name: state[name] for name in ours.state_dict()}, assign=True)
    return theirs, ours


def inputs_of(names: Any, seq: int, padded: bool) -> dict[str, torch.Tensor]:
    """Random ids, segment 0, and masks where asked for, under those of the names that a model has."""
    ids = torch.randint(1_000, 30_000, (1, seq))
    inputs = {"input_ids": ids, "decoder_input_ids": ids, "token_type_ids": torch.zeros_like(ids)}
    if padded:
        mask = torch.ones_like(ids)
        mask[0, seq * 3 // 4 :] = 0
        inputs |= {"attention_mask": mask, "decoder_attention_mask": mask}
    return {name: value for name, value in inputs.items() if name in names}


def scores(outputs: Any) -> torch.Tensor:
    """The logits, whatever they are called."""
    return outputs.logits if hasattr(outputs, "logits") else outputs.prediction_logits


if __name__ == "__main__":
    main()
