"""What blocks are given and lend, runs of layers, loops over lengths, and modules for some lengths only."""

from functools import partial
from typing import Any

import torch

nn = torch.nn

F = nn.functional

X = torch.linspace(-1, 1, 80).reshape(2, 5, 8)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = [nn.Linear(8, 8) for _ in range(3)]

    def forward(self, x: Any, t: Any) -> Any:
        return x + self.c(torch.relu(self.a(x))) * torch.tanh(self.b(x)) * t


class Passing(nn.Module):
    """A block that is given what does not depend on the input."""

    def __init__(self, is_tensor: bool) -> None:
        super().__init__()
        self.first, self.second = Block(), Block()
        self.scale = nn.Parameter(torch.ones(5, 1))
        self.is_tensor = is_tensor

    def forward(self, x: Any) -> Any:
        t = self.scale.exp() if self.is_tensor else torch.arange(5.0)[:, None].exp()
        return self.first(x, t) * 2 + self.second(x, x)


class Inner(nn.Module):
    """A block, one layer of which only the module around it applies."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.third = [nn.Linear(8, 8) for _ in range(3)]

    def forward(self, x: Any, y: Any) -> Any:
        return x + self.third(torch.relu(self.second(x))) * y


class Lending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Inner() for _ in range(2)])

    def forward(self, x: Any, y: Any) -> Any:
        z = torch.tanh(self.layers[0].first(x))
        for layer in self.layers:
            x = layer(x, y)
        return x + z


class Pairing(nn.Module):
    """A block that is given tokens with one more in front, and the tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = [nn.Linear(8, 8) for _ in range(3)]

    def forward(self, x: Any, y: Any) -> Any:
        return y + self.c(torch.relu(self.a(x)))[:, 1:] * torch.tanh(self.b(y))


class Starting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.zeros(1, 1, 8))
        self.first, self.second = Pairing(), Pairing()

    def forward(self, x: Any) -> Any:
        h = torch.cat([self.start.expand(x.shape[0], 1, 8), x], 1)
        return self.first(h, x) + self.second(h, x)


class Feeding(Inner):
    """The same with a layer whose name shows a role."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = self.first
        del self.first


class LendingEach(nn.Module):
    """A list of blocks that all lend a layer, and one of blocks that do not."""

    def __init__(self) -> None:
        super().__init__()
        self.layers, self.others = [nn.ModuleList([Feeding() for _ in range(2)]) for _ in range(2)]

    def forward(self, x: Any, y: Any) -> Any:
        z = self.layers[0].fc1(x) * self.layers[1].fc1(x)
        for layer in (*self.layers, *self.others):
            x = layer(x, y)
        return x + z


class Masked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.o = [nn.Linear(8, 8) for _ in range(3)]

    def forward(self, x: Any, attention_mask: Any) -> Any:
        q, k = [part(x).unflatten(-1, (2, 4)).transpose(1, 2) for part in (self.q, self.k)]
        found = F.scaled_dot_product_attention(q, k, k, attention_mask)
        return x + self.o(found.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    """Layers that are given numbers to add where their spec is given booleans."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Masked() for _ in range(2)])

    def forward(self, x: Any, keep: Any) -> Any:
        added = torch.where(keep[:, None, None, :] != 0, 0.0, -float("inf"))
        for layer in self.layers:
            x = layer(x, added)
        return x


class Crossing(Masked):
    """A layer with a mask for its own places, which hides nothing, and one for those of another input."""

    def forward(self, x: Any, y: Any, own_mask: Any, other_mask: Any) -> Any:
        q, k = [part(z).unflatten(-1, (2, 4)).transpose(1, 2) for part, z in ((self.q, x), (self.k, y))]
        found = F.scaled_dot_product_attention(q, k, k, other_mask)
        return x + self.o(found.transpose(1, 2).flatten(2)) + own_mask.sum() * 0


class Decoder(Encoder):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Crossing() for _ in range(2)])

    def forward(self, x: Any, y: Any, keep: Any) -> Any:
        seen = (keep[:, None, None, :] != 0).expand(-1, 1, x.shape[1], -1)
        own = torch.ones(x.shape[0], 1, x.shape[1], x.shape[1], dtype=torch.bool)
        for layer in self.layers:
            x = layer(x, y, own, seen)
        return x


