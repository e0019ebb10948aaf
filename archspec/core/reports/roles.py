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
    "embedding": RoleStyle("E", Shade("#fdeebf", "#9a7b1c"), Shade("#4f3f10", "#e3bd4f"), 178),
    "attention": RoleStyle("A", Shade("#f6b98a", "#a4521a"), Shade("#67371a", "#ef9a5d"), 173),
    "feed_forward": RoleStyle("F", Shade("#c3dff3", "#2b6a9b"), Shade("#1c4566", "#6fb1e6"), 74),
    "state_space": RoleStyle("S", Shade("#f3cfa6", "#a4521a"), Shade("#55401f", "#dba468"), 137),
    "norm": RoleStyle("N", Shade("#f3f3f1", "#8a8a86"), Shade("#3a3a38", "#b0afa8"), 245),
    "head": RoleStyle("H", Shade("#e3d3ec", "#7a4f96"), Shade("#48335a", "#c39adb"), 140),
    "pooler": RoleStyle("P", Shade("#d8c6e4", "#5d3a78"), Shade("#36234a", "#b18fca"), 97),
}
"""The roles of bundled specs, with the colors of figures and of the site (`website/theme/workbench.css`).

Their lightness varies, because not every reader can distinguish hues.
"""


def style_of(role: str | None) -> RoleStyle:
    """Return the style of a role."""
    return ROLES.get(role or "", NO_ROLE)
