"""Sequences, residuals, ties, and what the language cannot express."""

import torch


class Residual(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(30, 16)
        parts = [
            torch.nn.Sequential(torch.nn.Linear(16, 24), torch.nn.GELU(), torch.nn.Linear(24, 16)) for _ in range(3)
        ]
        self.layers = torch.nn.ModuleList(parts)
        self.head = torch.nn.Linear(16, 30, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.words(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


class Branching(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x


class Unknown(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.inv(x)


class Transforming(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.fft(x)


class Biased(torch.nn.Module):
    """Distances in a window of four by four, as Swin numbers them, and a tensor that is filled in two parts."""

    def __init__(self) -> None:
        super().__init__()
        places = torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="ij")).flatten(1)
        rows, columns = places[:, :, None] - places[:, None, :] + 3
        self.register_buffer("numbers", rows * 7 + columns, persistent=False)
        self.table = torch.nn.Parameter(torch.randn(49, 5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        both = x.new_empty(x.shape[0], 6)
        both[:, :4].copy_(x)
        both[:, 4:].copy_(x[:, :2] * 2)
        return both.sum(-1)[:, None, None, None] + self.table[self.numbers]


def tied_sequence() -> torch.nn.Module:
    module = torch.nn.Sequential(torch.nn.Embedding(30, 16), torch.nn.GELU(), torch.nn.Linear(16, 30, bias=False))
    module[2].weight = module[0].weight
    return module


def many_layers() -> torch.nn.Module:
    """Layers and functions that one line has no room to import."""
    nn = torch.nn
    layers = [nn.Linear(8, 8), nn.LayerNorm(8), nn.RMSNorm(8, 1e-6), nn.Conv1d(5, 5, 1), nn.GroupNorm(5, 5)]
    functions = [nn.ReLU(), nn.GELU(), nn.SiLU(), nn.Mish(), nn.ELU(), nn.SELU(), nn.Softsign(), nn.Tanhshrink()]
    others = [nn.Hardtanh(), nn.Hardswish(), nn.ReLU6(), nn.LeakyReLU(), nn.Hardsigmoid(), nn.GLU()]
    return nn.Sequential(*layers, *functions, *others)


IDS = torch.randint(0, 30, (2, 7))

CASES = {
    "many names of the library": (many_layers, (torch.randn(2, 5, 8),)),
    "a sequence": (
        lambda: torch.nn.Sequential(torch.nn.Linear(12, 20), torch.nn.ReLU(), torch.nn.Linear(20, 7)),
        (torch.randn(3, 12),),
    ),
    "residuals and a tied head": (Residual, {"ids": IDS}),
    "a sequence with a tied head": (tied_sequence, (IDS,)),
    "a branch on data": (Branching, (torch.randn(2, 3),)),
    "an operation that is unknown": (Unknown, (torch.randn(3, 3),)),
    "complex outputs": (Transforming, (torch.randn(2, 8),)),
    "distances in windows": (Biased, (torch.randn(3, 4),)),
}
