"""Active parameters: those used for one token, found from the computation alone."""

import json
from typing import Any

import pytest

import archspec
from archspec import ActiveParameters, Table
from archspec.testing import main


def active(model: archspec.Model) -> ActiveParameters | None:
    return model.count().table.active


# Published figures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "overrides", "total", "without_tables"),
    [
        ("mixtral-8x7b", {"joined": True}, 12_879_925_248, 12_748_853_248),  # "13B": the paper, section 1
        ("qwen3-30b-a3b", {"joined": True}, 3_353_032_704, 3_041_867_776),  # "3.3B activated", truncated
        ("deepseek-v3", {"joined": True}, 37_552_282_624, 36_625_603_584),  # "37B": without the word embeddings
        ("gpt-oss-20b", {}, 4_187_440_704, 3_608_307_264),  # "3.6B": embeddings not counted, says the model card
    ],
)
def test_published_figures(name: str, overrides: dict[str, Any], total: int, without_tables: int) -> None:
    found = active(archspec.load(name, **overrides))
    assert found is not None and (found.total, found.without_tables) == (total, without_tables)


@pytest.mark.parametrize("name", ["mixtral-8x7b", pytest.param("deepseek-v3", marks=pytest.mark.slow)])
def test_experts_one_by_one_are_as_active_as_joined_ones(name: str) -> None:
    one_by_one, joined = active(archspec.load(name)), active(archspec.load(name, joined=True))
    assert one_by_one is not None and joined is not None and one_by_one[:3] == joined[:3]


