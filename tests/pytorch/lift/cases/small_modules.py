"""Modules of a few operations each."""

from typing import Any, NamedTuple

import torch

nn = torch.nn

F = nn.functional


class Attention(nn.Module):
    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self.settings = settings

    def forward(self, q: Any, k: Any, v: Any, mask: Any = None) -> Any:
        return F.scaled_dot_product_attention(q, k, v, mask, **self.settings)


class Slope(nn.Module):
    """A slope that is one number."""

    def __init__(self) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(0.1))

    def forward(self, x: Any) -> Any:
        return F.prelu(x, self.slope)


class Swish(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * torch.sigmoid(x)


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))
        self.eps = 1e-6

    def forward(self, x: Any) -> Any:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


class At(nn.Module):
    def forward(self, x: Any, at: Any) -> Any:
        return x[torch.arange(x.shape[0]), at]


def grid() -> Any:
    """The rows and columns of the places in a window."""
    return torch.stack(torch.meshgrid(torch.arange(2), torch.arange(4), indexing="ij"), -1).reshape(8, 2)


class Places(nn.Module):
    """Rows and columns that are looked up in a table."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", grid(), persistent=False)
        self.table = nn.Embedding(4, 6)

    def forward(self, x: Any) -> Any:
        return x @ self.table(self.places).sum(1)


class Distances(nn.Module):
    """A table of distances by row and by column."""

    def __init__(self) -> None:
        super().__init__()
        distances = (grid()[:, None] - grid() + torch.tensor([1, 3])) * torch.tensor([7, 1])
        self.register_buffer("distances", distances.sum(-1), persistent=False)
        self.table = nn.Parameter(torch.zeros(21))

    def forward(self, x: Any) -> Any:
        return x @ self.table[self.distances]


class Regions(nn.Module):
    """Places in windows of an image that was shifted: what was at its end is at its start."""

    def __init__(self) -> None:
        super().__init__()
        end = (torch.arange(4) >= 3).long()
        windows = (2 * end[:, None] + end).reshape(2, 2, 2, 2).transpose(1, 2).reshape(4, 4)
        self.register_buffer("hidden", (windows[:, None] != windows[:, :, None]) * -100.0, persistent=False)

    def forward(self, x: Any) -> Any:
        return x + self.hidden


class Turned(nn.Module):
    """Pairs of numbers as complex ones, times stored complex numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("turns", torch.polar(torch.ones(4), torch.arange(4.0)), persistent=False)

    def forward(self, x: Any) -> Any:
        return torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (4, 2))) * self.turns).flatten(-2)


class Quantized(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.ones(8, 8, dtype=torch.int8))

    def forward(self, x: Any) -> Any:
        return F.linear(x, self.weight.to(x.dtype))


class Written(nn.Module):
    """Attention that is written out, with a causal mask that is added to scores, and a bias."""

    def __init__(self) -> None:
        super().__init__()
        mask = torch.full((9, 9), float("-inf")).triu(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, q: Any, k: Any, v: Any, bias: Any) -> Any:
        seq = q.shape[2]
        scores = q @ k.transpose(-1, -2) * 0.25 + bias
        return (scores + self.mask[:seq, :seq]).softmax(-1) @ v


class Grouped(nn.Module):
    """Attention with half as many keys as queries."""

    def forward(self, x: Any) -> Any:
        keys = x[:, None].repeat(1, 2, 1, 1)
        return F.scaled_dot_product_attention(x[:, None].repeat(1, 4, 1, 1), keys, keys, enable_gqa=True)


X = torch.linspace(-3, 3, 80).reshape(2, 5, 8)

S = torch.linspace(-1, 1, 72).reshape(2, 6, 6)

ENDS = torch.tensor([-1.0, 0.0, 2.0])

Q = torch.linspace(-1, 1, 120).reshape(2, 3, 5, 4)


class Sum(nn.Module):
    def forward(self, first_of_four_terms: Any, second_of_four_terms: Any, third: Any, last: Any) -> Any:
        return (first_of_four_terms - second_of_four_terms * third + last).sum(1)


