"""Colors and letters of roles in pictures, tables and exported graphs; pictures import no tables."""

from __future__ import annotations

from archspec.core.record import Record


class Shade(Record):
    """The colors of a role in one theme: the fill of a box, and its border."""

    fill: str
    line: str


class RoleStyle(Record):
    """The style of a role: a letter that identifies it without color, its shades in a light and a dark theme, and its
    number in the palette of terminals with 256 colors.
    """

    letter: str
    light: Shade
    dark: Shade
    terminal: int | None


NO_ROLE = RoleStyle("", Shade("#e4e7ee", "#6d7688"), Shade("#333c4b", "#8f9ab0"), None)
"""The style of tensors without a role, and of roles that are not in `ROLES`."""

ROLES = {
    "embedding": RoleStyle("E", Shade("#fde0bd", "#b06a10"), Shade("#5c3c14", "#e59f45"), 172),
    "attention": RoleStyle("A", Shade("#c9dcfa", "#2a61bd"), Shade("#1f3f78", "#77a7f5"), 69),
    "feed_forward": RoleStyle("F", Shade("#b9e6c3", "#217a3c"), Shade("#154a27", "#5cc27d"), 35),
    "state_space": RoleStyle("S", Shade("#bfe7ea", "#12717c"), Shade("#123f46", "#4fb9c4"), 37),
    "norm": RoleStyle("N", Shade("#fbf3bd", "#8f7d00"), Shade("#4b450b", "#d6c544"), 142),
    "head": RoleStyle("H", Shade("#f8ccd3", "#b82f49"), Shade("#6b2232", "#f08196"), 167),
    "pooler": RoleStyle("P", Shade("#e3d3f5", "#7440b0"), Shade("#472b6b", "#b68aec"), 134),
}
"""The roles of bundled specs. Their lightness varies, because not every reader can distinguish hues."""


def style_of(role: str | None) -> RoleStyle:
    """Return the style of a role."""
    return ROLES.get(role or "", NO_ROLE)
