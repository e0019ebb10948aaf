"""What a spec means, rule by rule: lines and files, addresses, what is owned, shared and repeated."""

from pathlib import Path

import pytest
from small import DENSE, SCALE, load, operations

import archspec
from archspec import testing

# Lines and files -----------------------------------------------------------------------------------------------------


def test_two_hashes_document_what_follows() -> None:
    text = DENSE + "\n## Not this.\nblock Net()(x [4]) -> [4] {\n  return x |> a: Dense(4)\n}\n"
    assert load(text).doc == "Not this."
    assert load(text + '## A net\n## of one layer.\nmodel "it" = Net()\n').doc == "A net\nof one layer."


def test_files_import_from_files_beside_and_below_them(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "dense.arch").write_text(DENSE)
    (tmp_path / "parts" / "all.arch").write_text(
        'export "dense.arch" { Dense as Map }\nexport ops { tanh as squash }\n'
    )
    (tmp_path / "net.arch").write_text(
        """
import "parts/all.arch" { Map as Affine, squash }
block Net()(x [..., 4]) -> [..., 4] {
  return x |> a: Affine(4) |> squash
}
model "net" = Net()
"""
    )
    model = archspec.load(str(tmp_path / "net.arch"))
    assert (model.params.total, operations(model, "op")) == (20, ["linear", "tanh"])
    assert model.tensors[0].type == "Dense"


def test_an_error_inside_imported_definitions_is_at_the_use_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "parts.arch").write_text(
        "layer Even(n)(x [n]) -> [n] {\n  require n % 2 == 0\n  return x\n}\n"
        "block Part(n)(x [n]) -> [n] {\n  return x |> even: Even(n)\n}\n"
    )
    (tmp_path / "net.arch").write_text(
        'import "parts.arch" { Part }\nblock Net()(x [3]) -> [3] {\n  return x |> part: Part(3)\n}\n'
        'model "net" = Net()\n'
    )
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(tmp_path / "net.arch"))
    (found,) = caught.value.diagnostics
    assert found.code == "require" and found.span is not None
    assert found.span.location == f"{tmp_path / 'net.arch'}:3"


@pytest.mark.parametrize(("caller", "expects"), [("Part", "shape [a, b, 2]"), ("inner", "3 axes")])
def test_dimensions_of_another_file_are_not_named_where_it_is_used(tmp_path: Path, caller: str, expects: str) -> None:
    (tmp_path / "parts.arch").write_text(
        "dim a, b\nfn inner(x [a, b, 2]) -> [...] { return x }\nblock Part()(x [...]) -> [...] { return inner(x) }\n"
    )
    call = "inner" if caller == "inner" else "p: Part()"
    block = f"block Net()(x [3]) -> [...] {{ return x |> {call} }}"
    (tmp_path / "net.arch").write_text(f'import "parts.arch" {{ {caller} }}\n{block}\nmodel "net" = Net()\n')
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(tmp_path / "net.arch"))
    assert f"input `x` of `inner` expects {expects}, found [3]" in {d.message for d in caught.value.diagnostics}


def test_definitions_for_any_shape_are_not_compiled_alone(tmp_path: Path) -> None:
    path = tmp_path / "gate.arch"
    path.write_text("layer Gate(n = 4)(x [...], y [n]) -> [...] {\n  w: param [n]\n  return x * .w * y\n}\n")
    assert not testing.check(str(path))
    path.write_text(path.read_text().replace("x [...]", "x [2]"))
    assert any(d.severity == "error" for d in testing.check(str(path)))


def test_one_file_may_have_several_models(tmp_path: Path) -> None:
    path = tmp_path / "two.arch"
    path.write_text(SCALE + 'model "small" = Scale(2)\nmodel "a: big one" = Scale(n = 20)\n')
    assert archspec.load(f"{path}:small").params.total == 2
    assert archspec.load(f"{path}:a: big one").params.total == 20
    with pytest.raises(archspec.ArchError) as caught:
        archspec.load(str(path))
    assert [d.code for d in caught.value.diagnostics] == ["which-model"]
    assert "small" in str(caught.value) and "a: big one" in str(caught.value)
