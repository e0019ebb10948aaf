"""Constants that `lift` writes as formulas, and weights that a module normalizes or repeats."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest

import archspec

torch = pytest.importorskip("torch")

from torch import nn

EQUAL = ("equal", "outputs equal")  # a constant and its formula have different normal forms


def regions(size: int, window: int, shift: int) -> torch.Tensor:
    """The mask of attention to shifted windows, as Swin computes it."""
    image = torch.zeros(size, size)
    parts = ((0, -window), (-window, -shift), (-shift, None))
    for number, (rows, columns) in enumerate([(rows, columns) for rows in parts for columns in parts]):
        image[rows[0] : rows[1], columns[0] : columns[1]] = number
    count = size // window
    windows = image.view(count, window, count, window).permute(0, 2, 1, 3).reshape(count * count, window * window)
    differences = windows[:, None] - windows[:, :, None]
    return differences.masked_fill(differences != 0, -100.0).masked_fill(differences == 0, 0.0)


class Stored(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", regions(8, 4, 1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.mask).softmax(-1)


class Computed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        image = x.new_zeros((8, 8))
        parts = ((0, -4), (-4, -2), (-2, None))
        for number, (rows, columns) in enumerate([(rows, columns) for rows in parts for columns in parts]):
            image[rows[0] : rows[1], columns[0] : columns[1]] = number
        windows = image.view(2, 4, 2, 4).permute(0, 2, 1, 3).reshape(4, 16)
        differences = windows[:, None] - windows[:, :, None]
        mask = differences.masked_fill(differences != 0, -100.0).masked_fill(differences == 0, 0.0)
        return (x + mask).softmax(-1)


@pytest.mark.parametrize("kind", [Stored, Computed])
def test_a_mask_between_regions_is_a_comparison(kind: type[nn.Module]) -> None:
    module = kind().eval()
    text = archspec.lift(module, (torch.randn(2, 4, 16, 16),))
    assert "0.0, -100.0)" in text
    assert "concat" not in text
    assert len(text.splitlines()) < 20
    assert archspec.equivalent(archspec.loads(text), module).verdict in EQUAL


class Looked(nn.Module):
    """Biases by distance, looked up by a product with vectors that have a single 1."""

    def __init__(self) -> None:
        super().__init__()
        places = torch.arange(7)
        lookup = nn.functional.one_hot(places - places[:, None] + 6, 13).float()
        self.register_buffer("lookup", lookup, persistent=False)
        self.biases = nn.Parameter(torch.randn(5, 13))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.einsum("ck,ijk->cij", self.biases, self.lookup)


def test_vectors_with_a_single_1_are_comparisons() -> None:
    module = Looked().eval()
    text = archspec.lift(module, (torch.randn(5, 7, 7),))
    assert "== arange(13)" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict in EQUAL


class Standardized(nn.Conv2d):
    """A convolution whose weights are normalized for each channel, and whose offsets are repeated."""

    def __init__(self) -> None:
        super().__init__(3, 6, 3)
        self.gain = nn.Parameter(torch.randn(6, 1, 1, 1))
        self.offset = nn.Parameter(torch.randn(2, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat, gain = self.weight.reshape(1, 6, -1), (0.3 * self.gain).view(-1)
        weight = nn.functional.batch_norm(flat, None, None, weight=gain, training=True, momentum=0.0, eps=1e-6)
        return nn.functional.conv2d(x, weight.reshape_as(self.weight), self.bias) + self.offset.tile((3, 2))


def test_weights_are_normalized_and_repeated() -> None:
    module = Standardized().eval()
    text = archspec.lift(module, (torch.randn(2, 3, 8, 8),))
    assert "group_norm(groups = 6, eps = 1e-6)" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict in EQUAL


def test_statistics_of_a_batch_are_refused() -> None:
    class Batch(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.batch_norm(x, None, None, training=True)

    with pytest.raises(archspec.ArchError, match="batch statistics"):
        archspec.lift(Batch().eval(), (torch.randn(2, 3, 5),))


class Inner(nn.Module):
    """An embedding under two names, of which one is used, in a block with many steps."""

    def __init__(self) -> None:
        super().__init__()
        self.shared = nn.Embedding(30, 8)
        self.words = nn.Embedding(30, 8)
        self.words.weight = self.shared.weight
        self.parts = nn.ModuleList([nn.Linear(8, 8) for _ in range(5)])

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for turn, part in enumerate(self.parts):
            x = x + part(x).tanh() * (turn + 1.5)
        return x


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.blocks = nn.Sequential(nn.Linear(8, 6), *[nn.Sequential(nn.Linear(6, 6), nn.GELU()) for _ in range(3)])
        self.head = nn.Linear(8, 30, bias=False)
        self.head.weight = self.inner.shared.weight

    def forward(self, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.inner(ids)
        return self.head(x), self.blocks(x)


@pytest.mark.slow
def test_ties_are_where_both_tensors_are_and_no_address_begins_with_an_index() -> None:
    module = Tied().eval()
    text = archspec.lift(module, {"ids": torch.randint(0, 30, (2, 7))})
    assert "tie words.weight = shared.weight" in text
    assert "tie head.weight = inner.shared.weight" in text
    assert " i:" not in text
    assert "blocks[i]: Sequential for i in 1..4" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict in EQUAL


class Offset(nn.Module):
    """Tokens of several kinds in one table: the first kind at its beginning, the others after it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("starts", nn.functional.pad(7 + 5 * torch.arange(4), (1, 0)), persistent=False)
        self.table = nn.Embedding(27, 8)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids + self.starts).sum(-2)


