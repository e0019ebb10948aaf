"""Lifting: sizes that are those of a field by accident, and modules that are others at other sizes."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import archspec
from archspec.pytorch.lift.api import lift_subject
from archspec.pytorch.lift.sizes.accidents import coincidental_fields
from archspec.pytorch.lift.sources.architecture import Architecture
from archspec.pytorch.lift.sources.lifting import lift_or_replace
from archspec.pytorch.lift.sources.subjects import source_of_architecture
from archspec.pytorch.lift.subject import Subject

nn: Any = torch.nn

FIELDS = {
    "hidden_size": 64,
    "num_labels": 5,
    "conv_kernel": 3,
    "adapter_kernel": 7,
    "conv_stride": 2,
    "ratio": 1.0,
    "text_config": {"model_type": "text", "kinds": 6, "crop_size": 9},
}


class Sounds(nn.Module):
    """A convolution in steps; no fields have the kernels of the others, but some have their values."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        hidden = fields["hidden_size"]
        self.steps = fields["conv_stride"]
        self.conv = nn.Conv1d(1, hidden, fields["conv_kernel"], stride=self.steps)
        self.wide = nn.Conv1d(hidden, hidden, 7)
        self.narrow = nn.Conv1d(hidden, hidden, 9)
        self.head = nn.Linear(hidden, fields["num_labels"])
        self.kinds = nn.Linear(hidden, fields["text_config"]["kinds"])

    def forward(self, x: Any) -> Any:
        h = self.narrow(self.wide(self.conv(x.unsqueeze(1)).exp() - 1.0)).transpose(1, 2)
        return self.head(h), self.kinds(h.mean(1))


def inputs(module: Any, turn: int) -> Iterator[dict[str, Any]]:
    yield {"x": torch.zeros(((3, 80), (2, 106))[turn])}


