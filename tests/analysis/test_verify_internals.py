"""Steps of the code that the tests of verify cannot reach through public names."""

from pathlib import Path

import pytest
from test_verify import ENCODER, brief, spelt, tensors, verify

from archspec.analysis.verify import verify as verification
from archspec.analysis.verify.naming import respell
from archspec.formats.configs.names import Names

PAIRS = (("encoder.layer.*", "layers.*"), ("output.dense", "o_proj"), ("dense", "fc"))


def test_a_checkpoint_with_the_names_of_a_live_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = {f"model.{Names(PAIRS).live(name)}": shape for name, shape in tensors(ENCODER).items()}
    assert not verify(tmp_path, ENCODER, stored).is_exact  # the family has no list
    monkeypatch.setattr(verification, "find_names", lambda definition, specs: [Names(PAIRS)])
    found = verify(tmp_path, ENCODER, stored)
    assert found.is_exact
    assert spelt(found) == [
        ("model.", "", 55),
        ("layers.*", "encoder.layer.*", 48),
        ("o_proj", "output.dense", 12),
        ("fc", "dense", 8),
    ]
    assert verify(tmp_path, ENCODER, tensors(ENCODER)).spellings == ()
    assert brief(verify(tmp_path, ENCODER, tensors(ENCODER) | {"more": (2,)})) == [("unexpected", "more", "")]


@pytest.mark.parametrize(
    ("names", "spec", "found", "prefixes"),
    [
        ("p.a p.b c", "a b c", "p.a=a p.b=b c=c", [("p.", "", 2)]),
        ("a b z", "m.a m.b z", "a=m.a b=m.b z=z", [("", "m.", 2)]),
        ("a z", "m.a z", "z=z", []),
        ("p.a z", "a z", "z=z", []),
        ("a b c d e", "m.a m.b x y z", "", []),
        ("a b c d", "m.a m.b x y", "a=m.a b=m.b", [("", "m.", 2)]),
        ("p.a p.b c d e", "a b x y z", "", []),
        ("p.q.a", "a q.a", "p.q.a=q.a", [("p.", "", 1)]),
        ("a n.a", "m.n.a", "n.a=m.n.a", [("", "m.", 1)]),
        ("x.gamma", "m.x.weight", "", []),
        ("q.gamma", "m.norm.weight", "", []),
        ("norm.gamma", "m.norm.weight", "norm.gamma=m.norm.weight", [("", "m.", 1)]),
    ],
)
def test_a_prefix_is_what_most_names_agree_with(
    names: str, spec: str, found: str, prefixes: list[tuple[str, str, int]]
) -> None:
    """Of several, it is the shortest; at least half of the names, of either side, agree."""
    mapped, variants, _ = respell(names.split(), {*spec.split()}, {name for name in spec.split() if "norm" in name})
    assert {*mapped.items()} == {tuple(pair.split("=")) for pair in found.split()}
    assert [(item.checkpoint, item.spec, item.names) for item in variants if item.kind == "prefix"] == prefixes
