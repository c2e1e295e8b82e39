"""State tables drawn as SVG: states in a column, moves downwards as arcs at the right, upwards at the left.

The drawing depends on the table alone: two machines write the same bytes, and who reads a diff sees what moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Final

Arc = tuple[str, str, str]
"""From, to, label."""

BOX: Final = (120, 34)
GAP: Final = 62
BEND: Final = (40, 96)
"""How far an arc to the next state swings out, and how much further for each state that one passes by."""
FONT: Final = 'font-family="ui-monospace, monospace" font-size="12"'
LETTER: Final = 7.3


def draw(title: str, states: list[str], arcs: Iterable[Arc]) -> str:
    """The picture of a machine whose states are given from top to bottom; arcs from a state to itself are left out."""
    place = {state: number for number, state in enumerate(states)}
    merged: dict[tuple[str, str], list[str]] = {}
    for start, end, label in arcs:
        if start != end:
            merged.setdefault((start, end), []).append(label)
    reach = {side: _reach(merged, place, side) for side in (1, -1)}
    centre = reach[-1] + BOX[0] / 2
    width = centre + BOX[0] / 2 + reach[1]
    height = GAP * len(states) + 12
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" role="img">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">',
        '<path d="M0,0 L8,4 L0,8 z" fill="#555555"/></marker></defs>',
    ]
    for start, end in merged:
        parts += _arc(centre, place[start], place[end])
    for (start, end), labels in merged.items():
        parts += _labels(centre, place[start], place[end], labels)
    for state, number in place.items():
        parts += _box(centre, number, state)
    return "\n".join([*parts, "</svg>", ""])


def _middle(number: int) -> float:
    return 12 + BOX[1] / 2 + GAP * number


def _bend(span: int) -> float:
    return BEND[0] + BEND[1] * (abs(span) - 1)


def _reach(merged: Mapping[tuple[str, str], list[str]], place: Mapping[str, int], side: int) -> float:
    """How much room arcs and their labels need at one side of the boxes."""
    room = 12.0
    for (start, end), labels in merged.items():
        span = place[end] - place[start]
        if span * side > 0:
            room = max(room, _bend(span) + 16 + LETTER * max(map(len, labels)))
    return room


def _ends(start: int, end: int) -> tuple[float, float]:
    """Heights at which an arc leaves and arrives, apart from each other so that arrows in and out do not meet."""
    side = 1 if end > start else -1
    return _middle(start) + side * 8, _middle(end) - side * 8


def _arc(centre: float, start: int, end: int) -> list[str]:
    side = 1 if end > start else -1
    edge = centre + side * BOX[0] / 2
    top, bottom = _ends(start, end)
    bend = edge + side * _bend(end - start) * 4 / 3  # a cubic curve reaches three quarters of its handles
    return [
        f'<path d="M{edge:.0f},{top:.0f}',
        f'C{bend:.0f},{top:.0f} {bend:.0f},{bottom:.0f} {edge + side * 2:.0f},{bottom:.0f}"',
        ' fill="none" stroke="#555555" stroke-width="1.3" marker-end="url(#tip)"/>',
    ]


def _labels(centre: float, start: int, end: int, labels: list[str]) -> list[str]:
    """What stands at the outermost point of an arc, on white so that other arcs do not strike it through."""
    side = 1 if end > start else -1
    x = centre + side * (BOX[0] / 2 + _bend(end - start) + 5)
    y = sum(_ends(start, end)) / 2 + 4 - 7 * (len(labels) - 1)
    anchor = "start" if side > 0 else "end"
    lines = []
    for number, label in enumerate(labels):
        width, baseline = LETTER * len(label), y + 14 * number
        left = x if side > 0 else x - width
        lines += [
            f'<rect x="{left:.0f}" y="{baseline - 11:.0f}" width="{width:.0f}" height="14" fill="#ffffff"/>',
            f'<text x="{x:.0f}" y="{baseline:.0f}" text-anchor="{anchor}" {FONT} fill="#222222">{escape(label)}</text>',
        ]
    return lines


def _box(centre: float, number: int, state: str) -> list[str]:
    left, top = centre - BOX[0] / 2, _middle(number) - BOX[1] / 2
    dashed = ' stroke-dasharray="4 3"' if state == "ABSENT" else ""
    return [
        f'<rect x="{left:.0f}" y="{top:.0f}" width="{BOX[0]}" height="{BOX[1]}" rx="6" fill="#eef3fb"',
        f' stroke="#33557f" stroke-width="1.3"{dashed}/>',
        f'<text x="{centre:.0f}" y="{_middle(number) + 4:.0f}" text-anchor="middle" {FONT} font-weight="bold"',
        f' fill="#1b2f4a">{escape(state)}</text>',
    ]
