"""What depends on the arguments of a factory."""

import math
from functools import wraps

import torch
from torch import nn
from torch.nn import functional as F


class Adapted(nn.Module):
    def __init__(self, dim, rank, alpha):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.a = nn.Parameter(torch.ones(rank, dim))
        self.b = nn.Parameter(torch.ones(dim, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b) * self.scale


class Scaled(nn.Module):
    """Queries and keys are both scaled."""

    def __init__(self, dim, heads):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.heads = heads

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        scale = q.shape[-1] ** -0.25
        shares = ((q * scale) @ (k * scale).transpose(-1, -2)).softmax(-1)
        return (shares @ v).transpose(1, 2).flatten(2)


class Wide(nn.Module):
    """Heads of 16 features, whatever the width."""

    def __init__(self, dim, heads):
        super().__init__()
        self.q, self.kv = nn.Linear(dim, 16 * heads), nn.Linear(dim, 2 * 16 * heads)
        self.out = nn.Linear(16 * heads, dim)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (-1, 16)).transpose(1, 2) for y in (self.q(x), *self.kv(x).chunk(2, -1)))
        return self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))


class Dilated(nn.Module):
    """Each layer looks twice as far back as the one before."""

    def __init__(self, dim, layers):
        super().__init__()
        self.layers = nn.ModuleList([nn.Conv1d(dim, dim, 2, dilation=2**i) for i in range(layers)])

    def forward(self, x):
        for i, layer in enumerate(self.layers):
            x = x + layer(F.pad(x, (2**i, 0))).tanh()
        return x


class Joined(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inner = nn.Linear(dim, dim)
        self.outer = nn.Linear(dim + 6, 4)

    def forward(self, x):
        return self.outer(torch.cat([self.inner(x), x[..., :6]], -1))


class Timed(nn.Module):
    """A step that is embedded at two rates; there are as many channels as a kernel is wide."""

    def __init__(self, dim, channels):
        super().__init__()
        self.dim = dim
        self.head = nn.Linear(dim, channels)
        self.local = nn.Conv1d(1, 1, 3, padding=1)

    def forward(self, step):
        half = self.dim // 2
        angles = step[:, None] * torch.exp(-torch.arange(half) * (math.log(10000) / half))
        others = step[:, None] * torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
        return self.local(self.head(torch.cat([angles.sin(), others.cos()], -1))[:, None])


class Ended(nn.Module):
    """Of two rows, the last one begins at 1."""

    def __init__(self, rows):
        super().__init__()
        self.table = nn.Parameter(torch.ones(rows, 24))

    def forward(self, x):
        return x * self.table[-1:] + self.table.sum(0)


class Deeper(nn.Module):
    """Layers with rates that making them looks at. The length is a width of a layer in the smallest module."""

    def __init__(self, dim, classes, length):
        super().__init__()
        self.rates = [rate.item() for rate in torch.linspace(0, 0.1, 3)]
        self.layers = nn.ModuleList([Mixing(dim, length) for _ in self.rates])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


class Mixing(nn.Module):
    def __init__(self, dim, length):
        super().__init__()
        self.inner, self.outer = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim)
        self.tokens = Tokens(length)

    def forward(self, x):
        return self.outer(self.tokens(self.inner(x)))


class Tokens(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(length))

    def forward(self, x):
        return self.weight @ x


