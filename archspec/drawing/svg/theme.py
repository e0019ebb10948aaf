"""Colors: by role, and from light to dark by share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archspec.core.record import Record
from archspec.core.reports.roles import NO_ROLE, ROLES


class Fill(Record):
    """The fill of a box and its border."""

    fill: str
    line: str


class Theme(Record):
    """The colors of a picture. `roles` are those of the roles that the standard library uses, in the order of legends.

    `others` are for further roles. `frames` are the fills of frames by depth.
    """

    background: str
    ink: str
    dim: str
    frame: str
    frames: tuple[str, ...]
    pill: str
    pill_line: str
    terminal: str
    plain: Fill
    main: str
    skip: str
    side: str
    cross: str
    tie: str
    badge: str
    badge_ink: str
    roles: Mapping[str, Fill]
    others: tuple[Fill, ...]
    cold: str
    hot: str


LIGHT = Theme(
    background="#ffffff",
    ink="#161b26",
    dim="#485060",
    frame="#aab3c2",
    frames=("#f7f8fb", "#eef1f6", "#e6eaf1", "#dfe4ed"),
    pill="#ffffff",
    pill_line="#8d96a6",
    terminal="#eceff4",
    plain=Fill(*NO_ROLE.light),
    main="#5d6677",
    skip="#161b26",
    side="#8a93a3",
    cross="#1f57b8",
    tie="#8a5a00",
    badge="#1d2430",
    badge_ink="#ffffff",
    roles={role: Fill(*style.light) for role, style in ROLES.items()},
    others=(
        Fill("#c5e8ea", "#16757d"),
        Fill("#ead9cb", "#80532f"),
        Fill("#f3d0ea", "#9c3483"),
        Fill("#dbe3b4", "#5f6d12"),
    ),
    cold="#f5f7fb",
    hot="#c2470e",
)

DARK = Theme(
    background="#12161d",
    ink="#eef1f6",
    dim="#b4bccb",
    frame="#566074",
    frames=("#181d26", "#1e242f", "#242b38", "#2a3240"),
    pill="#2b3341",
    pill_line="#7d889c",
    terminal="#2f3846",
    plain=Fill(*NO_ROLE.dark),
    main="#9aa5b8",
    skip="#eef1f6",
    side="#7d889c",
    cross="#6fa3f5",
    tie="#e0a83c",
    badge="#e8ecf3",
    badge_ink="#161b26",
    roles={role: Fill(*style.dark) for role, style in ROLES.items()},
    others=(
        Fill("#10494e", "#55bcc5"),
        Fill("#543823", "#cf9d74"),
        Fill("#622455", "#e586cf"),
        Fill("#434c10", "#b3c24b"),
    ),
    cold="#1e2530",
    hot="#f09a4f",
)

THEMES: Mapping[str, Theme] = {"light": LIGHT, "dark": DARK}


class RoleStyle(Record):
    """How a role is drawn: its fill, and a letter that distinguishes it without color."""

    fill: Fill
    letter: str


def role_styles(theme: Theme, roles: Sequence[str]) -> dict[str, RoleStyle]:
    """Return the styles of roles, in the order of the legend."""
    order = [role for role in theme.roles if role in roles] + sorted(set(roles) - set(theme.roles))
    found: dict[str, RoleStyle] = {}
    taken: set[str] = set()
    others = 0
    for role in order:
        fill = theme.roles.get(role)
        if fill is None:
            fill = theme.others[others % len(theme.others)]
            others += 1
        letters = [c.upper() for c in role if c.isascii() and c.isalpha()]
        letter = next((c for c in letters if c not in taken), "") or str(len(taken) + 1)
        taken.add(letter)
        found[role] = RoleStyle(fill, letter)
    return found


def heat_color(theme: Theme, share: float) -> str:
    """Return a color for a share from 0 to 1: its square root, because most shares are small."""
    part = max(0.0, min(1.0, share)) ** 0.5
    return "#" + "".join(
        f"{round(low + (high - low) * part):02x}"
        for low, high in zip(channels(theme.cold), channels(theme.hot), strict=True)
    )


def channels(color: str) -> list[int]:
    """Return the red, green and blue of a color, from 0 to 255."""
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colors, from 1 to 21 (WCAG 2.2)."""
    first, second = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (first + 0.05) / (second + 0.05)


def _luminance(color: str) -> float:
    parts = [value / 255 for value in channels(color)]
    red, green, blue = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
