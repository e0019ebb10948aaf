"""What a spec means, rule by rule: options and repetition."""

import pytest
from paths import DATA

import archspec

# Repetition ----------------------------------------------------------------------------------------------------------


FAULTS = DATA / "faults"


@pytest.mark.parametrize(
    ("spec", "warned"),
    [
        ("residual_first_round.arch", []),
        ("residual_widths.arch", []),
        ("residuals.arch:last", []),
        ("residuals.arch:beside", []),
        ("residuals.arch:none", ["no residual connection carries the piped value from one iteration to the next"]),
        ("residuals.arch:highway", []),
        ("residuals.arch:gated", []),
        ("residuals.arch:projected", []),
        ("residuals.arch:joined", []),
        ("residuals.arch:split", ["no residual connection carries the piped value from one iteration to the next"]),
        ("residuals.arch:mapped", ["no residual connection carries the piped value from one iteration to the next"]),
        ("residuals.arch:activated", ["no residual connection carries `x` from one iteration to the next"]),
        ("residuals.arch:recurrent", []),
        ("residuals.arch:constant", ["no residual connection carries `x` from one iteration to the next"]),
        ("residuals.arch:silent", []),
        *[(f"residuals_vision.arch:{name}", []) for name in ("stem", "resnet", "option", "mask")],
        ("residuals.arch:named", ["no residual connection carries `x` from one iteration to the next"]),
    ],
)
def test_a_missing_residual_connection_is_missing_in_every_iteration(spec: str, warned: list[str]) -> None:
    warnings = archspec.load(str(FAULTS / spec)).warnings
    assert [warning.message for warning in warnings if warning.code == "no-residual"] == warned
