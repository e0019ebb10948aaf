"""The channels between rows: each value that moves sideways in a channel gets a horizontal track."""

from __future__ import annotations

MIN_DISTANCE = 4.0
"""Verticals nearer than this would be read as one line."""

MIN_TRACK_GAP = 8.0
"""Least distance between two values on one track."""


class Net:
    """A value in a channel: where it comes from above and where it goes below, and other ends of its track."""

    __slots__ = ("ends", "lowers", "track", "uppers")

    def __init__(self) -> None:
        self.uppers: list[float] = []
        self.lowers: list[float] = []
        self.ends: list[float] = []
        self.track = -1

    @property
    def span(self) -> tuple[float, float]:
        xs = [*self.uppers, *self.lowers, *self.ends]
        return min(xs), max(xs)

    @property
    def is_straight(self) -> bool:
        first, last = self.span
        return last - first < 0.5


def assign_tracks(nets: list[Net]) -> int:
    """Set the track of each net that is not straight; return the number of tracks.

    Where one net comes from above at the place where another one goes down, its track is above.
    """
    waiting = [net for net in nets if not net.is_straight]
    above = {net: {other for other in waiting if other is not net and _must_be_above(other, net)} for net in waiting}
    tracks: list[list[Net]] = []
    while waiting:
        free = [net for net in waiting if not above[net].intersection(waiting)] or waiting
        net = min(free, key=lambda net: net.span)
        waiting.remove(net)
        first = max([other.track + 1 for other in above[net]], default=0)
        net.track = next((i for i in range(first, len(tracks)) if _has_room(tracks[i], net)), max(first, len(tracks)))
        while len(tracks) <= net.track:
            tracks.append([])
        tracks[net.track].append(net)
    return len(tracks)


def _must_be_above(net: Net, other: Net) -> bool:
    return any(abs(upper - lower) < MIN_DISTANCE for upper in net.uppers for lower in other.lowers)


def _has_room(track: list[Net], net: Net) -> bool:
    first, last = net.span
    return all(last + MIN_TRACK_GAP < other.span[0] or other.span[1] + MIN_TRACK_GAP < first for other in track)
