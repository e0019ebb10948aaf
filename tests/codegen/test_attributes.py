"""How generated code reads what is at addresses that are no attributes, and what it passes to parts."""

import re
from collections.abc import Callable

import pytest
import torch_compare
from paths import DATA
from small import DENSE, load

import archspec
from archspec import Model
from archspec.codegen.build import torch_source

FAULTS = DATA / "faults"
D = "Dense(n, n)"
LOOP = "for i in 0..layers"
CONTAINERS = {
    "both branches": f"{LOOP} {{ if i % 2 == 0 {{ y = h |> l[i]: {D} }} else {{ y = h |> l[i]: {D} }} ; h = y }}",
    "one branch": f"{LOOP} {{ if i % 2 == 0 {{ y = h |> l[i]: {D} }} else {{ y = h }} ; h = y }}",
    "branches in one": f"""{LOOP} {{
    if i % 2 == 0 {{
      if i > 1 {{ y = h |> l[i]: {D} }} else {{ y = h |> l[i]: {D} }}
    }} else {{ y = h |> l[i]: {D} }}
    h = y
  }}""",
    "one of three": f"""{LOOP} {{
    if i % 2 == 0 {{
      if i > 1 {{ y = h |> l[i]: {D} }} else {{ y = h * 2.0 }}
    }} else {{ y = h |> l[i]: {D} }}
    h = y
  }}""",
    "two conditions": f"{LOOP} {{ h = h |> l[i]: {D} if i > 0 |> l[i]: {D} if i < 1 }}",
    "one condition": f"{LOOP} {{ h = h |> l[i]: {D} if i > 0 }}",
    "a condition and its opposite": f"{LOOP} {{ h = h |> l[i]: {D} if i > 0 |> l[i]: {D} if not (i > 0) }}",
    "two loops": f"last = h |> l[i]: {D} {LOOP} |> l[i]: {D} for i in layers..2 * layers",
    "two loops with a gap": f"last = h |> l[i]: {D} {LOOP} |> l[i]: {D} for i in layers + 1..2 * layers",
    "two loops the other way round": f"l[i]: unused {D} for i in layers..2 * layers\n  last = h |> l[i]: {D} {LOOP}",
    "a number before a loop": f"last = h |> l.0: {D} |> l[i]: {D} for i in 1..layers",
    "a number in a condition": f"last = h |> l.0: {D} if k > 1 |> l[i]: {D} for i in 1..layers",
    "a number after a loop": f"last = h |> l[i]: {D} {LOOP} |> l.3: {D}",
    "two numbers": f"last = h |> l.0: {D} |> l.1: {D}",
    "two numbers the other way round": f"last = h |> l.1: {D} |> l.0: {D}",
    "numbers and names": f"last = h |> l.0: {D} |> l.a: {D} |> l.b.c: {D}",
    "parts of numbers": f"last = h |> l.0.a: {D} |> l.1.b: {D} |> m.a.0: {D} |> m.b.0: {D}",
    "a loop in a loop": f"{LOOP} {{ for j in 0..2 {{ h = h |> l[i].m[j]: {D} }} }}",
    "a loop at the end of a loop": f"{LOOP} {{ h = h |> l[i].m[j]: {D} for j in 0..2 }}",
    "the number of the inner loop": f"for j in 0..2 {{ {LOOP} {{ h = h |> l[i].m: {D} if j == 1 }} }}",
    "every other number": f"{LOOP} {{ h = h |> l[2 * i]: {D} |> m[i + 1]: {D} |> r[layers - 1 - i]: {D} }}",
    "the same loop twice": f"a[i].x: {D} {LOOP}\n  a[i].y: {D} {LOOP}\n  {LOOP} {{ h = h |> .a[i].x |> .a[i].y }}",
    "odd names": (
        '"a-b": param [n] ~ constant(1.0)\n  "c-d": buffer [n]\n  "e-f".w: param [n] ~ constant(1.0)'
        f'\n  last = h |> g."h-i": {D} |> * ."a-b" |> + ."c-d" |> + ."e-f".w'
    ),
    "tensors": f"l[i]: param [n] {LOOP}\n  m[i].w: buffer [n] {LOOP}\n  {LOOP} {{ h = h * .l[i] + .m[i].w }}",
}


