"""The colours and letters of roles, the same in pictures, tables and exported graphs."""

from __future__ import annotations

from archspec.record import Record


class Shade(Record):
    """The colours of a role in one theme: the fill of a box, and its border, which is also legible as text."""

    fill: str
    line: str


class RoleStyle(Record):
    """How a role looks: a letter, which tells roles apart without colour, its shades in a light and a dark theme, and
    its number in the palette of terminals with 256 colours.
    """

    letter: str
    light: Shade
    dark: Shade
    terminal: int


NO_ROLE = RoleStyle("", Shade("#e4e8ee", "#5d6878"), Shade("#2c3440", "#9aa6b6"), 245)
"""The style of tensors without a role, and of roles that are not in `ROLES`."""

ROLES = {
    "embedding": RoleStyle("E", Shade("#f9d5a0", "#8f5700"), Shade("#6b4d1c", "#f0b45a"), 172),
    "attention": RoleStyle("A", Shade("#cfe0fb", "#2b62c4"), Shade("#213f78", "#86b2ff"), 69),
    "feed_forward": RoleStyle("F", Shade("#b9e2c0", "#1d6e35"), Shade("#1e4f2d", "#79d692"), 35),
    "norm": RoleStyle("N", Shade("#fbf6cf", "#766700"), Shade("#403b14", "#e2d15a"), 142),
    "head": RoleStyle("H", Shade("#f6c6cd", "#a82a3f"), Shade("#642531", "#ff95a5"), 167),
    "pooler": RoleStyle("P", Shade("#ecdff8", "#7a3fb0"), Shade("#48296a", "#cfa2f7"), 134),
}
"""The roles of bundled specs. Their lightness varies, because hue alone is not seen by everybody."""


def style_of(role: str | None) -> RoleStyle:
    """Return the style of a role."""
    return ROLES.get(role or "", NO_ROLE)