def test_integers_that_grow_after_the_first_one() -> None:
    module = Offset().eval()
    text = archspec.lift(module, (torch.zeros(2, 3, 5, dtype=torch.long),))
    assert "arange(4) * 5 + 7" in text
    assert archspec.equivalent(archspec.loads(text), module).verdict in EQUAL


class Placed(nn.Module):
    """Rows of a table by how far along each item is, in steps that are rounded."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.table = count, nn.Embedding(count, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lengths = torch.ones(x.shape[0], self.count, dtype=torch.bool).sum(1)
        places = torch.arange(self.count, dtype=torch.float32)[None] * (1.0 / lengths)[:, None]
        bounds = torch.arange(1 / self.count, 1.0, 1 / self.count)
        return x + self.table(torch.bucketize(places.clamp(max=1.0 - 1e-6), bounds, right=True))


@pytest.mark.parametrize("count", [7, 49])
def test_buckets_between_rounded_bounds_are_those_of_pytorch(count: int) -> None:
    module = Placed(count).eval()
    rows: list[torch.Tensor] = []
    handle = module.table.register_forward_hook(lambda table, given, result: rows.append(given[0][0]))
    x = torch.zeros(2, count, 4)
    module(x)
    handle.remove()
    text = archspec.lift(module, (x,))
    assert str(rows[0].tolist()) in " ".join(text.split())
    assert "(x [batch, " in text


class PlacedByLength(Placed):
    """The lengths are also used as they are."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        lengths = torch.ones(x.shape[0], self.count, dtype=torch.bool).sum(1)
        places = torch.arange(self.count, dtype=torch.float32)[None] * (1.0 / lengths)[:, None]
        bounds = torch.arange(1 / self.count, 1.0, 1 / self.count)
        found = self.table(torch.bucketize(places.clamp(max=1.0 - 1e-6), bounds, right=True))
        return found + x * lengths[:, None, None]


class PlacedExactly(Placed):
    """The bounds are whole numbers."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(self.count, dtype=torch.float32)[None].expand(x.shape[0], -1) * 0.5
        return x + self.table(torch.bucketize(places, torch.arange(1.0, self.count, 1.0), right=True))


def test_buckets_of_numbers_that_are_also_used_or_between_exact_bounds() -> None:
    x = torch.zeros(2, 7, 4)
    text = archspec.lift(PlacedByLength(7).eval(), (x,))
    assert "table([0, 1, 2, 3, 4, 5, 6])" in text and "int |> sum(axis = -1)" in " ".join(text.split())
    text = archspec.lift(PlacedExactly(7).eval(), (x,))
    assert "table([" not in text and "arange(6) + 1.0 <= reshape([batch, 7, 1])" in text


def test_there_may_be_as_many_buckets_as_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archspec.pytorch.lift.idioms.buckets.MAX_LISTED", 7)
    assert "table([0, 1, 2, 3, 4, 5, 6])" in archspec.lift(Placed(7).eval(), (torch.zeros(2, 7, 4),))
    monkeypatch.setattr("archspec.pytorch.lift.idioms.buckets.MAX_LISTED", 6)
    with pytest.raises(archspec.ArchError, match="more buckets with rounded bounds than can be written, in "):
        archspec.lift(Placed(7).eval(), (torch.zeros(2, 7, 4),))


class Sought(Placed):
    """The lengths are data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bounds = torch.arange(1 / self.count, 1.0, 1 / self.count)
        return x + self.table(torch.bucketize(x[..., 0], bounds))


def test_buckets_of_data_between_rounded_bounds_are_refused() -> None:
    with pytest.raises(archspec.ArchError, match="not a binary fraction"):
        archspec.lift(Sought(7).eval(), (torch.zeros(2, 7, 4),))


