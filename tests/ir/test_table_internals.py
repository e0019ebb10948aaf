"""Steps of the code that the tests of table cannot reach through public names."""

import pytest

from archspec.ir.table import count_active_parameters


@pytest.mark.parametrize(
    ("total", "parts", "used"),
    [
        (100, {}, 100),
        (100, {(1, 4): 40}, 70),
        (100, {(4, 4): 40}, 100),
        (100, {(0, 4): 40}, 60),
        (100, {(1, 4): 40, (2, 3): 30}, 60),
        (100, {(2, 3): 30, (1, 4): 42}, None),
        (100, {(2, 4): 42}, 79),
    ],
)
def test_parameters_of_a_choice_are_used_in_part(
    total: int, parts: dict[tuple[int, int], int], used: int | None
) -> None:
    assert count_active_parameters(total, parts) == used
