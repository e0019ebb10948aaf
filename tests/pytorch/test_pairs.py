"""Pairs that differ in one respect are never "equal", and each has a partner that is proven.

A row is a spec, a module or spec that is equal to it, and one that is not.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from building import prove
from small import load

torch = pytest.importorskip("torch")

import archspec
from archspec import equivalent

nn = torch.nn
Parameter, Buffer = nn.Parameter, nn.Buffer


class Made(nn.Module):
    """A function of an input and of tensors."""

    def __init__(self, function: Callable[[Any, Any], Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, x: Any) -> Any:
        return self.function(self, x)


class Masked(Made):
    def forward(self, x: Any, mask: Any) -> Any:
        return self.function(self, x, mask)  # type: ignore[call-arg]


class Pair(NamedTuple):
    """`equal` and `other` are specs, or make modules."""

    thing: str
    spec: str
    equal: Any
    other: Any


def spec(body: str, inputs: str = "x [batch, n]", outputs: str = "[batch, n]") -> str:
    head = "import std { Linear, attention }\ndim batch, seq\n"
    return f'{head}block Net(n = 4)({inputs}) -> {outputs} {{\n{body}\n}}\nmodel "net" = Net()\n'


def table(value: Any) -> Any:
    """A table that checkpoints do not have."""
    return nn.Buffer(value, persistent=False)


def hooked(module: nn.Module, hook: Any, before: bool = False) -> nn.Module:
    (module.register_forward_pre_hook if before else module.register_forward_hook)(hook)
    return module


# Tensors --------------------------------------------------------------------------------------------------------------

LINEARS = spec("return x |> a: Linear(n, n, bias = false) |> b: Linear(n, n, bias = false)")
TIED = LINEARS.replace("return", "tie b.weight = a.weight\nreturn")
UNUSED = spec("p: unused Linear(n, n)\nq: unused Linear(n, n)\nreturn x")
BUFFERS = spec("u: buffer [n]\nv: buffer [n]\nreturn x * .u + .v")
SCALE = spec("w: param [n]\nreturn x * .w")
IDS = spec("ids: buffer int [n]\nreturn x * real(.ids)")
FLAGS = spec("flags: buffer bool [n]\nreturn where(.flags, x, 0.0)")
STEPS = spec("steps: const int [n] = arange(n)\nreturn x * real(.steps)")


def linears(change: Callable[[Any], Any] | None = None) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        a, b = (nn.Linear(4, 4, bias=False) for _ in "ab")
        module = Made(lambda self, x: self.b(self.a(x)), a=a, b=b)
        if change is not None:
            change(module)
        return module

    return make


def tie(module: Any) -> None:
    module.b.weight = module.a.weight


def transpose(module: Any) -> None:
    module.b.weight = Parameter(module.a.weight.t())


def overlap(module: Any) -> None:
    base = torch.randn(5, 4)
    module.a.weight, module.b.weight = Parameter(base[:4]), Parameter(base[1:])


def divide(module: Any) -> None:
    base = torch.randn(4, 8)
    module.a.weight, module.b.weight = Parameter(base[:, :4]), Parameter(base[:, 4:])


def expand(module: Any) -> None:
    module.a.weight = Parameter(torch.randn(4, 1).expand(4, 4))


def buffers(tied: bool) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        u = Buffer(torch.ones(4))
        return Made(lambda self, x: x * self.u + self.v, u=u, v=u if tied else Buffer(torch.ones(4)))

    return make


def scaled(tensor: Any, name: str = "w") -> Callable[[], nn.Module]:
    return lambda: Made(lambda self, x: x * getattr(self, name), **{name: tensor()})


def weight(**options: Any) -> Any:
    return lambda: Parameter(torch.randn(4), **options)


TENSORS = [
    Pair("tie made", LINEARS, linears(), linears(tie)),
    Pair("tie made", BUFFERS, buffers(False), buffers(True)),
    Pair("tie made", UNUSED, UNUSED, UNUSED.replace("return", "tie q = p\nreturn")),
    Pair("tie undone", TIED, linears(tie), linears()),
    Pair("tie undone", TIED, TIED.replace("b.weight = a.weight", "a.weight = b.weight"), LINEARS),
    Pair("tie undone", UNUSED.replace("return", "tie q = p\nreturn"),
         UNUSED.replace("return", "tie p = q\nreturn"), UNUSED),
    Pair("tie transposed", TIED, linears(tie), linears(transpose)),
    Pair("tie transposed", LINEARS, linears(), linears(transpose)),
    Pair("tie overlapping", LINEARS, linears(divide), linears(overlap)),
    Pair("tie expanded", LINEARS, linears(), linears(expand)),
    Pair("tie of a table", SCALE, scaled(weight()),
         lambda: (lambda w: Made(lambda self, x: x * self.t[0], w=w, t=table(w.detach()[None])))(weight()())),
    Pair("dtype", IDS, scaled(lambda: Buffer(torch.arange(4)), "ids"),
         scaled(lambda: Buffer(torch.arange(4.0)), "ids")),
    Pair("dtype", FLAGS, lambda: Made(lambda self, x: x.where(self.flags, 0.0), flags=Buffer(torch.ones(4) > 0)),
         lambda: Made(lambda self, x: x.where(self.flags > 0, 0.0), flags=Buffer(torch.ones(4)))),
    Pair("dtype", STEPS, scaled(lambda: table(torch.arange(4)), "steps"),
         scaled(lambda: table(torch.arange(4.0)), "steps")),
    Pair("dtype", IDS, IDS, IDS.replace("buffer int", "buffer").replace("real(.ids)", ".ids")),
    Pair("kind", SCALE, scaled(weight()), scaled(lambda: Buffer(torch.randn(4)))),
    Pair("kind", SCALE.replace("param", "buffer"), scaled(lambda: Buffer(torch.randn(4))), scaled(weight())),
    Pair("kind", SCALE, SCALE, SCALE.replace("param", "buffer")),
    Pair("trainable", SCALE, scaled(weight()), scaled(weight(requires_grad=False))),
    Pair("trainable", SCALE.replace("param", "frozen param"), scaled(weight(requires_grad=False)), scaled(weight())),
    Pair("trainable", LINEARS, linears(), linears(lambda module: module.b.requires_grad_(False))),
    Pair("trainable", UNUSED, UNUSED, UNUSED.replace("q: unused", "q: frozen unused")),
]  # fmt: skip

# Elements of tables ---------------------------------------------------------------------------------------------------

NUMBERS = [1000.0, 1.0, 0.5, 1e-4]
LISTED = spec(f"w: const [n] = table({NUMBERS})\nreturn x / .w")
SMALL = spec("w: const [] = 0.000001\nreturn x / .w")
COMPUTED = spec(f"return x * table({NUMBERS})")
LARGE = spec("w: const int [n] = arange(n) * 1_000_000\nreturn int(x) + .w", outputs="int [batch, n]")
CHOSEN = spec("w: const bool [n] = arange(n) > 2\nreturn where(.w, x, -x)")
BILLIONS = spec("return x + table([3, 1_000_000_000, 4, 5])", "x int [batch, n]", "int [batch, n]")


def over(change: float, place: int = 3) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        values = torch.tensor(NUMBERS, dtype=torch.float64)
        values[place] *= 1 + change
        return Made(lambda self, x: x / self.w, w=table(values.float()))

    return make


def added(plus: int) -> Callable[[], nn.Module]:
    values = torch.arange(4) * 1_000_000
    values[3] += plus
    return lambda: Made(lambda self, x: x.long() + self.w, w=table(values))


ELEMENTS = [
    Pair("element by 1e-5", LISTED, over(1e-7), over(1e-5)),
    Pair("element by 1e-5", LISTED, over(-1e-7, 0), over(-1e-5, 0)),
    Pair("element by 1e-5", SMALL, lambda: Made(lambda self, x: x / self.w, w=table(torch.tensor(1e-6))),
         lambda: Made(lambda self, x: x / self.w, w=table(torch.tensor(1.00001e-6)))),
    Pair("element by 1e-5", COMPUTED, lambda: Made(lambda self, x: x * torch.tensor(NUMBERS)),
         lambda: Made(lambda self, x: x * torch.tensor([*NUMBERS[:3], 1.00001e-4]))),
    Pair("element by 1", LARGE, added(0), added(1)),
    Pair("element by 1", LARGE, LARGE, LARGE.replace("* 1_000_000", "* 1_000_000 + 1")),
    Pair("element by 1", CHOSEN, lambda: Made(lambda self, x: x.where(self.w, -x), w=table(torch.arange(4) > 2)),
         lambda: Made(lambda self, x: x.where(self.w, -x), w=table(torch.arange(4) > 1))),
    Pair("element by 1", BILLIONS, lambda: Made(lambda self, x: x + torch.tensor([3, 10**9, 4, 5])),
         lambda: Made(lambda self, x: x + torch.tensor([3, 10**9 + 1, 4, 5]))),
]  # fmt: skip

# Outputs --------------------------------------------------------------------------------------------------------------

TWO = spec("return x * 2.0, x * 3.0", outputs="(start [batch, n], end [batch, n])")
ONE = spec("return x * 2.0", outputs="(y [batch, n])")


class Named(NamedTuple):
    start: Any
    end: Any


class Turned(NamedTuple):
    end: Any
    start: Any


OUTPUTS = [
    Pair("names of outputs", TWO, lambda: Made(lambda self, x: {"start": x * 2, "end": x * 3}),
         lambda: Made(lambda self, x: {"end": x * 2, "start": x * 3})),
    Pair("names of outputs", TWO, lambda: Made(lambda self, x: {"end": x * 3, "start": x * 2}),
         lambda: Made(lambda self, x: {"start": x * 2, "last": x * 3})),
    Pair("names of outputs", TWO, lambda: Made(lambda self, x: Named(x * 2, x * 3)),
         lambda: Made(lambda self, x: Turned(x * 2, x * 3))),
    Pair("names of outputs", TWO, TWO, TWO.replace("start", "last")),
    Pair("names of outputs", ONE, lambda: Made(lambda self, x: {"y": x * 2}),
         lambda: Made(lambda self, x: {"z": x * 2})),
    Pair("other outputs", ONE, lambda: Made(lambda self, x: (x * 2, None)), lambda: Made(lambda self, x: (x * 2, 3))),
]  # fmt: skip

# State ----------------------------------------------------------------------------------------------------------------

DOUBLED = spec("return x * 2.0")


class Kept:
    def __init__(self) -> None:
        self.calls, self.last = 0, None


def stateful(function: Callable[[Any, Any], Any], **parts: Any) -> Callable[[], nn.Module]:
    """A module with parts that it changes, in which a call of `function` is 2 the first time."""
    return lambda: Made(lambda self, x: x * function(self, x), **{name: part() for name, part in parts.items()})


def counts(self: Any, x: Any) -> int:
    self.calls += 1
    return 2 if self.calls < 9 else 3


def lists(self: Any, x: Any) -> int:
    self.seen.append(1)
    return 2 if len(self.seen) < 9 else 3


def fills(self: Any, x: Any) -> Any:
    if "y" not in self.seen:
        self.seen["y"] = x
    return 2 + 0.1 * self.seen["y"].mean()


def collects(self: Any, x: Any) -> int:
    self.seen.add(len(self.seen))
    return 2 if len(self.seen) < 9 else 3


def adds(self: Any, x: Any) -> int:
    self.count.add_(1)
    return 2


def replaces(self: Any, x: Any) -> int:
    self.last = x if self.last is None else torch.cat([self.last, x])
    return 2


def nests(self: Any, x: Any) -> int:
    self.kept.calls += 1
    return 2 if self.kept.calls < 9 else 3


def takes(self: Any, x: Any) -> int:
    return 2 if next(self.turns) < 9 else 3


class Shared(Made):
    calls = 0

    def forward(self, x: Any) -> Any:
        type(self).calls += 1
        return x * 2


def recalls(self: Any, x: Any) -> Any:
    before, self.last = self.last, x.sum()
    return 2 if before is None else 2 + 0.1 * before


def settles(self: Any, x: Any) -> int:
    if len(self.seen) < x.shape[0]:
        self.seen[:] = range(9)
    return 2


STATE = [
    Pair("state: attribute", DOUBLED, stateful(lambda self, x: self.calls, calls=lambda: 2),
         stateful(counts, calls=int)),
    Pair("state: list", DOUBLED, stateful(settles, seen=list), stateful(lists, seen=list)),
    Pair("state: dict", DOUBLED, stateful(lambda self, x: len(self.seen), seen=lambda: {1: 2, 3: 4}),
         stateful(fills, seen=dict)),
    Pair("state: set", DOUBLED, stateful(lambda self, x: len(self.seen), seen=lambda: {1, 2}),
         stateful(collects, seen=set)),
    Pair("state: buffer", DOUBLED, stateful(lambda self, x: 2, count=lambda: table(torch.zeros(()))),
         stateful(adds, count=lambda: table(torch.zeros(())))),
    Pair("state: replaced tensor", DOUBLED, stateful(lambda self, x: 2, last=lambda: None),
         stateful(replaces, last=lambda: None)),
    Pair("state: what was before", DOUBLED, stateful(lambda self, x: 2, last=lambda: None),
         stateful(recalls, last=lambda: None)),
    Pair("state: object", DOUBLED, stateful(lambda self, x: 2 + self.kept.calls, kept=Kept),
         stateful(nests, kept=Kept)),
    Pair("state: iterator", DOUBLED, stateful(lambda self, x: 2, turns=lambda: iter(range(99))),
         stateful(takes, turns=lambda: iter(range(99)))),
    Pair("state: class", DOUBLED, lambda: Made(lambda self, x: x * 2), lambda: Shared(lambda self, x: x)),
]  # fmt: skip

# Hooks, and what PyTorch computes otherwise where it is not exported --------------------------------------------------

HOOKS = [
    Pair("hooks", DOUBLED, lambda: hooked(Made(lambda self, x: x), lambda part, given, out: out * 2),
         lambda: hooked(Made(lambda self, x: x * 2), lambda part, given, out: out * 2)),
    Pair("hooks", LINEARS, lambda: hooked(linears()(), lambda part, given, out: None),
         linears(lambda module: hooked(module.a, lambda part, given, out: -out))),
    Pair("hooks", LINEARS, linears(lambda module: hooked(module.b, lambda part, given: None, True)),
         linears(lambda module: hooked(module.b, lambda part, given: (given[0].relu(),), True))),
    Pair("exports", DOUBLED, lambda: Made(lambda self, x: x * 2),
         lambda: Made(lambda self, x: x * 2 if torch.compiler.is_exporting() else x * 3)),
]  # fmt: skip

# Attention in which rows are hidden as a whole ------------------------------------------------------------------------

MASKED = "x [batch, seq, n], mask bool [batch, seq, seq]"
HIDDEN = spec("return matmul(softmax(where(mask, matmul(x, transpose(x)), -inf)), x)", MASKED, "[batch, seq, n]")
LOWEST = HIDDEN.replace("-inf", "lowest")


def hidden(number: float, after: Callable[[Any, Any], Any] = lambda shares, mask: shares) -> Callable[[], nn.Module]:
    def attend(self: Any, x: Any, mask: Any) -> Any:
        return after((x @ x.mT).masked_fill(~mask, number).softmax(-1), mask) @ x

    return lambda: Masked(attend)  # type: ignore[arg-type]


LEAST = torch.finfo(torch.float32).min
ROWS = [
    Pair("hidden rows", HIDDEN, hidden(-torch.inf), hidden(LEAST)),
    Pair("hidden rows", LOWEST, hidden(LEAST), hidden(-torch.inf)),
    Pair("hidden rows", LOWEST, hidden(LEAST), hidden(LEAST, lambda shares, mask: shares * mask)),
    Pair("hidden rows", HIDDEN, HIDDEN, HIDDEN.replace("-inf", "-1e9")),
]

# Numbers --------------------------------------------------------------------------------------------------------------


def whole(body: str) -> str:
    return spec(f"return {body}", "x int [batch, n]", "int [batch, n]")


def over_integers(function: Callable[[Any], Any]) -> Callable[[], nn.Module]:
    return lambda: Made(lambda self, x: function(x))


of = over_integers
INTEGERS = [
    Pair("division", whole("x // 3"), of(lambda x: x // 3), of(lambda x: torch.div(x, 3, rounding_mode="trunc"))),
    Pair("division", whole("x // -3"), of(lambda x: torch.div(x, -3, rounding_mode="floor")), of(lambda x: -(x // 3))),
    Pair("division", whole("x % 3"), of(lambda x: x % 3), of(lambda x: x.fmod(3))),
    Pair("division", whole("x % -3"), of(lambda x: torch.remainder(x, -3)), of(lambda x: x % 3)),
    Pair("division", whole("x // 3 * 3 + x % 3"), whole("x"), whole("x // 3 * 3 + abs(x) % 3")),
]  # fmt: skip

SQUARE = spec("return x + reshape([n, 1])(arange(n))", "x [batch, n, n]", "[batch, n, n]")
KEPT = spec("return x - sum(axis = 1, keep = true)(x)")
OUTER = spec("return reshape([batch, n, 1])(x) - reshape([batch, 1, n])(x)", outputs="[batch, n, n]")
BROADCAST = [
    Pair("broadcasting", SQUARE, of(lambda x: x + torch.arange(4)[:, None]), of(lambda x: x + torch.arange(4))),
    Pair("broadcasting", KEPT, of(lambda x: x - x.sum(1, keepdim=True)), of(lambda x: x - x.sum(0, keepdim=True))),
    Pair("broadcasting", OUTER, of(lambda x: x[..., None] - x[:, None]), of(lambda x: x[:, None] - x[..., None])),
    Pair("broadcasting", KEPT, KEPT, KEPT.replace("axis = 1", "axis = 0")),
]

POSITIVE = spec("return where(x >= 0.0, x, 1.0)")
FIRST = spec("return where(arange(n) < 2, x, 0.0)")
CAUSAL = spec("return where(reshape([seq, 1])(arange(seq)) >= arange(seq), x, 0.0)", "x [seq, seq]", "[seq, seq]")
BOUND = spec("return min(max(x, -1.0), 1.0)")
ROLLED = spec("return x + reshape([seq, 1])(real(roll(5, axis = 0)(arange(seq))))", "x [seq, n]", "[seq, n]")


def wrapped(shift: int) -> str:
    i = "arange(seq)"
    where = f"where({i} < {shift}, {i} + seq - {shift}, {i} - {shift})"
    return ROLLED.replace("roll(5, axis = 0)(arange(seq))", where)


def longer(text: str) -> str:
    return text.replace("[seq", "[8 * seq").replace("(seq)", "(8 * seq)").replace("+ seq", "+ 8 * seq")


EDGES = [
    Pair("edge", POSITIVE, of(lambda x: torch.where(x >= 0, x, 1.0)), of(lambda x: torch.where(x > 0, x, 1.0))),
    Pair("edge", FIRST, of(lambda x: torch.where(torch.arange(4) < 2, x, 0.0)),
         of(lambda x: torch.where(torch.arange(4) <= 2, x, 0.0))),
    Pair("edge", CAUSAL, of(lambda x: x.tril()), of(lambda x: x.tril(-1))),
    Pair("edge", BOUND, of(lambda x: x.clamp(-1, 1)), of(lambda x: x.clamp(-1, 1.0001))),
    Pair("edge", POSITIVE, POSITIVE.replace("x >= 0.0, x, 1.0", "x < 0.0, 1.0, x"), POSITIVE.replace(">=", ">")),
    Pair("edge of a roll", longer(ROLLED), longer(wrapped(5)), longer(wrapped(6))),
    Pair("edge of a roll", ROLLED, ROLLED, wrapped(5)),
    Pair("edge of a roll", ROLLED, of(lambda x: x + torch.arange(x.shape[0]).roll(5, 0)[:, None]),
         of(lambda x: x + torch.arange(x.shape[0]).roll(-5, 0)[:, None])),
]  # fmt: skip

PAIRS = [*TENSORS, *ELEMENTS, *OUTPUTS, *STATE, *HOOKS, *ROWS, *INTEGERS, *BROADCAST, *EDGES]


def made(side: Any) -> Any:
    return load(side) if isinstance(side, str) else side()


def test_there_are_sixty_pairs() -> None:
    assert len(PAIRS) >= 60


def is_quick(turn: int) -> bool:
    """Whether a pair is the first about a thing, or of specs alone."""
    pair = PAIRS[turn]
    first = next(other for other in PAIRS if other.thing == pair.thing)
    return pair is first or isinstance(pair.other, str)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param(pair, id=f"{pair.thing} {turn}", marks=() if is_quick(turn) else pytest.mark.slow)
        for turn, pair in enumerate(PAIRS)
    ],
)
def test_what_differs_in_one_respect_is_not_equal(pair: Pair) -> None:
    found = equivalent(load(pair.spec), made(pair.equal))
    assert found.verdict == "equal", found
    found = equivalent(load(pair.spec), made(pair.other))
    assert found.verdict != "equal", found


@pytest.mark.slow
@pytest.mark.parametrize("pair", STATE, ids=[pair.thing for pair in STATE])
def test_modules_with_state_are_not_lifted(pair: Pair) -> None:
    inputs = {"x": torch.randn(3, 4)}
    assert "return x * 2" in archspec.lift(pair.equal().eval(), inputs)
    with pytest.raises(archspec.ArchError, match="cannot lift"):
        archspec.lift(pair.other().eval(), inputs)


class Encoder(nn.Module):
    def __init__(self, nested: bool) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=nested)

    def forward(self, x: Any, pad: Any) -> Any:
        return self.enc(x, src_key_padding_mask=pad)


@pytest.mark.slow
def test_nested_tensors_of_an_encoder_are_refused() -> None:
    inputs = {"x": torch.randn(3, 5, 8), "pad": torch.arange(5).expand(3, 5) > 3}
    text = archspec.lift(Encoder(False).eval(), inputs)
    assert equivalent(load(text), Encoder(False)).verdict == "equal"
    found = equivalent(load(text), Encoder(True))
    assert found.verdict == "not proven" and "nested tensors" in found.reason
    with pytest.raises(archspec.ArchError, match="nested tensors"):
        archspec.lift(Encoder(True).eval(), inputs)


class Padded(nn.Module):
    """One part of a transformer with a padding mask, for which PyTorch has a kernel of its own in inference."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Any, pad: Any) -> Any:
        if isinstance(self.part, nn.MultiheadAttention):
            return self.part(x, x, x, key_padding_mask=pad, need_weights=False)[0]
        return self.part(x, src_key_padding_mask=pad)


