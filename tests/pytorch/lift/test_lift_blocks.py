"""Lifting: what blocks are given and lend, loops over layers and lengths, and modules for some lengths only."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from builders import builder, given

import archspec
from archspec.pytorch.lift import api, capture
from archspec.pytorch.lift.api import lift_subject
from archspec.pytorch.lift.capture import dimensions
from archspec.pytorch.lift.check import TooLargeToRunError
from archspec.pytorch.lift.definitions.runs import find_layer_runs
from archspec.pytorch.lift.subject import Subject
from archspec.pytorch.values.arguments import UntranslatableError
from archspec.pytorch.values.values import Value

nn = torch.nn
F = nn.functional
X = torch.linspace(-1, 1, 80).reshape(2, 5, 8)


def lifted(module: nn.Module, *inputs: Any) -> str:
    return " ".join(archspec.lift(module.eval(), inputs).split())


# Blocks ---------------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("is_tensor", "inputs", "applied"),
    [
        (True, "(x [batch, seq, 8], t [seq, 1])", "first: FirstBlock()(x, exp(.scale))"),
        (False, "(x [batch, 5, 8])", "first: FirstBlock()(x)"),
    ],
)
def test_blocks_compute_what_is_of_positions_alone(is_tensor: bool, inputs: str, applied: str) -> None:
    text = lifted(Passing(is_tensor), X)
    assert f"block FirstBlock{inputs} ->" in text and applied in text


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


def test_layers_that_only_others_apply_are_declared() -> None:
    text = lifted(Lending(), X, X + 1)
    assert "block Inner2(" in text and text.count("first: Linear(8, 8) if true return") == 1
    assert "first: Linear(8, 8) if false return" in text and ".layers.0.first(x) |> tanh" in text


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


def test_inputs_with_dimensions_come_before_those_with_sums_of_them() -> None:
    text = lifted(Starting(), X)
    assert "block Pairing(y [batch, seq, 8], x [batch, seq + 1, 8]) -> [batch, seq, 8] {" in text
    assert "first: Pairing()(x, h)" in text


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


def test_layers_that_others_apply_are_declared_in_each_block_of_a_list() -> None:
    text = lifted(LendingEach(), X, X + 1)
    assert "layers[i]: LayersFeeding for i in 0..2" in text and "|> .layers[i](_, y) for i in 0..2" in text
    assert text.count(" if ") == text.count("fc1: Linear(8, 8) if true return") == 1
    assert "block OthersFeeding(x [batch, seq, 8], y [batch, seq, 8]) -> [batch, seq, 8] { fc1.weight: unused" in text
    assert "role" not in text


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


def test_masks_have_the_names_of_those_of_numbers() -> None:
    text = lifted(Encoder(), X, torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]))
    assert "block Masked(x [batch, seq, 8], attention_mask bool [batch, 1, 1, seq])" in text
    assert "mask = key_mask(keep) return x |> layers[i]: Masked()(_, mask) for i in 0..2" in text


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


def test_masks_have_the_names_of_those_that_they_are_broadcast_to() -> None:
    y, keep = torch.randn(2, 7, 8), torch.ones(2, 7, dtype=torch.int64)
    text = lifted(Decoder(), X, y, keep)
    assert "other_mask bool [batch, 1, 1," in text and "own_mask" not in text


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


def test_norms_and_rotations_that_are_written_out() -> None:
    norm = nn.Sequential(nn.Linear(8, 8), Standard())
    assert '|> "1": LayerNorm(8, 0.0001, bias = false)' in lifted(norm, X)
    text = lifted(Rotated(), torch.linspace(-1, 1, 240).reshape(2, 3, 5, 8))
    assert "return rotate(x, cos(angles), sin(angles))" in text


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


def test_modules_that_are_a_layer_and_a_function() -> None:
    text = lifted(nn.Sequential(Own(), Wave(), nn.Mish()), X)
    assert (
        'h = exp(input) |> "0": Linear(8, 6)' in text
        and "wave = sin(h) * cos(h) return mish(wave + tanh(wave))" in text
    )


# Layers one after the other -------------------------------------------------------------------------------------------


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


def test_values_that_are_joined_for_each_layer() -> None:
    joined = "concat(axis = -1)(slice(axis = -1, start = 3)(h), slice(axis = -1, stop = 3)(h))"
    assert f"for i in 1..3 {{ h = {joined} |> layers[i]: Sequential |> + h }}" in lifted(Joined(), X)


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        ([(), (), ()], [(0, 1, 2)]),
        ([("m",), ("m",), ()], [(0, 1)]),
        ([(), ("m",), ("m",)], [(1, 2)]),
        ([("m",), ("m", "n"), ("m",)], [(0, 1, 2)]),
        ([("m",), ("n",), ("m",)], [(0, 1, 2)]),
        ([("m",), ("n",), ("n",)], [(1, 2)]),
    ],
)
def test_layers_in_a_run_have_as_many_inputs(arguments: list[tuple[str, ...]], runs: list[tuple[int, ...]]) -> None:
    b = builder()
    inputs = {name: given(b, name, (2, 3)) for name in "xmn"}
    values = [inputs["x"]]
    for turn, names in enumerate(arguments):
        args = [values[-1], *[inputs[name] for name in names]]
        frame, array = b.frame, inputs["x"].array
        values.append(
            Value("Layer", args, array=array, dtype="real", frame=frame, kind="block", address=f"layers.{turn}")
        )
    found = find_layer_runs(values[1:], values[-1:], lambda value: value.kind, "")
    assert [tuple(values.index(value) - 1 for value in run.values) for run in found.values()] == runs


ALL, TURNS, OTHER = "layers[i]", "layers.{}", "xs.{}"


@pytest.mark.parametrize(
    ("kinds", "given_to", "addresses", "runs"),
    [
        ("AAA", "", TURNS, [("0-2", ALL, 0, "")]),
        ("AB", "", TURNS, []),
        ("AAB", "", TURNS, [("0-1", ALL, 0, "")]),
        ("ABB", "", TURNS, [("1-2", ALL, 1, "")]),
        ("AABB", "", TURNS, [("0-1", ALL, 0, ""), ("2-3", ALL, 2, "")]),
        ("ABA", "", TURNS, [("0-2", ALL, 0, "010")]),
        ("ABABAB", "", TURNS, [("0-5", ALL, 0, "010101")]),
        ("ABAAB", "", TURNS, [("0-4", ALL, 0, "01001")]),
        ("ABBABB", "", TURNS, [("0-5", ALL, 0, "011011")]),
        ("AAABAAAB", "", TURNS, [("0-7", ALL, 0, "00010001")]),
        ("CABAB", "", TURNS, [("1-4", ALL, 1, "0101")]),
        ("ABCABC", "", TURNS, []),
        ("AABBA", "", TURNS, [("0-1", ALL, 0, ""), ("2-3", ALL, 2, "")]),
        ("AAAA", "mnmn", TURNS, [("0-3", ALL, 0, "0101")]),
        ("AAAAAA", "mnpmnp", TURNS, [("0-5", ALL, 0, "012012")]),
        ("AAAAAAAA", "mnpqmnpq", TURNS, [("0-7", ALL, 0, "01230123")]),
        ("AAAAAAAAAA", "mnpqrmnpqr", TURNS, []),
        ("ABAB", "mnmn", TURNS, [("0-3", ALL, 0, "0101")]),
        ("ABABAB", "mnpmnp", TURNS, []),
        ("ABAB", "mnmm", TURNS, []),
        ("AAAA", "", "layers.{}.norm", [("0-3", "layers[i].norm", 0, "")]),
        ("AAAA", "", "layers.1", [("0-3", "layers.1", 0, "")]),
        ("ABAB", "", "layers.1", []),
        ("AAAA", "", "{}", []),
        ("AAAA", "", [TURNS, TURNS, OTHER, OTHER], [("0-1", ALL, 0, ""), ("2-3", "xs[i]", 2, "")]),
        ("ABAB", "", [TURNS, TURNS, OTHER, OTHER], []),
    ],
)
def test_layers_that_alternate_are_a_run(
    kinds: str, given_to: str, addresses: str | list[str], runs: list[tuple[str, str, int, str]]
) -> None:
    b = builder()
    inputs = {name: given(b, name, (2, 3)) for name in "xmnpqr"}
    values = [inputs["x"]]
    for turn, name in enumerate(kinds):
        args = [values[-1], *([inputs[given_to[turn]]] if given_to else [])]
        address = (addresses if isinstance(addresses, str) else addresses[turn]).format(turn)
        array = inputs["x"].array
        values.append(Value(name, args, array=array, dtype="real", frame=b.frame, kind="block", address=address))
    found = find_layer_runs(values[1:], values[-1:], lambda value: value.op, "")
    assert [*found] == [run.values[-1] for run in found.values()]
    assert runs == [
        (
            f"{values.index(run.values[0]) - 1}-{values.index(run.values[-1]) - 1}",
            run.address,
            run.start,
            "".join(map(str, run.kinds)),
        )
        for run in found.values()
    ]


# Loops over a length --------------------------------------------------------------------------------------------------


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


def test_states_that_become_the_same_value() -> None:
    loop = "for t in 0..seq { g = tanh(h * 0.5 + g + pick(axis = 1, index = t)(x)) y = collect(axis = 1)(g) h = g }"
    assert loop in lifted(Loop("equal"), X)


def test_states_that_are_swapped_are_for_one_length() -> None:
    text = lifted(Loop("swapped"), X)
    assert "block Loop(x [batch, 5, 8])" in text and "pick(axis = 1, index = 3)(x)" in text and "for t" not in text


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


def test_loops_in_turn() -> None:
    text = lifted(Twice(), X)
    assert text.count("for t in 0..seq {") == 2 and "pick(axis = 1, index = t)(y)" in text


def test_what_cannot_be_written_with_loops_is_for_one_length(monkeypatch: pytest.MonkeyPatch) -> None:
    program_of = capture.build_program

    def without_loops(*args: Any) -> Any:
        *_, loops, _ = args
        if loops:
            raise UntranslatableError("not with loops")
        return program_of(*args)

    monkeypatch.setattr(capture, "build_program", without_loops)
    assert "block Loop(x [batch, 5, 8])" in lifted(Loop("equal"), X)
    with pytest.raises(archspec.ArchError, match=r"cannot lift `Block`: not with loops$"):
        lifted(Block(), X, X)


def test_a_second_module_with_loops_has_to_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[nn.Module] = []

    def check_size(module: nn.Module) -> None:
        checked.append(module)
        raise TooLargeToRunError("too large")

    monkeypatch.setattr(api, "check_size", check_size)
    other = Loop("equal").eval()

    def subject(module: nn.Module) -> Subject:
        return Subject(module.eval(), {"x": X}, {"x": torch.ones(3, 7, 8)}, lambda: Subject(other, {"x": X}))

    with pytest.raises(archspec.ArchError, match=r"too large$"):
        lift_subject(subject(Loop("equal")))
    assert checked == [other]


# Multiples ------------------------------------------------------------------------------------------------------------


class Framed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1, 4).sum(-1)


def test_lengths_may_be_multiples_of_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = Subject(Framed().eval(), {"x": torch.ones(3, 12)}, {"x": torch.ones(2, 20)})
    monkeypatch.setattr(capture, "MAX_MULTIPLE", 4)
    assert "block Framed(x [batch, 4 * seq]) -> [batch, seq]" in lift_subject(subject)
    monkeypatch.setattr(capture, "MAX_MULTIPLE", 3)
    with pytest.raises(archspec.ArchError, match=r"it can only be exported where `batch\*\(seq%4\) == 0`$"):
        lift_subject(subject)


@pytest.mark.parametrize(
    ("lengths", "multiples", "size", "number"),
    [
        ((24, 36), {}, "seq", 24),
        ((24, 36), {"seq": 12}, "12*seq", 4),
        ((12, 36), {"seq": 12}, "12*seq", 4),
        ((25, 36), {"seq": 12}, "12*seq", 4),
        ((96, 36), {"seq": 12}, "12*seq", 8),
        ((61, 36), {"seq": 12}, "12*seq", 6),
        ((24, 36), {"other": 12}, "seq", 24),
    ],
)
def test_there_are_a_few_multiples_and_no_other_dimension_of_that_size(
    lengths: tuple[int, int], multiples: dict[str, int], size: str, number: int
) -> None:
    inputs = [{"x": torch.ones(batch, length, 8)} for batch, length in zip((3, 2), lengths, strict=True)]
    types, sizes = dimensions(*inputs, multiples)
    assert [str(part) for part in types["x"].shape] == ["batch", size, "8"]
    assert sizes == {"batch": 3, "seq": number}


class Switching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        self.layer.train()
        return self.layer(x)


def test_a_module_that_a_call_changes_is_refused() -> None:
    with pytest.raises(archspec.ArchError, match=r"a call changes its attribute `layer\.training`$"):
        lifted(Switching(), X)
