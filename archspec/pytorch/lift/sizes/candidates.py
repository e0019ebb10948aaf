"""Expressions of fields that sizes may be, with their values at two configurations."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations, permutations, product
from typing import NamedTuple, TypeAlias

LAYERS = ("layers", "n_layer", "depth")
"""The ends of the names of fields that no width is a multiple of."""

WIDTHS = ("dim", "hidden_size", "d_model")
"""The ends of the names of fields that are divided into heads."""

MAX_VOCABULARIES = 64
"""Tables have the rows of so many vocabularies of one size, such as those of codebooks."""

PATCHES = r"\(\w+ // \w+\) \*\* 2"
"""Numbers of patches in an image."""

RATIO = r"^\w+ // \w+$"
"""Quotients of two fields."""


class FieldExpression(NamedTuple):
    """A candidate expression for a size, and the configuration fields that it uses."""

    text: str
    fields: tuple[str, ...]


Values: TypeAlias = Mapping[FieldExpression, "tuple[float, float]"]
Candidate: TypeAlias = tuple[FieldExpression, tuple[float, float]]
Candidates: TypeAlias = Iterator[Candidate]


Fields: TypeAlias = Mapping[str, "tuple[float, float | None]"]

MAX_PARTS = 4
"""Maximum number of values predicted per pixel."""

MAX_JOINED = 4
"""Maximum number of parts of one width joined with a part of another width."""

MAX_HEADS = 64
"""Maximum head count considered in lists."""

LEAST_HEAD, LARGEST_HEAD = 8, 256
"""The sizes of heads."""

MAX_EXTRA_ROWS = 64
"""Tables have up to so many rows more than a vocabulary, such as those of tokens for images, and sequences so many
tokens more than patches. Widths are joined up to so many times.
"""


def is_of_vocabulary(fields: Sequence[str]) -> bool:
    """Whether one of the fields is the size of a vocabulary."""
    return any("vocab" in field for field in fields)


def is_unlikely(found: FieldExpression) -> bool:
    """Whether hardly any size is this product or quotient of two fields."""
    if "//" in found.text:  # by groups of heads, heads are divided, but no width is
        first, second = found.fields
        return re.search(r"(key_value|kv)_heads$", second) is not None and not is_count(first)
    return all(map(is_count, found.fields)) or is_of_vocabulary(found.fields)


def is_count(field: str) -> bool:
    """Whether a field counts parts: a size is a multiple of one count, but seldom the product of two."""
    counts = re.search(r"heads?$|^n_head|experts|_tok(en)?$|top_?k|_k$|groups?$", field)
    return counts is not None and re.search(r"(^|_)d(im)?_head$", field) is None


def is_of_head(found: FieldExpression) -> bool:
    """Whether an expression is the size of a head, which may be the sum of two."""
    of_head = r"\w*(head_dim|head_size|d_head|dim_head|d_kv)"
    return re.fullmatch(rf"{of_head}( \+ {of_head})?|\w+ // \w*heads?", found.text) is not None


def _named(values: Values, pattern: str) -> dict[FieldExpression, tuple[float, float]]:
    """Return the expressions in whose text a pattern occurs."""
    return {found: pair for found, pair in values.items() if re.search(pattern, found.text)}


def with_numbers(values: Values) -> Candidates:
    for number in (2, 3, 4, 5, 6, 8):
        for found, (a, b) in values.items():
            yield FieldExpression(f"{number} * {factor(found)}", found.fields), (number * a, number * b)
    for number in (2, 4, 8):
        for found, (a, b) in values.items():
            if a >= number and b >= number:
                yield FieldExpression(f"{factor(found)} // {number}", found.fields), (a // number, b // number)
    yield from shifted(values)


def doubled_widths(values: Values) -> Candidates:
    """Yield widths that are doubled by each of several steps."""
    for number in (16, 32):
        for found, (a, b) in values.items():
            if not is_unlikely(found):
                yield FieldExpression(f"{number} * {found.text}", found.fields), (number * a, number * b)


def shifted(values: Values) -> Candidates:
    for number in (1, 2):
        for found, (a, b) in values.items():
            yield FieldExpression(_plus(found.text, number), found.fields), (a + number, b + number)
            if a > number and b > number:
                yield FieldExpression(f"{found.text} - {number}", found.fields), (a - number, b - number)


def _plus(text: str, number: int) -> str:
    """Return a sum, with one number at its end."""
    before, _, last = text.rpartition(" + ")
    return f"{before} + {int(last) + number}" if before and last.isdigit() else f"{text} + {number}"


def products_and_quotients(values: Values) -> Candidates:
    for first, (a, b) in values.items():
        for second, (c, d) in values.items():
            fields = (*first.fields, *second.fields)
            if first != second and a % c == 0 and b % d == 0 and a > c and b > d:
                yield FieldExpression(f"{first.text} // {second.text}", fields), (a // c, b // d)
    for turn, (first, (a, b)) in enumerate(values.items()):
        for second, (c, d) in [*values.items()][turn + 1 :]:
            yield FieldExpression(f"{first.text} * {second.text}", (*first.fields, *second.fields)), (a * c, b * d)


def sums(values: Values) -> Candidates:
    for turn, (first, (a, b)) in enumerate(values.items()):
        for second, (c, d) in [*values.items()][turn + 1 :]:
            yield FieldExpression(f"{first.text} + {second.text}", (*first.fields, *second.fields)), (a + c, b + d)


def sums_of_three(values: Values) -> Candidates:
    for items in combinations(values.items(), 3):
        fields = tuple([name for found, _ in items for name in found.fields])
        if not any(map(is_count, fields)) and not is_of_vocabulary(fields):
            (a, b), (c, d), (e, f) = [pair for _, pair in items]
            yield FieldExpression(" + ".join([found.text for found, _ in items]), fields), (a + c + e, b + d + f)


def squares(values: Values) -> Candidates:
    for extra in (0, 1, 2):
        for found, (a, b) in values.items():
            if all(map(is_count, found.fields)):
                continue
            text = f"{factor(found)} ** 2" + (f" + {extra}" if extra else "")
            yield FieldExpression(text, found.fields), (a * a + extra, b * b + extra)


def vocabulary_rows(values: Values, products: Sequence[Candidate]) -> Candidates:
    """Yield the rows of a table of several vocabularies of one size, of one and several others, and one row more."""
    vocabularies = _named(values, "vocab")
    several = [item for item in products if sum("vocab" in field for field in item[0].fields) == 1]
    of_numbers = [*_repeated(vocabularies)]
    yield from of_numbers
    for found, (a, b) in [*several, *of_numbers]:
        for first, (c, d) in vocabularies.items():
            if first.fields[0] not in found.fields:
                both = FieldExpression(f"{first.text} + {found.text}", (*first.fields, *found.fields)), (a + c, b + d)
                yield from [both, *shifted(dict([both]))]


def _repeated(values: Values) -> Candidates:
    for number in range(9, MAX_VOCABULARIES + 1):
        for found, (a, b) in values.items():
            yield FieldExpression(f"{number} * {found.text}", found.fields), (number * a, number * b)


def video_place_counts(values: Values) -> Candidates:
    """Yield the numbers of places in a video: as many squares of patches as there are groups of frames."""
    ratios = _named(values, RATIO)
    for found, (a, b) in _named(ratios, "frames").items():
        for other, (c, d) in _named(ratios, "size").items():
            fields = (*found.fields, *other.fields)
            if not any(map(is_count, fields)):
                yield FieldExpression(f"({found.text}) * ({other.text}) ** 2", fields), (a * c * c, b * d * d)


def all_layer_widths(values: Values) -> Candidates:
    """Yield the widths of what has a part for each layer."""
    sizes = _named(values, "per_layer")
    for layers, (a, b) in values.items():
        for size, (c, d) in sizes.items() if layers.text.endswith(LAYERS) else ():
            yield FieldExpression(f"{layers.text} * {size.text}", (*layers.fields, *size.fields)), (a * c, b * d)


def rotary_thirds(values: Values) -> Candidates:
    """Yield the third of a head that has rotary positions, and half of it."""
    for number in (3, 6):
        for found, (a, b) in values.items():
            if is_of_head(found) and a % number == b % number == 0:
                yield FieldExpression(f"{factor(found)} // {number}", found.fields), (a // number, b // number)


def head_remainders(values: Values) -> Candidates:
    """Yield the parts of heads that the heads of others do not fill, such as those without rotary positions."""
    heads = {found: pair for found, pair in values.items() if is_of_head(found)}
    for first, (a, b) in heads.items():
        for second, (c, d) in heads.items():
            if a > c and b > d:
                yield FieldExpression(f"{first.text} - {second.text}", (*first.fields, *second.fields)), (a - c, b - d)


def rotary_fractions(values: Values) -> Candidates:
    """Yield the three quarters or four fifths of a head that have rotary positions, and half of these."""
    for times, number in ((3, 4), (3, 8), (4, 5), (2, 5)):
        for found, (a, b) in values.items():
            if is_of_head(found) and times * a % number == times * b % number == 0:
                text = f"{times} * {factor(found)} // {number}"
                yield FieldExpression(text, found.fields), (times * a // number, times * b // number)


def patch_sizes(values: Values) -> Candidates:
    """Yield the numbers of pixels in a patch: channels, of one image or of several, or three, times a square."""
    sides = _named(values, "patch_size$")
    times = _named(sides, "temporal")
    for channels, (a, b) in _named(values, "channels").items():
        for side, (c, d) in sides.items():
            fields = (*channels.fields, *side.fields)
            yield FieldExpression(f"{channels.text} * {side.text} ** 2", fields), (a * c * c, b * d * d)
            for time, (e, f) in times.items():
                text = f"{channels.text} * {time.text} * {side.text} ** 2"
                yield FieldExpression(text, (*fields, *time.fields)), (a * e * c * c, b * f * d * d)
    for side, (c, d) in sides.items():
        yield FieldExpression(f"3 * {side.text} ** 2", side.fields), (3 * c * c, 3 * d * d)


def tile_embedding_sizes(simple: Values, compound: Values) -> Candidates:
    """Yield the sizes of the embeddings of all places in all tiles of an image."""
    tiles, places = _named(simple, "tiles$"), _named(compound, rf"^{PATCHES}( \+ [12])?$")
    for (several, a), (count, b), (width, c) in product(tiles.items(), places.items(), simple.items()):
        if width.text.endswith(WIDTHS):
            fields = (*several.fields, *count.fields, *width.fields)
            text = f"{several.text} * {factor(count)} * {width.text}"
            yield FieldExpression(text, fields), (a[0] * b[0] * c[0], a[1] * b[1] * c[1])


def products_of_three(simple: Values, compound: Values) -> Candidates:
    for found, (a, b) in _named(compound, "//").items():
        for other, (c, d) in simple.items():
            yield FieldExpression(f"{found.text} * {other.text}", (*found.fields, *other.fields)), (a * c, b * d)


def split_head_projections(simple: Values, compound: Values) -> Candidates:
    """Yield the sizes of projections to heads that have two parts, such as one with positions and one without."""
    counts = _named(simple, "heads$|^n_head$")
    for found, (a, b) in _named(compound, r" \+ ").items():
        if is_of_head(found):
            for other, (c, d) in counts.items():
                yield FieldExpression(f"{other.text} * ({found.text})", (*other.fields, *found.fields)), (a * c, b * d)


def quotients(simple: Values, compound: Values) -> Candidates:
    """Yield sizes that are divided twice, such as the size of a head of a narrower stream."""
    for found, (a, b) in _named(compound, RATIO).items():
        for other, (c, d) in simple.items():
            if a % c == 0 and b % d == 0 and a > c and b > d:
                yield FieldExpression(f"{found.text} // {other.text}", (*found.fields, *other.fields)), (a // c, b // d)


def joined_projections(simple: Values, compound: Values) -> Candidates:
    """Yield the sizes of projections that are joined: queries, keys and values with fewer heads, or one, for these."""
    sizes = [item for item in compound.items() if "//" in item[0].text and len(item[0].fields) > 1]
    counts = _named(simple, "head")
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
                    yield (
                        FieldExpression(f"({first.text} + {text}) * {factor(size)}", whole),
                        ((a + c) * e, (b + d) * f),
                    )


def scan_projections(values: Values) -> Candidates:
    """Yield the sizes of joined projections for scans: once or twice the inner size, two of the states of all groups,
    and a step for each head.
    """
    endings = ("heads$", "d_?head$|head_dim$", "groups$", "state(_size)?$")
    for (head, a), (size, b), (group, c), (state, d) in product(*[_named(values, end).items() for end in endings]):
        inner, shared = f"{head.text} * {size.text}", f"2 * {group.text} * {state.text}"
        fields = (*head.fields, *size.fields, *group.fields, *state.fields)
        both = [(a[turn] * b[turn], 2 * c[turn] * d[turn], a[turn]) for turn in (0, 1)]
        yield FieldExpression(f"{inner} + {shared}", fields), (both[0][0] + both[0][1], both[1][0] + both[1][1])
        whole = [2 * wide + narrow + steps for wide, narrow, steps in both]
        yield FieldExpression(f"2 * {inner} + {shared} + {head.text}", fields), (whole[0], whole[1])


def selection_projections(values: Values) -> Candidates:
    """Yield the sizes of joined projections for scans: a step of low rank, and two of the states."""
    ranks, states = _named(values, "(step|dt)_rank$"), _named(values, "state(_size)?$")
    for (rank, (a, b)), (state, (c, d)) in product(ranks.items(), states.items()):
        yield FieldExpression(f"{rank.text} + 2 * {state.text}", (*rank.fields, *state.fields)), (a + 2 * c, b + 2 * d)


def reals(values: Values) -> Candidates:
    for found, (a, b) in values.items():
        yield FieldExpression(f"{factor(found)} ** -0.5", found.fields), (a**-0.5, b**-0.5)
    for found, (a, b) in values.items():
        yield FieldExpression(f"{factor(found)} ** 0.5", found.fields), (a**0.5, b**0.5)
    for found, (a, b) in values.items():
        yield FieldExpression(f"1.0 / {factor(found)}", found.fields), (1 / a, 1 / b)


def ratios(sizes: Values) -> Candidates:
    """Yield the quotients of two fields that are no integers, such as the scale of an adapter."""
    for first, (a, b) in sizes.items():
        for second, (c, d) in sizes.items():
            if first != second:
                yield FieldExpression(f"{first.text} / {second.text}", (*first.fields, *second.fields)), (a / c, b / d)


def fourth_roots(values: Values) -> Candidates:
    """Yield what queries and keys are both scaled with."""
    for found, (a, b) in values.items():
        yield FieldExpression(f"{factor(found)} ** -0.25", found.fields), (a**-0.25, b**-0.25)


def logarithms(values: Values) -> Candidates:
    for first, (a, b) in values.items():
        for second, (c, d) in values.items():
            if a > c and b > d and first.fields != second.fields:
                text = f"log({first.text} / {factor(second)})"
                yield FieldExpression(text, (*first.fields, *second.fields)), (math.log(a / c), math.log(b / d))


def sinusoid_rates(values: Values) -> Candidates:
    """Yield the logarithms of the ratios of successive frequencies: `dim // 2` from 1 to 1/10000, without its end
    (Vaswani et al., 2017, section 3.5) or with it, as in diffusion models (Ho et al., 2020).
    """
    for size, (a, b) in values.items():
        for text, fewer in ((f"{factor(size)} // 2", 0), (f"{factor(size)} // 2 - 1", 1)):
            c, d = a // 2 - fewer, b // 2 - fewer
            if c > 0 and d > 0:
                yield FieldExpression(f"log(10000.0) / ({text})", size.fields), (math.log(1e4) / c, math.log(1e4) / d)


def factor(found: FieldExpression) -> str:
    return found.text if found.text.isidentifier() else f"({found.text})"


def with_some_more(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return widths with some features more."""
    return [
        FieldExpression(f"{name} + {a - c}", (name,))
        for name, (c, d) in fields.items()
        if d is not None and c != d and a - c == b - d and 0 < a - c <= MAX_EXTRA_ROWS and not name.endswith(LAYERS)
    ]


