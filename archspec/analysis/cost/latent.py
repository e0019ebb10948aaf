"""The products of an attention whose keys and values are computed from cached latent vectors.

*Expanded*, the keys and values of all positions are computed again, and multiplied. *Absorbed*, the matrix of the keys
is applied to the query, which is then multiplied by the latent vectors themselves; their mix is multiplied by the
matrix of the values. Both give the same result: a key is a linear function of a latent vector.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from archspec.analysis.cost.step_values import Shape, StepNode, StepValue
from archspec.core.record import Record
from archspec.ir.ops import OPS


class _Piece(Record):
    """Elements of keys or values, `number` of which are multiplied: cached, or from a linear map of a latent vector."""

    number: int
    latent: StepValue | None


def absorbed_macs(
    product: StepNode, keys: int, recomputed: Collection[StepNode], element_count: Callable[[Shape], int]
) -> int | None:
    """Return the multiply-accumulates of a score or mix product, absorbed; None if it cannot be absorbed.

    `recomputed` are the operations that compute the keys or values from cached values, and `element_count` counts the
    elements of a shape at one position.
    """
    first, source = product.operands
    (result,) = product.results
    assert first is not None and source is not None
    is_score = result.product == product.attention
    multiplied = element_count(first.shape if is_score else result.shape)
    pieces = _find_pieces(source, multiplied, recomputed, element_count)
    if pieces is None:
        return None
    vectors = element_count((result.shape if is_score else first.shape)[:-1])
    latents = {piece.latent for piece in pieces if piece.latent is not None}
    moved = sum(piece.number for piece in pieces if piece.latent is None) * keys
    maps = sum(piece.number * element_count(piece.latent.shape[-1:]) for piece in pieces if piece.latent is not None)
    return moved + maps + sum(vectors * element_count(latent.shape[-1:]) * keys for latent in latents)


def _find_pieces(
    value: StepValue, number: int, recomputed: Collection[StepNode], element_count: Callable[[Shape], int]
) -> list[_Piece] | None:
    """Return the pieces of which a value consists; None if it is not a rearrangement of linear maps and cached values.

    `number` of its elements are multiplied: all, each equally often.
    """
    node = value.node
    if node is None or node not in recomputed:
        return [_Piece(number, None)]
    op = OPS[node.call.type]
    dynamic = [operand for operand in node.operands if operand is not None and not operand.is_static]
    if node.call.type == "linear":
        x, _, bias = node.operands
        is_map = dynamic == [x] and bias is None and x is not None and x.node not in recomputed
        return [_Piece(number, x)] if is_map else None
    if not (op.group == "Shape" or op.casts) or len(dynamic) < sum(operand is not None for operand in node.operands):
        return None
    if len(dynamic) == 1:
        pieces = _find_pieces(dynamic[0], number, recomputed, element_count)
        change = element_count(value.shape) - element_count(dynamic[0].shape)
        if change > 0 and node.call.type != "expand":  # other elements are added
            return None
        # a part need not have as many elements of each piece
        return None if change < 0 and pieces is not None and len(pieces) > 1 else pieces
    total = element_count(value.shape)
    all_pieces: list[_Piece] = []
    for operand in dynamic:
        pieces = _find_pieces(operand, number * element_count(operand.shape) // total, recomputed, element_count)
        if pieces is None:
            return None
        all_pieces += pieces
    return all_pieces