FAST = {
    "layer": ("_transformer_encoder_layer_fwd", lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)),
    "layer that normalizes first": (
        "_transformer_encoder_layer_fwd",
        lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=True),
    ),
    "attention": ("_native_multi_head_attention", lambda: nn.MultiheadAttention(8, 2, batch_first=True)),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("kernel", "part"), FAST.values(), ids=FAST)
def test_the_kernels_that_users_run_are_compared(
    kernel: str, part: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A layer of an encoder, and attention, alone: what is proven is what PyTorch computes in inference."""
    module = Padded(part()).eval()
    inputs = {"x": torch.randn(3, 5, 8), "pad": torch.arange(5).expand(3, 5) > torch.tensor([[4], [2], [0]])}
    model = load(archspec.lift(module, inputs))
    assert equivalent(model, module).verdict == "equal"

    original = getattr(torch, kernel)
    calls: list[str] = []

    def counted(*args: Any, **kwargs: Any) -> Any:
        calls.append(kernel)
        return original(*args, **kwargs)

    monkeypatch.setattr(torch, kernel, counted)
    built = archspec.to_torch(model).eval()
    built.load_state_dict(module.state_dict())
    with torch.inference_mode():
        ours, theirs = built(**inputs), module(**inputs)
    assert calls == [kernel] and torch.allclose(ours, theirs, atol=1e-6)  # at padded places, too

    def deviating(*args: Any, **kwargs: Any) -> Any:
        found = original(*args, **kwargs)
        return (
            tuple(None if item is None else item * 1.5 for item in found) if isinstance(found, tuple) else found * 1.5
        )

    monkeypatch.setattr(torch, kernel, deviating)
    assert equivalent(model, module).verdict == "different"
    with pytest.raises(archspec.ArchError, match="cannot lift"):
        archspec.lift(module, inputs)


@pytest.mark.parametrize(("table", "test"), [("bool [n] = arange(n) > 2", ".c"), ("int [n] = arange(n)", ".c > 2")])
def test_generated_files_with_tables_of_any_type_are_proven(table: str, test: str) -> None:
    assert not prove(spec(f"w: param [n]\nc: const {table}\nreturn where({test}, x, -x) * .w")).status
