"""PyTorch code of `expert_linear`, the product with a matrix for each expert: text that generated files contain."""

from __future__ import annotations

EXPERT_LINEAR = '''def expert_linear(
    x: Tensor, experts: Tensor | int, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """Each vector of x through the matrix that its expert index names."""
    by_expert = ByExpert(experts, x)
    return by_expert.restored(by_expert.linear(by_expert.sorted(x), weight, bias))


class ByExpert:
    """Sorts vectors by expert, for one matrix product an expert. Compiled graphs sort
    nothing, but gather matrices: how many vectors an expert is given is data.
    """

    def __init__(self, experts: Tensor | int, x: Tensor) -> None:
        self.experts = experts
        self.order = None
        if isinstance(experts, int) or x.is_meta or torch.compiler.is_compiling():
            return
        self.shape = torch.broadcast_shapes(x.shape[:-1], experts.shape)
        self.experts, self.order = experts.expand(self.shape).flatten().sort()
        rows = torch.arange(x.shape[:-1].numel(), device=x.device)
        rows = rows.reshape(x.shape[:-1]).expand(self.shape).flatten()
        self.rows = rows[self.order]

    def sorted(self, x: Tensor) -> Tensor:
        if self.order is None:
            return x
        return x.reshape(-1, x.shape[-1]).index_select(0, self.rows)

    def restored(self, x: Tensor) -> Tensor:
        if self.order is None:
            return x
        return x.index_select(0, self.order.argsort()).reshape(*self.shape, x.shape[-1])

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        if self.order is None:
            y = (weight[self.experts] @ x[..., None])[..., 0]
            return y if bias is None else y + bias[self.experts]
        sizes = group_sizes(self.experts, len(weight))
        biases = [None] * len(weight) if bias is None else bias
        if torch.is_grad_enabled() or x.dtype != weight.dtype:
            return torch.cat([*map(F.linear, x.split(sizes), weight, biases)])
        y = x.new_empty(len(x), weight.shape[1])
        for part, taken, matrix, offset in zip(
            y.split(sizes), x.split(sizes), weight.mT, biases, strict=True
        ):
            torch.mm(taken, matrix, out=part)
            if offset is not None:
                part += offset
        return y


def group_sizes(experts: Tensor, count: int) -> list[int]:
    """How many vectors each of `count` experts is given."""
    return torch.bincount(experts, minlength=count).tolist()'''
