"""A generated model's forward against `transformers`' own, with the same weights and the same attention, in float32."""

from __future__ import annotations

import argparse
import itertools

import torch
from measure import medians, report, verdict
from transformers import BertConfig, BertModel

import archspec

MODEL = "bert-base-uncased"
TARGET = 1.02


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds

    config = BertConfig()
    config._attn_implementation = "sdpa"
    theirs = BertModel(config).eval()
    ours = archspec.to_torch(archspec.load(MODEL)).eval()
    ours.load_state_dict(theirs.state_dict())
    rows: list[list[str]] = []
    with torch.no_grad():
        for batch, seq, padded in itertools.product((1, 8), (128, 512), (False, True)):
            inputs = inputs_of(batch, seq, padded)
            assert torch.allclose(ours(**inputs).pooler_output, theirs(**inputs).pooler_output, atol=1e-5)
            count = max(11, rounds * 128 // (batch * seq))
            tasks = [lambda i=inputs: ours(**i), lambda i=inputs: theirs(**i)]
            mine, other = medians(tasks, count)
            name = f"{batch} x {seq}{', padded' if padded else ''}"
            ratio = mine / other
            rows.append([name, f"{mine * 1e3:.1f}", f"{other * 1e3:.1f}", f"{ratio:.3f}", verdict(ratio, TARGET)])
    title = f"{MODEL}, scaled_dot_product_attention, {torch.get_num_threads()} threads, medians of interleaved runs"
    report(title, ["", "generated ms", "transformers ms", "ratio", "target"], rows)


def inputs_of(batch: int, seq: int, padded: bool) -> dict[str, torch.Tensor]:
    """Random ids; of the last quarter of the first row, a mask says that it is padding."""
    ids = torch.randint(1_000, 30_000, (batch, seq))
    inputs = {"input_ids": ids, "token_type_ids": torch.zeros_like(ids)}
    if padded:
        inputs["attention_mask"] = torch.ones_like(ids)
        inputs["attention_mask"][0, seq * 3 // 4 :] = 0
    return inputs


if __name__ == "__main__":
    main()
