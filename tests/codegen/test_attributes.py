"""How generated code reads what is at addresses that are no attributes, and what it passes to parts."""

import re
from collections.abc import Callable

import pytest
import torch_compare
from paths import DATA
from small import DENSE, load

import archspec
from archspec import ArchError, Model
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


TYPES = {
    "results of other types": "x |> a: Mlp(n, Norm = Count) |> b: Mlp(n) |> c: Mlp(n, Norm = Sign)",
    "other types and bound values": "x |> a: Mlp(n, Norm = LayerNorm(eps = 0.1)) |> b: Mlp(n, Norm = Count)",
    "a block around it": "x |> a: Outer(n) |> b: Outer(n, Norm = Count)",
    "a block that is passed": "x |> a: Wrapper(n, Mlp) |> b: Wrapper(n, Mlp(Norm = Count))",
    "blocks in a list": "x |> p[i]: blocks[i](n) for i in 0..3",
    "blocks in a loop": "x |> p[i]: Mlp(n, Norm = [Count, LayerNorm, Sign][i]) for i in 0..3",
    "a merged block": "x |> a: Merged(n) |> b: Merged(n, Norm = Count)",
    "a function": "x |> a: Apply(n, act = whole) |> b: Apply(n)",
    "a function of a function": "scaled(whole)(x) + scaled(half)(x)",
    "a switch": "x |> a: Switch(n) |> b: Switch(n, counts = true)",
    "an unused block": "x |> a: frozen Mlp(n, Norm = Count) |> b: Mlp(n)",
    "a default and none": "x |> a: Scale(n) |> b: Scale(n, none)",
    "numbers of two types": "x |> a: Shift(n, 1) |> b: Shift(n, 2.0)",
    "functions of numbers": "x |> a: Times(n, double) |> b: Times(n, triple)",
    "layers under one address": "x |> a: Choice(n, true) |> b: Choice(n, false)",
    "a transposed convolution": "x |> a: Mixed(n, true) |> b: Mixed(n, false)",
}


@pytest.mark.parametrize("chain", TYPES.values(), ids=TYPES)
def test_blocks_whose_uses_need_several_classes(chain: str) -> None:
    pytest.importorskip("torch")
    model = load(f"""import std {{ LayerNorm, Linear }}
dim batch, m
layer Count(n)(x [batch, n]) -> int [batch, n] {{
  weight: param [n]
  return int(x * .weight)
}}
layer Sign(n)(x [batch, n]) -> bool [batch, n] {{
  weight: param [n]
  return x * .weight > 0.0
}}
fn half(x [batch, m]) -> [batch, m] {{ return x * 0.5 }}
fn whole(x [batch, m]) -> int [batch, m] {{ return int(x) }}
fn double(n) {{ return 2 * n }}
fn triple(n) {{ return 3 * n + 1 }}
layer Scale(n, k = 2 * n)(x [batch, n]) -> [batch, n] {{
  weight: param [n]
  return x * .weight * (k if k != none else 3)
}}
layer Shift(n, k)(x [batch, n]) -> [batch, n] {{
  weight: param [n]
  return x * .weight + real(full([n], k))
}}
layer Times(n, f)(x [batch, n]) -> [batch, n] {{
  weight: param [n]
  return x * .weight * f(2)
}}
layer Mixed(n, transposed)(x [batch, n]) -> [batch, n] {{
  weight: param [n, n, 1]
  y = conv(transposed = transposed)(reshape([batch, n, 1])(x), .weight)
  return reshape([batch, n])(y)
}}
block Choice(n, is_dense)(x [batch, n]) -> [batch, n] {{
  y = x |> a: (Scale if is_dense else LayerNorm)(n)
  return y * .a.weight
}}
fn scaled(act)(x [batch, m]) -> [batch, m] {{ return x * real(act(x)) }}
block Mlp(n, Norm = LayerNorm)(x [batch, n]) -> [batch, n] {{ return x * real(x |> norm: Norm(n)) }}
block Outer(n, Norm = LayerNorm)(x [batch, n]) -> [batch, n] {{ return x |> p[i]: Mlp(n, Norm) for i in 0..2 }}
block Wrapper(n, Inner)(x [batch, n]) -> [batch, n] {{ return x |> inner: Inner(n) }}
block Merged(n, Norm = LayerNorm)(x [batch, n]) -> [batch, n] {{ return x |> ..: Mlp(n, Norm) |> last: Linear(n, n) }}
block Apply(n, act = half)(x [batch, n]) -> [batch, n] {{ return scaled(act)(x) |> up: Linear(n, n) }}
block Switch(n, counts = false)(x [batch, n]) -> [batch, n] {{
  if counts {{ y = x |> a: Count(n) }} else {{ y = x |> b: LayerNorm(n) }}
  return x * real(y)
}}
block Net(n = 4, blocks = [Mlp, Mlp(Norm = Count), Mlp])(x [batch, n]) -> [batch, n] {{
  spare: unused Mlp(n, Norm = Sign)
  return {chain}
}}
""")
    torch_compare.agrees(model)


def test_results_of_different_types_in_one_loop() -> None:
    model = load(f"""{DENSE}
dim batch
layer Sign(n, m)(x [batch, n]) -> bool [batch, n] {{
  weight: param [n]
  return x * .weight > 0.0
}}
block Net(n = 4, layers = [Dense, Sign])(x [batch, n]) -> [batch, n] {{
  h = x
  for i in 0..2 {{ h = h + real(h |> p[i]: layers[i](n, n)) }}
  return h
}}
""")
    with pytest.raises(ArchError, match="results of what is applied here have different element types"):
        torch_source(model)
