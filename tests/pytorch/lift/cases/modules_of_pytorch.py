"""Modules of `torch.nn` that are made of others, recurrent layers, and modules that share or spare tensors."""

from typing import Any

import torch

nn = torch.nn


def encoder(**settings: Any) -> Any:
    layer = nn.TransformerEncoderLayer(24, 4, 40, **settings)
    return nn.TransformerEncoder(layer, 3, nn.LayerNorm(24), enable_nested_tensor=False)


def decoder(**settings: Any) -> Any:
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(24, 4, 40, **settings), 2)


class Residual(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.LayerNorm(16), nn.Linear(16, 24), nn.GELU(), nn.Linear(24, 16))

    def forward(self, x: Any) -> Any:
        return x + super().forward(x)


class Tied(nn.Module):
    """Residual sequences, and a head that is tied to the embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 16)
        self.blocks = nn.Sequential(*[Residual() for _ in range(3)])
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Any) -> Any:
        return self.head(self.blocks(self.words(ids)))


class Tagger(nn.Module):
    """A recurrent layer in both directions between others."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.lstm = nn.LSTM(8, 12, 2, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(24, 5)

    def forward(self, ids: Any) -> Any:
        found, _ = self.lstm(self.words(ids))
        return self.tags(found)


class Continued(nn.Module):
    """A recurrent layer that starts with a state it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 12, bias=False)

    def forward(self, x: Any, state: Any) -> Any:
        return self.gru(x, state)


def eighths(shape: tuple[int, ...]) -> Any:
    """Random numbers whose sum in float32, the type of constants, is exact."""
    return torch.randint(-16, 16, shape) / 8


class Constants(nn.Module):
    """Constants that have formulas: distances in grids of two widths, repeated kernels, and stacked lists."""

    def __init__(self) -> None:
        super().__init__()
        own, others = torch.arange(6), torch.arange(12)
        signed = 10 * (own[:, None] // 2 - others // 4) + own[:, None] % 2 - others % 4 + 33
        self.signed = signed
        own = own[:4]
        far = 4 * (2 * (own[:, None] // 2) - torch.arange(16) // 4).abs()
        self.far = far + (2 * (own[:, None] % 2) - torch.arange(16) % 4).abs()
        kernel, rows, columns = [eighths(size) for size in ((3, 3), (9,), (9,))]
        self.kernel = kernel.expand(40, 1, 3, 3).clone()
        self.places = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), -1)
        self.grid = torch.stack([torch.arange(81) % 9, torch.arange(81) // 9], -1) * 0.75
        self.register_buffer("unknown", torch.randn(200), persistent=False)  # which is not used

    def forward(self, x: Any) -> Any:
        sums = self.signed.sum(), self.far.sum(), self.places.sum(), (self.grid**3).sum()
        return *[x + number for number in sums], self.kernel.sum() * x


class Positions(nn.Module):
    """Tables of sinusoidal positions: in halves or in turn, with either spacing of frequencies, and a padding row."""

    def __init__(self) -> None:
        super().__init__()
        places = torch.arange(9).double()[:, None]
        rotary = places * 1e4 ** (-torch.arange(8).double() / 8)
        spaced = places * 1e4 ** (-torch.arange(8).double() / 7)
        self.in_turn = torch.stack([rotary.sin(), rotary.cos()], -1).flatten(1).float()[None]
        self.padded = torch.cat([spaced.sin(), spaced.cos()], 1).float()
        self.padded[1] = 0
        self.reversed = torch.cat([rotary.cos(), rotary.sin()], 1).float()
        some = 1e6 ** (-torch.arange(80).double() / 80)
        self.some = (some * (torch.arange(80) < 20)).float()

    def forward(self, x: Any) -> Any:
        return x + self.in_turn, x + self.padded, x + self.reversed, x.sum(-1, keepdim=True) * self.some


class Unused(nn.Module):
    """Layers that are not applied, two of which share their weight."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(*[nn.Linear(16, 16) for _ in range(3)])
        self.spare = nn.ModuleList([nn.Linear(16, 8), nn.Linear(16, 8, bias=False)])
        self.spare[1].weight = self.spare[0].weight
        self.head = nn.Linear(16, 2)

    def forward(self, x: Any) -> Any:
        return self.head(x)


class UnusedLists(nn.Module):
    """Layers that are not applied, in lists: equal ones, and ones of two sizes, of which one is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(16, 2)
        self.equal = nn.ModuleList([nn.Sequential(nn.Linear(2, 4)) for _ in range(3)])
        self.stages = nn.ModuleList([nn.ModuleList([nn.Linear(2, size) for _ in range(2)]) for size in (4, 6)])
        self.different = nn.ModuleList([nn.Linear(2, 4), nn.Linear(2, 6)])
        self.sparse = nn.ModuleDict({"0": nn.Linear(2, 4), "2": nn.Linear(2, 4)})

    def forward(self, x: Any) -> Any:
        return self.head(x)


class Lender(nn.Module):
    """A table and a layer of a module inside of this one, which that does not apply itself."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = Stack()

    def forward(self, ids: Any) -> Any:
        return self.stack(nn.functional.embedding(ids, self.stack.table) * 4 + self.stack.words(ids))


