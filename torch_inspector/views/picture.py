"""Small pictures as addresses, for `<img>`: untrusted notebooks show them too, where they drop `<svg>` and styles.

Only whole numbers go into them. The colour has a contrast of 3 and more against white, black and what lies between.
"""

from __future__ import annotations

from collections.abc import Iterable

COLOUR = "#4c8bf5"
_FILL = COLOUR.replace("#", "%23")
CURVE_SIZE = (240, 60)
"""Width and height of a curve in pixels."""
BAR_WIDTH = 140
"""Of the longest bar, in pixels."""
# One pixel in the same colour, which the page draws as long as the bar: a tenth of the bytes that a drawn one takes.
DOT = "data:image/gif;base64,R0lGODdhAQABAIAAAEyL9QAAACwAAAAAAQABAAACAkQBADs="
_MARGIN = 4
_FULL = 1_000


def bar(length: int) -> int:
    """The width in pixels of a bar of `length` thousandths; what is there at all is seen."""
    return -(-int(length) * BAR_WIDTH // _FULL)


def box(width: int, height: int, whole_width: int, whole_height: int) -> str:
    """A filled box inside the dashed one that it was stretched to."""
    return _svg(
        f"-1 -1 {int(whole_width) + 2} {int(whole_height) + 2}",
        f"%3Crect width='{int(whole_width)}' height='{int(whole_height)}' fill='none' stroke='{_FILL}' "
        f"stroke-dasharray='3 2'/%3E%3Crect width='{int(width)}' height='{int(height)}' fill='{_FILL}'/%3E",
    )


def curve(points: Iterable[tuple[int, int]]) -> str:
    """A line through points in thousandths of width and height, upwards."""
    width, height = CURVE_SIZE
    placed = (
        (_MARGIN + x * (width - 2 * _MARGIN) // _FULL, height - _MARGIN - y * (height - 2 * _MARGIN) // _FULL)
        for x, y in points
    )
    path = " ".join(f"{int(x)},{int(y)}" for x, y in placed)
    line = f"%3Cpolyline points='{path}' fill='none' stroke='{_FILL}' stroke-width='2'/%3E"
    return _svg(f"0 0 {width} {height}", line)


def _svg(view: str, inside: str) -> str:
    return f"data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='{view}'%3E{inside}%3C/svg%3E"
