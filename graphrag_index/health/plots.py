"""Bars as SVG that stands in a page: its colours are the page's, and each bar tells its number."""

from collections.abc import Sequence
from html import escape

# Units of the drawing; the page sets how wide it is shown.
_WIDTH, _HEIGHT = 480, 190
_LEFT, _BOTTOM, _TOP = 8, 24, 18
_ROW, _NAME = 24, 150
# Wider bars look like blocks when there are few.
_WIDEST_BAR = 64
# Labels below bars that fit beside each other.
_LABELS = 12

Bars = Sequence[tuple[str, int]]


def columns(bars: Bars, title: str, unit: str) -> str:
    """Draw upright bars, which tell how something is spread."""
    if not bars:
        return ""
    most = max(count for _, count in bars) or 1
    room = _HEIGHT - _BOTTOM - _TOP
    step = (_WIDTH - 2 * _LEFT) / len(bars)
    width = min(step * 0.82, _WIDEST_BAR)
    every = -(-len(bars) // _LABELS)
    parts = []
    for at, (name, count) in enumerate(bars):
        middle = _LEFT + step * (at + 0.5)
        # What is there must be seen, however little it is.
        height = max(room * count / most, 1.5) if count else 0
        top = _HEIGHT - _BOTTOM - height
        parts.append(
            f"<g><title>{escape(name)}: {count:,} {escape(unit)}</title>"
            f'<rect class="bar" x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{height:.1f}" rx="2"/>'
        )
        if count and len(bars) <= _LABELS:
            parts.append(f'<text class="value" x="{middle:.1f}" y="{top - 5:.1f}">{count:,}</text>')
        if at % every == 0:
            parts.append(
                f'<text class="name" x="{middle:.1f}" y="{_HEIGHT - 7}">{escape(name)}</text>'
            )
        parts.append("</g>")
    line = _HEIGHT - _BOTTOM
    axis = f'<line class="axis" x1="0" y1="{line}" x2="{_WIDTH}" y2="{line}"/>'
    return _svg(_HEIGHT, title, "".join(parts) + axis)


def rows(bars: Bars, title: str, unit: str) -> str:
    """Draw lying bars with their names before them."""
    if not bars:
        return ""
    most = max(count for _, count in bars) or 1
    room = _WIDTH - _NAME - 70
    parts = []
    for at, (name, count) in enumerate(bars):
        y = at * _ROW
        width = max(room * count / most, 1.5) if count else 0
        shown = name if len(name) <= 22 else f"{name[:21]}…"
        parts.append(
            f"<g><title>{escape(name)}: {count:,} {escape(unit)}</title>"
            f'<text class="row" x="{_NAME - 8}" y="{y + 16}">{escape(shown)}</text>'
            f'<rect class="bar" x="{_NAME}" y="{y + 4}" width="{width:.1f}" height="16" rx="2"/>'
            f'<text class="count" x="{_NAME + width + 6:.1f}" y="{y + 16}">{count:,}</text></g>'
        )
    return _svg(len(bars) * _ROW + 4, title, "".join(parts))


def _svg(height: int, title: str, content: str) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(title)}">'
        f"{content}</svg>"
    )