def test_dense_models_have_no_separate_figure(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("bert-base-uncased", "llama-3.2-1b", "t5-small"):
        assert active(archspec.load(name)) is None
    assert main(["count", "bert-base-uncased", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["active"] is None


def test_active_parameters_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("count", "cost"):
        assert main([command, "gpt-oss-20b", "--depth", "0"]) == 0
        assert "4,187,440,704 active (4.19B)" in capsys.readouterr().out
        assert main([command, "gpt-oss-20b", "--format", "json"]) == 0
        found = json.loads(capsys.readouterr().out)["active"]
        assert found == {"total": 4187440704, "without_tables": 3608307264, "choices": [[4, 32]]}


def test_the_table_keeps_them() -> None:
    table = archspec.load("gpt-oss-20b").count().table
    again = Table.from_data(json.loads(json.dumps(table.to_data())))
    assert again == table
    assert table.active is not None and {*table.active.by_tensor()} == {None, *table.active.choices}


IDLE = "without the experts that a token does not use"


@pytest.mark.parametrize(
    ("name", "number", "count", "step"),
    [
        ("mixtral-8x7b", "12.9B", 12_879_925_248, IDLE),
        ("gpt-oss-20b", "3.6B", 3_608_307_264, f"{IDLE}, and the tables that are only read"),
        pytest.param(
            *("deepseek-v3", "37B", 36_625_603_584, f"{IDLE}, and the tables that are only read"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_explain_finds_active_parameters(name: str, number: str, count: int, step: str) -> None:
    (answer,) = archspec.explain(name, number).answers
    assert (count, step) in [(match.params, match.steps[-1].text) for match in answer.matches]
    for match in answer.matches:
        assert sum(part.times * part.each for part in match.parts) == match.params


# The computation itself -----------------------------------------------------------------------------------------------


MIXTURE = """
dim batch, seq
layer Mixture(hidden = 4, experts = 6, best = 2)(x [batch, seq, hidden]) -> [batch, seq, best, hidden] {{
  gate: param [experts, hidden]
  weight: param [experts, hidden, hidden]
  bias: param [experts, hidden]
  _, chosen = linear(x, .gate) |> topk(best)
  y = reshape([batch, seq, 1, hidden])(x)
  {statements}
}}
block Around(n = 4)(x [batch, seq, n]) -> [batch, seq, 2, n] {{
  {around}
}}
model "mixture" = Around()
"""
ONCE = "return mixture: Mixture()(x)"
PLAIN = "return expert_linear(y, chosen, .weight, .bias)"


@pytest.mark.parametrize(
    ("statements", "around", "total"),
    [
        (PLAIN, ONCE, 24 + 2 * 16 + 2 * 4),
        ("return expert_linear(y, transpose(transpose(chosen)), transpose(.weight), .bias)", ONCE, 24 + 2 * 16 + 2 * 4),
        ("return expert_linear(y, chosen, float32(.weight), .bias)", ONCE, 24 + 2 * 16 + 2 * 4),
        # the same tensor with other indices; scaled experts; changed indices; a layer applied twice
        ("return expert_linear(expert_linear(y, chosen, .weight, .bias), chosen, .weight)", ONCE, None),
        ("return expert_linear(y, chosen, .weight * 2.0, .bias)", ONCE, None),
        ("return expert_linear(y, (chosen + 1) % experts, .weight, .bias)", ONCE, None),
        (PLAIN, "h = mixture: Mixture()(x)\n return .mixture(sum(axis = 2)(h))", None),
        # all weights are used, and the biases of a few
        ("return expert_linear(linear(y, sum(axis = 0)(.weight)), chosen, .weight, .bias)", ONCE, 24 + 6 * 16 + 2 * 4),
        # experts of one half, and all of the other one
        (
            "a, b = split([4, 4])(concat(axis = -1)(.weight, .weight))\n"
            "return expert_linear(y, chosen, a, .bias) + sum(axis = 0)(sum(axis = 0)(b))",
            ONCE,
            None,
        ),
        # experts in two halves, both of which are used in the same way
        (
            "a, b = split([2, 2], axis = 1)(.weight)\n c, d = split([2, 2], axis = 1)(.bias)\n"
            "return concat(axis = -1)(expert_linear(y, chosen, a, c), expert_linear(y, chosen, b, d))",
            ONCE,
            24 + 2 * 16 + 2 * 4,
        ),
        # one row for the largest score; experts that are added up for all tokens; all experts of a token
        (
            "return expert_linear(y, chosen, .weight) + embedding(argmax(axis = -1)(linear(y, .gate)), .bias)",
            ONCE,
            24 + 2 * 16 + 4,
        ),
        ("return expert_linear(y, chosen, .weight) + sum(axis = 0)(.bias)", ONCE, 24 + 2 * 16 + 6 * 4),
        (PLAIN, "return slice(axis = 2, stop = 2)(mixture: Mixture(best = 6)(x))", None),
        # some of the choices
        (
            "one = slice(axis = 2, stop = 1)(chosen)\n"
            "return expand([batch, seq, 2, hidden])(expert_linear(y, one, .weight, .bias))",
            ONCE,
            None,
        ),
        # a choice among tokens, from which experts are computed
        (
            "_, tokens = linear(x, .gate) |> topk(1, axis = 1)\n"
            "return expert_linear(y, slice(axis = 2, stop = 2)(tokens % experts), .weight, .bias)",
            ONCE,
            None,
        ),
    ],
)
def test_what_is_unknown_has_no_figure(statements: str, around: str, total: int | None) -> None:
    found = active(archspec.loads(MIXTURE.format(statements=statements, around=around)))
    assert (found and found.total) == total


@pytest.mark.parametrize(
    ("choice", "choices"),
    [
        ("linear(x, .gate) |> topk(best)", ((2, 6),)),
        ("linear(x, .gate) |> topk(best, axis = 2)", ((2, 6),)),
        ("transpose(linear(x, .gate)) |> topk(best, axis = 1)", ((2, 6),)),
        # of each of two groups of experts
        ("reshape([batch, seq, 2, 3])(linear(x, .gate)) |> topk(1)", None),
    ],
)
def test_choices_are_made_for_each_token(choice: str, choices: tuple[tuple[int, int], ...] | None) -> None:
    moved = {"transpose": "transpose(chosen)", "reshape": "reshape([batch, seq, 2])(chosen)"}
    used = moved.get(choice.partition("(")[0], "chosen")
    spec = MIXTURE.replace("linear(x, .gate) |> topk(best)", choice)
    statements = f"return expert_linear(y, {used}, .weight, .bias)"
    found = active(archspec.loads(spec.format(statements=statements, around=ONCE)))
    assert (found and found.choices) == choices


# Records of operations ------------------------------------------------------------------------------------------------
