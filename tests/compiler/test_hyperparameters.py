"""What a spec means, rule by rule: hyperparameters, roles, requirements, shapes and outputs."""

import numpy as np
import reference
from paths import DATA
from small import load

import archspec

# Outputs -------------------------------------------------------------------------------------------------------------


def test_names_of_a_definition_hide_dimensions() -> None:
    model = archspec.load(str(DATA / "faults" / "hidden_dimensions.arch:outer"))
    assert {name: type.shape[1:] for name, type in (model.inputs | model.outputs).items()} == {
        "x": (6, 4),
        "n": (3,),
        "y": (4, 6),
        "z": (3,),
    }


def test_an_integer_for_a_real_input_is_that_number() -> None:
    model = load("""
dim batch
fn times(x [batch, 3], by []) -> [batch, 3] {
  return x * by
}
layer Net()(x [batch, 3]) -> [batch, 3] {
  weight: param [3]
  return times(x, 3) * .weight
}
""")
    x = np.arange(6.0).reshape(2, 3)
    outputs = reference.evaluate_model(model, {"x": x}, {"weight": np.ones(3)}).outputs
    np.testing.assert_array_equal(outputs["output"], 3 * x)
