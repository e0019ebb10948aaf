"""Lifting loses nothing without a word: what is frozen, arguments, formulas, inputs and the reasons of refusals."""

import math
from functools import wraps

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x + self.scale * self.down(self.up(self.norm(x)).relu())


class Net(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.words = nn.Embedding(50, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.head = nn.Linear(width, 50)
        self.head.weight = self.words.weight

    def forward(self, ids):
        h = self.words(ids)
        for layer in self.layers:
            h = layer(h)
        return self.head(h)


def first_frozen(width=16, layers=6):
    net = Net(width, layers).eval()
    for part in (net.words, *net.layers[:2]):
        part.requires_grad_(False)
    return net


def every_second_frozen(width=16, layers=6):
    net = Net(width, layers).eval()
    for layer in net.layers[::2]:
        layer.requires_grad_(False)
    return net


def all_frozen(width=16, layers=3):
    return Net(width, layers).eval().requires_grad_(False)


def trained_biases(width=16, layers=3):
    net = Net(width, layers).eval()
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(name.endswith("bias"))
    return net


class Low(nn.Module):
    def __init__(self, width, rank, state):
        super().__init__()
        self.mix, self.gate = nn.Linear(width, rank, bias=False), nn.Linear(width, state)
        self.back = nn.Linear(rank, width)

    def forward(self, x):
        return self.back(self.mix(x)) * self.gate(x).sum(-1, keepdim=True)


def evaluated(build):
    """Return a factory of modules in evaluation mode."""

    @wraps(build)
    def factory(*args, **named):
        return build(*args, **named).eval()

    return factory


rounded_up = evaluated(lambda width=32, state=8: Low(width, math.ceil(width / 16), state))
at_least = evaluated(lambda width=40, state=3: Low(width, max(16, width // 4), state))
at_most = evaluated(lambda width=40, state=3: Low(width, min(64, 4 * width), state))
even = evaluated(lambda width=32, heads=4, state=3: Low(width, width // heads // 2 * 2, state))
stated = evaluated(lambda width=32, heads=4, dropout=0.1, activation="relu", seed=3: Low(width, width // heads, 2))


class Gelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(torch.sqrt(torch.tensor(2 / torch.pi)) * (x + 0.044715 * x**3)))


class Part(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(width, 4 * width), Gelu(), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(self.act(self.up(x)))


class Parts(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.parts = nn.ModuleList(Part(width) for _ in range(layers))

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


gelu_layers = evaluated(lambda width=16, layers=2: Parts(width, layers))


class Two(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(2 * depth):
            double = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            self.layers.append(nn.ModuleList([nn.LayerNorm(width), double if i % 2 else nn.Linear(width, width)]))

    def forward(self, x):
        for norm, part in self.layers:
            x = x + part(norm(x))
        return x


pairs = evaluated(lambda width=16, depth=2: Two(width, depth))


class Filling(nn.Module):
    """A change in place, so that the program is made anew."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, input, max):
        y = self.up(input) + max
        y[:, 0] = 0.0
        return y


fills = evaluated(lambda: Filling())


class Transposed(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[1], 8)


transposes = evaluated(lambda: Transposed())


class Both(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words, self.patch = nn.Embedding(50, width), nn.Linear(12, width)

    def forward(self, ids, patches=None):
        h = self.words(ids)
        return h if patches is None else h + self.patch(patches).mean(1, keepdim=True)


both = evaluated(lambda width=16: Both(width))


class Closed(nn.Module):
    """A function that the constructor keeps, which a copy of the module also has, with the parts of the first one."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)
        up = self.up
        self.feed = lambda x: up(x)
        self.register_buffer("seen", torch.tril(torch.ones(32, 32)))

    def forward(self, x):
        seen = self.seen[: x.shape[1], : x.shape[1]]
        return self.feed((x @ x.transpose(1, 2)).masked_fill(seen == 0, float("-inf")).softmax(-1) @ x)


closed = evaluated(lambda: Closed())


class Flagged(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=x.shape[1] > 1)


flagged = evaluated(lambda: Flagged())


class Keeping(nn.Module):
    """A bias of distances that `forward` makes for the longest input so far."""

    def __init__(self):
        super().__init__()
        self.register_buffer("bias", None, persistent=False)

    def forward(self, x):
        if self.bias is None or self.bias.shape[-1] < x.shape[1]:
            p = torch.arange(x.shape[1])
            self.bias = -(p[None, :] - p[:, None]).abs().float()
        return (x @ x.transpose(1, 2) + self.bias[: x.shape[1], : x.shape[1]]).softmax(-1) @ x


keeping = evaluated(lambda: Keeping())


class Scaled(nn.Module):
    """A table of angles of which the slowest are scaled: its values are within 6e-6 of those of all angles."""

    def __init__(self):
        super().__init__()
        speed = 1 / 500000.0 ** (torch.arange(0, 8, 2).float() / 8)
        speed = torch.where(2 * math.pi / speed > 8192, speed / 32.0, speed)
        self.register_buffer("cos", (torch.arange(64)[:, None] * speed.repeat(2)).cos(), persistent=False)

    def forward(self, x):
        return x * self.cos[: x.shape[1]]


scaled = evaluated(lambda: Scaled())


class Transposing(nn.ConvTranspose1d):
    """Rows of eight channels; what it adds to the end of its results is not in the language."""

    def __init__(self):
        super().__init__(8, 8, 3, stride=2, padding=1, output_padding=1, groups=4)

    def forward(self, x):
        return super().forward(x.transpose(1, 2))


transposing = evaluated(lambda: Transposing())


class Bucketed(nn.Module):
    """Buckets of distances, as in T5, for queries and keys of one length."""

    def __init__(self, heads, buckets):
        super().__init__()
        self.buckets, self.table = buckets, nn.Embedding(buckets, heads)

    def forward(self, x):
        p = torch.arange(x.shape[1])
        d, half = p[:, None] - p[None, :], self.buckets // 2
        side, d, near = (d < 0).long() * half, d.abs(), half // 2
        far = near + (torch.log(d.float() / near) / torch.log(torch.tensor(128 / near)) * (half - near)).long()
        bucket = side + torch.where(d < near, d, torch.min(far, torch.full_like(far, half - 1)))
        scores = (x @ x.transpose(1, 2))[:, None] + self.table(bucket).permute(2, 0, 1)
        return scores.softmax(-1) @ x[:, None]


bucketed = evaluated(lambda heads=4, buckets=32: Bucketed(heads, buckets))


X, ROWS = ("x=real[batch,seq,width]",), ("x=real[batch,seq,8]",)

IDS = ("ids=int[batch,seq]",)

SOURCES = {
    "the first layers are frozen": (":first_frozen", *IDS),
    "every second layer is frozen": (":every_second_frozen", *IDS),
    "all is frozen": (":all_frozen", *IDS),
    "only biases are trained": (":trained_biases", *IDS),
    "a size that is rounded up": (":rounded_up", *X, {"state": 5}),
    "a size that is at least a number": (":at_least", *X, {"state": 5}),
    "a size that is at most a number": (":at_most", *X, {"state": 5}),
    "a size that is even": (":even", *X, {"state": 5}),
    "arguments that are not followed": (":stated", *X, {"width": 48, "heads": 6}),
    "numbers in float32": (":gelu_layers", *X, {"width": 24, "layers": 3}),
    "buckets of distances": (":bucketed", *ROWS),
    "pairs of layers": (":pairs", *X, {"width": 8}),
    "inputs that are left out": (":both", *IDS),
    "inputs that are called like functions": (":fills", "input=real[batch,seq,8]", "max=real[batch,seq,8]"),
    "a view of a transposed tensor": (":transposes", *ROWS),
    "a function that the constructor keeps": (":closed", *ROWS),
    "a flag that is a size": (":flagged", *ROWS),
    "a buffer that a call creates": (":keeping", *ROWS),
    "a table of scaled angles": (":scaled", *ROWS),
    "padding of a transposed convolution": (":transposing", *ROWS),
}
