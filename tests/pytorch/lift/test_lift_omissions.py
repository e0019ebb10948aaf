"""Lifting loses nothing without a word: what is frozen, arguments, formulas, inputs and the reasons of refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from torch import nn

import archspec
from archspec import ArchError
from archspec.pytorch.calls.registry import CALLS
from archspec.pytorch.lift import api
from archspec.pytorch.lift.check import check
from archspec.pytorch.lift.sources import examples
from archspec.pytorch.lift.sources.lifting import lift_source, lift_with_notes
from archspec.testing import main

MODULES = '''
import math, os, sys
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


def rounded_up(width=32, state=8):
    return Low(width, math.ceil(width / 16), state).eval()


def at_least(width=40, state=3):
    return Low(width, max(16, width // 4), state).eval()


def at_most(width=40, state=3):
    return Low(width, min(64, 4 * width), state).eval()


def even(width=32, heads=4, state=3):
    return Low(width, width // heads // 2 * 2, state).eval()


def stated(width=32, heads=4, dropout=0.1, activation="relu", seed=3):
    return Low(width, width // heads, 2).eval()


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


def gelu_layers(width=16, layers=2):
    return Parts(width, layers).eval()


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


def pairs(width=16, depth=2):
    return Two(width, depth).eval()


class Printing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Linear(width, 3 * width)
        print("made")
        sys.__stdout__.write("made\\n")
        os.write(1, b"made\\n")

    def forward(self, x):
        print("called")
        return self.up(x)


def prints(width=8):
    return Printing(width).eval()


class Filling(nn.Module):
    """A change in place, so that the program is made anew."""

    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, input, max):
        y = self.up(input) + max
        y[:, 0] = 0.0
        return y


def fills():
    return Filling().eval()


class Transposed(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2).contiguous().view(x.shape[0], x.shape[1], 8)


def transposes():
    return Transposed().eval()


class Both(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.words, self.patch = nn.Embedding(50, width), nn.Linear(12, width)

    def forward(self, ids, patches=None):
        h = self.words(ids)
        return h if patches is None else h + self.patch(patches).mean(1, keepdim=True)


def both(width=16):
    return Both(width).eval()


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


def closed():
    return Closed().eval()


class Flagged(nn.Module):
    def forward(self, x):
        return nn.functional.scaled_dot_product_attention(x, x, x, is_causal=x.shape[1] > 1)


def flagged():
    return Flagged().eval()


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


def keeping():
    return Keeping().eval()


class Scaled(nn.Module):
    """A table of angles of which the slowest are scaled: its values are within 6e-6 of those of all angles."""

    def __init__(self):
        super().__init__()
        speed = 1 / 500000.0 ** (torch.arange(0, 8, 2).float() / 8)
        speed = torch.where(2 * math.pi / speed > 8192, speed / 32.0, speed)
        self.register_buffer("cos", (torch.arange(64)[:, None] * speed.repeat(2)).cos(), persistent=False)

    def forward(self, x):
        return x * self.cos[: x.shape[1]]


def scaled():
    return Scaled().eval()


class Transposing(nn.ConvTranspose1d):
    """Rows of eight channels; what it adds to the end of its results is not in the language."""

    def __init__(self):
        super().__init__(8, 8, 3, stride=2, padding=1, output_padding=1, groups=4)

    def forward(self, x):
        return super().forward(x.transpose(1, 2))


def transposing():
    return Transposing().eval()


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


def bucketed(heads=4, buckets=32):
    return Bucketed(heads, buckets).eval()
'''

Lift = Callable[..., str]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "modules.py"
    path.write_text(MODULES)
    return str(path)


@pytest.fixture
def lift(file: str) -> Lift:
    return lambda factory, *inputs: lift_source(f"{file}:{factory}", inputs)


# What is frozen -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factory", "expected", "frozen"),
    [
        (
            "first_frozen",
            [
                "frozen Embedding(50, width)",
                "frozen Layer(..) for i in 0..2",
                "|> layers[i]: Layer(..) for i in 2..layers",
            ],
            3040,
        ),
        ("every_second_frozen", ["frozen Layer(..) if i % 2 == 0 else layers[i]: Layer(..)"], 3360),
        ("all_frozen", ["frozen Layer(..) for i in 0..layers", "head:      frozen Linear"], 4210),
        (
            "trained_biases",
            ["up.weight:   frozen param [2 * width, width]", "up.bias:     param [2 * width]"],
            3968,
        ),
    ],
)
def test_what_is_frozen_stays_frozen(factory: str, expected: list[str], frozen: int, lift: Lift) -> None:
    spec = lift(factory, "ids=int[batch,seq]")
    assert all(text in spec for text in expected), spec
    params = archspec.loads(spec).params
    assert (params.frozen, params.total) == (frozen, params.trainable + frozen)
    module = archspec.to_torch(archspec.loads(spec))
    assert sum(item.numel() for item in module.parameters() if not item.requires_grad) == frozen


def test_a_spec_that_trains_what_is_frozen_is_refused() -> None:
    module = nn.Linear(4, 4, bias=False).eval().requires_grad_(False)
    layer = "layer L(x [n, 4]) -> [n, 4] {\n  weight: param [4, 4]\n  return linear(x, .weight)\n}"
    text = f'dim n\n{layer}\nmodel "L" = L()\n'
    with pytest.raises(Exception, match=r"different tensors: .*`weight` is `frozen param"):
        check(text, {}, module, None)  # pyright: ignore[reportArgumentType]


# Formulas and arguments -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("factory", ["rounded_up", "at_least", "at_most"])
def test_a_formula_that_holds_by_accident_is_a_number(factory: str, lift: Lift) -> None:
    spec = lift(factory, "x=real[batch,seq,width]")
    model = archspec.loads(spec)
    width = 32 if factory == "rounded_up" else 40
    assert [*model.hyperparameters] == ["state"] and spec.splitlines()[1].startswith(
        f"# Not followed: width = {width} ("
    )
    namespace: dict[str, Any] = {}
    exec(MODULES, namespace)
    module = namespace[factory](state=5)
    assert archspec.loads(spec, state=5).params.total == sum(item.numel() for item in module.parameters())


def test_losing_two_arguments_does_not_lose_the_third(lift: Lift) -> None:
    assert [*archspec.loads(lift("even", "x=real[batch,seq,width]")).hyperparameters] == ["state"]


def test_every_argument_that_is_not_followed_is_named(file: str) -> None:
    spec, notes = lift_with_notes(f"{file}:stated", ["x=real[batch,seq,width]"])
    assert [*archspec.loads(spec).hyperparameters] == ["width", "heads"]
    expected = [
        "Not followed: dropout = 0.1, activation = relu (no integer)",
        "Not followed: seed = 3 (no shape follows it)",
    ]
    assert spec.splitlines()[1:3] == [f"# {line}." for line in expected]
    assert [note.message for note in notes] == expected and {note.severity for note in notes} == {"warning"}


def test_layers_with_numbers_in_float32_are_followed(lift: Lift) -> None:
    spec = lift("gelu_layers", "x=real[batch,seq,width]")
    assert [*archspec.loads(spec).hyperparameters] == ["width", "layers"]
    assert "h []" not in spec and "tanh(sqrt(0.6366197466850281) * h)" in spec


def test_buckets_of_distances_are_read(lift: Lift) -> None:
    spec = lift("bucketed", "x=real[batch,seq,8]")
    assert archspec.loads(spec).params.total == 4 * 32 and archspec.to_torch(archspec.loads(spec))


def test_a_spec_can_be_built(lift: Lift) -> None:
    spec = lift("pairs", "x=real[batch,seq,width]")
    assert archspec.to_torch(archspec.loads(spec, width=8)) and "# Not followed: depth = 2" in spec


def test_fields_that_are_not_followed_are_named(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    path = tmp_path / "config.json"
    path.write_text(
        '{"model_type": "audio-spectrogram-transformer", "architectures": ["ASTModel"], "hidden_size": 32,'
        '"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "max_length": 64,'
        '"num_mel_bins": 32, "patch_size": 8, "frequency_stride": 8, "time_stride": 8, "initializer_range": 0.02}'
    )
    spec = lift_source(str(path))
    assert "# Not followed: initializer_range = 0.02 (no integer).\n" in spec
    assert "(input_values [batch, 64, 32])" in spec  # as the class documents it


@pytest.mark.slow
def test_frozen_positions_of_a_configuration(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {f"{side}_{name}": 2 for side in ("encoder", "decoder") for name in ("layers", "attention_heads")}
    config = transformers.MarianConfig(
        **sizes,
        d_model=32,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        vocab_size=100,
        max_position_embeddings=50,
        pad_token_id=99,
        decoder_start_token_id=99,
        architectures=["MarianMTModel"],
    )
    config.save_pretrained(tmp_path)
    params = archspec.loads(lift_source(str(tmp_path / "config.json"))).params
    assert params.frozen == 2 * 50 * 32
    with torch.device("meta"):
        module = transformers.MarianMTModel(config)
    assert params.total == sum(tensor.numel() for tensor in module.parameters())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Llama", "Mixtral"])
def test_language_models_are_lifted_without_their_cache(name: str, tmp_path: Path) -> None:
    """`use_cache` is on by default, and experts count their tokens with `histc`."""
    transformers = pytest.importorskip("transformers")
    architecture = f"{name}ForCausalLM"
    sizes = {"num_local_experts": 4, "sliding_window": None} if name == "Mixtral" else {}
    config = getattr(transformers, f"{name}Config")(**{**TEXT, **sizes}, architectures=[architecture])
    config.save_pretrained(tmp_path)
    spec = lift_source(str(tmp_path / "config.json"))
    with torch.device("meta"):
        module = getattr(transformers, architecture)(config)
    assert archspec.loads(spec).params.total == sum(tensor.numel() for tensor in module.parameters())


# Inputs ---------------------------------------------------------------------------------------------------------------


def test_inputs_that_are_left_out_are_named(lift: Lift) -> None:
    assert "\n# Left out: patches (it can do without).\n" in lift("both", "ids=int[batch,seq]")


def test_a_class_that_takes_images_is_not_lifted_without() -> None:
    class Seeing(nn.Module):
        def forward(self, input_ids: Any, pixel_values: Any = None, input_features: Any = None) -> None: ...

    with pytest.raises(ArchError, match=r"cannot lift `Seeing`: it also takes images \(`pixel_values`\), of which no"):
        examples.check_contents("Seeing", Seeing(), ["input_ids"])
    with pytest.raises(ArchError, match=r"it also takes sound \(`input_features`\)"):
        examples.check_contents("Seeing", Seeing(), ["input_ids", "pixel_values"])
    examples.check_contents("Seeing", Seeing(), ["input_ids", "pixel_values", "input_features"])

    class Reading(nn.Module):
        def forward(self, input_ids: Any, flattened_patches: Any = None, input_features_mask: Any = None) -> None: ...

    with pytest.raises(ArchError, match=r"it also takes images \(`flattened_patches`\)"):
        examples.check_contents("Reading", Reading(), ["input_ids"])
    examples.check_contents("Reading", Reading(), ["input_ids", "flattened_patches"])


TEXT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": 100,
    "max_position_embeddings": 64,
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "patch_size": 4,
    "image_size": 16,
}
SEEING = {
    "Mistral3": {
        "text_config": {**TEXT, "model_type": "mistral"},
        "vision_config": {**VISION, "model_type": "pixtral", "head_dim": 8},
    },
    "GraniteDocling": {
        "text_config": TEXT,
        "vision_config": {**VISION, "out_hidden_size": 32, "scale_factor": 2, "deepstack_visual_indexes": [0]},
    },
    "SmolVLM": {
        "text_config": {**TEXT, "model_type": "llama", "pad_token_id": 0},
        "vision_config": VISION,
        "scale_factor": 2,
        "image_token_id": 5,
        "pad_token_id": 0,
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEEING)
def test_a_configuration_keeps_its_images(name: str, tmp_path: Path) -> None:
    """A type of `transformers` with a tower for images is lifted with images, or refused because of them."""
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, f"{name}Config", None)
    if config is None:
        pytest.skip(f"transformers has no {name}")
    config(**SEEING[name], architectures=[f"{name}ForConditionalGeneration"]).save_pretrained(tmp_path)
    try:
        spec = lift_source(str(tmp_path / "config.json"))
    except ArchError as error:
        assert "it also takes images (`pixel_values`), of which no example" in error.diagnostics[0].message
    else:
        assert "pixel_values" in archspec.loads(spec).inputs


def test_inputs_may_be_called_like_functions_of_python(lift: Lift) -> None:
    spec = lift("fills", "input=real[batch,seq,8]", "max=real[batch,seq,8]")
    assert "block Filling(input [batch, seq, 8], max [batch, seq, 8])" in spec


# What is printed ------------------------------------------------------------------------------------------------------


def test_what_a_module_prints_is_not_in_the_spec(file: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lift", f"{file}:prints", "--input", "x=real[batch,width]"]) == 0
    output, errors = capfd.readouterr()
    assert output.startswith("# Printing: lifted from Printing.\n") and "made" not in output and "called" not in output
    assert "made" in errors and "called" in errors
    spec = Path(file).with_name("prints.arch")
    spec.write_text(output)
    main(["verify", str(spec), "--module", f"{file}:prints"])
    output, errors = capfd.readouterr()
    assert output.startswith("Printing and Printing\n") and "made" not in output and "made" in errors


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factory", "reason"),
    [
        ("transposes", "it can only be exported where `8%seq != 0`"),
        ("closed", "it has a branch for `seq == 32`, where its outputs cannot be compared: "),
        (
            "flagged",
            "torch.export fails: scaled_dot_product_attention(): argument 'is_causal' must be bool, not SymBool",
        ),
        ("keeping", "`forward` creates `bias`, which later calls read; create it in the constructor"),
        ("scaled", "the constant `cos` of the shape [64, 8] has no known formula"),
        ("transposing", "it pads the result of a transposed convolution"),
    ],
)
def test_refusals_have_true_reasons(factory: str, reason: str, lift: Lift) -> None:
    with pytest.raises(ArchError) as caught:
        lift(factory, "x=real[batch,seq,8]")
    assert f"`: {reason}" in caught.value.diagnostics[0].message


def test_errors_of_archspec_are_refusals_with_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.relu()

    def failing(*_: object) -> str:
        raise KeyError("input")

    line = Net.forward.__code__.co_firstlineno
    monkeypatch.setattr(api, "_write_spec", failing)
    with pytest.raises(ArchError) as caught:
        archspec.lift(Net().eval(), (torch.ones(2, 3),))
    (found,) = caught.value.diagnostics
    assert found.message == f"cannot lift `Net`: archspec finds no spec for it, in test_lift_omissions.py:{line}"
    assert found.help is not None and "KeyError" not in found.help


def test_operations_that_fail_are_refusals_with_a_place(monkeypatch: pytest.MonkeyPatch) -> None:

    class Net(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.relu()

    def failing(*_: object) -> str:
        raise ZeroDivisionError

    monkeypatch.setitem(CALLS, "relu", failing)
    with pytest.raises(
        ArchError, match=r"`aten.relu` has no normal form with these arguments, in .*test_lift_omissions.py:\d+"
    ):
        archspec.lift(Net().eval(), (torch.ones(2, 3),))
