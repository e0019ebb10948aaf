"""A generated layer of experts against `transformers`' own (Mixtral), with the same weights, in float32."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import torch
from measure import medians, report, verdict
from torch.profiler import ProfilerActivity, profile
from transformers import MixtralConfig
from transformers.models.mixtral.modeling_mixtral import MixtralModel

import archspec

HIDDEN, FFN, EXPERTS, BEST = 512, 1024, 8, 2
MOST_TIME, MOST_MEMORY = 1.02, 1.2
TOKENS = (16, 64, 256, 1_024, 2_048)

SPEC = """
import std { Linear, silu }

dim tokens, best

layer Experts(count, hidden, ffn)(x [tokens, 1, hidden], chosen int [tokens, best]) -> [tokens, best, hidden] {
  gate_up_proj: param [count, 2 * ffn, hidden]
  down_proj:    param [count, hidden, ffn]
  gate, up = split([ffn, ffn])(expert_linear(x, chosen, .gate_up_proj))
  return expert_linear(silu(gate) * up, chosen, .down_proj)
}

block Net(hidden = 512, ffn = 1024, count = 8, chosen = 2)(x [tokens, hidden]) -> [tokens, hidden] {
  top, which = x |> gate: Linear(hidden, count, bias = false) |> softmax |> topk(chosen)
  shares = reshape([tokens, chosen, 1])(top / sum(axis = -1, keep = true)(top))
  y = experts: Experts(count, hidden, ffn)(reshape([tokens, 1, hidden])(x), which)
  return sum(axis = 1)(y * shares)
}

model "experts" = Net()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds

    config = MixtralConfig(
        vocab_size=2,
        hidden_size=HIDDEN,
        intermediate_size=FFN,
        num_hidden_layers=1,
        num_local_experts=EXPERTS,
        num_experts_per_tok=BEST,
    )
    torch.manual_seed(0)
    model = MixtralModel(config)  # which chooses how its experts are computed
    theirs = model.layers[0].mlp.eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.02)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "experts.arch")
        path.write_text(SPEC, encoding="utf-8")
        ours = archspec.to_torch(archspec.load(path)).eval()
    ours.load_state_dict(theirs.state_dict())
    rows: list[list[str]] = []
    with torch.no_grad():
        for tokens in TOKENS:
            x = torch.randn(tokens, HIDDEN)
            assert torch.allclose(ours(x), theirs(x[None])[0], atol=1e-5)
            tasks = [lambda x=x: ours(x), lambda x=x: theirs(x[None])]
            mine, other = medians(tasks, max(11, rounds * 256 // tokens))
            peak, their_peak = (peak_memory(task) for task in tasks)
            time, memory = mine / other, peak / their_peak
            figures = [f"{mine * 1e3:.2f}", f"{other * 1e3:.2f}", f"{time:.3f}", verdict(time, MOST_TIME)]
            figures += [f"{peak / 2**20:.1f}", f"{their_peak / 2**20:.1f}", f"{memory:.2f}"]
            rows.append([str(tokens), *figures, verdict(memory, MOST_MEMORY)])
    kind = model.config._experts_implementation
    title = f"{kind}, hidden {HIDDEN}, ffn {FFN}, {EXPERTS} experts, top {BEST}, {torch.get_num_threads()} threads"
    heads = ["tokens", "generated ms", "transformers ms", "ratio", "target", "generated MiB", "transformers MiB"]
    report(title, [*heads, "ratio", "target"], rows)


def peak_memory(task: Any) -> int:
    """The most bytes that a forward pass allocates at a time."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        task()
    events = [e for e in found.profiler.kineto_results.events() if e.name() == "[memory]"]
    now = most = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        now += event.nbytes()
        most = max(most, now)
    return most


if __name__ == "__main__":
    main()