class Patches(nn.Module):
    """An image as patches, over which tokens are mixed."""

    def __init__(self, size, patch, dim):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, patch, patch)
        tokens = (size // patch) ** 2
        self.mix = nn.Sequential(nn.Linear(tokens, dim // 2), nn.GELU(), nn.Linear(dim // 2, tokens))

    def forward(self, image):
        return self.mix(self.stem(image).flatten(2)).mean(2)


class Normed(nn.Module):
    """An RMS norm with the epsilon of PyTorch."""

    def __init__(self, dim):
        super().__init__()
        self.norm, self.out = nn.RMSNorm(dim), nn.Linear(dim, dim)

    def forward(self, x):
        return self.out(self.norm(x))


class Squeezed(nn.Module):
    """Channels that are weighted by a narrow layer, which is of one channel if the module has few."""

    def __init__(self, channels, reduction):
        super().__init__()
        self.inner, self.outer = nn.Linear(channels, channels // reduction), nn.Linear(channels // reduction, channels)

    def forward(self, x):
        return x * self.outer(self.inner(x).relu()).sigmoid()


class Padded(nn.Module):
    """A convolution that looks back, with an attribute that is named as an operation is."""

    def __init__(self, dim, pad):
        super().__init__()
        self.pad = pad
        self.local = nn.Conv1d(dim, dim, 3, dilation=pad // 2)

    def forward(self, x):
        return self.local(nn.functional.pad(x, (self.pad, 0)))


class Dilations(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.layers = nn.ModuleList([Padded(dim, pad) for pad in (4, 8, 4)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).tanh()
        return x


class Grouped(nn.Module):
    """Keys for several queries, with rotary positions from a table in float32."""

    def __init__(self, dim, n_heads, n_kv, context):
        super().__init__()
        self.heads, self.groups, head = n_heads, n_kv, dim // n_heads
        self.query, self.key = nn.Linear(dim, dim), nn.Linear(dim, n_kv * head)
        angles = torch.outer(torch.arange(context).float(), 10000 ** (-torch.arange(0, head, 2).float() / head))
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def rotated(self, x, heads):
        a, b = x.unflatten(-1, (heads, -1)).transpose(1, 2).chunk(2, -1)
        cos, sin = self.cos[: x.shape[1]], self.sin[: x.shape[1]]
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)

    def forward(self, x):
        key = self.rotated(self.key(x), self.groups).repeat_interleave(self.heads // self.groups, 1)
        return self.rotated(self.query(x), self.heads) @ key.transpose(-2, -1)


class Double(nn.Module):
    def __init__(self, before, after):
        super().__init__()
        convolutions = [nn.Conv2d(before, after, 3, padding=1), nn.Conv2d(after, after, 3, padding=1)]
        norms = [nn.BatchNorm2d(after), nn.BatchNorm2d(after)]
        self.net = nn.Sequential(
            *[part for pair in zip(convolutions, norms, strict=True) for part in (*pair, nn.ReLU())]
        )

    def forward(self, x):
        return self.net(x)


class Crossed(nn.Module):
    """A layer of what two others give, and of their input."""

    def __init__(self, dim, hidden):
        super().__init__()
        self.inner, self.outer = nn.Linear(2 * dim, hidden), nn.Linear(hidden + 2 * dim, 1)

    def forward(self, x, y):
        x = torch.cat([x, y], -1)
        return self.outer(torch.cat([self.inner(x).relu(), x], -1))


class Sloped(nn.Module):
    """Slopes that the formula of the library only has for powers of two, and a layer of any size."""

    def __init__(self, heads, ffn):
        super().__init__()
        self.inner, self.outer = nn.Linear(heads, ffn), nn.Linear(ffn, heads)
        self.register_buffer("slopes", 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads), persistent=False)

    def forward(self, x):
        return self.outer(self.inner(x).relu()) * self.slopes


class Contracting(nn.Module):
    """Blocks of one class in a list and outside of it."""

    def __init__(self, channels, base):
        super().__init__()
        self.first = Double(channels, base)
        self.down = nn.ModuleList([Double(base * 2**turn, base * 2 ** (turn + 1)) for turn in range(2)])

    def forward(self, x):
        x = self.first(x)
        for part in self.down:
            x = part(F.max_pool2d(x, 2))
        return x


def evaluated(build):
    """Return a factory of modules in evaluation mode."""

    @wraps(build)
    def factory(*args, **named):
        return build(*args, **named).eval()

    return factory


crossed = evaluated(lambda dim=16, hidden=20: Crossed(dim, hidden))
sloped = evaluated(lambda heads=8, ffn=32: Sloped(heads, ffn))
contracting = evaluated(lambda channels=3, base=16: Contracting(channels, base))
squeezed = evaluated(lambda dim=64, reduction=8: Squeezed(dim, reduction))
dilations = evaluated(lambda dim=24: Dilations(dim))
grouped = evaluated(lambda dim=64, n_heads=4, n_kv=2, context=600: Grouped(dim, n_heads, n_kv, context))
adapted = evaluated(lambda dim=32, rank=16, alpha=64: Adapted(dim, rank, alpha))
tuned = evaluated(lambda dim=32, rank=8, alpha=16: Adapted(dim, rank, alpha))
scaled = evaluated(lambda dim=64, heads=4: Scaled(dim, heads))
wide = evaluated(lambda dim=64, heads=3: Wide(dim, heads))
dilated = evaluated(lambda dim=32, layers=4: Dilated(dim, layers))
joined = evaluated(lambda dim=32: Joined(dim))
ended = evaluated(lambda rows=2: Ended(rows))
deeper = evaluated(lambda dim=24, classes=5, length=32: Deeper(dim, classes, length))
patches = evaluated(lambda size=224, patch=16, dim=64: Patches(size, patch, dim))
normed = evaluated(lambda dim=64: Normed(dim))
timed = evaluated(lambda dim=32, channels=3: Timed(dim, channels))


class Words(nn.Module):
    def __init__(self, words, dim, classes):
        super().__init__()
        self.table = nn.Embedding(words, dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, words):
        return self.head(self.table(words))


class Optional(nn.Module):
    def __init__(self, dim, bias, pre, verbose):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.up, self.down = nn.Linear(dim, 2 * dim, bias=bias), nn.Linear(2 * dim, dim, bias=bias)
        self.pre, self.verbose = pre, verbose

    def change(self, x):
        return self.down(self.up(x).relu())

    def forward(self, x):
        return x + self.change(self.norm(x)) if self.pre else self.norm(x + self.change(x))


optional = evaluated(lambda dim=24, bias=True, pre=False, verbose=False: Optional(dim, bias, pre, verbose))
words = evaluated(lambda words=40, dim=24, classes=5: Words(words, dim, classes))


def capped(channels=64, out=5):
    return nn.Sequential(nn.GroupNorm(min(channels // 4, 32), channels), nn.Conv2d(channels, out, 1))


def deepened(dim=16, layers=3):
    last = nn.Linear(dim, dim) if layers > 12 else nn.Identity()
    return nn.Sequential(nn.Sequential(*[nn.Linear(dim, dim) for _ in range(layers)]), last)


def padded(vocab=100, dim=16):
    return nn.Sequential(nn.Embedding((vocab + 63) // 64 * 64, dim), nn.Linear(dim, 3))


SOURCES = {
    "a scale of two arguments": (":adapted", "x=real[batch,seq,dim]", {"dim": 48, "rank": 24, "alpha": 30}),
    "queries and keys that are both scaled": (":scaled", "x=real[batch,seq,dim]", {"dim": 48, "heads": 6}),
    "heads of a size of their own": (":wide", "x=real[batch,seq,dim]", {"dim": 40, "heads": 5}),
    "layers that look further and further back": (":dilated", "x=real[batch,dim,seq]", {"dim": 24}),
    "a width and a number": (":joined", "x=real[batch,seq,dim]", {"dim": 24}),
    "a scale of small arguments": (":tuned", "x=real[batch,seq,dim]", {"dim": 48, "rank": 4, "alpha": 6}),
    "the last row": (":ended", "x=real[batch,seq,24]", {"rows": 5}),
    "rates that building looks at": (":deeper", "x=real[batch,32,24]", {"dim": 8, "classes": 7, "length": 12}),
    "tokens of patches": (":patches", "image=real[batch,3,size,size]", {"size": 48, "patch": 8, "dim": 20}),
    "an RMS norm with the epsilon of PyTorch": (":normed", "x=real[batch,dim]", {"dim": 24}),
    "blocks in a list and outside of it": (":contracting", "x=real[batch,channels,8,8]", {"channels": 4, "base": 6}),
    "a layer of two layers and their input": (
        ":crossed",
        "x=real[batch,dim]",
        "y=real[batch,dim]",
        {"dim": 6, "hidden": 7},
    ),
    "slopes of powers of two": (":sloped", "x=real[batch,heads]", {"ffn": 20}),
    "a narrow layer": (":squeezed", "x=real[batch,dim]", {"dim": 48, "reduction": 4}),
    "a setting that is named as an operation": (":dilations", "x=real[batch,dim,time]", {"dim": 20}),
    "keys for several queries": (
        ":grouped",
        "x=real[batch,seq,dim]",
        {"dim": 48, "n_heads": 6, "n_kv": 3, "context": 50},
    ),
    "an embedded step": (":timed", "step=real[batch]", {"dim": 48, "channels": 5}),
    "groups up to a number": (":capped", "input=real[batch,channels,height,width]", {"out": 7}),
    "a layer of deep modules": (":deepened", "input=real[batch,dim]", {"dim": 20}),
    "padded words": (":padded", "input=int[batch,seq]", {"vocab": 700, "dim": 12}),
    "booleans": (":optional", "x=real[batch,dim]", {"dim": 16, "bias": False, "pre": True}),
    "an argument with the name of an input": (
        ":words",
        "words=int[batch,seq]",
        {"words_": 50, "dim": 16, "classes": 7},
    ),
}

SLOW = "a scale|booleans|queries|heads|layers|a width|the|rates|an embedded"

ROUNDED = [":grouped"]