class Words(nn.Embedding):
    def forward(self, ids: Any) -> Any:
        x = super().forward(ids)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x.abs().amax(-1, keepdim=True) + x


class Stack(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = Words(30, 16)
        self.table = nn.Parameter(torch.randn(30, 16))
        self.layers = nn.Sequential(*[Residual() for _ in range(2)])
        self.norms = nn.ModuleList([nn.LayerNorm(16) for _ in range(4)])

    def forward(self, x: Any) -> Any:
        x = self.layers(x)
        return self.norms[0](x) * self.norms[1](x) + self.norms[2](x) * self.norms[3](x)


class Scaled(nn.Module):
    """A norm without tensors, of queries and of fewer keys."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 8)
        self.norm = Norm()

    def forward(self, x: Any) -> Any:
        query, key = [part(x).view(*x.shape[:2], -1, 4) for part in (self.query, self.key)]
        return self.norm(query), self.norm(key)


class Norm(nn.Module):
    def forward(self, x: Any) -> Any:
        x = x - x.mean(-1, keepdim=True)
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
        return x.abs().amax(-1, keepdim=True) + x


class Windows(nn.Module):
    """Attention in windows, which are an axis of their own."""

    def forward(self, x: Any) -> Any:
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=True)


class Rotary(nn.Module):
    """Rotary positions of heads whose number is not half their size."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("speeds", (1e4 ** (-torch.arange(4).double() / 4)).float(), persistent=False)

    def forward(self, x: Any) -> Any:
        angles = torch.outer(torch.arange(7, dtype=self.speeds.dtype), self.speeds)
        both = torch.cat((angles, angles), -1)
        return x * both.cos() + torch.cat((-x[..., 4:], x[..., :4]), -1) * both.sin()


class Scale(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))

    def forward(self, x: Any) -> Any:
        return torch.tanh(x * self.weight)


class Twice(nn.Module):
    """Two layers of one class that are no list."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Scale(), Scale()

    def forward(self, x: Any) -> Any:
        return self.second(x + self.first(x))


class Grouped(nn.Module):
    """Heads of which each stands for two."""

    def forward(self, x: Any) -> Any:
        batch, seq, _ = x.shape
        heads = x.view(batch, seq, 3, 4).transpose(1, 2)
        return heads[:, :, None].expand(batch, 3, 2, seq, 4).reshape(batch, 6, seq, 4)


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 6), nn.Linear(6, 8)

    def forward(self, x: Any, y: Any) -> Any:
        return x + self.down(torch.tanh(self.up(x))) * y


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.gate = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any, y: Any) -> Any:
        return x + torch.sigmoid(self.gate(x)) * torch.tanh(self.up(x)) * y


class Alternating(nn.Module):
    """Blocks of two classes with two inputs, one of them once."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Plain(), Gated(), Plain()])

    def forward(self, x: Any, y: Any) -> Any:
        for block in self.blocks:
            x = block(x, y)
        return x


class Widened(nn.Module):
    """A block of too many steps to be written where it is used."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.out = nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 8)

    def forward(self, x: Any, y: Any) -> Any:
        return x - torch.tanh(self.out(torch.sigmoid(self.down(torch.relu(self.up(x + y)))) * x - y)) * y


class OfThreeKinds(nn.Module):
    """Blocks of two classes in turn, after one of a third class."""

    def __init__(self) -> None:
        super().__init__()
        owners = [Widened, Gated, Plain, Gated, Gated, Plain, Gated, Gated, Plain]
        self.blocks = nn.ModuleList([owner() for owner in owners])

    def forward(self, x: Any, y: Any) -> Any:
        for block in self.blocks:
            x = block(x, y)
        return x


class Stacked(nn.Module):
    """Steps of three sequences as one, and a product of its rows."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.weight, self.bias = nn.Parameter(torch.randn(8, 12)), nn.Parameter(torch.randn(12))

    def forward(self, a: Any, b: Any, c: Any) -> Any:
        x = torch.stack((a, b, c), 1).permute(0, 2, 1, 3).reshape(a.shape[0], 3 * a.shape[1], 8)
        x = self.norm(x)
        return torch.addmm(self.bias, x.view(-1, 8), self.weight).view(*x.shape[:-1], 12)


