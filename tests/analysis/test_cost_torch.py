"""The counts against what PyTorch counts while it runs: `transformers`' models, and operations by themselves."""

from typing import Any

import pytest

import archspec
from archspec import Type
from archspec.analysis.cost.dtypes import FLOATS
from archspec.ir.ops import OPS
from archspec.ir.work import operation_work

pytestmark = pytest.mark.slow
torch = pytest.importorskip("torch")
flop_counter = pytest.importorskip("torch.utils.flop_counter")
SIZES = [(1, 512), (3, 40)]


def counted(run: Any) -> int:
    with flop_counter.FlopCounterMode(display=False) as counter, torch.no_grad():
        run()
    return counter.get_total_flops()


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize(
    ("name", "model", "settings"),
    [
        ("bert-base-uncased", "BertModel", {}),
        (
            "bert-large-uncased",
            "BertModel",
            {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096},
        ),
        ("bert-base-uncased-mlm", "BertForMaskedLM", {}),
        ("bert-base-uncased-pretraining", "BertForPreTraining", {}),
        ("albert-base-v2", "AlbertModel", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}),
    ],
)
def test_transformers_models_on_the_meta_device(
    name: str, model: str, settings: dict[str, Any], attention: str
) -> None:
    """Without a mask of padding, which `transformers` cannot look at there; it changes no product."""
    transformers = pytest.importorskip("transformers")
    config = getattr(transformers, model).config_class(attn_implementation=attention, **settings)
    with torch.device("meta"):
        module = getattr(transformers, model)(config).eval()
        for batch, seq in SIZES:
            ids = torch.zeros(batch, seq, dtype=torch.long)
            flops = counted(lambda ids=ids: module(input_ids=ids, token_type_ids=ids))
            assert archspec.cost(name, batch, seq).work.flops == flops


def test_operations() -> None:
    functional = torch.nn.functional

    def tensor(*shape: int) -> Any:
        return torch.empty(shape, device="meta")

    def experts(x: Any, index: Any, weight: Any) -> Any:
        shape = torch.broadcast_shapes(x.shape[:-1], index.shape)
        picked = weight[index.expand(shape)]
        return picked @ x.expand(*shape, x.shape[-1])[..., None]

    def conv(transposed: bool, rank: int) -> Any:
        return getattr(functional, f"conv_transpose{rank}d" if transposed else f"conv{rank}d")

    cases: list[tuple[str, list[tuple[int, ...]], dict[str, Any], Any]] = [
        ("matmul", [(3, 4), (4, 5)], {}, torch.matmul),
        ("matmul", [(2, 7, 3, 4), (2, 7, 4, 5)], {}, torch.matmul),
        ("matmul", [(7, 1, 3, 4), (2, 4, 5)], {}, torch.matmul),
        ("matmul", [(6, 3, 4), (4, 5)], {}, torch.matmul),
        ("linear", [(4,), (5, 4)], {}, functional.linear),
        ("linear", [(2, 3, 4), (5, 4)], {}, functional.linear),
        ("linear", [(2, 3, 4), (5, 4), (5,)], {}, functional.linear),
        ("expert_linear", [(2, 3, 1, 4), (2, 3, 2), (9, 5, 4)], {}, experts),
    ]
    for transposed in (False, True):
        for groups in (1, 2, 6):
            for stride, padding, dilation in ((1, 0, 1), (2, 1, 1), (1, 2, 2), (3, 1, 2)):
                given = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
                weight = (6, 12 // groups) if transposed else (12, 6 // groups)
                for spatial, kernel in (((11,), (3,)), ((11, 13), (3, 2)), ((7, 8, 9), (3, 2, 1))):
                    call = conv(transposed, len(kernel))
                    run = lambda *args, call=call, given=given: call(*args, **given)  # noqa: E731
                    shapes: list[tuple[int, ...]] = [(2, 6, *spatial), (*weight, *kernel), (12,)]
                    cases.append(("conv", shapes, given | {"transposed": transposed}, run))
    for name, shapes, attributes, run in cases:
        types = [Type(shape) for shape in shapes]
        arguments = [tensor(*shape) for shape in shapes]
        if name == "expert_linear":
            types[1] = Type(shapes[1], "int")
            arguments[1] = torch.zeros(shapes[1], dtype=torch.long, device="meta")
        result = OPS[name].rule(types, attributes)[0]
        flops = counted(lambda run=run, arguments=arguments: run(*arguments))
        assert operation_work(OPS[name], types, result, attributes).flops == flops > 0, (name, shapes, attributes)


@pytest.mark.parametrize("dtype", FLOATS)
def test_optimizers_keep_what_the_table_says(dtype: str) -> None:
    """But for Adam's count of steps, one number a tensor."""
    model = archspec.load("transformer-seq2seq")
    tensors = [tensor for tensor in model.tensors if not tensor.tied_to]
    weights = [torch.nn.Parameter(torch.zeros(t.shape, dtype=getattr(torch, dtype)), t.trainable) for t in tensors]
    trained = [weight for weight in weights if weight.requires_grad]
    memory = archspec.cost(model, dtype=dtype).memory
    assert memory.weights == sum(weight.nbytes for weight in weights)
    makers = {
        "SGD": lambda: torch.optim.SGD(trained, 0.1),
        "SGD with momentum": lambda: torch.optim.SGD(trained, 0.1, momentum=0.9),
        "Adam": lambda: torch.optim.Adam(trained),
    }
    schemes = {scheme.name: scheme for scheme in memory.schemes}
    for name, make in makers.items():
        for weight in trained:
            weight.grad = torch.zeros_like(weight)
        optimizer = make()
        optimizer.step()
        kept = [value for state in optimizer.state.values() for key, value in state.items() if key != "step"]
        scheme = schemes[name]
        assert scheme.weights == memory.weights
        assert scheme.gradients == sum(weight.grad.nbytes for weight in trained if weight.grad is not None)
        assert scheme.optimizer == sum(value.nbytes for value in kept if value is not None)
