"""Lifting: modules of a few operations each, which take no time once PyTorch is loaded."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.values.numbers import literal

nn = torch.nn
F = nn.functional


class One(nn.Module):
    """A function of one tensor."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


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


def body(module: nn.Module, *inputs: Any) -> str:
    """The statements of the only definition of a spec, in one line."""
    text = archspec.lift(module.eval(), inputs)
    return " ".join(text[text.index("{\n") : text.index("\n}\n")].split())


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

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "variance": (lambda x: x.var(-1), X, "sum(axis = -1)"),
    "variance with half a correction": (lambda x: x.var(-1, correction=0.5), X, "/ 7.5"),
    "axes that are moved": (lambda x: x.movedim(-1, 0), X, 'rearrange("b s d -> d b s")(x)'),
    "ends that are repeated": (
        lambda x: F.pad(x, (2, 1), mode="replicate"),
        X,
        "(slice(axis = 2, start = 0, stop = 1)(x), slice(axis = 2, start = 0, stop = 1)(x), x,",
    ),
    "ends of minus infinity": (
        lambda x: F.pad(x, (1, 0), value=-float("inf")),
        X,
        "pad(axis = 2, before = 1, after = 0, value = -inf)(x)",
    ),
    "an upper triangle": (torch.triu, S, "mask = arange(6) >= reshape([seq, 1])(arange(seq))"),
    "a lower triangle": (lambda x: x.tril(1), S, "where(h <= 1, x, 0.0)"),
    "quotients": (lambda x: x * 2 / (x * x + 1) / 3 * (x / (x + 9)), X, "return h / 3 * (x / (x + 9))"),
    "conditions": (lambda x: torch.logical_and(x > 0, x < 2), X, "return x > 0 and x < 2"),
    "logarithms of sigmoids": (F.logsigmoid, X, "return -softplus(-x)"),
    "joined batches": (lambda x: torch.cat([x, x + 1]), X, "return concat(axis = 0)(x, x + 1)"),
    "some numbers": (lambda x: torch.isin(x.long(), torch.tensor([1, 2])), X, "return h >= 1"),
    "buckets with their ends": (lambda x: torch.bucketize(x, ENDS, right=True), X, "<= reshape([batch, seq, 8, 1])(x)"),
    "buckets without their ends": (lambda x: torch.bucketize(x, ENDS), X, "< reshape([batch, seq, 8, 1])(x)"),
    "products of axes": (
        lambda x: torch.einsum("bsd,bt->bstd", x, x[..., 0]),
        X,
        "return reshape([batch, seq, 1, 8])(x) * reshape([batch, 1, seq, 1])(pick(axis = 2, index = 0)(x))",
    ),
    "transforms over two axes": (lambda x: torch.fft.fft2(x).real, X, "return fft(axis = [-2, -1])(x)"),
    "places along two axes": (lambda x: x[:, [0, 2, 3], [5, 1, 1]], X, "embedding(table([0, 2, 3]), "),
    "best ones of enough": (lambda x: x.topk(3, 1)[0], X, "topk(k = 3, axis = 1)(x)"),
    "means of an axis": (lambda x: F.adaptive_avg_pool1d(x, 1), X, "return sum(axis = 2, keep = true)(x) / 8"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_is_lifted(name: str) -> None:
    function, x, expected = FUNCTIONS[name]
    assert expected in body(One(function), x)


MODULES: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...], str]] = {
    "convolution": (lambda: nn.Conv1d(5, 6, 3), (X,), "return conv(input, .weight, .bias)"),
    "oblong kernels": (
        lambda: nn.Conv2d(5, 6, (2, 3)),
        (X[:, :, None].repeat(1, 1, 4, 1),),
        "return conv(input, .weight",
    ),
    "kernels in space": (lambda: nn.Conv3d(5, 6, 2), (X.reshape(2, 5, 2, 2, 2),), "return conv(input, .weight, .bias)"),
    "means without padding": (
        lambda: nn.AvgPool1d(3, 2, 1, count_include_pad=False),
        (X,),
        "mean_pool(kernel = 3, stride = 2, padding = 1)(input) / mean_pool(kernel = 3, stride = 2, padding = 1)",
    ),
    "means of the rest": (lambda: nn.AvgPool1d(3, 2, 1, ceil_mode=True), (X,), "|> pad(axis = 2, after = 1)"),
    "one slope for all": (Slope, (X,), "where(x > 0.0, x, x * .slope)"),
    "causal attention": (lambda: Attention(is_causal=True), (Q, Q + 1, Q + 2), "attention(causal = true)(q, k, v)"),
    "biased attention": (
        Attention,
        (Q, Q + 1, Q + 2, torch.zeros(2, 1, 5, 5)),
        "attention(q, k, v, bias = expand([batch, 3, 5, 5])(mask))",
    ),
    "attention that is written out": (
        Written,
        (Q, Q + 1, Q + 2, torch.zeros(2, 3, 5, 5)),
        "attention(scale = 0.25, causal = true)(q, k, v, bias = bias)",
    ),
    "small integers": (Quantized, (X,), "return linear(x, real(.weight))"),
    "Elman's recurrence": (
        lambda: nn.RNN(8, 12, nonlinearity="relu", batch_first=True),
        (X,),
        "output, last = rnn(activation = relu)(",
    ),
    "products with a matrix between": (lambda: nn.Bilinear(8, 6, 4), (X, X[..., :6]), "return g + .bias"),
    "transposed convolution": (
        lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2, dilation=3),
        (X.reshape(2, 4, 10),),
        "conv(stride = 2, dilation = 3, groups = 2, transposed = true)(input, .weight, .bias)",
    ),
    "recurrence": (lambda: nn.GRU(8, 12, batch_first=True), (X,), "output, last = gru("),
    "functions and norms of one's own": (
        lambda: nn.Sequential(nn.Linear(8, 8), Swish(), Norm()),
        (X,),
        '"0": Linear(8, 8) |> silu |> "2": RMSNorm(8, 1e-6)',
    ),
    "tokens at places": (At, (X, torch.tensor([1, 2])), "return token_at(x, at)"),
    "places in a grid": (Places, (X,), "stack(axis = 1)(arange(8) // 4, arange(8) % 4)"),
    "distances in a window": (Distances, (X,), "reshape([8, 1])(h + g) + (-g - h)"),
    "complex numbers": (Turned, (X,), "y = table([1.0, 0.5403022766113281, -0.416146844625473,"),
    "groups of heads": (Grouped, (X,), "return attention(query, keys, keys)"),
    "regions of an image": (Regions, (torch.randn(2, 4, 4, 4),), "int(arange(4) >= 3)"),
}


