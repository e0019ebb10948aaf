"""The stand-in for torch, expression by expression: shapes, element types and refusals are those of PyTorch."""

from typing import Any

import pytest

from archspec.codegen.stand_in import recording
from archspec.codegen.stand_in.modules import Module
from archspec.ir.ops import OpError

real = pytest.importorskip("torch")

KINDS = {real.float32: "real", real.float64: "float64", real.int64: "int", real.bool: "bool"}


def names(torch: Any, functional: Any) -> dict[str, Any]:
    made = {
        "x": torch.empty((2, 3, 4)),
        "ids": torch.zeros((5, 2), dtype=torch.int64),
        "flags": torch.zeros((2, 3), dtype=torch.bool),
        "one": torch.empty((2, 1, 4)),
        "image": torch.empty((2, 6, 9)),
        "w": torch.empty((4, 6, 3)),
    }
    return {"torch": torch, "nn": torch.nn, "F": functional, **made}


THEIRS = names(real, real.nn.functional)
OURS = names(recording.torch, recording.torch.nn.functional)


def shown(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [shown(item) for item in value]
    kinds = KINDS if isinstance(value, real.Tensor) else {getattr(recording.torch, k): v for k, v in OWN.items()}
    return tuple(value.shape), kinds[value.dtype], bool(value.requires_grad)


OWN = {"float32": "real", "float64": "float64", "int64": "int", "bool": "bool"}

EXPRESSIONS = (
    """
x[0]|x[-2]|x[1, 2]|x[..., 1]|x[..., None, 1:3]|x[None]|x[:, 0]|x[:, None, 1:, ::2]|x[None, ..., 0, :]|x[ids % 2]
x.squeeze(1)|one.squeeze(1)|one.squeeze(-2)|x.unsqueeze(0)|x.unsqueeze(-1)|x.unsqueeze(2)|x.unsqueeze(-2)
x.flatten(0, 1)|x.flatten(1, -1)|x.unflatten(2, (2, 2))|x.unflatten(-1, (-1, 2))|x.expand(5, -1, -1, 4)
one.expand(-1, 3, -1)|x.new_full((3, 2), 1.0)|ids.new_full((3,), 1)|x.narrow(2, 1, 2)|x.narrow(-2, 0, 3)
x.clone()|ids.clone()|x.long()|flags.long()|x.to(torch.float64)|flags.to(torch.int64)
torch.stack([x, x], 0)|torch.stack([x, x, x], -1)|torch.stack([ids, ids], 1)|torch.stack([x, x], dim=2)
torch.sort(x, dim=1, descending=True, stable=True)|torch.sort(ids, dim=0, descending=False, stable=True)
F.gelu(x)|F.gelu(x, approximate="tanh")|F.relu(x)|F.silu(x)|torch.floor(x)
F.pad(x, (1, 2))|F.pad(x, (0, 1, 2, 3))|F.pad(flags, (1, 1))|torch.cat([x, x, x], dim=1)|torch.cat([ids, ids], dim=-1)
F.pad(ids, (0, 2), value=7)|F.pad(x, (0, 0, 1, 0), value=0.5)
torch.fft.fftn(x, dim=(1, 2)).real|torch.fft.fftn(x, dim=(0,)).real
F.layer_norm(x, (4,), None, None, 1e-5)|F.layer_norm(x, (4,), torch.empty((4,)), torch.empty((4,)), 1e-5)
torch.full((2, 3), 1.0)|torch.full((2,), 3)|torch.full((2,), True)|torch.full((), 2.0, dtype=torch.float64)
torch.full((2,), 1.0, dtype=torch.bool)|torch.tensor(3)|torch.tensor(((1, 2), (3, 4)))|torch.tensor(2.5)
torch.tensor((1.0, 2.0), dtype=torch.float64)|torch.tensor(True)|torch.arange(5)|torch.arange(5, dtype=torch.float32)
F.conv1d(image, w)|F.conv1d(image, w, None, stride=2, padding=1)|F.conv1d(image, w, torch.empty((4,)), dilation=2)
F.conv_transpose1d(image, torch.empty((6, 5, 3)), stride=2)|nn.Parameter(x)|nn.Parameter(x, requires_grad=False)
nn.init.xavier_uniform_(torch.empty((3, 2)))|nn.init.zeros_(torch.empty((3,)))|x.requires_grad_(False)
F.scaled_dot_product_attention(x, x, torch.empty((2, 3, 7)))|torch.where(flags, 1.0, torch.empty((2, 3)))
torch.empty((0, 2))|torch.zeros((3, 0))|x.flatten(-2, -1)|x.flatten(1, 1)|x.flatten(0, -1)|x.unflatten(0, (1, 2))
x.unflatten(1, (3, -1))|x.unflatten(-2, (1, -1, 1))|x.squeeze(-1)|one.squeeze(0)|x.expand(-1, -1, -1)
torch.empty((3,)).expand(2, 3)|torch.empty((1, 3)).expand(5, 2, -1)|F.pad(x, (1, 0, 0, 0, 2, 3))|F.pad(ids, (3, 1))
torch.stack([x], -4)|torch.stack([x, x], -2)|torch.stack([flags, flags, flags], 2)|x[..., 0:0]|x[1:, ..., None]
x[None, 0, ..., None]|x[-1, -3, -4]|x[..., None]|x[0:2, ..., ::3]|torch.full((0,), 1.0)|torch.full((), 3)
torch.tensor(((1.0, 2.0),))|torch.tensor((True, False))|torch.tensor(((True, False), (True, True)))|torch.arange(0)
torch.empty((), dtype=torch.float64) + x|x + torch.empty((3, 1), dtype=torch.float64)|x.to(torch.float64) * x|x / 2
torch.empty((), dtype=torch.float64) * torch.empty(())|x - 1|1 - x|x == x|ids != ids|flags & flags|-x|-ids|x < 0|x ** 2
F.conv2d(torch.empty((2, 6, 9, 8)), torch.empty((4, 3, 2, 2)), groups=2, padding=(1, 0), stride=(2, 1))
F.conv3d(torch.empty((1, 1, 5, 6, 7)), torch.empty((2, 1, 3, 2, 1)))|F.conv1d(image, torch.empty((9, 2, 3)), groups=3)
F.conv_transpose2d(torch.empty((2, 6, 5, 4)), torch.empty((6, 3, 3, 2)), stride=2, padding=1)
torch.empty((2,)).requires_grad_()|torch.empty((2,)).requires_grad_(False)|ids.requires_grad_(False)
F.max_pool1d(image, 2, stride=2, padding=1)|F.avg_pool1d(image, 3, stride=1, padding=0)|x.sum(1, keepdim=True)|x.amax(0)
x.argmax(-1, keepdim=True)|x.clamp(min=0.0)|x.clamp(max=1.0)|F.linear(x, torch.empty((5, 4)), torch.empty((5,)))
F.embedding(ids, torch.empty((7, 3)))|torch.minimum(x, one)|x.permute(2, 0, 1)|x.transpose(-1, 0)|x.reshape(4, 6)
torch.cat([x, one], dim=1)|F.group_norm(image, 3, None, None, 1e-5)
torch.split(x, (3,), dim=1)|torch.split(x, (1, 2), dim=1)|x.reshape((4, 6))|x.reshape(24)|x.reshape((24,))
F.max_pool2d(torch.empty((2, 6, 9, 8)), 2, stride=2, padding=1)
F.max_pool3d(torch.empty((2, 3, 4, 5, 6)), 2, stride=1)
F.avg_pool2d(torch.empty((2, 6, 9, 8)), (2, 3), stride=2, padding=0)
F.avg_pool3d(torch.empty((2, 3, 4, 5, 6)), 3, stride=1)
""".strip()
    .replace("\n", "|")
    .split("|")
)

REFUSED = (
    """
x[2]|x[-3]|x[:, 3]|x["a"]|x[1.5]|torch.empty((-1, 2))|torch.empty((1.5,))|ids.requires_grad_()|nn.Parameter(ids)
x.unflatten(1, (2, 2))|x.unflatten(2, (-1, 3))|nn.init.xavier_uniform_(torch.empty((3,)))
F.conv1d(torch.empty((6, 9, 1, 1)), w)|nn.GroupNorm(2, 3)|nn.Conv1d(3, 4, 2, groups=2)|nn.Conv1d(4, 3, 2, groups=2)
nn.Conv2d(2, 2, (1, 2, 3)).weight.shape[4:][3]|torch.stack([x, one], 0)|torch.maximum(ids, ids, ids)
x[:, :, 4]|x[0, 0, -5]|x.expand(3, 3, 4)|x.expand(2, 3)|x.narrow(2, 3, 2)|x.unflatten(0, (2, 2))|torch.empty((2, -1))
torch.empty((2,)).requires_grad_(1)|flags.requires_grad_()|x.reshape(5, 5)|torch.cat([x, ids], dim=0)
x + torch.empty((5,))|nn.init.kaiming_uniform_(torch.empty((3,)))|F.conv2d(image, w)|torch.stack([], 0)
nn.Parameter(torch.zeros((2,), dtype=torch.bool))|nn.Parameter(ids, requires_grad=True)
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_results_have_the_shapes_of_pytorch(expression: str) -> None:
    assert shown(eval(expression, dict(OURS))) == shown(eval(expression, dict(THEIRS)))


@pytest.mark.parametrize("expression", REFUSED)
def test_what_pytorch_refuses_is_refused(expression: str) -> None:
    for known in (OURS, THEIRS):
        with pytest.raises((IndexError, TypeError, ValueError, RuntimeError, OpError)):
            eval(expression, dict(known))


BUILD = """
from torch import nn
import torch

class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty((2, 3)))
        self.register_buffer("table", torch.empty((4,)))
        self.register_buffer("kept", torch.empty((5,)), persistent=False)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = Part()
        self.second = nn.ModuleList([Part(), nn.Linear(2, 3)])
        {line}

def build():
    return Net()
"""


def built(torch: Any, line: str) -> Any:
    source = BUILD.format(line=line)
    if torch is recording.torch:
        return recording.record(source)
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["build"]()


def told(module: Any) -> dict[str, tuple[Any, ...]]:
    trained = {name for name, tensor in module.named_parameters(remove_duplicate=False) if tensor.requires_grad}
    stored = module.state_dict(keep_vars=True)
    return {name: (*tensor.shape, name in trained) for name, tensor in stored.items()}


@pytest.mark.parametrize(
    "line",
    [
        "pass",
        "self.second[0] = nn.Embedding(7, 2)",
        "self.second.append(nn.LayerNorm(3, bias=False))",
        "self.first = None",
        "self.first.weight = None",
        "self.first.weight = self.second[0].weight",
        "self.first.table = torch.empty((9,))",
        "self.first.register_parameter('more', nn.Parameter(torch.empty((8,))))",
        "self.get_submodule('second.0').extra = nn.Parameter(torch.empty((8,)))",
        "self.extra = self.get_parameter('first.weight')",
        "self.register_buffer('other', self.get_buffer('second.0.table'))",
        "self.first.weight = torch.empty((2, 3))",
        "self.first.register_buffer('weight', torch.empty((2,)))",
        "self.first.register_buffer('a.b', torch.empty((2,)))",
        "self.second.append(torch.empty((2,)))",
        "self.second[5] = nn.Linear(1, 2)",
        "self.empty = None\n        self.get_parameter('first.missing')",
        "self.get_submodule('first.weight.more')",
        "self.get_buffer('first.weight')",
        "self.first = None\n        self.get_parameter('first.weight')",
        "self.first.requires_grad_(False)",
        "self.requires_grad_(False)\n        self.second[0].requires_grad_()",
        "self.first = self.second[0]\n        self.first.requires_grad_(False)",
        "self.second.more = nn.ModuleDict()\n        self.second.more['a b'] = nn.Linear(2, 3, bias=False)",
        "self.more = nn.ModuleDict()\n        self.more['a'] = torch.empty((2,))",
        "self.second[1] = nn.Linear(2, 4)\n        self.second.append(self.second[1])",
        "self.second = nn.Linear(5, 6)",
        "self.plain = 3\n        self.plain = nn.Linear(2, 3)",
        "self.plain = 3\n        self.register_buffer('plain', torch.empty((2,)))",
        "self.first = nn.Parameter(torch.empty((2,)))",
        "self.first.table = nn.Parameter(torch.empty((2,)))",
        "self.first.table = nn.Linear(2, 3)",
        "self.first.table = None",
        "self.first.kept = torch.empty((6,))",
        "self.first.register_buffer('table', torch.empty((7,)))",
        "self.first.register_buffer('other', None)",
        "self.first.register_parameter('other', None)",
        "self.first.register_parameter('a.b', nn.Parameter(torch.empty((2,))))",
        "self.first.register_parameter('table', nn.Parameter(torch.empty((2,))))",
        "self.norm = nn.BatchNorm2d(5)\n        self.rms = nn.RMSNorm((3,))",
        "self.layer = nn.LayerNorm(3, bias=False)\n        self.other = nn.LayerNorm((4,))",
        "self.a = nn.GroupNorm(2, 4)\n        self.b = nn.Embedding(3, 4)\n        self.c = nn.RMSNorm(4, eps=1e-5)",
        "self.a = nn.Conv1d(4, 6, 3, groups=2, bias=False)\n        self.b = nn.Conv2d(2, 3, (1, 2), padding=1)",
        "self.a = nn.ConvTranspose1d(4, 6, 3, groups=2)\n        self.b = nn.ConvTranspose3d(2, 3, 2, bias=False)",
        "self.get_submodule('second.5')",
        "self.get_parameter('second.0.table')",
        "self.get_buffer('second.0.weight')",
    ],
)
def test_modules_have_the_tensors_of_pytorch(line: str) -> None:
    def found(torch: Any) -> Any:
        try:
            return told(built(torch, line))
        except (TypeError, KeyError, IndexError, AttributeError) as problem:
            return AttributeError if isinstance(problem, KeyError | AttributeError) else type(problem)

    assert found(recording.torch) == found(real)


def test_names_that_modules_keep_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^cannot set training$"):
        built(recording.torch, "self.first.training = nn.Linear(1, 2)")
    with pytest.raises(AttributeError, match=r"^first.training.weight$"):
        built(recording.torch, "self.get_parameter('first.training.weight')")


def test_messages_of_lists_of_modules() -> None:
    with pytest.raises(IndexError, match=r"^5$"):
        built(recording.torch, "self.second[5] = nn.Linear(1, 2)")
    with pytest.raises(TypeError, match=r"^a list of modules has modules$"):
        built(recording.torch, "self.second.append(torch.empty((2,)))")


def test_what_is_built_is_a_module() -> None:
    assert isinstance(recording.record(BUILD.format(line="pass")), Module)
    with pytest.raises(TypeError, match=r"^build\(\) makes no module$"):
        recording.record("def build():\n    return 3\n")