class UpToLast(nn.Module):
    """Marks the tokens up to the last one of each text; all tokens of texts without any."""

    def forward(self, mask: Any) -> Any:
        marks = torch.zeros_like(mask)
        marks[torch.arange(mask.shape[0]), mask.sum(1) - 1] = 1
        return marks.flip(1).cumsum(1).flip(1)


class Outputs(nn.Module):
    def forward(self, x: Any) -> Any:
        return {"up": x + 1, "down": x - 1}


class Halves(nn.Module):
    """A recurrence with parts of each token."""

    def forward(self, x: Any) -> Any:
        state, found = torch.zeros_like(x[:, 0, :4]), []
        for t in range(x.shape[1]):
            kept, added = x[:, t].chunk(2, -1)
            state = state * torch.sigmoid(kept) + added
            found.append(state)
        return torch.stack(found, 1)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = nn.Linear(8, 12), nn.Linear(12, 8)

    def forward(self, x: Any, own: Any) -> Any:
        return x + self.outer(torch.relu(self.inner(x))) * own


class Sliced(nn.Module):
    """Layers that each take a slice of what is computed once."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = nn.Linear(8, 32)
        self.layers = nn.ModuleList([Layer() for _ in range(4)])

    def forward(self, x: Any) -> Any:
        own = self.inputs(x).unflatten(-1, (4, 8))
        for turn, layer in enumerate(self.layers):
            x = layer(x, own[:, turn])
        return x


class Paired(nn.Module):
    """Layers and norms in a list of lists, which the parent applies."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.ModuleList([nn.LayerNorm(8), nn.Linear(8, 8)]) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        for norm, mix in self.layers:
            x = torch.tanh(mix(norm(x))) + x
        return x


class Uneven(nn.Module):
    """Layers whose results are put together of as many parts, or of different numbers of them."""

    def __init__(self, *parts: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in parts])
        self.parts = parts

    def forward(self, x: Any) -> Any:
        found = [torch.tanh(layer(x)).chunk(count, -1) for count, layer in zip(self.parts, self.layers, strict=True)]
        return torch.stack([torch.cat([part * 2 for part in parts[::-1]], -1) for parts in found], 1)


class Gate(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Any) -> Any:
        return torch.tanh(x * self.weight)


class Gated(nn.Module):
    """One or two short modules with tensors."""

    def __init__(self, several: bool) -> None:
        super().__init__()
        self.first = Gate()
        self.second = Gate() if several else nn.Identity()

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x) + 1)


class Outer(nn.Module):
    """The product of each row with itself."""

    def forward(self, x: Any) -> Any:
        return torch.vmap(lambda row, by: row.sin() @ by.T, (0, None))(x, x[0])


