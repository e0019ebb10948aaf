"""Classes with a `config.json`: what small modules could hide, such as sizes that are equal, and other layers."""

import re
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn


class Toy(nn.Module):
    """A model that embeds tokens."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.words = nn.Embedding(config.vocab_size, config.hidden_size)


class Chain(Toy):
    """Linear layers with these widths after the first one; `others` are followed by ReLU instead of tanh."""

    def __init__(self, config: Any, *widths: int, others: Any = ()) -> None:
        super().__init__(config)
        self.layers = nn.ModuleList([nn.Linear(*pair) for pair in pairwise([config.hidden_size, *widths])])
        self.others = others

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids)
        for turn, layer in enumerate(self.layers):
            x = torch.relu(layer(x)) if turn in self.others else torch.tanh(layer(x))
        return x


class Joined(Chain):
    """Two of three sizes that are equal have to be."""

    def __init__(self, config: Any) -> None:
        if config.head_dim != config.qk_rope_head_dim:
            raise ValueError("unequal sizes")
        sizes = config.qk_rope_head_dim, config.v_head_dim, config.head_dim
        super().__init__(config, *[config.num_attention_heads * size for size in sizes])


class Matched(Chain):
    """Two parts, the widths of which have to be equal, unlike their numbers of heads."""

    def __init__(self, config: Any) -> None:
        parts = config.text_config, config.image_config
        if parts[0]["hidden_size"] != parts[1]["hidden_size"]:
            raise ValueError("unequal widths")
        config.hidden_size = parts[0]["hidden_size"]
        super().__init__(config, *[2 * part["num_attention_heads"] for part in parts])


class Doubling(Chain):
    """A number that both small modules have, and others do not."""

    def __init__(self, config: Any) -> None:
        super().__init__(config, config.hidden_size)
        self.scale = 2.0 if config.hidden_size % 48 == 0 else 3.0

    def forward(self, input_ids: Any) -> Any:
        return super().forward(input_ids) * self.scale


class Norms(Chain):
    """Three norms with the same constant, of which two have it from a field each."""

    def __init__(self, config: Any) -> None:
        hidden = config.hidden_size
        super().__init__(config, int(config.ratio * hidden), hidden)
        self.first, self.second = nn.LayerNorm(hidden, config.layer_norm_eps), nn.LayerNorm(hidden, config.rms_norm_eps)
        self.third = nn.LayerNorm(hidden, 1e-5)

    def forward(self, input_ids: Any) -> Any:
        return self.third(self.second(self.first(super().forward(input_ids))))


class BranchingNorms(Norms):
    """Another function for other constants."""

    def forward(self, input_ids: Any) -> Any:
        x = super().forward(input_ids)
        return x if self.first.eps == 1e-5 else x.relu()


class PickyNorms(Norms):
    """A module for one constant only."""

    def __init__(self, config: Any) -> None:
        if config.layer_norm_eps != 1e-5:
            raise ValueError("unknown")
        super().__init__(config)


class Grouped(Chain):
    """A part has twice as many groups of heads."""

    def __init__(self, config: Any) -> None:
        heads, groups = config.num_attention_heads, 2 * config.num_key_value_heads
        if heads % groups:
            raise ValueError("no groups of equal size")
        super().__init__(config, 3 * heads, 5 * groups)


class ManyHeads(Grouped):
    def __init__(self, config: Any) -> None:
        if config.num_attention_heads < 64:
            raise ValueError("few heads")
        super().__init__(config)


class Layers(Chain):
    """One layer that small modules do not have is another one."""

    def __init__(self, config: Any) -> None:
        others = getattr(config, "full_attention_indexes", [7])
        super().__init__(config, *[config.hidden_size] * config.num_hidden_layers, others=others)


class Codes(Toy):
    """The offsets of code books in a table, whose sizes are the same in both small modules."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.codes = nn.Embedding(config.vocab_size + 12 * config.codebook_vocab_size, config.hidden_size)
        offsets = config.vocab_size + config.codebook_vocab_size * torch.arange(12)
        self.register_buffer("offsets", offsets, persistent=False)

    def forward(self, input_ids: Any) -> Any:
        return self.words(input_ids) + self.codes(input_ids[..., None] + self.offsets).sum(2)


