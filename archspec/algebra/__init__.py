"""One algebra for sizes in shapes, amounts of work and formulas of parameters.

An `Expression` is an `int` or a `Polynomial`: a sum of terms with integer or rational coefficients, in symbols, floor
divisions, remainders, minima and maxima.

- Sizes (`Dim`) have integer coefficients and stay within limits: `sizes`.
- Amounts of work are sums (`total`) of products of sizes that are not multiplied out (`factored`), of any length.
- Formulas have rational coefficients and ratios of symbols as well: `ratio`, `summed`, `by_power`.

The modules, each of which uses only those before it: `terms` (polynomials as tuples), `notation` (text and LaTeX),
`bounds`, `division` (the operations that make atoms), `polynomial` (the class), `sizes` and `sums`.
"""

from archspec.algebra.polynomial import (
    Expression,
    Polynomial,
    at_least,
    atoms,
    bounds,
    by_power,
    cleared,
    dim_max,
    dim_min,
    evaluate,
    expression,
    factored,
    index,
    number,
    ratio,
    substitute,
    symbol,
    symbols,
    terms_of,
    to_latex,
    to_text,
    total,
)
from archspec.algebra.sizes import LARGEST, Dim, checked, product
from archspec.algebra.sums import summed
from archspec.algebra.terms import Atom, Bounds

__all__ = [
    "LARGEST",
    "Atom",
    "Bounds",
    "Dim",
    "Expression",
    "Polynomial",
    "at_least",
    "atoms",
    "bounds",
    "by_power",
    "checked",
    "cleared",
    "dim_max",
    "dim_min",
    "evaluate",
    "expression",
    "factored",
    "index",
    "number",
    "product",
    "ratio",
    "substitute",
    "summed",
    "symbol",
    "symbols",
    "terms_of",
    "to_latex",
    "to_text",
    "total",
]