class Growing(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.exp() if x.shape[1] <= 49 else x


class Scaled(nn.Module):
    """The norm of RMSNorm, with a number of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3) * self.weight


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Linear(8, 5)
        self.box = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.classes(x).softmax(-1), self.box(x).sigmoid(), x.mean(1), x.transpose(1, 2)


class Fields(NamedTuple):
    first: Any
    second: Any


class Named(nn.Module):
    def forward(self, x: Any) -> Fields:
        return Fields(x.mean(1), x.sum(1))


class Masked(nn.Module):
    """An encoder of PyTorch with a causal mask for each length."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any) -> Any:
        return self.encoder(x, nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


class OfSize(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.arange(x.shape[1])


class Nothing(nn.Module):
    def forward(self, x: Any) -> None:
        return None


class OfLength(nn.Module):
    """Another function for inputs longer than its table, or shorter than a number; one input is not used."""

    def __init__(self, longest: int, shortest: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(longest, 8))
        self.longest, self.shortest = longest, shortest

    def forward(self, x: Any, unused: Any) -> Any:
        seq = x.shape[1]
        return x * 2 if seq > self.longest or seq < self.shortest else x + self.table[:seq]


class Wrong(nn.Module):
    """A function that is exported as another one."""

    def forward(self, x: Any, y: Any) -> Any:
        return x + 1 if torch.compiler.is_compiling() else x


class Worded(nn.Module):
    """Layers of which names say what they are for."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings, self.attn, self.scale = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, ids: Any) -> Any:
        return self.scale(self.attn(self.embeddings(ids)))


class Split(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        return torch.tanh(self.left(x)), self.right(x)


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.split, self.out = Split(), nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        left, right = self.split(x)
        return self.out(left * right), right


class Around(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Joined(), Joined()])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            found, right = layer(x)
            x = found + right
        return x


class Product(nn.Module):
    def __init__(self, equation: str, *shape: int) -> None:
        super().__init__()
        self.equation, self.weight = equation, nn.Parameter(torch.randn(shape))

    def forward(self, x: Any) -> Any:
        return torch.einsum(self.equation, x, self.weight)


H = torch.randn(2, 5, 6, 8)

IDS = torch.tensor([[1, 2, 3], [4, 0, 1]])

PLACES = torch.tensor([[1, 4], [0, 2]])

FUNCTIONS = {
    "variance": (lambda x: x.var(-1), X),
    "variance with half a correction": (lambda x: x.var(-1, correction=0.5), X),
    "axes that are moved": (lambda x: x.movedim(-1, 0), X),
    "ends that are repeated": (lambda x: F.pad(x, (2, 1), mode="replicate"), X),
    "ends of minus infinity": (lambda x: F.pad(x, (1, 0), value=-float("inf")), X),
    "an upper triangle": (torch.triu, S),
    "a lower triangle": (lambda x: x.tril(1), S),
    "quotients": (lambda x: x * 2 / (x * x + 1) / 3 * (x / (x + 9)), X),
    "conditions": (lambda x: torch.logical_and(x > 0, x < 2), X),
    "logarithms of sigmoids": (F.logsigmoid, X),
    "joined batches": (lambda x: torch.cat([x, x + 1]), X),
    "some numbers": (lambda x: torch.isin(x.long(), torch.tensor([1, 2])), X),
    "buckets with their ends": (lambda x: torch.bucketize(x, ENDS, right=True), X),
    "buckets without their ends": (lambda x: torch.bucketize(x, ENDS), X),
    "products of axes": (lambda x: torch.einsum("bsd,bt->bstd", x, x[..., 0]), X),
    "transforms over two axes": (lambda x: torch.fft.fft2(x).real, X),
    "places along two axes": (lambda x: x[:, [0, 2, 3], [5, 1, 1]], X),
    "best ones of enough": (lambda x: x.topk(3, 1)[0], X),
    "means of an axis": (lambda x: F.adaptive_avg_pool1d(x, 1), X),
    "a quotient rounded towards zero": (lambda x: torch.div((x * 100).long(), 3, rounding_mode="trunc"), X),
    "elements at indices along axis 1": (lambda x, places: x[:, places], H, PLACES),
    "elements at indices along axis 2": (lambda x, places: x[:, :, places], H, PLACES),
}

CASES = {
    "convolution": (lambda: nn.Conv1d(5, 6, 3), (X,)),
    "oblong kernels": (lambda: nn.Conv2d(5, 6, (2, 3)), (X[:, :, None].repeat(1, 1, 4, 1),)),
    "kernels in space": (lambda: nn.Conv3d(5, 6, 2), (X.reshape(2, 5, 2, 2, 2),)),
    "means without padding": (lambda: nn.AvgPool1d(3, 2, 1, count_include_pad=False), (X,)),
    "means of the rest": (lambda: nn.AvgPool1d(3, 2, 1, ceil_mode=True), (X,)),
    "one slope for all": (Slope, (X,)),
    "causal attention": (lambda: Attention(is_causal=True), (Q, Q + 1, Q + 2)),
    "biased attention": (Attention, (Q, Q + 1, Q + 2, torch.zeros(2, 1, 5, 5))),
    "attention that is written out": (Written, (Q, Q + 1, Q + 2, torch.zeros(2, 3, 5, 5))),
    "small integers": (Quantized, (X,)),
    "Elman's recurrence": (lambda: nn.RNN(8, 12, nonlinearity="relu", batch_first=True), (X,)),
    "products with a matrix between": (lambda: nn.Bilinear(8, 6, 4), (X, X[..., :6])),
    "transposed convolution": (
        lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2, dilation=3),
        (X.reshape(2, 4, 10),),
    ),
    "recurrence": (lambda: nn.GRU(8, 12, batch_first=True), (X,)),
    "functions and norms of one's own": (lambda: nn.Sequential(nn.Linear(8, 8), Swish(), Norm()), (X,)),
    "tokens at places": (At, (X, torch.tensor([1, 2]))),
    "places in a grid": (Places, (X,)),
    "distances in a window": (Distances, (X,)),
    "complex numbers": (Turned, (X,)),
    "groups of heads": (Grouped, (X,)),
    "regions of an image": (Regions, (torch.randn(2, 4, 4, 4),)),
    "many inputs in several lines": (Sum, (X, X, X, X)),
    "indices below 0 count from the end": (
        UpToLast,
        (torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]]),),
    ),
    "named outputs": (Outputs, (X,)),
    "a recurrence": (Halves, (X,)),
    "layers with a slice each": (Sliced, (X[:, 0],)),
    "lists of lists of layers": (Paired, (X,)),
    "layers with the same number of parts": (lambda: Uneven(2, 2, 2), (X,)),
    "layers with different numbers of parts": (lambda: Uneven(2, 2, 4), (X,)),
    "two short modules with tensors": (lambda: Gated(True), (X,)),
    "one short module with tensors": (lambda: Gated(False), (X,)),
    "a map over an axis": (Outer, (X,)),
    "another function of long inputs": (Growing, (X,)),
    "products summed over two axes": (lambda: Product("bhnd,hde->bne", 5, 8, 7), (H,)),
    "products summed over two axes, with an ellipsis": (lambda: Product("...hnd,hde->...ne", 5, 8, 7), (H,)),
    "products summed over three axes": (lambda: Product("bhnd,hnde->be", 5, 6, 8, 7), (H,)),
    "RMSNorm written out": (lambda: nn.Sequential(nn.Linear(8, 8), Scaled()), (X,)),
    "RMSNorm of PyTorch": (lambda: nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8, 1e-3)), (X,)),
    "RMSNorm with the default epsilon": (lambda: nn.Sequential(nn.Linear(8, 8), nn.RMSNorm(8)), (X,)),
    "RMSNorm without a weight": (lambda: nn.RMSNorm(8, elementwise_affine=False), (X,)),
    "outputs named after layers, and others": (Heads, (X,)),
    "outputs named by a tuple": (Named, (X,)),
    "sums of rows": (lambda: nn.EmbeddingBag(6, 4, mode="sum"), (IDS,)),
    "means of rows": (lambda: nn.EmbeddingBag(6, 4, mode="mean"), (IDS,)),
    "maxima of rows": (lambda: nn.EmbeddingBag(6, 4, mode="max"), (IDS,)),
    "bags with padding": (lambda: nn.EmbeddingBag(6, 4, padding_idx=0), (IDS,)),
    "causal masks of encoders": (Masked, (X,)),
    "only the size of an input": (OfSize, (X,)),
    "no outputs": (Nothing, (X,)),
    "a branch for long inputs, and an unused input": (lambda: OfLength(40, 1), (X, X)),
    "a branch for short inputs, and an unused input": (lambda: OfLength(40, 4), (X, X)),
    "a module that differs from its program": (Wrong, (X, X)),
    "roles of layers by their names": (Worded, (torch.zeros(2, 5, dtype=torch.long),)),
    "blocks with several outputs": (Around, (X,)),
}
