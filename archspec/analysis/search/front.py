"""The designs that no other design is better than."""

from __future__ import annotations

from collections.abc import Sequence

from archspec.analysis.search.columns import Array, numpy


def ranks(values: Sequence[Array]) -> Array:
    """Return a matrix of 64-bit integers in the order of some columns, which may have integers of any size."""
    np = numpy()
    columns = [v if v.dtype == np.int64 else np.unique(v, return_inverse=True)[1] for v in values]
    return np.stack([np.asarray(column, dtype=np.int64) for column in columns], axis=1)


def front(points: Array, weights: Array) -> tuple[Array, Array]:
    """Return the rows of a matrix that no row exceeds in one column without being less in another.

    Of equal rows the first is returned, with the sum of the weights of all of them. The rows are in the order of the
    matrix.
    """
    np = numpy()
    if not len(points):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    # Sorted by columns, no row is exceeded by a later one.
    order = np.lexsort([np.arange(len(points))[::-1], *points.T[::-1]])[::-1]
    points, weights = points[order], weights[order]
    rows: list[int] = []
    counts: list[int] = []
    while len(order):
        best = points[0]
        below = (points <= best).all(axis=1)
        equal = (points == best).all(axis=1)
        rows.append(int(order[0]))
        counts.append(int(weights[equal].sum()))
        points, order, weights = points[~below], order[~below], weights[~below]
    found = np.array(rows)
    position = np.argsort(found)
    return found[position], np.array(counts)[position]