class Tokens(Toy):
    """A number that is a field by accident."""

    def forward(self, input_ids: Any) -> Any:
        return self.words(torch.where(input_ids > 300, 0, input_ids))


class Residual(nn.Module):
    def __init__(self, hidden: int, inner: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(hidden)
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any) -> Any:
        return x + self.down(torch.relu(self.up(self.norm(x))))


class Decoder(Toy):
    """The inner size is one that no expression of the fields has."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        inner = config.intermediate_size**3 % 97 + 30
        self.layers = nn.ModuleList([Residual(config.hidden_size, inner) for _ in range(config.num_hidden_layers)])
        self.head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.head.weight = self.words.weight
        self.register_buffer("scale", torch.tensor(2.0), persistent=False)
        self.kinds = getattr(config, "layer_types", ["plain"] * config.num_hidden_layers)

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids) * self.scale
        for kind, layer in zip(self.kinds, self.layers, strict=True):
            x = layer(x) if kind == "plain" else layer(x.flip(1))
        return self.head(x)


class PickyDecoder(Decoder):
    """A module that is only built with the actual size."""

    def __init__(self, config: Any) -> None:
        if config.hidden_size != 64:
            raise ValueError("the size has to be 64")
        super().__init__(config)


class Heads(Toy):
    """A projection with twice as many groups as the configuration has, each for several heads."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.heads, self.groups = config.num_attention_heads, 2 * config.num_key_value_heads
        self.wide = nn.Linear(config.hidden_size, self.groups * config.head_dim)
        self.narrow = nn.Linear(self.heads * config.head_dim, config.hidden_size)

    def forward(self, input_ids: Any) -> Any:
        y = self.wide(self.words(input_ids)).unflatten(-1, (self.groups, -1)).transpose(1, 2)
        if self.groups < self.heads:
            y = y.repeat_interleave(self.heads // self.groups, 1)
        return self.narrow(y.transpose(1, 2).flatten(2))


class Scan(Toy):
    """A loop over tokens, with a parameter that is large in the second small module."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.experts = nn.Parameter(torch.randn(config.num_experts, 4 * config.hidden_size, config.hidden_size))

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids)
        state, states = torch.zeros_like(x[:, 0]), []
        for turn in range(x.shape[1]):
            state = torch.tanh(state + x[:, turn])
            states.append(state)
        return nn.functional.linear(torch.stack(states, 1), self.experts.sum(0))


class Choosing(nn.Module):
    """As many queries as it has are chosen among the places in an image."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.count = config, config.num_queries
        self.conv, self.score = nn.Conv2d(3, config.hidden_size, 2, stride=8), nn.Linear(config.hidden_size, 1)

    def forward(self, pixel_values: Any) -> Any:
        places = self.conv(pixel_values).flatten(2).transpose(1, 2)
        return places.gather(1, self.score(places).topk(self.count, 1).indices.expand(-1, -1, places.shape[2]))


class Scaled(nn.Module):
    def __init__(self, fields: Any) -> None:
        super().__init__()
        hidden, inner = fields["hidden_size"], fields["intermediate_size"]
        self.scale = (hidden // fields["num_attention_heads"]) ** -0.5
        self.up, self.down = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x: Any) -> Any:
        return self.down(self.up(x * self.scale).exp())


class Parts(Toy):
    """Two parts with fields of the same names and values."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        inner = config.vision_config
        self.own, self.vision = Scaled(config.to_dict()), Scaled(inner)
        self.joined = nn.Linear(config.hidden_size, inner["hidden_size"])

    def forward(self, input_ids: Any) -> Any:
        return self.vision(self.joined(self.own(self.words(input_ids))))


class Expanded(Chain):
    """Two widths that are twice another one; only that of the first layer is so because of `expand`."""

    def __init__(self, config: Any) -> None:
        if config.expand != 2:
            raise ValueError("unequal sizes")
        super().__init__(config, config.expand * config.hidden_size, config.hidden_size)


class Sounds(nn.Module):
    """A convolution in steps; no fields have the kernels of the others, but some have their values."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        hidden = config.hidden_size
        self.config = config
        self.conv = nn.Conv1d(1, hidden, config.conv_kernel, stride=config.conv_stride)
        self.wide, self.narrow = nn.Conv1d(hidden, hidden, 7), nn.Conv1d(hidden, hidden, 9)
        self.head, self.kinds = nn.Linear(hidden, config.classes), nn.Linear(hidden, config.text_config["kinds"])

    def forward(self, input_values: Any) -> Any:
        h = self.narrow(self.wide(self.conv(input_values.unsqueeze(1)).exp() - 1.0)).transpose(1, 2)
        return self.head(h), self.kinds(h.mean(1))


class Fields(Toy):
    """A parameter with the size of each field, also of those in parts and lists."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.sizes = nn.ParameterDict({name: torch.ones(size + 1) for name, size in numbers(config.to_dict())})

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids)
        for size in self.sizes.values():
            x = x * size.exp().sum()
        return x


def numbers(fields: Any, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The numbers of a configuration that are sizes of a class."""
    for name, value in sorted(fields.items()):
        if isinstance(value, dict):
            yield from numbers(value, f"{prefix}{name}_")
        elif isinstance(value, list):
            yield from numbers({str(i): item for i, item in enumerate(value)}, f"{prefix}{name}_")
        elif isinstance(value, int) and not isinstance(value, bool) and re.search(SIZE, name):
            yield f"{prefix}{name}", value


SIZE = r"size|heads|layers|experts|group|tok$|dim|rank|replace|^\d"


class Formulas(Toy):
    """Parameters whose sizes are formulas of fields, and factors that are powers of them."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        sizes = {f"size_{i}": eval(text, config.to_dict()) for i, text in enumerate(config.formulas)}
        self.sizes = nn.ParameterDict({name: torch.ones(size) for name, size in sizes.items()})
        self.factors = [eval(text, config.to_dict()) for text in getattr(config, "powers", [])]

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids)
        for size in self.sizes.values():
            x = x * size.exp().sum()
        for factor in self.factors:
            x = x.exp() * factor
        return x


class Stages(Toy):
    """Layers with the sizes of a list."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        widths = [config.hidden_size, *config.hidden_sizes]
        self.stages = nn.ModuleList([nn.Linear(*pair) for pair in pairwise(widths)])

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids)
        for stage in self.stages:
            x = stage(x).tanh()
        return x