class Branching(nn.Module):
    """Another function of short or long sequences."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__()
        self.least, self.most = least, most

    def forward(self, x: Any) -> Any:
        return x.exp() if self.least <= x.shape[1] <= self.most else x


@pytest.mark.parametrize(("least", "most", "reason"), [(6, 10**9, "at least 6"), (0, 49, "at most 49")])
def test_a_branch_on_a_size_that_the_inputs_do_not_show_is_refused(least: int, most: int, reason: str) -> None:
    given = Subject(Branching(least, most).eval(), {"x": torch.zeros(3, 11)}, {"x": torch.zeros(2, 14)})
    with pytest.raises(archspec.ArchError, match=f"only be exported where `seq` is {reason}$"):
        lift_subject(given)


class Interpolated(nn.Module):
    """A table of positions for any length: at its own length it is as it is, and doubled if `doubles`."""

    def __init__(self, doubles: bool) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 8, 20))
        self.doubles = doubles

    def forward(self, x: Any) -> Any:
        table = self.table
        if x.shape[1] != 20:
            table = nn.functional.interpolate(table, size=x.shape[1], mode="linear")
        elif self.doubles:
            table = 2 * table
        return x + table.transpose(1, 2)


def test_outputs_are_compared_at_a_size_that_a_module_has_a_branch_for() -> None:
    inputs = {"x": torch.zeros(3, 11, 8)}, {"x": torch.zeros(2, 14, 8)}
    assert "param [1, 8, 20]" in lift_subject(Subject(Interpolated(doubles=False).eval(), *inputs))
    module = Interpolated(doubles=True).eval()
    with pytest.raises(archspec.ArchError, match=r"only be exported where `seq != 20`$"):
        lift_subject(Subject(module, *inputs))


class Shifted(nn.Module):
    """Adds what follows, which is nothing for two elements: a branch at the size `seq - 1 == 1`."""

    def __init__(self, by: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8))
        self.by = by

    def forward(self, x: Any) -> Any:
        following = x[:, 1:] * self.weight
        if following.shape[1] == 1:
            following = self.by * following
        return x + nn.functional.pad(following, (0, 0, 0, 1))


def test_a_branch_for_a_part_of_a_length() -> None:
    inputs = {"x": torch.zeros(3, 11, 8)}, {"x": torch.zeros(2, 14, 8)}
    assert "seq" in lift_subject(Subject(Shifted(1.0).eval(), *inputs))
    with pytest.raises(archspec.ArchError, match=r"only be exported where `seq != 2`$"):
        lift_subject(Subject(Shifted(2.0).eval(), *inputs))


class Divided(nn.Module):
    """Heads in two parts, next to widths that are given in the same way."""

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__()
        self.head, self.part = fields["index_head_dim"], fields["rope_head_dim"]
        self.words = nn.Embedding(fields["vocab_size"], self.head)
        self.others = nn.ModuleList([nn.Linear(self.head, fields[name]) for name in ("value_head_dim", "key_head_dim")])

    def forward(self, ids: Any) -> Any:
        x = self.words(ids)
        first, second = x.split([self.part, self.head - self.part], -1)
        return torch.cat([second, first, *[other(x) for other in self.others]], -1)


@pytest.mark.slow
def test_other_sizes_are_tried_if_two_differ_alike_by_accident() -> None:
    fields = {"rope_head_dim": 64, "value_head_dim": 256, "key_head_dim": 192, "index_head_dim": 128, "vocab_size": 200}

    def ids(module: Any, turn: int) -> Iterator[dict[str, Any]]:
        yield {"ids": torch.zeros(((3, 11), (2, 14))[turn], dtype=torch.long)}

    made = Architecture("Divided", fields, lambda changed: Divided({**fields, **changed}), ids)
    text = lift_or_replace(source_of_architecture(made))
    assert "split([rope_head_dim, index_head_dim - rope_head_dim], axis = -1)" in text


@pytest.mark.slow
def test_only_sizes_that_follow_a_field_are_called_by_its_name() -> None:
    made = Architecture("Sounds", FIELDS, lambda fields: Sounds({**FIELDS, **fields}), inputs)
    text = lift_or_replace(source_of_architecture(made))
    assert "(hidden_size = 64, num_labels = 5, text_kinds = 6)" in text
    assert "Conv1d(1, hidden_size, 3, stride = 2)" in text  # the length of the output would not follow
    assert all(f"Conv1d(hidden_size, hidden_size, {kernel})" in text for kernel in (7, 9))
    assert "- 1.0" in text
    changed = {**FIELDS, "hidden_size": 24, "num_labels": 4, "text_config": {"kinds": 9}}
    other = archspec.loads(text, hidden_size=24, num_labels=4, text_kinds=9)
    assert archspec.equivalent(other, Sounds(changed).eval()).verdict in ("equal", "outputs equal")


class Widened(nn.Module):
    """Layers with two sizes that no field has, one of which is the same for all."""

    def __init__(self, hidden: int, inner: int, same: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Inner(hidden, inner + turn, same) for turn in (0, 2)])

    def forward(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return x


class Inner(nn.Module):
    def __init__(self, hidden: int, inner: int, same: int) -> None:
        super().__init__()
        self.last = nn.Linear(hidden, hidden)
        self.first, self.second = nn.Parameter(torch.zeros(inner)), nn.Parameter(torch.zeros(same))

    def forward(self, x: Any) -> Any:
        return x + self.last(x) * self.first.exp().sum().exp() + self.second.exp().sum().exp()


def test_sizes_of_no_field_have_other_names_than_those_that_layers_are_given() -> None:
    def subject(hidden: int, inner: int, same: int, second: Callable[[], Subject] | None = None) -> Subject:
        x = torch.zeros(3, hidden)
        return Subject(Widened(hidden, inner, same).eval(), {"x": x}, {"x": x[:2]}, second, {"hidden": hidden})

    text = lift_subject(subject(8, 5, 19, lambda: subject(12, 20, 11)))
    assert "block Inner(hidden, size_size, size)" in text


class Growing(nn.Module):
    """A table of positions that a call makes longer, in which later rows may turn faster."""

    def __init__(self, faster: float) -> None:
        super().__init__()
        self.words, self.faster = nn.Embedding(9, 8), faster
        self.grow(20, 1.0)

    def grow(self, rows: int, speed: float) -> None:
        steps = torch.exp(torch.arange(4).float() * -(math.log(10000) / 3))
        angles = torch.arange(rows).float()[:, None] * steps * speed
        table = torch.cat([angles.sin(), angles.cos()], 1)
        self.register_buffer("table", table.to(torch.get_default_dtype()), persistent=False)

    def forward(self, ids: Any) -> Any:
        if ids.shape[1] >= self.table.shape[0]:
            self.grow(ids.shape[1] + 1, self.faster)
        return self.words(ids) + self.table[(ids != 1).cumsum(1)]


def test_a_table_may_grow_but_not_change() -> None:
    ids, others = torch.zeros(3, 11, dtype=torch.long), torch.zeros(2, 14, dtype=torch.long)
    module = Growing(1.0).eval()
    assert "sin(" in lift_subject(Subject(module, {"ids": ids}, {"ids": others}))
    assert module.table.shape == (20, 8)
    with pytest.raises(archspec.ArchError, match=r"only be exported where `seq` is at most 19$"):
        lift_subject(Subject(Growing(1.5).eval(), {"ids": ids}, {"ids": others}))


class Grouped(nn.Module):
    """Groups of states, as many of these as a fifth of the width; a field that nothing follows is 5."""

    def __init__(self, fields: dict[str, int]) -> None:
        super().__init__()
        width, groups = fields["width"], fields["groups"]
        self.states = nn.Linear(width, groups * fields["state_size"])
        self.scores = nn.Linear(width, groups)

    def forward(self, x: Any) -> Any:
        return self.states(x), self.scores(x)


def test_a_field_is_kept_where_another_has_the_name_of_its_size() -> None:
    def subject(fields: dict[str, int], second: Callable[[], Subject] | None = None) -> Subject:
        def changed(name: str, value: int) -> Subject:
            return subject({**fields, name: value})

        x = torch.zeros(3, fields["width"])
        return Subject(Grouped(fields).eval(), {"x": x}, {"x": x[:2]}, second, fields, changed=changed)

    sizes = {"width": 70, "kernel": 5, "groups": 7, "state_size": 2}
    text = lift_subject(subject(sizes, lambda: subject({**sizes, "width": 105, "state_size": 3})))
    assert "Linear(width, groups * state_size)" in text and "kernel" not in text


class Convolved(nn.Module):
    """A convolution in groups, after a norm whose groups are its channels; both are as many in small modules."""

    def __init__(self, fields: dict[str, int]) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, 4)
        self.up = nn.Conv1d(4, fields["width"], 1)
        self.groups = fields["conv_groups"]
        self.weight = nn.Parameter(torch.randn(fields["width"], fields["width"] // self.groups, 3))

    def forward(self, x: Any) -> Any:
        return nn.functional.conv1d(self.up(self.norm(x)), self.weight.exp(), groups=self.groups)


def test_a_field_that_one_size_follows_is_no_name_for_another_that_has_its_value() -> None:
    """With `masks`, there is another fraction of the width that has this size."""
    fields = {"width": 40, "conv_groups": 4, "masks": 2}

    def subject(fields: dict[str, int], second: Callable[[], Subject] | None = None) -> Subject:
        def changed(name: str, value: int) -> Subject | None:
            return subject({**fields, name: value}) if value == 2 or name != "conv_groups" else None

        x = torch.zeros(3, 4, 11)
        return Subject(Convolved(fields).eval(), {"x": x}, {"x": x[:2]}, second, fields, changed=changed)

    text = lift_subject(subject(fields, lambda: subject({**fields, "width": 56})))
    assert "param [width, width // conv_groups, 3]" in text and "groups = conv_groups" in text
    assert "GroupNorm(4, 4" in text and "masks" not in text


class Fixed(nn.Module):
    """A table whose rows no field decides, but several have their number."""

    def __init__(self, fields: dict[str, int]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(4, fields["width"]))

    def forward(self, x: Any) -> Any:
        return x @ self.table.T


def test_a_field_is_no_name_because_another_one_of_its_value_is_none() -> None:
    fields = {"width": 70, "patch_size": 4, "count": 4}

    def subject(changed: dict[str, int], second: Callable[[], Subject] | None = None) -> Subject:
        def with_another(name: str, value: int) -> Subject | None:
            return subject({**changed, name: value}) if name != "patch_size" else None

        x = torch.zeros(3, changed["width"])
        return Subject(Fixed(changed).eval(), {"x": x}, {"x": x[:2]}, second, changed, changed=with_another)

    text = lift_subject(subject(fields, lambda: subject({**fields, "width": 105})))
    assert "param [4, width]" in text and "patch_size" not in text and "count" not in text


class Squeezed(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sum(-1, keepdim=True).squeeze()


def test_other_axes_for_a_batch_of_one_are_refused() -> None:
    with pytest.raises(archspec.ArchError, match=r"its computation differs where `batch` is 1$"):
        archspec.lift(Squeezed().eval(), (torch.zeros(3, 7, 8),))


class Overlapping(nn.Module):
    def forward(self, x: Any) -> Any:
        h = x.exp()
        h[:, 1:] += h[:, :-1]
        return h


def test_changes_that_read_what_they_change_are_refused() -> None:
    with pytest.raises(archspec.ArchError, match="its computation differs from its program"):
        archspec.lift(Overlapping().eval(), (torch.zeros(3, 7, 8),))


class Fraction(nn.Module):
    def forward(self, x: Any) -> Any:
        return x * (1 / x.shape[1])


def test_fractions_of_sizes_are_refused_with_a_reason() -> None:
    with pytest.raises(archspec.ArchError, match="it computes a root or fraction of the size of an input"):
        archspec.lift(Fraction().eval(), (torch.zeros(3, 7, 8),))


@pytest.mark.parametrize(
    ("value", "tried"), [(3, [6, 4]), (4, [8, 5, 2]), (256, [512, 257, 128]), (257, [128, 514, 258])]
)
def test_other_values_of_fields_are_larger_unless_they_are_large(value: int, tried: list[int]) -> None:
    found: list[int] = []

    def changed(name: str, other: int) -> Subject | None:
        assert name == "size"
        found.append(other)
        return None

    subject = Subject(nn.Identity(), {}, {"size": value}, changed=changed)
    assert (
        coincidental_fields('block It()(x [4]) -> [4] { return x }\nmodel "it" = It()', {"size": value}, subject)
        == set()
    )
    assert found == tried