class Standard(nn.Module):
    """A norm that is written out, without a bias."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Any) -> Any:
        centred = x - x.mean(-1, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(-1, keepdim=True) + 1e-4) * self.weight


class Rotated(nn.Module):
    """Rotary positions whose angles have axes for the batch and the heads."""

    def forward(self, x: Any) -> Any:
        angles = torch.arange(x.shape[2])[:, None] * 10000.0 ** (-torch.arange(0, 8, 2) / 8)
        angles = torch.cat((angles, angles), -1)[None, None]
        return x * angles.cos() + torch.cat((-x[..., 4:], x[..., :4]), -1) * angles.sin()


class Own(nn.Module):
    """A layer of a function of its input."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(6, 8)), nn.Parameter(torch.ones(6))

    def forward(self, x: Any) -> Any:
        return F.linear(x.exp(), self.weight, self.bias)


class Wave(nn.Module):
    """No function of the library."""

    def forward(self, x: Any) -> Any:
        wave = (
            x.sin()  # the name is that of a statement of several lines
            * x.cos()
        )
        return wave + wave.tanh()


class Joined(nn.Module):
    """Layers that are given what the module joins."""

    def __init__(self) -> None:
        super().__init__()
        parts = [nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 8)) for _ in range(3)]
        self.layers = nn.ModuleList(parts)

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = x + layer(torch.cat([x[..., 3:], x[..., :3]], -1))
        return x


class Loop(nn.Module):
    """Two states."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, x: Any) -> Any:
        a, b, found = x[:, 0].sin(), x[:, 0].cos(), []
        for t in range(x.shape[1]):
            new = a * 0.5 + x[:, t] if self.kind == "swapped" else torch.tanh(a * 0.5 + b + x[:, t])
            a, b = (b, new) if self.kind == "swapped" else (new, new)
            found.append(new)
        return torch.stack(found, 1) if self.kind != "swapped" else a


class Twice(nn.Module):
    """Two loops, one after the other."""

    def forward(self, x: Any) -> Any:
        for _ in range(2):
            state, found = torch.zeros_like(x[:, 0]), []
            for t in range(x.shape[1]):
                state = torch.tanh(state + x[:, t])
                found.append(state)
            x = torch.stack(found, 1)
        return x


class Framed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1, 4).sum(-1)


class Switching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        self.layer.train()
        return self.layer(x)


KEEP = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])


class Run(nn.Module):
    """Layers of the kinds of a text, with an input each or none: `kinds` are letters, `inputs` numbers."""

    def __init__(self, kinds: str, inputs: str = "") -> None:
        super().__init__()
        self.layers = nn.ModuleList([{"A": Block, "B": Inner, "C": Pairing}[kind]() for kind in kinds])
        self.inputs = inputs

    def forward(self, x: Any) -> Any:
        others = [x.sin(), x.cos(), x.exp(), x.tanh(), x * 2]
        for turn, layer in enumerate(self.layers):
            x = layer(x, others[int(self.inputs[turn]) if self.inputs else 0])
        return x


RUNS = ["AAB", "ABB", "AABB", "ABABAB", "ABAAB", "ABBABB", "AAABAAAB", "CABAB", "AABBA"]

GIVEN = ["AAAA 0101", "AAAAAA 012012", "AAAAAAAAAA 0123401234", "ABAB 0101", "ABABAB 012012", "ABAB 0100"]

CASES = {
    "a block of a tensor of positions": (lambda: Passing(True), (X,)),
    "a block of positions": (lambda: Passing(False), (X,)),
    "a layer that only another module applies": (Lending, (X, X + 1)),
    "a layer of each block that others apply": (LendingEach, (X, X + 1)),
    "inputs with sums of dimensions": (Starting, (X,)),
    "masks of numbers": (Encoder, (X, KEEP)),
    "masks that are broadcast": (Decoder, (X, torch.randn(2, 7, 8), torch.ones(2, 7, dtype=torch.int64))),
    "a norm that is written out": (lambda: nn.Sequential(nn.Linear(8, 8), Standard()), (X,)),
    "rotary positions with axes for the batch": (Rotated, (torch.linspace(-1, 1, 240).reshape(2, 3, 5, 8),)),
    "a layer, a function, and a statement of several lines": (lambda: nn.Sequential(Own(), Wave(), nn.Mish()), (X,)),
    "values that are joined for each layer": (Joined, (X,)),
    "states that become the same value": (lambda: Loop("equal"), (X,)),
    "states that are swapped": (lambda: Loop("swapped"), (X,)),
    "loops in turn": (Twice, (X,)),
    "frames of four": (Framed, {"x": torch.ones(3, 12)}),
    "a module that a call changes": (Switching, (X,)),
    **{f"layers {kinds}": (partial(Run, kinds), (X,)) for kinds in RUNS},
    **{f"layers and inputs {text}": (partial(Run, *text.split()), (X,)) for text in GIVEN},
}

SLOW = "layers"