class Reader(Toy):
    """Tokens and sounds, or tokens alone."""

    def forward(self, input_ids: Any, input_features: Any = None, attention_mask: Any = None) -> Any:
        x = self.words(input_ids)
        x = x if attention_mask is None else x * attention_mask[..., None]
        return x if input_features is None else x + input_features.mean((1, 2))[:, None, None]


class Acting(nn.Module):
    """States, actions and rewards at steps."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config
        self.states, self.actions = [nn.Linear(size, config.hidden_size) for size in (config.state_dim, config.act_dim)]
        self.rewards, self.steps = nn.Linear(1, config.hidden_size), nn.Embedding(config.steps, config.hidden_size)

    def forward(
        self, states: Any, actions: Any, rewards: Any, returns_to_go: Any, timesteps: Any, attention_mask: Any
    ) -> Any:
        x = self.states(states) + self.actions(actions) + self.rewards(rewards - returns_to_go)
        return (x + self.steps(timesteps % self.config.steps)) * attention_mask[..., None]


class Boxed(Toy):
    """Tokens with boxes, of two kinds."""

    def forward(self, input_ids: Any, bbox: Any, token_type_ids: Any = None) -> Any:
        return self.words(input_ids) * bbox.sum(-1, keepdim=True) + token_type_ids[..., None]


class Coded(Toy):
    """Several streams of codes."""

    def forward(self, input_ids: Any) -> Any:
        if input_ids.dim() != 3 or input_ids.shape[-1] != self.config.num_codebooks + 1:
            raise ValueError("not the streams")
        return self.words(input_ids).sum(2)


class Documented(nn.Module):
    """Frames of sound, whose axes are documented."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.proj = config, nn.Linear(config.num_mel_bins, config.hidden_size)

    def forward(self, input_features: Any) -> Any:
        """Apply a layer to frames.

        input_features (`torch.FloatTensor` of shape `(batch_size, sequence_length, num_mel_bins)`): frames
        """
        return self.proj(input_features)