@pytest.mark.parametrize("faults", [False, True])
def test_the_containers_of_parts(faults: bool, golden: Callable[[str, str], None]) -> None:
    """Lists where numbers follow each other in any model, else dictionaries, else parts by their address."""
    models: dict[str, Model] = {}
    if faults:
        for model in ("three", "parts", "around", "halved", "shifted", "sides"):
            models[model] = archspec.load(f"{FAULTS / 'containers.arch'}:{model}")
        models["two loops"] = archspec.load(f"{FAULTS / 'two_loops_one_container.arch'}:a")
    else:
        for case, body in CONTAINERS.items():
            head = f"{DENSE}dim batch\nblock Net(n = 4, layers = 3, k = 1)(x [batch, n]) -> [batch, n] {{\n"
            models[case] = load(
                f"{head}  h = x\n  {body.replace(' ; ', chr(10))}\n  return {'last' if 'last' in body else 'h'}\n}}\n"
            )
    texts: list[str] = []
    for case, model in models.items():
        source = torch_source(model)
        made = source[source.rindex("super().__init__()") : source.rindex("    def forward")].partition("\n")[2]
        used = source[source.rindex("expected [batch, {self.n}]") :].partition("\n")[2].partition("\n\n\n")[0]
        texts.append(f"# {case}\n{made.rstrip()}\n        # forward\n{used}\n")
    golden(f"torch/containers{'_of_faults' if faults else ''}.txt", "\n".join(texts))


ODD = """
import std { Linear }
dim batch
block Net(n = 4)(x [batch, n]) -> [batch, n] {
  "0".shift: param [n]
  "0".scale: buffer [n]
  "0".steps: buffer int [n] = arange(n)
  type.shift: param [n]
  mean.2: param [n]
  mean.3: buffer [n]
  y = x |> "0".part: Linear(n, n) |> mean.part: Linear(n, n)
  z = y * ."0".scale + ."0".shift + real(."0".steps)
  return z + .type.shift + .mean.2 * .mean.3
}
"""


def test_tensors_at_odd_addresses() -> None:
    source = torch_source(load(ODD))
    body = re.sub(r"\s+", " ", source[source.index("        y = ") : source.index("def own")]).strip()
    assert body == (
        'y = self.get_submodule("mean.part")(self.get_submodule("0.part")(x)) '
        'z = ( y * self.get_buffer("0.scale") + self.get_parameter("0.shift") '
        '+ ( self.get_buffer("0.steps") .to(torch.promote_types(x.dtype, torch.float32)) .to(x.dtype) ) ) '
        'return ( z + part_at(self, "type.shift") + self.get_parameter("mean.2") * self.get_buffer("mean.3") )'
    )


def test_an_input_that_no_use_gives_is_left_out() -> None:
    spec = f"""{DENSE}
dim batch
block Part(n)(x [batch, n], gate [batch, n] = none, rest [batch, n] = none, last [batch, n] = none) -> [batch, n] {{
  y = x * gate if gate != none else x
  z = y + rest if rest != none else y
  w = z + last if last != none else z
  return w |> a: Dense(n, n)
}}
block Net(n = 4)(x [batch, n], y [batch, n]) -> [batch, n] {{
  return p: Part(n)(x, none, y, x) + q: Part(n)(y, last = x, rest = y)
}}
"""
    text = torch_source(load(spec))
    assert "def forward(self, x: Tensor, rest: Tensor, last: Tensor) -> Tensor:" in text
    assert "return self.p(x, y, x) + self.q(y, y, x)" in text


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


LAYERS = {
    "another layer": "x |> a: Mlp(n, Norm = RMSNorm) |> b: Mlp(n)",
    "a layer with bound hyperparameters": "x |> a: Mlp(n, Norm = LayerNorm(bias = false)) |> b: Mlp(n, Norm = RMSNorm)",
    "the same layer with others": "x |> a: Mlp(n, Norm = LayerNorm(eps = 0.1)) |> b: Mlp(n, Norm = LayerNorm)",
    "other names of sizes": "x |> a: Mlp(n, Norm = Shift(by = 2.0)) |> b: Mlp(n)",
    "no layer": "x |> a: Mlp(n, Norm = none) |> b: Mlp(n, Norm = LayerNorm(eps = 0.1))",
    "layers of a loop": "x |> p[i]: Mlp(n, Norm = norms[i]) for i in 0..3",
}


@pytest.mark.parametrize("chain", LAYERS.values(), ids=LAYERS)
def test_blocks_with_different_layers(chain: str) -> None:
    pytest.importorskip("torch")
    model = load(f"""import std {{ LayerNorm, Linear, RMSNorm }}
dim batch
layer Shift(size, by = 1.0)(x [batch, size]) -> [batch, size] {{
  weight: param [size]
  return x * by + .weight
}}
block Mlp(n, Norm = LayerNorm)(x [batch, n]) -> [batch, n] {{
  return x |> norm: Norm(n) if Norm != none |> up: Linear(n, n)
}}
block Net(n = 4, norms = [RMSNorm, none, LayerNorm(bias = false)])(x [batch, n]) -> [batch, n] {{
  return {chain}
}}
""")
    torch_compare.agrees(model)