@pytest.mark.parametrize("name", MODULES)
def test_a_module_is_lifted(name: str) -> None:
    made, inputs, expected = MODULES[name]
    assert expected in body(made(), *inputs)


def test_modules_with_complex_tensors_are_compared() -> None:
    module = Turned().eval()
    text = archspec.lift(module, (X,))
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"
    assert archspec.equivalent(archspec.loads(text.replace("0.5403", "0.5503")), module).verdict == "different"


TRUNCATED = """
dim batch, seq
block It(x [batch, seq, 8]) -> int [batch, seq, 8] {
  h = int(x * 100)
  return where(h < 0, -(-h // 3), h // 3)
}
model "it" = It()
"""


def test_quotients_that_are_rounded_towards_zero_have_values() -> None:
    module = One(lambda x: torch.div((x * 100).long(), 3, rounding_mode="trunc")).eval()
    assert archspec.equivalent(archspec.loads(TRUNCATED), module).verdict == "outputs equal"
    other = archspec.loads(TRUNCATED.replace("-(-h // 3)", "h // 3"))
    assert archspec.equivalent(other, module).verdict == "different"


class Sum(nn.Module):
    def forward(self, first_of_four_terms: Any, second_of_four_terms: Any, third: Any, last: Any) -> Any:
        return (first_of_four_terms - second_of_four_terms * third + last).sum(1)


class UpToLast(nn.Module):
    """Marks the tokens up to the last one of each text; all tokens of texts without any."""

    def forward(self, mask: Any) -> Any:
        marks = torch.zeros_like(mask)
        marks[torch.arange(mask.shape[0]), mask.sum(1) - 1] = 1
        return marks.flip(1).cumsum(1).flip(1)


def test_indices_below_0_count_from_the_end() -> None:
    mask = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]])
    text = archspec.lift(UpToLast().eval(), (mask,))
    assert "- 1) % seq" in text and ">= 0" not in text


def test_many_inputs_are_in_several_lines() -> None:
    text = archspec.lift(Sum().eval(), (X, X, X, X))
    assert text.split("\n\n")[2].splitlines()[:3] == [
        "block Sum(first_of_four_terms [batch, seq, 8], second_of_four_terms [batch, seq, 8], third [batch, seq, 8],",
        "          last [batch, seq, 8])",
        "         -> [batch, 8] {",
    ]


class Outputs(nn.Module):
    def forward(self, x: Any) -> Any:
        return {"up": x + 1, "down": x - 1}


def test_outputs_have_their_names() -> None:
    assert "-> (up [batch, seq, 8], down [batch, seq, 8]) {" in archspec.lift(Outputs().eval(), (X,))


