"""Operations on dotted addresses."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archspec.core import addresses

ADDRESSES = st.lists(st.sampled_from(["a", "b", "layer", "0", "1", "10", "00"]), max_size=5).map(".".join)


@given(ADDRESSES)
def test_segments_make_the_address(address: str) -> None:
    found = addresses.segments(address)
    assert addresses.join(*found) == address
    assert list(addresses.prefixes(address)) == [".".join(found[: end + 1]) for end in range(len(found))]
    if found:
        assert addresses.join(addresses.parent(address), addresses.last_segment(address)) == address
        assert addresses.first_segment(address) == found[0]


@given(ADDRESSES, ADDRESSES)
def test_relative_is_the_opposite_of_join(outer: str, inner: str) -> None:
    address = addresses.join(outer, inner)
    assert addresses.is_inside(address, outer)
    assert addresses.relative(address, outer) == inner
    assert addresses.ends_with(address, inner) == bool(outer and inner)


@given(ADDRESSES, ADDRESSES)
def test_inside_is_a_question_of_segments(address: str, outer: str) -> None:
    inside = addresses.is_inside(address, outer)
    assert inside == (outer == "" or outer in addresses.prefixes(address))
    assert addresses.is_below(address, outer) == (inside and address != outer)
    if not inside:
        assert addresses.relative(address, outer) == address


@pytest.mark.parametrize("segment", ["0", "7", "123", "9" * 18])
def test_an_index_is_a_plain_integer(segment: str) -> None:
    assert addresses.is_index(segment)
    assert addresses.address_pattern(f"layer.{segment}.weight") == "layer.*.weight"


@pytest.mark.parametrize("segment", ["", "a", "00", "01", "-1", "1e3", "\u0661", "\u00b2", "9" * 19, "layer0"])
def test_other_segments_are_names(segment: str) -> None:
    assert not addresses.is_index(segment)
    assert addresses.address_pattern(f"layer.{segment}.weight") == f"layer.{segment}.weight"


def test_ranges() -> None:
    assert addresses.format_ranges([0, 1, 2, 5]) == "0-2,5"
    assert addresses.format_ranges([0, 2, 4, 6, 8, 10, 12, 14]) == "0,2,4,6,8,10,12,14"
    assert addresses.format_ranges([0, 2, 4, 6, 8, 10], 6) == "0,2,4,6,8,10"
    assert addresses.format_ranges([0, 2, 4, 6, 8, 10, 12, 14, 15], 6) == "0,2,4,6,...,14-15"
