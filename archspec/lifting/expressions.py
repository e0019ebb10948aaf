"""Numbers as expressions of the fields of a configuration, from their values at two configurations."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple, TypeAlias

from archspec.lifting.numbers import literal

Pair: TypeAlias = "tuple[float, float | None]"
"""A number at the first configuration, and at the second; None without a second one."""

TOKEN = "token_id"
"""The end of the names of fields that are no sizes, but numbers that ids are compared with."""

OF_TRAINING = re.compile(r"_cost$|_coefficient$|^init(ializer)?_")
"""The names of fields that only training and the initial values of tensors depend on."""

LAYERS = ("layers", "n_layer", "depth")
"""The ends of the names of fields that no width is a multiple of."""

WIDTHS = ("dim", "hidden_size", "d_model")
"""The ends of the names of fields that are divided into heads."""

MOST_HEADS = 64
"""Lists have numbers of heads up to this one."""

MOST_VOCABULARIES = 64
"""Tables have the rows of so many vocabularies of one size, such as those of codebooks."""

MOST_MORE = 64
"""Tables have up to so many rows more than a vocabulary, such as those of tokens for images."""

_PLACES = r"\(\w+ // \w+\) \*\* 2( \+ [12])?"
"""Numbers of patches in an image."""


class Found(NamedTuple):
    """An expression, and the fields in it."""

    text: str
    fields: tuple[str, ...]


class Expressions:
    """Expressions of fields, found by their values."""

    def __init__(self, fields: Mapping[str, Pair], parts: Sequence[str] = ()) -> None:
        self.fields = {name: pair for name, pair in fields.items() if not OF_TRAINING.search(name)}
        self._known: dict[Pair, Found] = {}
        self._rounded: dict[Pair, Found] = {}
        """Expressions of reals by their values in float32, in which modules keep constants."""
        self._of_parts: dict[str, dict[Pair, Found]] = {}
        self._roots: dict[tuple[float, float], Found] = {}
        """What scores are scaled with: roots of the sizes of heads."""
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
        self._known[_key(pair)] = Found(name, (name,))

    def find(self, pair: Pair, hint: str = "", part: str = "", used: Collection[str] = ()) -> Found | None:
        """Return the simplest expression with these values: of fields of a part, if it is known, or of those in use."""
        a, b = pair
        is_still = b is None or a == b
        if hint == "number" and (b is None or (is_still and (isinstance(a, int) or a == 1.0))):  # by accident, perhaps
            return None
        named = [
            name
            for name, own in self.fields.items()
            if _same(own, pair) and (hint == "number" or not name.endswith(TOKEN))
        ]
        if named:
            words = set(hint.split("_"))
            alike = {name: len(words & set(name.split("_"))) for name in named}
            best = max(named, key=lambda name: (name.startswith(part), alike[name], name in used, -named.index(name)))
            if not is_still or len(named) == 1 or [*alike.values()].count(alike[best]) == 1:
                return Found(best, (best,))
        if b is None or _close(a, b):
            return None
        known = self._simplest(_key(pair), part) or self._rounded.get((a, b))
        return known or self._multiple_of_root(a, b) or self._root_of_part(a, b) or self._more_rows(a, b)

    def _simplest(self, key: Pair, part: str) -> Found | None:
        """Return the expression with fewest fields: of equally many, those of a part if it is known. One of fields of
        other parts alone is only taken if the part has none.
        """
        own = self._of_parts.get(part, {}).get(key)
        others = tuple([name for name in self._of_parts if name and not _are_nested(name, part)])
        found = [own, self._known.get(key), *[fields.get(key) for fields in self._of_parts.values()]]

        def rank(item: Found) -> tuple[bool, int]:
            return all(name.startswith(others) for name in item.fields), len(item.fields)

        return min([item for item in found if item], key=rank, default=None)

    def _multiple_of_root(self, a: float, b: float) -> Found | None:
        """Return a number times what scores are scaled with, if that can be of one size only."""
        found = [(a / c, root) for (c, d), root in self._roots.items() if math.isclose(a * d, b * c, rel_tol=1e-14)]
        if len(found) != 1 or not isinstance(a, float):
            return None
        factor, root = found[0]
        return Found(f"{literal(factor)} * {root.text}", root.fields)

    def _root_of_part(self, a: float, b: float) -> Found | None:
        """Return the root of the size of a head, if it is the part of one width only: a list has the number of heads,
        which is the same at both configurations.
        """
        found: list[Found] = []
        for name, (c, d) in self.fields.items():
            if name.endswith(WIDTHS) and isinstance(c, int) and isinstance(d, int):
                heads = [count for count in range(2, MOST_HEADS + 1) if c % count == d % count == 0]
                for count, power in product(heads, (0.5, -0.5)):
                    if _close((c // count) ** power, a) and _close((d // count) ** power, b):
                        found.append(Found(f"({name} // {count}) ** {power}", (name,)))
        return found[0] if len(found) == 1 and isinstance(a, float) else None

    def _more_rows(self, a: float, b: float) -> Found | None:
        """Return the rows of a table with some more than a vocabulary, if there is only one such vocabulary."""
        more = {
            name: a - c
            for name, (c, d) in self.fields.items()
            if "vocab" in name and isinstance(a, int) and d is not None and a - c == b - d and 0 < a - c <= MOST_MORE
        }
        if len(more) != 1:
            return None
        ((name, rows),) = more.items()
        return Found(f"{name} + {rows}", (name,))

    def _index(self, names: Sequence[str], own: dict[Pair, Found]) -> None:
        """Compute expressions, the simpler ones first; an expression is only kept if no simpler one has its values.

        `own` takes all of them, also those that have the values of expressions of fields of another part.
        """
        pairs = {name: self.fields[name] for name in names}
        whole = {
            name: pair
            for name, pair in pairs.items()
            if isinstance(pair[0], int) and pair[0] > 0 and not name.endswith(TOKEN)
        }
        simple = [Found(name, (name,)) for name in whole]
        taken = {_key(pair) for pair in pairs.values() if isinstance(pair[0], int)}
        values = {found: (whole[found.text][0], whole[found.text][1] or 0) for found in simple}
        sizes = {found: pair for found, pair in values.items() if not found.text.endswith(LAYERS)}
        second: dict[Found, tuple[float, float]] = {}
        of_two: tuple[list[Candidate], list[Candidate]] = [], []
        for found, pair in _of_two(sizes):
            is_unlikely = _is_unlikely(found.fields) if "*" in found.text else _is_of_groups(found.fields)
            of_two[is_unlikely].append((found, pair))
        for found, pair in [*of_two[0], *_with_numbers(values)]:
            if self._keep(found, pair, taken, own):
                second[found] = pair
        for found, pair in [*_of_scans(sizes), *_of_selections(sizes), *_doubled(sizes)]:
            self._keep(found, pair, taken, own)
        joint = {found: pair for found, pair in second.items() if len(found.fields) > 1}
        third = [*_sums(sizes), *_with_numbers(joint), *_shifted(second), *_squares(values | second)]
        kept = {found: pair for found, pair in third if self._keep(found, pair, taken, own)}
        for found, pair in [*_of_heads_in_parts(sizes, kept), *_of_three(sizes, second)]:
            self._keep(found, pair, taken, own)
        for found, pair in _joined(sizes, second):
            self._keep(found, pair, taken, own)
        spans = [item for item in _sums(sizes) if all("position" in name for name in item[0].fields)]
        for found, pair in [*_sums_of_three(sizes), *of_two[1], *_shifted(dict(spans))]:
            self._keep(found, pair, taken, own)
        for found, pair in [*_of_videos(second), *_of_patches(sizes), *_of_vocabularies(sizes, of_two[1])]:
            self._keep(found, pair, taken, own)
        for found, pair in _of_tiles(sizes, kept):
            self._keep(found, pair, taken, own)
        for found, pair in [*_of_all_layers(values), *_of_thirds(values | second), *_rests(sizes)]:
            self._keep(found, pair, taken, own)
        quotients = {found: pair for found, pair in _quotients(sizes, second) if self._keep(found, pair, taken, own)}
        # parts of a head, and two heads: queries that are joined with their positions
        parts = r"\) // [0-9]$|^2 \* \(\w+ // \w*heads?\)$"
        quotients |= {found: pair for found, pair in kept.items() if re.search(parts, found.text)}
        for found, pair in _of_fractions(values | second):
            self._keep(found, pair, taken, own)
        heads = {found: pair for found, pair in (values | second | kept).items() if _is_of_head(found)}
        for found, (a, b) in heads.items():
            self._roots.setdefault((a**-0.5, b**-0.5), Found(f"{_factor(found)} ** -0.5", found.fields))
        for found, pair in [*_reals(values | second | quotients, 0.5), *_logarithms(values | second)]:
            self._keep(found, pair, taken, own)

    def _keep(self, found: Found, pair: tuple[float, float], taken: set[Pair], kept: dict[Pair, Found]) -> bool:
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


def _are_nested(part: str, other: str) -> bool:
    """Whether one of two parts is inside of the other one, or the same."""
    return part.startswith(other) or other.startswith(part)


def _is_unlikely(fields: Sequence[str]) -> bool:
    """Whether no size is the product of these fields."""
    return all(map(_is_count, fields)) or any("vocab" in field for field in fields)


def _is_of_groups(fields: Sequence[str]) -> bool:
    """Whether the second of two fields counts groups of heads, by which heads are divided, but no width is."""
    return re.search(r"(key_value|kv)_heads$", fields[1]) is not None and not _is_count(fields[0])


def _is_count(field: str) -> bool:
    """Whether a field counts parts: a size is a multiple of one count, but seldom the product of two."""
    return re.search(r"heads?$|^n_head|experts|_tok(en)?$|top_?k|_k$|groups?$", field) is not None


def _is_of_head(found: Found) -> bool:
    """Whether an expression is the size of a head, which may be the sum of two."""
    of_head = r"\w*(head_dim|head_size|d_head|d_kv)"
    return re.fullmatch(rf"{of_head}( \+ {of_head})?|\w+ // \w*heads?", found.text) is not None


Values: TypeAlias = Mapping[Found, "tuple[float, float]"]
Candidate: TypeAlias = tuple[Found, tuple[float, float]]
Candidates: TypeAlias = Iterator[Candidate]


def _with_numbers(values: Values) -> Candidates:
    for number in (2, 3, 4, 5, 6, 8):
        for found, (a, b) in values.items():
            yield Found(f"{number} * {_factor(found)}", found.fields), (number * a, number * b)
    for number in (2, 4, 8):
        for found, (a, b) in values.items():
            if a >= number and b >= number:
                yield Found(f"{_factor(found)} // {number}", found.fields), (a // number, b // number)
    yield from _shifted(values)


def _doubled(values: Values) -> Candidates:
    """Yield widths that are doubled by each of several steps."""
    for number in (16, 32):
        for found, (a, b) in values.items():
            if not _is_unlikely(found.fields):
                yield Found(f"{number} * {found.text}", found.fields), (number * a, number * b)


def _shifted(values: Values) -> Candidates:
    for number in (1, 2):
        for found, (a, b) in values.items():
            yield Found(f"{found.text} + {number}", found.fields), (a + number, b + number)
            if a > number and b > number:
                yield Found(f"{found.text} - {number}", found.fields), (a - number, b - number)


def _of_two(values: Values) -> Candidates:
    for first, (a, b) in values.items():
        for second, (c, d) in values.items():
            fields = (*first.fields, *second.fields)
            if first != second and a % c == 0 and b % d == 0 and a > c and b > d:
                yield Found(f"{first.text} // {second.text}", fields), (a // c, b // d)
    for turn, (first, (a, b)) in enumerate(values.items()):
        for second, (c, d) in [*values.items()][turn + 1 :]:
            yield Found(f"{first.text} * {second.text}", (*first.fields, *second.fields)), (a * c, b * d)


def _sums(values: Values) -> Candidates:
    for turn, (first, (a, b)) in enumerate(values.items()):
        for second, (c, d) in [*values.items()][turn + 1 :]:
            yield Found(f"{first.text} + {second.text}", (*first.fields, *second.fields)), (a + c, b + d)


def _sums_of_three(values: Values) -> Candidates:
    for items in combinations(values.items(), 3):
        fields = tuple([name for found, _ in items for name in found.fields])
        if not any(_is_count(name) or "vocab" in name for name in fields):
            (a, b), (c, d), (e, f) = [pair for _, pair in items]
            yield Found(" + ".join([found.text for found, _ in items]), fields), (a + c + e, b + d + f)


def _squares(values: Values) -> Candidates:
    for extra in (0, 1, 2):
        for found, (a, b) in values.items():
            if all(map(_is_count, found.fields)):
                continue
            text = f"{_factor(found)} ** 2" + (f" + {extra}" if extra else "")
            yield Found(text, found.fields), (a * a + extra, b * b + extra)


def _of_vocabularies(values: Values, products: Sequence[Candidate]) -> Candidates:
    """Yield the rows of a table of several vocabularies of one size, of one and several others, and one row more."""
    several = [item for item in products if sum("vocab" in field for field in item[0].fields) == 1]
    of_numbers = [*_repeated({found: pair for found, pair in values.items() if "vocab" in found.text})]
    yield from of_numbers
    for found, (a, b) in [*several, *of_numbers]:
        for first, (c, d) in values.items():
            if "vocab" in first.text and first.fields[0] not in found.fields:
                both = Found(f"{first.text} + {found.text}", (*first.fields, *found.fields)), (a + c, b + d)
                yield from [both, *_shifted(dict([both]))]


def _repeated(values: Values) -> Candidates:
    for number in range(9, MOST_VOCABULARIES + 1):
        for found, (a, b) in values.items():
            yield Found(f"{number} * {found.text}", found.fields), (number * a, number * b)


def _of_videos(values: Values) -> Candidates:
    """Yield the numbers of places in a video: as many squares of patches as there are groups of frames."""
    ratios = {found: pair for found, pair in values.items() if re.fullmatch(r"\w+ // \w+", found.text)}
    for found, (a, b) in ratios.items():
        for other, (c, d) in ratios.items():
            fields = (*found.fields, *other.fields)
            if "frames" in found.text and "size" in other.text and not any(map(_is_count, fields)):
                yield Found(f"({found.text}) * ({other.text}) ** 2", fields), (a * c * c, b * d * d)


def _of_all_layers(values: Values) -> Candidates:
    """Yield the widths of what has a part for each layer."""
    for layers, (a, b) in values.items():
        for size, (c, d) in values.items():
            if layers.text.endswith(LAYERS) and "per_layer" in size.text:
                yield Found(f"{layers.text} * {size.text}", (*layers.fields, *size.fields)), (a * c, b * d)


def _of_thirds(values: Values) -> Candidates:
    """Yield the third of a head that has rotary positions, and half of it."""
    for number in (3, 6):
        for found, (a, b) in values.items():
            if _is_of_head(found) and a % number == b % number == 0:
                yield Found(f"{_factor(found)} // {number}", found.fields), (a // number, b // number)


def _rests(values: Values) -> Candidates:
    """Yield the parts of heads that the heads of others do not fill, such as those without rotary positions."""
    heads = {found: pair for found, pair in values.items() if _is_of_head(found)}
    for first, (a, b) in heads.items():
        for second, (c, d) in heads.items():
            if a > c and b > d:
                yield Found(f"{first.text} - {second.text}", (*first.fields, *second.fields)), (a - c, b - d)


def _of_fractions(values: Values) -> Candidates:
    """Yield the three quarters or four fifths of a head that have rotary positions, and half of these."""
    for times, number in ((3, 4), (3, 8), (4, 5), (2, 5)):
        for found, (a, b) in values.items():
            if _is_of_head(found) and times * a % number == times * b % number == 0:
                text = f"{times} * {_factor(found)} // {number}"
                yield Found(text, found.fields), (times * a // number, times * b // number)


def _of_patches(values: Values) -> Candidates:
    """Yield the numbers of pixels in a patch: channels, of one image or of several, times a square."""
    sides = {found: pair for found, pair in values.items() if found.text.endswith("patch_size")}
    times = {found: pair for found, pair in sides.items() if "temporal" in found.text}
    for channels, (a, b) in values.items():
        if "channels" in channels.text:
            for side, (c, d) in sides.items():
                fields = (*channels.fields, *side.fields)
                yield Found(f"{channels.text} * {side.text} ** 2", fields), (a * c * c, b * d * d)
                for time, (e, f) in times.items():
                    text = f"{channels.text} * {time.text} * {side.text} ** 2"
                    yield Found(text, (*fields, *time.fields)), (a * e * c * c, b * f * d * d)


def _of_tiles(simple: Values, compound: Values) -> Candidates:
    """Yield the sizes of the embeddings of all places in all tiles of an image."""
    places = {found: pair for found, pair in compound.items() if re.fullmatch(_PLACES, found.text)}
    for (tiles, a), (count, b), (width, c) in product(simple.items(), places.items(), simple.items()):
        if tiles.text.endswith("tiles") and width.text.endswith(WIDTHS):
            fields = (*tiles.fields, *count.fields, *width.fields)
            text = f"{tiles.text} * {_factor(count)} * {width.text}"
            yield Found(text, fields), (a[0] * b[0] * c[0], a[1] * b[1] * c[1])


def _of_three(simple: Values, compound: Values) -> Candidates:
    for found, (a, b) in compound.items():
        if "//" in found.text:
            for other, (c, d) in simple.items():
                yield Found(f"{found.text} * {other.text}", (*found.fields, *other.fields)), (a * c, b * d)


def _of_heads_in_parts(simple: Values, compound: Values) -> Candidates:
    """Yield the sizes of projections to heads that have two parts, such as one with positions and one without."""
    counts = {found: pair for found, pair in simple.items() if re.search(r"heads$|^n_head$", found.text)}
    for found, (a, b) in compound.items():
        if " + " in found.text and _is_of_head(found):
            for other, (c, d) in counts.items():
                yield Found(f"{other.text} * ({found.text})", (*other.fields, *found.fields)), (a * c, b * d)


def _quotients(simple: Values, compound: Values) -> Candidates:
    """Yield sizes that are divided twice, such as the size of a head of a narrower stream."""
    for found, (a, b) in compound.items():
        if re.fullmatch(r"\w+ // \w+", found.text):
            for other, (c, d) in simple.items():
                if a % c == 0 and b % d == 0 and a > c and b > d:
                    yield Found(f"{found.text} // {other.text}", (*found.fields, *other.fields)), (a // c, b // d)


def _joined(simple: Values, compound: Values) -> Candidates:
    """Yield the sizes of projections that are joined: queries, keys and values with fewer heads, or one, for these."""
    sizes = [item for item in compound.items() if "//" in item[0].text and len(item[0].fields) > 1]
    counts = {found: pair for found, pair in simple.items() if "head" in found.text}
    shared: list[tuple[str, tuple[str, ...], tuple[float, float]]] = []
    for times in (1, 2):
        for found, (a, b) in counts.items():
            text = found.text if times == 1 else f"{times} * {found.text}"
            shared.append((text, found.fields, (times * a, times * b)))
        shared.append((str(times), (), (times, times)))
    for first, (a, b) in counts.items():
        for text, fields, (c, d) in shared:
            for size, (e, f) in [*simple.items(), *sizes]:
                if first.fields != fields:
                    whole = (*first.fields, *fields, *size.fields)
                    yield Found(f"({first.text} + {text}) * {_factor(size)}", whole), ((a + c) * e, (b + d) * f)


def _of_scans(values: Values) -> Candidates:
    """Yield the sizes of joined projections for scans: once or twice the inner size, two of the states of all groups,
    and a step for each head.
    """
    heads, sizes, groups, states = [
        {found: pair for found, pair in values.items() if re.search(ending, found.text)}
        for ending in ("heads$", "d_?head$|head_dim$", "groups$", "state(_size)?$")
    ]
    for (head, a), (size, b), (group, c), (state, d) in product(
        *[part.items() for part in (heads, sizes, groups, states)]
    ):
        inner, shared = f"{head.text} * {size.text}", f"2 * {group.text} * {state.text}"
        fields = (*head.fields, *size.fields, *group.fields, *state.fields)
        both = [(a[turn] * b[turn], 2 * c[turn] * d[turn], a[turn]) for turn in (0, 1)]
        yield Found(f"{inner} + {shared}", fields), (both[0][0] + both[0][1], both[1][0] + both[1][1])
        whole = [2 * wide + narrow + steps for wide, narrow, steps in both]
        yield Found(f"2 * {inner} + {shared} + {head.text}", fields), (whole[0], whole[1])


def _of_selections(values: Values) -> Candidates:
    """Yield the sizes of joined projections for scans: a step of low rank, and two of the states."""
    ranks, states = [
        {found: pair for found, pair in values.items() if re.search(ending, found.text)}
        for ending in ("(step|dt)_rank$", "state(_size)?$")
    ]
    for (rank, (a, b)), (state, (c, d)) in product(ranks.items(), states.items()):
        yield Found(f"{rank.text} + 2 * {state.text}", (*rank.fields, *state.fields)), (a + 2 * c, b + 2 * d)


def _reals(values: Values, power: float) -> Candidates:
    for found, (a, b) in values.items():
        yield Found(f"{_factor(found)} ** -0.5", found.fields), (a**-power, b**-power)
    for found, (a, b) in values.items():
        yield Found(f"{_factor(found)} ** 0.5", found.fields), (a**power, b**power)
    for found, (a, b) in values.items():
        yield Found(f"1.0 / {_factor(found)}", found.fields), (1 / a, 1 / b)


def _logarithms(values: Values) -> Candidates:
    for first, (a, b) in values.items():
        for second, (c, d) in values.items():
            if a > c and b > d and first.fields != second.fields:
                text = f"log({first.text} / {_factor(second)})"
                yield Found(text, (*first.fields, *second.fields)), (math.log(a / c), math.log(b / d))


def _factor(found: Found) -> str:
    return found.text if found.text.isidentifier() else f"({found.text})"


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