class Squares(nn.Module):
    """Sounds as images that are as high as wide."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config, self.conv = config, nn.Conv2d(1, config.hidden_size, config.spec_size // 4)

    def forward(self, input_features: Any) -> Any:
        if input_features.dim() != 4:
            raise ValueError("not an image")
        return self.conv(input_features)


class Seeing(Toy):
    """Images that the class takes, and is not lifted with."""

    def forward(self, input_ids: Any, flattened_patches: Any = None) -> Any:
        return self.words(input_ids)


class Speaker(Toy):
    """Several sequences of codes for each item."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self.config.decoder_config = SimpleNamespace(**config.decoder_config)

    def forward(self, input_ids: Any, decoder_input_ids: Any = None) -> Any:
        if decoder_input_ids.shape[-1] != self.config.decoder_config.num_channels:
            raise ValueError("not the codes")
        return self.words(input_ids).sum(1)[:, None] + self.words(decoder_input_ids).sum(2)


class Several(Toy):
    """Several sequences for each item."""

    def forward(self, input_ids: Any) -> Any:
        batch, choices, length = input_ids.shape
        return self.words(input_ids.reshape(-1, length)).sum(1).reshape(batch, choices, -1)


class Guided(Toy):
    """Tokens for a guide, and masks over images."""

    def forward(
        self, pixel_values: Any, prompt_masks: Any, guide_input_ids: Any, guide_attention_mask: Any = None
    ) -> Any:
        guide = self.words(guide_input_ids) * guide_attention_mask[..., None]
        return (pixel_values * prompt_masks).sum((1, 2, 3))[:, None, None] + guide


class Changing(Toy):
    """A module that a call changes."""

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids)
        self.words.__class__ = nn.Bilinear
        return x


class Broken(Toy):
    def __init__(self, config: Any) -> None:
        raise ValueError("first line\n  second line")


class Unknown(Toy):
    def forward(self, x: Any, mask: Any = None) -> Any:
        return x