class Overwriting(nn.Module):
    """A module that fills parts of a value one after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        y = torch.empty_like(x)
        y[..., :4] = self.left(x)[..., :4]
        y[..., 4:] = self.right(x)[..., 4:]
        weights = y.softmax(-1)
        weights /= weights.sum(1, keepdim=True) + 1.0
        return weights


def padded() -> dict[str, Any]:
    hidden = torch.zeros(2, 7, dtype=torch.bool)
    hidden[0, 5:] = True
    return {"src": torch.randn(2, 7, 24), "src_key_padding_mask": hidden}


class Window(nn.Module):
    """Biases by the numbers of distances that a module stores, a norm of turned axes, and a tensor used inside."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(1, 1, 8))
        places = torch.arange(9)
        rows, columns = [places[:, None] // by % 3 - places // by % 3 + 2 for by in (3, 1)]
        self.register_buffer("numbers", 5 * rows + columns)
        self.biases = nn.Parameter(torch.randn(25, 2))
        self.norm = Turned(8)
        self.blocks = nn.ModuleList([Joined(8) for _ in range(2)])

    def forward(self, x: Any) -> Any:
        first = self.first.expand(x.shape[0], -1, -1)
        for block in self.blocks:
            x = block(x, first)
        return self.norm(x), self.biases[self.numbers.view(-1)]


class Turned(nn.LayerNorm):
    def forward(self, x: Any) -> Any:
        return super().forward(x).permute(0, 2, 1)


class Joined(nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.up = nn.Linear(size, size)

    def forward(self, x: Any, first: Any) -> Any:
        return torch.cat((first, self.up(self.norm(x)) + x), 1)[:, 1:]


class Marked(nn.Embedding):
    """An embedding with a vector of its own for one token, in the place of its row."""

    def __init__(self) -> None:
        super().__init__(50, 16)
        self.special = nn.Parameter(torch.randn(16))

    def forward(self, ids: Any) -> Any:
        x = 2 * super().forward(ids)
        x[ids == 5] = self.special
        return x


class Side(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = Marked()
        self.layers = nn.ModuleList([nn.Linear(16, 16) for _ in range(4)])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        for layer in self.layers:
            x = x + layer(x).tanh()
        return x


class Sides(nn.Module):
    """Two parts with tied embeddings, whose addresses are of different lengths."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.out = Side(), Side()
        self.out.words.weight, self.out.words.special = self.encoder.words.weight, self.encoder.words.special

    def forward(self, ids: Any, others: Any) -> Any:
        return self.encoder(ids), self.out(others)


X = torch.randn(2, 7, 8)

IDS = torch.randint(0, 50, (3, 7))

CASES = {
    "encoder": (lambda: encoder(batch_first=True), (torch.randn(2, 7, 24),)),
    "encoder, tokens first": (encoder, (torch.randn(7, 2, 24),)),
    "encoder with padding": (lambda: encoder(batch_first=True, norm_first=True), padded()),
    "decoder": (lambda: decoder(batch_first=True), (torch.randn(2, 7, 24), torch.randn(2, 5, 24))),
    "transformer": (
        lambda: nn.Transformer(24, 4, 2, 3, 40, batch_first=True),
        (torch.randn(2, 7, 24), torch.randn(2, 5, 24)),
    ),
    "tied residual sequence": (Tied, (torch.randint(0, 30, (2, 7)),)),
    "LSTM": (lambda: nn.LSTM(8, 12, 2, batch_first=True), (torch.randn(2, 7, 8),)),
    "LSTM in both directions": (Tagger, (torch.randint(0, 30, (2, 7)),)),
    "GRU": (lambda: nn.GRU(8, 12, batch_first=True), (torch.randn(2, 7, 8),)),
    "GRU with a state": (Continued, {"x": torch.randn(7, 2, 8), "state": torch.randn(1, 2, 12)}),
    "attention in windows": (Windows, (torch.randn(2, 3, 5, 7, 4),)),
    "rotary positions": (Rotary, (torch.randn(2, 3, 7, 8),)),
    "layers of one class": (Twice, (torch.randn(2, 7, 8),)),
    "repeated heads": (Grouped, (torch.randn(2, 7, 12),)),
    "blocks of two classes": (Alternating, (torch.randn(2, 7, 8), torch.randn(2, 7, 8))),
    "blocks of three classes": (OfThreeKinds, (torch.randn(2, 7, 8), torch.randn(2, 7, 8))),
    "constants": (Constants, (torch.randn(2, 7),)),
    "unused layers": (Unused, (torch.randn(2, 16),)),
    "a table of a module inside": (Lender, (torch.randint(0, 30, (2, 7)),)),
    "a norm of different sizes": (Scaled, (torch.randn(2, 7, 16),)),
    "rows of stacked steps": (Stacked, tuple([torch.randn(2, 7, 8) for _ in range(3)])),
    "values that are overwritten": (Overwriting, (torch.randn(2, 7, 8),)),
    "positions": (Positions, (torch.randn(2, 9, 16),)),
    "unused layers in lists": (UnusedLists, (torch.randn(2, 16),)),
    "LSTM with a projection": (lambda: nn.LSTM(8, 12, proj_size=5), (torch.randn(7, 2, 8),)),
    "LSTMCell": (lambda: nn.LSTMCell(8, 12), (torch.randn(2, 8),), (torch.randn(3, 8),)),
    "GRUCell": (lambda: nn.GRUCell(8, 12), (torch.randn(2, 8),), (torch.randn(3, 8),)),
    "RNNCell": (lambda: nn.RNNCell(8, 12), (torch.randn(2, 8),), (torch.randn(3, 8),)),
    "stored indices and a norm of turned axes": (Window, (X,)),
    "tied tensors of two blocks": (Sides, (IDS, torch.randint(0, 50, (3, 9)))),
}

SLOW = "encoder,|encoder with|decoder|transformer|LSTM in|constants"
