"""Numbers as expressions of the fields of a configuration, from their values at two configurations."""

from __future__ import annotations

import math
import re
import struct
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from archspec.pytorch.lift.sizes import candidates
from archspec.pytorch.lift.sizes.candidates import Candidate, FieldExpression
from archspec.pytorch.lift.sizes.evidence import Evidence
from archspec.pytorch.values.numbers import MAY_BE_ONE, literal

Pair: TypeAlias = "tuple[float, float | None]"
"""A number at the first configuration, and at the second; None without a second one."""

SMALL = 256
"""Integers up to this one, other than sizes, that are the same in both configurations are no fields."""

NO_SIZES = "number", "layers"
"""What numbers are for that are no sizes of tensors."""

TOKEN = "token_id"
"""The end of the names of fields that are no sizes, but numbers that ids are compared with."""

OF_TRAINING = re.compile(r"_cost$|_coefficient$|^init(ializer)?_|^pos_embed_(shift|jitter|rescale)$")
"""The names of fields that only training and the initial values of tensors depend on."""


class Expressions:
    """Expressions of fields, found by their values. Fields that are `narrow` only name sizes that are the same in both
    configurations where these are called alike, but for some of these places by their turns. Those that are
    `of_sizes` also name large numbers of computations that are the same in both.
    """

    def __init__(
        self,
        fields: Mapping[str, Pair],
        parts: Sequence[str] = (),
        narrow: Mapping[str, Collection[int]] | None = None,
        of_sizes: Collection[str] = (),
        evidence: Evidence | None = None,
    ) -> None:
        self._evidence = evidence
        self._narrow = narrow or {}
        self._of_sizes = of_sizes
        self.turns = Counter[str]()
        """In how many places narrow fields could name a size."""
        self.joint: set[str] = set()
        """The fields in expressions of sizes that differ."""
        self.fields = {name: pair for name, pair in fields.items() if not OF_TRAINING.search(name)}
        self._known: dict[Pair, FieldExpression] = {}
        self._rounded: dict[Pair, FieldExpression] = {}
        """Expressions of reals by their values in float32, in which modules keep constants."""
        self._of_parts: dict[str, dict[Pair, FieldExpression]] = {}
        self._roots: dict[tuple[float, float], FieldExpression] = {}
        """What scores are scaled with: roots of the sizes of heads."""
        self._places: dict[FieldExpression, tuple[float, float]] = {}
        """Numbers of patches in an image."""
        if all(pair[1] is not None for pair in self.fields.values()):
            for part in parts:  # a size of a part seldom depends on fields of another one
                self._of_parts[part] = {}
                self._index([name for name in self.fields if name.startswith(part)], self._of_parts[part])
            self._of_parts[""] = {}
            own = [name for name in self.fields if parts and not name.startswith(tuple(parts))]
            self._index(own, self._of_parts[""])
            self._index([*self.fields], {})

    def add(self, name: str, pair: Pair) -> None:
        """Add a field."""
        self.fields[name] = pair
        self._known[_key(pair)] = FieldExpression(name, (name,))

    def find(self, pair: Pair, hint: str = "", part: str = "", used: Collection[str] = ()) -> FieldExpression | None:
        """Return the simplest expression with these values: of fields of a part, if it is known, or of those in use; a
        formula that tensors of further modules show comes before others.
        """
        shown = self._evidence.find(pair) if self._evidence is not None and hint not in NO_SIZES else None
        if shown is not None and self.fields.keys() >= {*shown.fields}:  # others were dropped
            return shown
        return self._binary(pair, hint, part, used)

    def _binary(self, pair: Pair, hint: str, part: str, used: Collection[str]) -> FieldExpression | None:
        """Return the simplest expression that has these values at both configurations."""
        a, b = pair
        is_still = b is None or a == b
        is_one = a == 1 and hint in MAY_BE_ONE
        is_still_number = is_still and hint == "number" and isinstance(a, int)
        is_small = is_still_number and a <= SMALL
        if is_still and (is_one or is_small or (hint == "number" and b is None)):  # by accident, perhaps
            return None
        words = set(hint.split("_"))
        named = [
            name
            for name, own in self.fields.items()
            if _same(own, pair)
            and (hint == "number" or not name.endswith(TOKEN))
            and not (is_still and hint != "layers" and name.endswith(candidates.LAYERS))
            and not (is_still_number and name not in self._of_sizes)
            and not (is_still and name in self._narrow and self._is_apart(name, words))
        ]
        if named:
            alike = {name: len(words & set(name.split("_"))) for name in named}
            best = max(named, key=lambda name: (name.startswith(part), alike[name], name in used, -named.index(name)))
            if not is_still or len(named) == 1 or [*alike.values()].count(alike[best]) == 1:
                return FieldExpression(best, (best,))
        if b is None or _close(a, b):
            return None
        known = self._simplest(_key(pair), part) or self._rounded.get((a, b))
        found = known or self._multiple_of_root(a, b) or self._with_a_number(a, b) or self._over_a_size(a, b)
        self.joint |= {*found.fields} if found else set()
        if found and isinstance(a, float) and re.search(candidates.RATIO, found.text):  # a quotient of reals
            return found._replace(text=found.text.replace("//", "/"))
        return found

    def _is_apart(self, name: str, words: set[str]) -> bool:
        """Whether a narrow field does not name a size, which has these words."""
        if words.isdisjoint(name.split("_")):
            return True
        turn = self.turns[name]
        self.turns[name] += 1
        return turn in self._narrow[name]

    def _simplest(self, key: Pair, part: str) -> FieldExpression | None:
        """Return the expression with fewest fields: of equally many, those of a part if it is known. One of fields of
        other parts alone is only taken if the part has none, and one of a vocabulary and others if there is no other.
        """
        own = self._of_parts.get(part, {}).get(key)
        others = tuple([name for name in self._of_parts if name and not _are_nested(name, part)])
        found = [own, self._known.get(key), *[fields.get(key) for fields in self._of_parts.values()]]

        def rank(item: FieldExpression) -> tuple[bool, bool, int]:
            is_of_others = all(name.startswith(others) for name in item.fields)
            is_of_vocabulary = len(item.fields) > 1 and candidates.is_of_vocabulary(item.fields)
            return is_of_vocabulary, is_of_others, len(item.fields)

        return min([item for item in found if item], key=rank, default=None)

    def _multiple_of_root(self, a: float, b: float) -> FieldExpression | None:
        """Return a number times what scores are scaled with, if that can be of one size only."""
        found = [(a / c, root) for (c, d), root in self._roots.items() if math.isclose(a * d, b * c, rel_tol=1e-14)]
        if len(found) != 1 or not isinstance(a, float):
            return None
        factor, root = found[0]
        return FieldExpression(f"{literal(factor)} * {root.text}", root.fields)

    def _over_a_size(self, a: float, b: float) -> FieldExpression | None:
        """Return a number over a field, such as the steps of exponents, if that can be of one field only."""
        sizes = {name: pair for name, pair in self.fields.items() if isinstance(pair[0], int)}
        found = [(a * c, name) for name, (c, d) in sizes.items() if d and math.isclose(a * c, b * d, rel_tol=1e-14)]
        if len(found) != 1 or not isinstance(a, float):
            return None
        number, name = found[0]
        return FieldExpression(f"{literal(number)} / {name}", (name,))

    def _with_a_number(self, a: float, b: float) -> FieldExpression | None:
        """Return an expression of fields and a number that is no field, such as one of a list, if there is only one.

        The number is the same at both configurations.
        """
        whole = _positive(self.fields)
        found = [*candidates.with_more_rows(a, b, whole), *candidates.parts_of_widths(a, b, whole)]
        if isinstance(a, int):
            found += candidates.with_more_places(a, b, self._places) + candidates.with_squares(a, b, whole)
        found = found or candidates.with_some_more(a, b, whole) or candidates.with_times(a, b, whole)
        found = found or candidates.with_multiples(a, b, whole)
        return found[0] if len(found) == 1 else None

    def _index(self, names: Sequence[str], own: dict[Pair, FieldExpression]) -> None:
        """Compute expressions, the simpler ones first; an expression is only kept if no simpler one has its values.

        `own` takes all of them, also those that have the values of expressions of fields of another part.
        """
        pairs = {name: self.fields[name] for name in names}
        values = {
            FieldExpression(name, (name,)): pair for name, pair in _positive(pairs).items() if not name.endswith(TOKEN)
        }
        taken = {_key(pair) for pair in pairs.values() if isinstance(pair[0], int)}
        sizes = {found: pair for found, pair in values.items() if not found.text.endswith(candidates.LAYERS)}

        def kept(*groups: Iterable[Candidate]) -> dict[FieldExpression, tuple[float, float]]:
            return {found: pair for found, pair in chain(*groups) if self._keep(found, pair, taken, own)}

        of_two = [*candidates.products_and_quotients(sizes)]
        unlikely = [item for item in of_two if candidates.is_unlikely(item[0])]
        likely = [item for item in of_two if not candidates.is_unlikely(item[0])]
        second = kept(likely, candidates.with_numbers(values))
        kept(
            candidates.scan_projections(sizes),
            candidates.selection_projections(sizes),
            candidates.doubled_widths(sizes),
        )
        joint = {found: pair for found, pair in second.items() if len(found.fields) > 1}
        third = kept(
            candidates.sums(sizes),
            candidates.with_numbers(joint),
            candidates.shifted(second),
            candidates.squares(values | second),
        )
        kept(candidates.split_head_projections(sizes, third), candidates.products_of_three(sizes, second))
        kept(candidates.joined_projections(sizes, second))
        spans = [item for item in candidates.sums(sizes) if all("position" in name for name in item[0].fields)]
        kept(candidates.sums_of_three(sizes), unlikely, candidates.shifted(dict(spans)))
        kept(
            candidates.video_place_counts(second),
            candidates.patch_sizes(sizes),
            candidates.vocabulary_rows(sizes, unlikely),
        )
        self._places |= {found: pair for found, pair in third.items() if re.fullmatch(candidates.PATCHES, found.text)}
        kept(candidates.tile_embedding_sizes(sizes, third), candidates.all_layer_widths(values))
        kept(candidates.rotary_thirds(values | second), candidates.head_remainders(sizes))
        quotients = kept(candidates.quotients(sizes, second))
        # parts of a head, and two heads: queries that are joined with their positions
        parts = r"\) // [0-9]$|^2 \* \(\w+ // \w*heads?\)$"
        quotients |= {found: pair for found, pair in third.items() if re.search(parts, found.text)}
        kept(candidates.rotary_fractions(values | second))
        heads = {found: pair for found, pair in (values | second | third).items() if candidates.is_of_head(found)}
        for found, (a, b) in heads.items():
            self._roots.setdefault(
                (a**-0.5, b**-0.5), FieldExpression(f"{candidates.factor(found)} ** -0.5", found.fields)
            )
        kept(
            candidates.reals(values | second | quotients),
            candidates.fourth_roots(heads),
            candidates.ratios(values),
            candidates.logarithms(values | second),
            candidates.sinusoid_rates(values),
        )

    def _keep(
        self, found: FieldExpression, pair: tuple[float, float], taken: set[Pair], kept: dict[Pair, FieldExpression]
    ) -> bool:
        """Whether an expression has other values than simpler ones, which are `taken`."""
        key = _key(pair)
        if key in taken:
            return False
        taken.add(key)
        kept[key] = found
        if key not in self._known and not any(_same(own, pair) for own in self.fields.values()):
            self._known[key] = found
            if isinstance(pair[0], float):
                self._rounded.setdefault((_single(pair[0]), _single(pair[1])), found)
        return True


def _positive(fields: Mapping[str, Pair]) -> dict[str, tuple[float, float]]:
    """Return the integers above 0, by which others can be divided."""
    return {name: (a, b) for name, (a, b) in fields.items() if isinstance(a, int) and b is not None and a > 0 < b}


def _are_nested(part: str, other: str) -> bool:
    """Whether one of two parts is inside of the other one, or the same."""
    return part.startswith(other) or other.startswith(part)


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9)


def _single(value: float) -> float:
    """Return a number rounded to float32."""
    return struct.unpack("f", struct.pack("f", value))[0]


def _same(own: Pair, pair: Pair) -> bool:
    if not _close(own[0], pair[0]) or isinstance(own[0], int) != isinstance(pair[0], int):
        return False
    return own[1] is None or pair[1] is None or _close(own[1], pair[1])


def _key(pair: Pair) -> Pair:
    return (float(f"{pair[0]:.10g}"), None if pair[1] is None else float(f"{pair[1]:.10g}"))