class Turning(nn.Module):
    """Frequencies, the first of which are in another order."""

    def __init__(self) -> None:
        super().__init__()
        steps = 500.0 ** -(torch.arange(80) / 80)
        turned = torch.cat([steps[0:44:2], steps[1:44:2], steps[44:]])
        self.register_buffer("turned", turned, persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.turned


def test_frequencies_in_turns() -> None:
    module = Turning().eval()
    text = archspec.lift(module, (torch.zeros(2, 80),))
    assert "rotary_frequencies(size = 160, theta = 500.0)" in text
    assert "slice(axis = 0, start = 1, stop = 44, step = 2)" in text
    x = torch.randn(2, 80)
    torch.testing.assert_close(archspec.to_torch(archspec.loads(text))(x), module(x))


class Cached(nn.Module):
    """Sines and cosines of positions in tables of their own."""

    def __init__(self, layout: str, width: int) -> None:
        super().__init__()
        angles = torch.outer(
            torch.arange(40), 1e4 ** -(torch.arange(width) / (width - 1 if layout == "last" else width))
        )
        match layout:
            case "halves":
                angles = torch.cat([angles, angles], -1)
            case "each twice":
                angles = angles.repeat_interleave(2, -1)
        self.cos, self.sin = angles.cos(), angles.sin()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length, width = x.shape[1], x.shape[2]
        return x * self.cos[:length, :width] + x.flip(-1) * self.sin[:length, :width]


@pytest.mark.parametrize(
    ("layout", "width", "steps"),
    [
        ("once", 8, "rotary_frequencies(size = 16, theta = 10000.0)"),
        ("once", 2, "rotary_frequencies(size = 4, theta = 10000.0)"),
        ("once", 7, "rotary_frequencies(size = 14, theta = 10000.0)"),
        ("last", 8, "arange(8) / 7"),
        ("halves", 8, "rotary_frequencies(size = 16, theta = 10000.0)"),
        ("each twice", 8, "rotary_frequencies(size = 16, theta = 10000.0)"),
    ],
)
def test_tables_of_sines_and_of_cosines(layout: str, width: int, steps: str) -> None:
    module = Cached(layout, width).eval()
    x = torch.randn(2, 9, module.cos.shape[1])
    text = archspec.lift(module, (x,))
    assert steps in text and "cos(" in text and "sin(" in text and "table" not in text
    torch.testing.assert_close(archspec.to_torch(archspec.loads(text))(x), module(x), atol=1e-5, rtol=1e-5)


def test_a_table_that_is_nearly_one_of_cosines_is_written_out() -> None:
    module = Cached("once", 2).eval()
    module.cos[30, 1] += 1e-3
    text = archspec.lift(module, (torch.randn(2, 9, 2),))
    assert "table(" in text and "cos(" not in text


class Turned(nn.Module):
    """Rotary positions by complex numbers, and operations that PyTorch defines by others."""

    def __init__(self) -> None:
        super().__init__()
        steps = 1.0 / 10000.0 ** (torch.arange(0, 8, 2).float() / 8)
        angles = torch.outer(torch.arange(64), steps).float()
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        turned = torch.view_as_real(pairs * self.turns[: x.shape[1]]).flatten(2)
        return torch.hstack([turned, x]), (x > 0) ^ (x < 1), torch.vdot(x[0, 0], x[0, 1])


@pytest.mark.slow
def test_complex_numbers_that_turn_and_composite_operations() -> None:
    text = archspec.lift(Turned().eval(), (torch.randn(3, 7, 8),))
    assert "rotary_frequencies(size = 8, theta = 10000.0)" in text and "concat(axis = 1)" in text


class Mixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real


def test_operations_on_complex_numbers_stay() -> None:
    with pytest.raises(archspec.ArchError, match="it has a Fourier transform of complex numbers"):
        archspec.lift(Mixed().eval(), (torch.randn(3, 7, 8),))


@pytest.mark.parametrize(
    "change", [lambda z: z + 2.0, lambda z: nn.functional.pad(z, (1, 1), value=2.0)], ids=["sum", "padding"]
)
def test_real_numbers_change_no_imaginary_part(change: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """What is lifted is compared with the module."""

    class Changed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.view_as_real(change(torch.view_as_complex(x)))

    assert "pick(axis = -1, index = 1)" in archspec.lift(Changed().eval(), (torch.randn(3, 7, 2),))


class Scaled(nn.Module):
    """Frequencies of rotary positions as Llama 3 scales them."""

    def __init__(self) -> None:
        super().__init__()
        own = {"rope_theta": 10000.0, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
        own |= {"high_freq_factor": 4.0, "original_max_position_embeddings": 64}
        self.config = SimpleNamespace(rope_parameters=own)
        found = 10000.0 ** (-torch.arange(8) / 8)
        turns = 64 * found / (2 * torch.pi)  # within the context
        smooth = ((turns - 1) / 3).clamp(0, 1)
        self.register_buffer("frequencies", found * (smooth + (1 - smooth) / 8), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.frequencies


def test_scaled_frequencies_are_a_function_of_the_library() -> None:
    text = " ".join(archspec.lift(Scaled().eval(), (torch.randn(2, 5, 8),)).split())
    settings = "size = 16, theta = 10000.0, factor = 8.0, low = 1.0, high = 4.0, context = 64"
    assert f"x * llama3_frequencies({settings})" in text