SMALL = {"hidden_size": 192, "vocab_size": 1000}
HEADS = {**SMALL, "num_attention_heads": 3, "qk_rope_head_dim": 64, "v_head_dim": 64, "head_dim": 64}
PART = {"hidden_size": 192, "num_attention_heads": 12}
PARTS = {name: {"model_type": name, **PART} for name in ("text_config", "image_config")}
NORMS = {**SMALL, "layer_norm_eps": 1e-5, "rms_norm_eps": 1e-5, "ratio": 2.0, "dropout_rate": 0.25}
GROUPS = {"hidden_size": 256, "vocab_size": 1000, "num_attention_heads": 64, "num_key_value_heads": 4}
DEEP = {**SMALL, "num_hidden_layers": 12}
DECODER = {"hidden_size": 64, "intermediate_size": 200, "num_hidden_layers": 5, "vocab_size": 100}
KINDS = ["plain", "turned", "plain", "turned", "plain", "plain", "turned"]
FEW = {"num_attention_heads": 16, "num_key_value_heads": 4, "head_dim": 16, "hidden_size": 64, "vocab_size": 100}
SIZES = {"hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 6}
OTHERS = {"hidden_size": 24, "intermediate_size": 20, "num_attention_heads": 4}
VISION = {"vision_hidden_size": 60, "vision_intermediate_size": 28, "vision_num_attention_heads": 3}
MIXTURE = {
    "vocab_size": 1000,
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "num_key_value_heads": 128,
    "n_routed_experts": 256,
    "n_group": 8,
    "topk_group": 4,
    "num_experts_per_tok": 8,
    "first_k_dense_replace": 3,
}
ROTARY = {"qk_rope_head_dim": 64, "v_head_dim": 256, "qk_nope_head_dim": 192, "head_dim": 192}
INNER = {"model_type": "depth", "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 1024}
TYPES = {"num_hidden_layers": 24, "layer_types": [*["window"] * 3, "full"] * 6}
KERNELS = {"conv_kernel": 3, "adapter_kernel": 7, "conv_stride": 2, "ratio": 1.0}

SCANS = {**SMALL, "num_heads": 8, "head_dim": 16, "n_groups": 2, "state_size": 12, "time_step_rank": 6}
OF_SCANS = [
    "num_heads * head_dim + 2 * n_groups * state_size",
    "2 * num_heads * head_dim + 2 * n_groups * state_size + num_heads",
    "time_step_rank + 2 * state_size",
]
PATCHES = {**SMALL, "num_channels": 3, "image_size": 32, "patch_size": 4, "temporal_patch_size": 2}
PATCHES |= {"max_num_tiles": 4, "num_frames": 16, "tubelet_size": 2}
OF_PATCHES = [
    "num_channels * patch_size ** 2",
    "num_channels * temporal_patch_size * patch_size ** 2",
    "(image_size // patch_size) ** 2 + 1",
    "max_num_tiles * ((image_size // patch_size) ** 2 + 1) * hidden_size",
    "(num_frames // tubelet_size) * (image_size // patch_size) ** 2",
]
LAYERED = {**DEEP, "hidden_size_per_layer_input": 16, "intermediate_size": 300}
OF_LAYERS = [
    "num_hidden_layers * hidden_size_per_layer_input",
    "intermediate_size + 3",
    "vocab_size + 7",
    "hidden_size // 3",
    "2 * intermediate_size + hidden_size",
]
POWERS = ["(hidden_size // 4) ** -0.5", "num_hidden_layers ** 0.5", "hidden_size ** 0.5"]

SOURCES = {
    "sizes that need not be equal": (Joined, HEADS, {"v_head_dim": 24}),
    "sizes of parts that need not be equal": (Matched, {"vocab_size": 1000, **PARTS}, {"image_num_attention_heads": 5}),
    "a number for only two sizes": (Doubling, {**SMALL, "num_attention_heads": 3}),
    "reals that are equal by accident": (
        Norms,
        NORMS,
        {"hidden_size": 24, "layer_norm_eps": 1e-3, "rms_norm_eps": 1e-2},
    ),
    "another function with other reals": (BranchingNorms, NORMS),
    "a module with certain reals": (PickyNorms, NORMS),
    "more heads than usual": (
        Grouped,
        GROUPS,
        {"hidden_size": 20, "num_attention_heads": 12, "num_key_value_heads": 3},
    ),
    "the actual heads": (ManyHeads, GROUPS),
    "a layer beyond those of small modules": (Layers, DEEP, {"hidden_size": 24}),
    "layers that are listed": (Layers, {**DEEP, "full_attention_indexes": [3, 7, 11]}, {"hidden_size": 24}),
    "a large number that follows a field": (
        Codes,
        {**SMALL, "num_attention_heads": 12, "codebook_vocab_size": 2049},
        {"codebook_vocab_size": 1000},
    ),
    "a large number that is a field by accident": (Tokens, {**SMALL, "chunk": 300}),
    "a size that no small module explains": (Decoder, DECODER, {"num_hidden_layers": 7}),
    "a module of the actual size only": (PickyDecoder, DECODER, {"num_hidden_layers": 7}),
    "layers that show no rule": (Decoder, {**DECODER, "num_hidden_layers": 7, "layer_types": KINDS}),
    "other numbers of heads": (Heads, FEW, {"num_attention_heads": 24, "num_key_value_heads": 3}),
    "a loop, and a large parameter": (Scan, {"hidden_size": 512, "num_experts": 64, "vocab_size": 100}),
    "an image with places for all queries": (Choosing, {"hidden_size": 64, "num_queries": 300}),
    "parts with fields of the same names": (
        Parts,
        {**SIZES, "vocab_size": 1000, "vision_config": {"model_type": "vision", **SIZES}},
        OTHERS | VISION,
    ),
    "a field of which no other value is known": (Expanded, {**SMALL, "expand": 2}),
    "kernels that are fields by accident": (
        Sounds,
        {"hidden_size": 64, "classes": 5, **KERNELS, "text_config": {"model_type": "text", "kinds": 6, "crop_size": 9}},
        {"hidden_size": 24, "classes": 4, "text_kinds": 9},
    ),
    "fields of experts": (Fields, MIXTURE),
    "fields of heads": (Fields, {**MIXTURE, **ROTARY}),
    "fields of heads with a part of rotary positions": (
        Fields,
        {**HEADS, "rope_parameters": {"partial_rotary_factor": 0.5}, "rotary_dim": 32},
    ),
    "fields of parts": (Fields, {**GROUPS, "inner_config": INNER}),
    "lists of sizes": (Fields, {**SMALL, "depths": [2, 2, 6, 2], "num_heads": [3, 6, 12, 24], "embed_dim": 96}),
    "lists of kinds": (Fields, {**SMALL, "text_config": {"model_type": "text", "hidden_size": 64, **TYPES}}),
    "proportions of sizes": (
        Fields,
        {"vocab_size": 1000, "hidden_size": 1024, "num_heads": 32, "head_dim": 64, "rank_dim": 192},
    ),
    **{f"the size {text}": (Formulas, {**SCANS, "formulas": [text]}) for text in OF_SCANS},
    **{f"the size {text}": (Formulas, {**PATCHES, "formulas": [text]}) for text in OF_PATCHES},
    **{f"the size {text}": (Formulas, {**LAYERED, "formulas": [text]}) for text in OF_LAYERS},
    "powers of sizes": (Formulas, {**LAYERED, "formulas": [], "powers": POWERS}),
    "lists that are sizes": (Stages, {**SMALL, "hidden_sizes": [64, 128, 256], "eos_token_id": [1, 900]}),
    "sections, and numbers of layers": (
        Fields,
        {
            **DEEP,
            "num_attention_heads": 3,
            "rope_parameters": {"rope_theta": 1e4, "mrope_section": [8, 12, 12]},
            "cross_attention_layers": [3, 7],
            "right_max_position_embeddings": 8,
            "layer_config": {"0": {"inner_size": 128}, "9": {"inner_size": 256}},
            "sliding_windows": [[16, 4]] * 12,
        },
    ),
    "tokens and sounds": (Reader, SMALL),
    "steps of an actor": (Acting, {"hidden_size": 96, "state_dim": 17, "act_dim": 6, "steps": 50}),
    "tokens with boxes": (Boxed, SMALL),
    "streams of codes": (Coded, {**SMALL, "num_codebooks": 4}),
    "frames whose axes are documented": (Documented, {"hidden_size": 96, "num_mel_bins": 40}),
    "sounds as images": (Squares, {"hidden_size": 96, "spec_size": 64, "num_mel_bins": 16}),
    "images that are left out": (Seeing, SMALL),
    "codes": (Speaker, {**SMALL, "decoder_config": {"model_type": "codes", "num_channels": 9}}),
    "several sequences": (Several, SMALL),
    "a guide": (Guided, {**SMALL, "image_size": [32, 16], "guide_config": {"model_type": "bert", "vocab_size": 9}}),
    "a class that a call changes": (Changing, SMALL),
    "a class that cannot be built": (Broken, SMALL),
    "inputs that are not known": (Unknown, SMALL),
}

SLOW = "a size|the size|lists that are|sections|powers|a module of|layers that show|other|a loop,|an image|kernels"
