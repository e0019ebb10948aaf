"""Graphs as GraphML and GEXF, for other tools.

Both formats have attributes of one simple type each. An attribute that has others, such as a shape, or values of
several types, is text in JSON; the attribute `json_attributes` of the graph names them. Reading that JSON gives what
the node-link format has, so nothing is lost. GEXF has no attributes of the graph: its description is a JSON object
with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from json import dumps
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from archspec.core.record import Record
from archspec.drawing.graph.nodelink import to_node_link

if TYPE_CHECKING:
    from archspec.drawing.graph.plain import AnyGraph


class _Attribute(Record):
    """An attribute of all nodes or edges: an id, its name, its type, and whether its values are JSON."""

    id: str
    name: str
    type: str
    is_json: bool


def graphml_text(graph: AnyGraph) -> str:
    """Format a graph as GraphML."""
    data = to_node_link(graph)
    nodes, edges = _attributes(data["nodes"], ("id",), "n"), _attributes(data["edges"], ("source", "target"), "e")
    parts = {"graph": _attributes([data["graph"]], (), "g"), "node": nodes, "edge": edges}
    names = _json_names(parts)
    whole = {**data["graph"], "json_attributes": names}
    own = [*parts["graph"], _Attribute("json", "json_attributes", "string", False)]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
        *(
            f'  <key id="{a.id}" for="{part}" attr.name={_quoted(a.name)} attr.type="{a.type}"/>'
            for part, attributes in (("graph", own), ("node", nodes), ("edge", edges))
            for a in attributes
        ),
        '  <graph edgedefault="directed">',
        *_graphml_data(whole, own, "    "),
    ]
    for node in data["nodes"]:
        lines += [f"    <node id={_quoted(str(node['id']))}>", *_graphml_data(node, nodes, "      "), "    </node>"]
    for edge in data["edges"]:
        ends = f"source={_quoted(str(edge['source']))} target={_quoted(str(edge['target']))}"
        lines += [f"    <edge {ends}>", *_graphml_data(edge, edges, "      "), "    </edge>"]
    return "\n".join([*lines, "  </graph>", "</graphml>"]) + "\n"


def gexf_text(graph: AnyGraph) -> str:
    """Format a graph as GEXF 1.2."""
    data = to_node_link(graph)
    nodes, edges = _attributes(data["nodes"], ("id",), "n"), _attributes(data["edges"], ("source", "target"), "e")
    whole = {**data["graph"], "json_attributes": _json_names({"node": nodes, "edge": edges})}
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<gexf xmlns="http://www.gexf.net/1.2draft" version="1.2">',
        f"  <meta><creator>archspec</creator><description>{_escaped(dumps(whole))}</description></meta>",
        '  <graph defaultedgetype="directed" mode="static">',
    ]
    for part, attributes in (("node", nodes), ("edge", edges)):
        lines.append(f'    <attributes class="{part}" mode="static">')
        lines += [f'      <attribute id="{a.id}" title={_quoted(a.name)} type="{a.type}"/>' for a in attributes]
        lines.append("    </attributes>")
    lines.append("    <nodes>")
    for node in data["nodes"]:
        name = _quoted(str(node["id"]))
        lines += [f"      <node id={name} label={name}>", *_gexf_data(node, nodes), "      </node>"]
    lines += ["    </nodes>", "    <edges>"]
    for number, edge in enumerate(data["edges"]):
        ends = f"source={_quoted(str(edge['source']))} target={_quoted(str(edge['target']))}"
        lines += [f'      <edge id="{number}" {ends}>', *_gexf_data(edge, edges), "      </edge>"]
    return "\n".join([*lines, "    </edges>", "  </graph>", "</gexf>"]) + "\n"


def _attributes(items: Iterable[Mapping[str, object]], except_: tuple[str, ...], prefix: str) -> list[_Attribute]:
    """Return the attributes of nodes or edges, in the order in which they occur."""
    types: dict[str, set[str]] = {}
    for item in items:
        for name, value in item.items():
            if name not in except_:
                types.setdefault(name, set()).add(_type(value))
    return [_Attribute(f"{prefix}{i}", name, *_common_type(found)) for i, (name, found) in enumerate(types.items())]


def _common_type(types: set[str]) -> tuple[str, bool]:
    """Return the type of values of these types, and whether they must be JSON."""
    return ("string", True) if len(types) > 1 or "" in types else (next(iter(types)), False)


def _type(value: object) -> str:
    """Return the type of a value in both formats; "" if it has none."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if abs(value) < 2**63 else ""
    return "double" if isinstance(value, float) else "string" if isinstance(value, str) else ""


def _json_names(parts: Mapping[str, Iterable[_Attribute]]) -> str:
    """Return the names of attributes in JSON, after what they are attributes of."""
    return ", ".join(f"{part} {a.name}" for part, found in parts.items() for a in found if a.is_json)


def _values(item: Mapping[str, object], attributes: Iterable[_Attribute]) -> Iterator[tuple[str, str]]:
    """Yield the ids of the attributes that a node or edge has, with their text."""
    for attribute in attributes:
        if attribute.name in item:
            value = item[attribute.name]
            plain = str(value).lower() if isinstance(value, bool) else str(value)
            yield attribute.id, dumps(value) if attribute.is_json else plain


def _graphml_data(item: Mapping[str, object], attributes: Iterable[_Attribute], indent: str) -> Iterator[str]:
    for id, value in _values(item, attributes):
        yield f'{indent}<data key="{id}">{_escaped(value)}</data>'


def _gexf_data(item: Mapping[str, object], attributes: Iterable[_Attribute]) -> Iterator[str]:
    yield "        <attvalues>"
    for id, value in _values(item, attributes):
        yield f'          <attvalue for="{id}" value={_quoted(value)}/>'
    yield "        </attvalues>"


def _quoted(text: str) -> str:
    return quoteattr(_replace_invalid_characters(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})


def _escaped(text: str) -> str:
    return escape(_replace_invalid_characters(text), {"\r": "&#13;"})


def _replace_invalid_characters(text: str) -> str:
    """Replace characters that XML cannot have."""
    return "".join(c if _is_allowed(ord(c)) else "\N{REPLACEMENT CHARACTER}" for c in text)


def _is_allowed(code: int) -> bool:
    return 0x20 <= code < 0xD800 or 0xE000 <= code < 0xFFFE or code > 0xFFFF or code in (9, 10, 13)
