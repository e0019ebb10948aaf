"""One algebra for sizes in shapes, amounts of work and formulas of parameters.

An `Expression` is an `int` or a `Polynomial`: a sum of terms with integer or rational coefficients, in symbols, floor
divisions, remainders, minima and maxima.

- Sizes (`Dim`) have integer coefficients and stay within limits: `sizes`.
- Amounts of work are sums of any length (`weighted_sum`) of products that are not expanded (`multiply_unexpanded`).
- Formulas also have rational coefficients and ratios of symbols: `ratio`, `sum_over_index`, `coefficients_by_power`.

Each module uses only those before it: `terms` (polynomials as tuples, and their bounds), `notation` (text and LaTeX),
`division` (the operations that create atoms), `polynomial` (the class), and `sizes`.
"""

from archspec.core.algebra.polynomial import Expression as Expression
from archspec.core.algebra.polynomial import Polynomial as Polynomial
from archspec.core.algebra.polynomial import atoms as atoms
from archspec.core.algebra.polynomial import bounds as bounds
from archspec.core.algebra.polynomial import clear_fractions as clear_fractions
from archspec.core.algebra.polynomial import coefficients_by_power as coefficients_by_power
from archspec.core.algebra.polynomial import dim_max as dim_max
from archspec.core.algebra.polynomial import dim_min as dim_min
from archspec.core.algebra.polynomial import evaluate as evaluate
from archspec.core.algebra.polynomial import expand as expand
from archspec.core.algebra.polynomial import expression as expression
from archspec.core.algebra.polynomial import has_lower_bound as has_lower_bound
from archspec.core.algebra.polynomial import index as index
from archspec.core.algebra.polynomial import is_at_least as is_at_least
from archspec.core.algebra.polynomial import multiply_unexpanded as multiply_unexpanded
from archspec.core.algebra.polynomial import number as number
from archspec.core.algebra.polynomial import ratio as ratio
from archspec.core.algebra.polynomial import substitute as substitute
from archspec.core.algebra.polynomial import sum_over_index as sum_over_index
from archspec.core.algebra.polynomial import symbol as symbol
from archspec.core.algebra.polynomial import symbols as symbols
from archspec.core.algebra.polynomial import terms_of as terms_of
from archspec.core.algebra.polynomial import to_latex as to_latex
from archspec.core.algebra.polynomial import to_text as to_text
from archspec.core.algebra.polynomial import weighted_sum as weighted_sum
from archspec.core.algebra.sizes import MAX_SIZE as MAX_SIZE
from archspec.core.algebra.sizes import Dim as Dim
from archspec.core.algebra.sizes import check_size_limits as check_size_limits
from archspec.core.algebra.sizes import product as product
from archspec.core.algebra.sizes import split_multiple as split_multiple
from archspec.core.algebra.terms import Atom as Atom
from archspec.core.algebra.terms import Bounds as Bounds
