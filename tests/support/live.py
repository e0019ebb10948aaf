"""A live model of `transformers` against the spec of its configuration."""

import contextlib
import tempfile
from collections.abc import Generator
from typing import Any
from unittest.mock import patch

import safetensors
from drawn_configs import Drawn, draw_inputs, state_of, torch, transformers
from hints import hints, live_inputs, live_output, overrides
from small import live_form, live_names

import archspec

Table = dict[str, tuple[tuple[int, ...], list[str], bool]]
Rows = list[tuple[str, tuple[int, ...], Any, bool]]
HIDDEN_BY_ROUNDING = 1e-6

transformers.modeling_outputs.MoeCausalLMOutputWithPast.image_outputs = None
"""Version 5.24 reads this from the outputs of the decoder of a model with images, which do not have it."""


def table(tensors: Rows) -> Table:
    """For each name its shape, all names of its tensor, and whether that is trained."""
    groups: dict[Any, list[str]] = {}
    for name, _, same, _ in tensors:
        groups.setdefault(same, []).append(name)
    return {name: (shape, sorted(groups[same]), trainable) for name, shape, same, trainable in tensors}


def compare_rows(ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raise AssertionError with the first tensors that differ."""
    more = {name: row for name, row in ours.items() if theirs.get(name) != row}
    less = {name: row for name, row in theirs.items() if ours.get(name) != row}
    assert ours == theirs, (
        f"{len(more)} of the spec: {[*more.items()][:3]}; {len(less)} of transformers: {[*less.items()][:3]}"
    )


def live_table(live: Any) -> Table:
    """Tensors without elements, such as those of no register tokens, are left out: no spec can have them."""
    named = [each for each in live.named_parameters(remove_duplicate=False) if each[1].numel()]
    return table([(name, tuple(tensor.shape), id(tensor), tensor.requires_grad) for name, tensor in named])


def spec_table(model: archspec.Model) -> Table:
    names = live_names(model)
    return table([(names[t.name], t.shape, names[t.tied_to or t.name], t.trainable) for t in model.tensors])


def live_buffers(live: Any) -> dict[str, tuple[int, ...]]:
    """The buffers that a checkpoint holds."""
    state = live.state_dict()
    return {name: tuple(tensor.shape) for name, tensor in live.named_buffers() if name in state}


def spec_buffers(model: archspec.Model) -> dict[str, tuple[int, ...]]:
    names = live_names(model)
    return {names[buffer.name]: buffer.shape for buffer in model.buffers}


def stored(model: archspec.Model) -> dict[str, tuple[int, ...]]:
    """The tensors of a file of weights, a tied one under its first name."""
    return {t.name: t.shape for t in (*model.tensors, *model.buffers) if not getattr(t, "tied_to", None)}


@contextlib.contextmanager
def in_float64() -> Generator[None]:
    """Let what a live model computes in float32 stay in float64, which rounding to float32 would hide."""
    cast, to, retype = torch.Tensor.float, torch.Tensor.to, torch.Tensor.type
    softmax, arange, default = torch.nn.functional.softmax, torch.arange, torch.get_default_dtype()
    product = torch.Tensor.__matmul__

    def as_float(self: Any, *args: Any, **options: Any) -> Any:
        return self if self.dtype == torch.float64 else cast(self, *args, **options)

    def to_other(self: Any, *args: Any, **options: Any) -> Any:
        if self.dtype == torch.float64 and (torch.float32 in args or options.get("dtype") == torch.float32):
            args = tuple(torch.float64 if each is torch.float32 else each for each in args)
            options = {name: torch.float64 if each is torch.float32 else each for name, each in options.items()}
        if self.dtype == torch.int64 and options.get("dtype") == torch.float32:
            options["dtype"] = torch.float64
        return to(self, *args, **options)

    def as_type(self: Any, *args: Any) -> Any:
        return self if self.dtype == torch.float64 and args == (torch.float32,) else retype(self, *args)

    def matmul(self: Any, other: Any) -> Any:
        """With what integers became in float32, which PyTorch would refuse."""
        mixed = {self.dtype, other.dtype} == {torch.float32, torch.float64}
        return product(self.double(), other.double()) if mixed else product(self, other)

    def wide_softmax(x: Any, *args: Any, **options: Any) -> Any:
        return softmax(x, *args, **(options | {"dtype": None} if x.dtype == torch.float64 else options))

    def wide_arange(*args: Any, **options: Any) -> Any:
        is_narrow = options.get("dtype") == torch.float32
        return arange(*args, **(options | {"dtype": torch.float64} if is_narrow else options))

    with (
        patch.multiple(torch.Tensor, float=as_float, to=to_other, type=as_type, __matmul__=matmul),
        patch.object(torch.nn.functional, "softmax", wide_softmax),
        patch.object(torch, "arange", wide_arange),
    ):
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(default)


class Pair:
    """The live model of a drawn configuration, and the module generated from its spec, with the same weights."""

    def __init__(self, drawn: Drawn, seed: int = 0) -> None:
        torch.manual_seed(seed)
        self.drawn = drawn
        with in_float64():
            self.live = drawn.live(drawn.config).double().eval()
        self.model = drawn.load()

    def run(self) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The inputs, and the outputs of the spec and of the live model by name."""
        self.module = archspec.to_torch(self.model).double().eval()
        names = self.live.state_dict()
        with torch.no_grad():
            for tensor in self.live.parameters():
                tensor.normal_(0.0, 0.3)
            for name, tensor in self.live.named_buffers():
                if name in names and tensor.is_floating_point():
                    tensor.uniform_(0.1, 0.5)
            self.module.load_state_dict(state_of(self.model, self.live))
        inputs, type = draw_inputs(self.drawn, [*self.model.inputs]), self.drawn.family.type
        with in_float64():
            expected = self.live(**live_inputs(torch, type, self.drawn.config, inputs))
        outputs = self.module(**inputs)._asdict()
        return inputs, outputs, {name: live_output(type, expected, name) for name in outputs}

    def compare(self) -> None:
        """Raise AssertionError where tables, buffers, outputs or gradients differ."""
        compare_rows(spec_table(self.model), live_table(self.live))
        assert self.model.params.total == sum(p.numel() for p in self.live.parameters())
        compare_rows(spec_buffers(self.model), live_buffers(self.live))
        inputs, outputs, expected = self.run()
        assert outputs
        only_real = hints(self.drawn.family.type).get("compare") == "real"
        mask = inputs.get("decoder_attention_mask", inputs.get("attention_mask")) if only_real else None
        for name, value in outputs.items():
            assert value.shape == expected[name].shape
            if not value.is_floating_point():  # codes
                assert torch.equal(value, expected[name]), f"output {name} differs"
                continue
            assert value.dtype == torch.float64
            one, other = value, expected[name]
            if mask is not None and value.shape[:2] == mask.shape:
                one, other = one[mask.bool()], other[mask.bool()]
            worst, scale = float((one - other).detach().abs().max()), max(1.0, float(one.detach().abs().max()))
            assert worst <= HIDDEN_BY_ROUNDING * scale, f"output {name} differs by {worst:.1e}, of {scale:.1e}"
        self.compare_gradients(outputs, expected, mask)

    def compare_gradients(self, outputs: dict[str, Any], expected: dict[str, Any], mask: Any) -> None:
        """Of the sum of all outputs, each with weights."""
        for values, module in ((outputs, self.module), (expected, self.live)):
            torch.manual_seed(0)
            total = torch.zeros((), dtype=torch.float64)
            for value in (each for each in values.values() if each.is_floating_point()):
                weights = torch.randn(value.shape, dtype=torch.float64)
                kept = mask is not None and value.shape[:2] == mask.shape
                total = total + ((value * weights)[mask.bool()] if kept else value * weights).sum()
            module.zero_grad()
            total.backward()
        names = live_names(self.model)
        theirs = dict(self.live.named_parameters(remove_duplicate=False))
        tables = (each for each in self.live.modules() if isinstance(each, torch.nn.Embedding))
        unchanged = {id(each.weight): each.padding_idx for each in tables}
        for name, parameter in self.module.named_parameters():
            live = theirs[names[name]]
            one, other = (torch.zeros_like(each) if each.grad is None else each.grad for each in (parameter, live))
            if hints(self.drawn.family.type).get("rescales") and not torch.equal(parameter, live):
                other = other * (live / parameter).detach()
            if unchanged.get(id(live)) is not None:  # the row of padding, which no spec keeps as it is
                one, other = (
                    each.clone().index_fill(0, torch.tensor(unchanged[id(live)]), 0.0) for each in (one, other)
                )
            one, other = (each[other.isfinite()] for each in (one, other))  # of Longformer some are NaN
            scale = max(1.0, float(other.abs().max())) if len(other) else 1.0
            limit = 10 * HIDDEN_BY_ROUNDING * scale  # angles of rotations stay in float32
            assert torch.allclose(one, other, rtol=0.0, atol=limit), f"the gradient of {name}"


def compare_defaults(type: str, architecture: str) -> None:
    """Compare the tables of a class with the default configuration, without weights."""
    config = transformers.AutoConfig.for_model(type, **hints(type).get("defaults", {}))
    with torch.device("meta"):
        live = getattr(transformers, architecture)(config)
    written = {**config.to_diff_dict(), "model_type": type, "architectures": [architecture]}
    model = archspec.load(written, **live_form(written))
    compare_rows(spec_table(model), live_table(live))
    compare_rows(spec_buffers(model), live_buffers(live))


def published(name: str) -> str:
    """The name of a tensor with a norm of its weight, which PyTorch's first implementation gave it."""
    for number, letter in enumerate("gv"):
        name = name.replace(f"parametrizations.weight.original{number}", f"weight_{letter}")
    return name


def compare_published(pair: Pair) -> None:
    """Compare the names and shapes of a file that `transformers` writes, which are those of published files."""
    if not hints(pair.drawn.family.type).get("published", True):
        return
    with tempfile.TemporaryDirectory() as folder:
        pair.live.save_pretrained(folder)
        with safetensors.safe_open(f"{folder}/model.safetensors", "pt") as file:
            written = {published(name): tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    type, config = pair.drawn.family.type, pair.drawn.config
    left_out = pair.live._keys_to_ignore_on_save or ()
    ours = stored(archspec.load(pair.drawn.path, **overrides(type, config)))
    compare_rows({name: shape for name, shape in ours.items() if name not in left_out}, written)
