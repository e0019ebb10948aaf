"""Cases in text files: specs, and what their compiled models show.

A file has cases: a title, a spec, and sections. The header of a section is `---`, then replacements in the spec, in
JSON (`"old" => "new"`, where `old` occurs once), and hyperparameters (`{"n": 3}`). A section has the hyperparameters,
inputs, tensors, layers, operations, outputs and warnings of the model, or its errors. With a question in the header, it
has the answer: `check` (all errors and warnings), `build` (PyTorch code), `marks` (of pictures beside the spec without
replacements), or a call as in `archspec.cost(model)`, where `model` is the model of the section, `path` its file (also
the configuration of an adapter), and `base` the model of the spec without replacements. `pytest --update-golden` writes
the sections anew.
"""

import ast
import html
import json
import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import networkx
import yaml
from small import complete, load

import archspec
from archspec import testing

REPLACEMENT = re.compile(r'("(?:[^"\\]|\\.)*") => ("(?:[^"\\]|\\.)*") ?')
FOLDER = re.compile(rf"{re.escape(tempfile.gettempdir())}/\w+/(case/)?")


class Case(NamedTuple):
    title: str
    text: str
    sections: tuple[str, ...]


def read(text: str) -> Iterator[Case]:
    """Yield the cases of a file, each with the headers of its sections."""
    for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
        title, _, content = part.partition("\n")
        lines = content.splitlines(keepends=True)
        headers = [i for i, line in enumerate(lines) if line.startswith("---")]
        yield Case(title, "".join(lines[: headers[0]]), tuple(lines[i][4:].strip() for i in headers))


def show_case(case: Case) -> str:
    """Return a case with what its sections show now."""
    parts = [f"=== {case.title}\n{case.text}"]
    for section in case.sections:
        text, question = replaced(case, section)
        overrides: dict[str, Any] = {}
        if question.startswith("{"):
            overrides, end = json.JSONDecoder().raw_decode(question)
            question = question[end:].lstrip()
        try:
            shown = answer(question, text, case.text, overrides)
        except archspec.ArchError as error:
            shown = f"{error}\n"
        except (TypeError, ValueError) as error:
            shown = f"{type(error).__name__}: {error}\n"
        parts.append(f"{f'--- {section}'.rstrip()}\n{FOLDER.sub('', shown)}\n")
    return "".join(parts)


def replaced(case: Case, section: str) -> tuple[str, str]:
    """Return the text of a section, with its replacements, and the rest of its header."""
    text = case.text
    while replacement := REPLACEMENT.match(section):
        old, new = map(json.loads, replacement.groups())
        assert text.count(old) == 1, (case.title, old)
        text, section = text.replace(old, new), section[replacement.end() :]
    return text, section


def answer(question: str, text: str, base: str, overrides: dict[str, Any]) -> str:
    """Return the answer to a question about the model of a text; `base` is the spec without replacements."""
    match question:
        case "":
            return show(load(text, **overrides))
        case "check":
            return "\n\n".join(diagnostic.render() for diagnostic in testing.check_text(text)) + "\n"
        case "build":
            return build(text, **overrides)
        case "marks":
            return marks(base, text)
        case _:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "case", "adapter_config.json" if is_json(text) else "spec.arch")
                path.parent.mkdir()
                path.write_text(text if is_json(text) or not text.strip() else complete(text), encoding="utf-8")
                names: dict[str, Any] = {"archspec": archspec, "inf": math.inf, "path": str(path)}
                used = {node.id for node in ast.walk(ast.parse(question)) if isinstance(node, ast.Name)}
                names |= {"model": load(text, **overrides)} if "model" in used else {}
                names |= {"base": load(base)} if "base" in used else {}
                value = eval(question, names)
            document = value.to_dict() if hasattr(value, "to_dict") else None
            return f"{dump(document) if document else ''}{value}".rstrip() + "\n"


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def dump(document: object) -> str:
    return yaml.safe_dump(document, sort_keys=False, default_flow_style=None, width=1000, allow_unicode=True)


def marks(before: str, after: str) -> str:
    """Return what is marked in the pictures of `compare` and of `diff`: the titles of both panels."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("a", before), ("b", after)):
            Path(folder, f"{name}.arch").write_text(complete(text), encoding="utf-8")
        for command in ("compare", "diff"):
            testing.run(command, f"{folder}/a.arch", f"{folder}/b.arch", "--svg", f"{folder}/{command}.svg")
            lines += [f"{command}:", *marked(Path(folder, f"{command}.svg").read_text(encoding="utf-8"))]
    return "\n".join([*lines, ""])


def marked(picture: str) -> list[str]:
    """Return the titles of what is marked in a picture of several models, without parameter counts."""
    titles = [html.unescape(title) for title in re.findall("<title>(.*?)</title>", picture)]
    return [re.sub(r", (\d+ x [\d,]+ = )?[\d,]+ parameters?", "", title) for title in titles if "; " in title]


def build(text: str, **overrides: Any) -> str:
    """Return the PyTorch code that `archspec build` writes for a spec, or its errors."""
    settings = [f"--set={name}={json.dumps(value)}" for name, value in overrides.items()]
    result = testing.run("build", "-", *settings, stdin=complete(text))
    return result.output + result.errors


def show(model: archspec.Model) -> str:
    """Return a model as lines."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in model.hyperparameters.items()]
    lines += [f"{name}: {_show_type(type)}" for name, type in model.inputs.items()]
    lines += [_show_tensor(tensor) for tensor in model.tensors]
    lines += [f".{buffer.name}: buffer {list(buffer.shape)}" for buffer in model.buffers]
    levels = [_show_graph(model.graph(level)) for level in ("layer", "op")]
    lines += levels[0] + [line for line in levels[1] if line not in levels[0]]
    lines += [f"-> {name}: {_show_type(type)}" for name, type in model.outputs.items()]
    return "\n".join([*lines, *(warning.render() for warning in model.warnings), ""])


def _show_type(type: archspec.Type) -> str:
    return f"{type.dtype} [{', '.join(map(str, type.shape))}]"


def _show_tensor(tensor: archspec.Tensor) -> str:
    words = "param" if tensor.trainable else "frozen param"
    suffix = f" role {tensor.role}" * bool(tensor.role) + f" = .{tensor.tied_to}" * bool(tensor.tied_to)
    return f".{tensor.name}: {words} {list(tensor.shape)}{suffix}"


def _show_graph(graph: "networkx.DiGraph[str]") -> list[str]:
    """Return a line for each node of a graph that is applied, and for its outputs."""
    lines: list[str] = []
    for node, data in graph.nodes(data=True):
        uses = [
            (position, f"{argument} = {source.removeprefix('input:')}")
            for source, _, edge in graph.in_edges(node, data=True)
            for (_, argument), position in zip(edge["uses"], edge["positions"], strict=True)
        ]
        settings = {**data.get("constants", {}), **data.get("hyperparameters", {})}
        arguments = [text for _, text in sorted(uses)] + [f"{name} = {value}" for name, value in settings.items()]
        if data["kind"] in ("layer", "op", "fn"):
            shapes = [f"[{', '.join(map(str, shape))}]" for shape in data.get("shapes", [data["shape"]])]
            words = [f"{name} {data[name]}" for name in ("params", "frozen", "shared_with") if data.get(name)]
            lines.append(" ".join([f"{node}: {data['type']}({', '.join(arguments)})", ", ".join(shapes + words)]))
        elif data["kind"] == "output":
            lines.append(f"-> {', '.join(arguments)}")
    return lines
