"""Modules that take only multiples of a number of tokens or samples, and lengths that are not those of inputs."""

from typing import Any

import torch

nn = torch.nn


class Framed(nn.Module):
    """Frames of 80 samples, compressed, with a mask of booleans that is moved by a frame."""

    def __init__(self, samples: int = 80) -> None:
        super().__init__()
        self.samples = samples
        self.proj = nn.Linear(samples, 12)

    def forward(self, sound: Any, mask: Any) -> Any:
        h = torch.asinh(self.proj(sound.reshape(sound.shape[0], -1, self.samples)))
        return h * nn.functional.pad(mask, (1, 0))[:, :-1, None]


class Chunked(nn.Module):
    """Tokens that are padded to chunks, in which sums are taken."""

    def __init__(self, chunk: int) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.chunk = chunk

    def forward(self, ids: Any) -> Any:
        missing = (self.chunk - ids.shape[1] % self.chunk) % self.chunk
        h = nn.functional.pad(self.words(ids), (0, 0, 0, missing))
        h = h.reshape(h.shape[0], -1, self.chunk, 8)
        h = torch.cumsum(h.repeat_interleave(2, dim=-1, output_size=16), 2).reshape(h.shape[0], -1, 16)
        return h[:, : ids.shape[1]] if missing else h


class Looking(nn.Module):
    """Attention of tokens to frames."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.v, self.o = [nn.Linear(8, 8) for _ in range(4)]

    def forward(self, x: Any, frames: Any) -> Any:
        scores = self.q(self.norm(x)) @ self.k(frames).transpose(1, 2)
        return x + self.o(torch.softmax(scores.relu() + 1, -1) @ self.v(frames))


class Halved(nn.Module):
    """Tokens that look at frames, of which there are half as many as of vectors."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.conv = nn.Conv1d(6, 8, 3, stride=2, padding=1)
        self.layers = nn.ModuleList([Looking() for _ in range(2)])

    def forward(self, ids: Any, sound: Any) -> Any:
        x, frames = self.words(ids), self.conv(sound).transpose(1, 2)
        for layer in self.layers:
            x = layer(x, frames)
        return x


class Prefixed(nn.Module):
    """Queries and tokens attend to each other, and go through different layers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.q, self.k, self.of_queries, self.of_tokens = [nn.Linear(8, 8) for _ in range(4)]

    def forward(self, x: Any, count: int) -> Any:
        shares = torch.softmax(self.q(self.norm(x)) @ self.k(x).transpose(1, 2), -1)
        x = x + shares @ x
        queries, tokens = x[:, :count], x[:, count:]
        return torch.cat([self.of_queries(queries) + queries, self.of_tokens(tokens).relu() + tokens], dim=1)


class WithQueries(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.queries = nn.Parameter(torch.randn(1, 5, 8))
        self.layers = nn.ModuleList([Prefixed() for _ in range(3)])

    def forward(self, ids: Any) -> Any:
        x = torch.cat([self.queries.expand(ids.shape[0], -1, -1), self.words(ids)], dim=1)
        for layer in self.layers:
            x = layer(x, 5)
        return x


def framed():
    return Framed().eval()


def small_chunks():
    return Chunked(4).eval()


def large_chunks():
    return Chunked(16).eval()


MAMBA2 = {
    "model_type": "mamba2",
    "architectures": ["Mamba2ForCausalLM"],
    "hidden_size": 64,
    "num_heads": 8,
    "head_dim": 16,
    "state_size": 16,
    "n_groups": 1,
    "num_hidden_layers": 1,
    "vocab_size": 100,
    "chunk_size": 256,
    "time_step_limit": [0.0, {"__float__": "Infinity"}],
    "use_cache": False,
}

CASES = {
    "a length of half as many frames": (
        Halved,
        {"ids": torch.zeros(3, 7, dtype=torch.long), "sound": torch.randn(3, 6, 20)},
    ),
    "a length that adds a number": (WithQueries, {"ids": torch.zeros(3, 7, dtype=torch.long)}),
}

SOURCES = {
    "frames of samples": (":framed", "sound=real[batch,samples]", "mask=bool[batch,frames]"),
    "frames of a number of samples": (":framed", "sound=real[batch,2400]", "mask=bool[batch,30]"),
    "chunks of 4": (":small_chunks", "ids=int[batch,seq]"),
    "chunks of 16": (":large_chunks", "ids=int[batch,seq]"),
    "large chunks of an infinite limit": (MAMBA2,),
}

SLOW = "."
