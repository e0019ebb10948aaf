"""How generated code reads what is at addresses that are no attributes, and what it passes to parts."""

from collections.abc import Callable

import pytest
import torch_compare
from building import build
from paths import DATA
from small import DENSE, load

import archspec

FAULTS = DATA / "faults"
D = "Dense(n, n)"
LOOP = "for i in 0..layers"


def test_the_containers_of_parts(golden: Callable[[str, str], None]) -> None:
    """Lists where numbers follow each other in any model, else dictionaries, else parts by their address."""
    models = ("three", "parts", "around", "halved", "shifted", "sides")
    specs = {model: f"{FAULTS / 'containers.arch'}:{model}" for model in models}
    specs["two loops"] = f"{FAULTS / 'two_loops_one_container.arch'}:a"
    texts: list[str] = []
    for case, spec in specs.items():
        source = build(spec)
        made = source[source.rindex("super().__init__()") : source.rindex("    def forward")].partition("\n")[2]
        used = source[source.rindex("expected [batch, {self.n}]") :].partition("\n")[2].partition("\n\n\n")[0]
        texts.append(f"# {case}\n{made.rstrip()}\n        # forward\n{used}\n")
    golden("torch/containers_of_faults.txt", "\n".join(texts))


DECLARED = {
    "layers of a loop": (
        f"p[i]: {D} if i > 0 {LOOP}\n  {LOOP} {{ if .p[i] != none {{ h = h + (h |> .p[i]) }} else {{ h = h * 2.0 }} }}"
    ),
    "layers of a branch": f"{LOOP} {{ if i == k {{ p[i].q: {D} }}\n if .p[i].q != none {{ h = h |> .p[i].q }} }}",
    "tensors": f"p[i]: param [n] if i != 1 {LOOP}\n  {LOOP} {{ h = (h * 2.0 if .p[i] == none else h * .p[i]) }}",
    "a buffer": f"p[i].q: buffer [n] if i != 1 {LOOP}\n  {LOOP} {{ if not (.p[i].q == none) {{ h = h + .p[i].q }} }}",
    "tensors of blocks": f"{LOOP} {{ h = h |> p[i]: Part(n, i > 1) }}",
    "layers of a list": (
        "for i in 0..3 { if chosen[i] != none { p[i]: chosen[i](n, n) } }\n"
        "  for i in 0..3 { if .p[i] != none { h = h |> .p[i] } }"
    ),
}


@pytest.mark.parametrize("body", DECLARED.values(), ids=DECLARED)
def test_conditions_on_what_is_declared(body: str) -> None:
    """A part that is in some iterations of a loop only is looked up where the spec compares it with `none`."""
    torch = pytest.importorskip("torch")
    model = load(f"""{DENSE}
dim batch
block Part(n, has)(x [batch, n]) -> [batch, n] {{
  scale.weight: param [n] if has
  return x * .scale.weight if .scale.weight != none else x
}}
block Net(n = 4, layers = 3, k = 1, chosen = [none, Dense, Dense(bias = false)])(x [batch, n]) -> [batch, n] {{
  h = x
  {body}
  return h |> last: Dense(n, n)
}}
""")
    torch_compare.agrees(model)
    module, x = archspec.to_torch(model), torch.ones(2, 4)
    assert torch.equal(torch.export.export(module, (x,)).module()(x), module(x))