class Halves(nn.Module):
    """A recurrence with parts of each token."""

    def forward(self, x: Any) -> Any:
        state, found = torch.zeros_like(x[:, 0, :4]), []
        for t in range(x.shape[1]):
            kept, added = x[:, t].chunk(2, -1)
            state = state * torch.sigmoid(kept) + added
            found.append(state)
        return torch.stack(found, 1)


def test_a_recurrence_is_a_loop() -> None:
    text = body(Halves(), X)
    assert "for t in 0..seq { kept, added = pick(axis = 1, index = t)(x) |> split([4, 4], axis = 1)" in text
    assert "g = collect(axis = 1)(h) } return g" in text


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


@pytest.mark.parametrize(
    ("made", "x", "loop"),
    [
        (Sliced, X[:, 0], "layers[i]: Layer()(_, pick(axis = 1, index = i)(own)) for i in 0..4"),
        (Paired, X, "for i in 0..3"),
    ],
)
def test_layers_are_loops(made: type[nn.Module], x: Any, loop: str) -> None:
    text = " ".join(archspec.lift(made().eval(), (x,)).split())
    assert loop in text


class Uneven(nn.Module):
    """Layers whose results are put together of as many parts, or of different numbers of them."""

    def __init__(self, *parts: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in parts])
        self.parts = parts

    def forward(self, x: Any) -> Any:
        found = [torch.tanh(layer(x)).chunk(count, -1) for count, layer in zip(self.parts, self.layers, strict=True)]
        return torch.stack([torch.cat([part * 2 for part in parts[::-1]], -1) for parts in found], 1)


@pytest.mark.parametrize(("parts", "is_loop"), [((2, 2, 2), True), ((2, 2, 4), False)])
def test_iterations_have_as_many_parts(parts: tuple[int, ...], is_loop: bool) -> None:
    assert ("for i in 0..3" in archspec.lift(Uneven(*parts).eval(), (X,))) == is_loop


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


@pytest.mark.parametrize(("several", "written"), [(True, "> first: Gate |> + 1"), (False, "first.weight: param [8]")])
def test_short_modules_are_definitions_if_there_are_several(several: bool, written: str) -> None:
    text = archspec.lift(Gated(several).eval(), (X,))
    assert ("layer Gate(" in text) == several and written in " ".join(text.split())


class Outer(nn.Module):
    """The product of each row with itself."""

    def forward(self, x: Any) -> Any:
        return torch.vmap(lambda row, by: row.sin() @ by.T, (0, None))(x, x[0])


def test_maps_over_an_axis_are_operations_of_all() -> None:
    assert "sin(x)" in body(Outer(), X)


class Growing(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.exp() if x.shape[1] <= 49 else x


def test_another_function_of_long_inputs_is_refused() -> None:
    with pytest.raises(archspec.ArchError, match=r"only be exported where `seq` is at most 49$"):
        archspec.lift(Growing().eval(), (X,))


@pytest.mark.parametrize(
    ("equation", "shape", "expected"),
    [
        ("bhnd,hde->bne", (5, 8, 7), 'matmul(merge_heads(x), rearrange("d h w -> (d h) w")(.weight))'),
        ("...hnd,hde->...ne", (5, 8, 7), 'matmul(merge_heads(x), rearrange("d h w -> (d h) w")(.weight))'),
        ("bhnd,hnde->be", (5, 6, 8, 7), 'matmul(rearrange("b d h w -> b (d h w)")(x)'),
    ],
)
def test_sums_of_products_over_several_axes_are_one_product(
    equation: str, shape: tuple[int, ...], expected: str
) -> None:
    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(shape))

        def forward(self, x: Any) -> Any:
            return torch.einsum(equation, x, self.weight)

    assert expected in body(Product(), torch.randn(2, 5, 6, 8))