def with_more_rows(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return vocabularies with some rows more."""
    return [
        FieldExpression(f"{name} + {a - c}", (name,))
        for name, (c, d) in fields.items()
        if "vocab" in name and d is not None and a - c == b - d and 0 < a - c <= MAX_EXTRA_ROWS
    ]


def with_more_places(a: float, b: float, places: Values) -> list[FieldExpression]:
    """Return numbers of patches with some tokens more."""
    return [
        FieldExpression(f"{found.text} + {a - c}", found.fields)
        for found, (c, d) in places.items()
        if a - c == b - d and 0 < a - c <= MAX_EXTRA_ROWS
    ]


def with_multiples(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return the widths of what is joined of a part of one width and several of another one."""
    widths = {name: pair for name, pair in fields.items() if not is_count(name) and not name.endswith(LAYERS)}
    return [
        FieldExpression(f"{first} + {times} * {second}", (first, second))
        for (first, (c, d)), (second, (e, f)) in permutations(widths.items(), 2)
        for times in range(2, MAX_JOINED + 1)
        if d is not None and f is not None and c != d and e != f and (a, b) == (c + times * e, d + times * f)
    ]


def with_times(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return multiples of widths by numbers that are not fields, such as the features of all places after
    convolutions, and heads of a size that is no field.
    """
    known = {c for c, _ in fields.values()}
    return [
        FieldExpression(f"{a // c} * {name}", (name,))
        for name, (c, d) in fields.items()
        if d is not None and c != d and a % c == 0 and a * d == b * c and _is_multiple(name, a // c, known)
    ]


def _is_multiple(name: str, times: float, known: Collection[float]) -> bool:
    """Whether sizes may be so many times a field: a width, but for numbers that fields have, or heads of a usual size,
    whose queries, keys and values a projection may have.
    """
    if name.endswith((*WIDTHS, "width", "hidden")) or name == "d":
        return 1 < times <= MAX_EXTRA_ROWS and times not in known
    return name.endswith(("heads", "n_head")) and LEAST_HEAD <= times <= 3 * LARGEST_HEAD


def with_squares(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return multiples of squares, or of products with squares, such as the numbers of pixels in a patch."""
    others = {"": (1, 1)} | {name: pair for name, pair in fields.items() if not is_count(name)}
    found: list[FieldExpression] = []
    for side, (c, d) in fields.items():
        if d is None or c == d or is_count(side):
            continue
        for name, (e, f) in others.items():
            times, rest = divmod(a, e * c * c)
            if name != side and f is not None and rest == 0 and times <= MAX_PARTS and b == times * f * d * d:
                parts = [f"{times}"] * (times > 1) + [name] * (name != "") + [f"{side} ** 2"]
                found.append(FieldExpression(" * ".join(parts), (*([name] if name else []), side)))
    return found


def parts_of_widths(a: float, b: float, fields: Fields) -> list[FieldExpression]:
    """Return the sizes of heads whose number is in a list, and roots of them."""
    found: list[FieldExpression] = []
    for name, (c, d) in fields.items():
        if name.endswith(WIDTHS) and d is not None:
            heads = [count for count in range(2, MAX_HEADS + 1) if c % count == d % count == 0]
            for count, power in product(heads, (1, 0.5, -0.5) if isinstance(a, float) else (1,)):
                sizes = (c // count) ** power, (d // count) ** power
                if math.isclose(sizes[0], a) and math.isclose(sizes[1], b):
                    text = f"{name} // {count}"
                    found.append(FieldExpression(text if power == 1 else f"({text}) ** {power}", (name,)))
    return found
