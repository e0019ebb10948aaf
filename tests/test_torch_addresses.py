"""How generated code reads what is at addresses that are no attributes, and what it passes to parts."""

import re

from small import DENSE, load

from archspec.pytorch.build import torch_source

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