class Scaled(nn.Module):
    """The norm of RMSNorm, with a number of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8))

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-3) * self.weight


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        (Scaled(), "RMSNorm(8, 0.001)"),
        (nn.RMSNorm(8, 1e-3), "RMSNorm(8, 0.001)"),
        (nn.RMSNorm(8), "RMSNorm(8, 1.1920928955078125e-7)"),
        (nn.RMSNorm(8, elementwise_affine=False), "sqrt(h + (1.1920928955078125e-7))"),
    ],
)
def test_root_mean_square_norms(norm: nn.Module, expected: str) -> None:
    text = body(nn.Sequential(nn.Linear(8, 8), norm), X) if norm.state_dict() else body(norm, X)
    assert expected in text


@pytest.mark.parametrize("axis", [1, 2])
def test_elements_at_indices_along_an_axis(axis: int) -> None:
    class Taking(nn.Module):
        def forward(self, x: Any, places: Any) -> Any:
            return x[:, places] if axis == 1 else x[:, :, places]

    text = body(Taking(), torch.randn(2, 5, 6, 8), torch.tensor([[1, 4], [0, 2]]))
    assert "embedding(places, " in text


class Heads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.classes = nn.Linear(8, 5)
        self.box = nn.Linear(8, 4)

    def forward(self, x: Any) -> Any:
        return self.classes(x).softmax(-1), self.box(x).sigmoid(), x.mean(1), x.transpose(1, 2)


def test_several_outputs_are_named_after_layers_or_written_as_they_are() -> None:
    text = archspec.lift(Heads().eval(), (X,))
    assert "return classes, box, sum(axis = 1)(x) / seq, transpose(x)" in text


class Fields(NamedTuple):
    first: Any
    second: Any


class Named(nn.Module):
    def forward(self, x: Any) -> Fields:
        return Fields(x.mean(1), x.sum(1))


def test_named_tuples_name_outputs() -> None:
    assert "-> (first [batch, 8], second [batch, 8])" in archspec.lift(Named().eval(), (X,))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_reduced_rows(mode: str) -> None:
    ids = torch.tensor([[1, 2, 3], [4, 0, 1]])
    module = nn.EmbeddingBag(6, 4, mode=mode).eval()
    assert "embedding(input, .weight)" in body(module, ids)
    with pytest.raises(archspec.ArchError, match=r"aten\.embedding_bag"):
        archspec.lift(nn.EmbeddingBag(6, 4, padding_idx=0).eval(), (ids,))


class Masked(nn.Module):
    """An encoder of PyTorch with a causal mask for each length."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x: Any) -> Any:
        return self.encoder(x, nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


def test_causal_masks_of_encoders_are_not_looked_at() -> None:
    text = archspec.lift(Masked().eval(), (X,))
    assert "attention(causal = true)(" in text


class OfSize(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.arange(x.shape[1])


class Nothing(nn.Module):
    def forward(self, x: Any) -> None:
        return None


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (OfSize(), "it uses the size `seq` of its input `x`, and not the input itself"),
        (Nothing(), "it has no outputs that are tensors"),
    ],
)
def test_what_computes_nothing_from_its_inputs_is_refused(module: nn.Module, reason: str) -> None:
    with pytest.raises(archspec.ArchError, match=f"{reason}$"):
        archspec.lift(module.eval(), (X,))


class OfLength(nn.Module):
    """Another function for inputs longer than its table, or shorter than a number; one input is not used."""

    def __init__(self, longest: int, shortest: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(longest, 8))
        self.longest, self.shortest = longest, shortest

    def forward(self, x: Any, unused: Any) -> Any:
        seq = x.shape[1]
        return x * 2 if seq > self.longest or seq < self.shortest else x + self.table[:seq]


@pytest.mark.parametrize(("longest", "shortest", "end"), [(40, 1, "most 40"), (40, 4, "least 4")])
def test_branches_on_a_length_are_noticed_with_an_unused_input(longest: int, shortest: int, end: str) -> None:
    with pytest.raises(archspec.ArchError, match=f"it can only be exported where `seq` is at {end}$"):
        archspec.lift(OfLength(longest, shortest).eval(), (X, X))


class Wrong(nn.Module):
    """A function that is exported as another one."""

    def forward(self, x: Any, y: Any) -> Any:
        return x + 1 if torch.compiler.is_compiling() else x


def test_a_module_with_an_unused_input_is_compared_with_its_program() -> None:
    with pytest.raises(archspec.ArchError, match="its computation differs from its program"):
        archspec.lift(Wrong().eval(), (X, X))


class Worded(nn.Module):
    """Layers of which names say what they are for."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings, self.attn, self.scale = nn.Embedding(9, 8), nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, ids: Any) -> Any:
        return self.scale(self.attn(self.embeddings(ids)))


def test_names_of_layers_say_their_roles_unless_their_class_does() -> None:
    text = archspec.lift(Worded().eval(), (torch.zeros(2, 5, dtype=torch.long),))
    assert [line.strip() for line in text.splitlines() if "role " in line] == ["role attention for attn"]


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


def test_blocks_in_blocks_may_have_several_outputs() -> None:
    module = Around().eval()
    text = archspec.lift(module, (X,))
    assert "layers[i]: Joined()(h)" in text and "split" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict == "equal"


def test_numbers_are_written_as_the_language_has_them() -> None:
    values = [float("inf"), -float("inf"), 1e-5, 2.0, 100_000, -3, True, None, (1, 2.5)]
    written = ["inf", "-inf", "1e-5", "2.0", "100_000", "-3", "true", "none", "[1, 2.5]"]
    assert [*map(literal, values)] == written
