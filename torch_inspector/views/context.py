"""The line that a finding points at, between its neighbours."""

from __future__ import annotations

from torch_inspector.facts import Run
from torch_inspector.findings import Finding, short_names
from torch_inspector.views.card import Code
from torch_inspector.views.plain import clip

# Lines above and below.
_AROUND = 2
# One line must not push the others out.
_LINE_LIMIT = 160
# Longer ones lose the middle of overlong names.
_WIDE = 100


def context_of(finding: Finding, run: Run | None, caption: str = "") -> Code | None:
    """The guilty line with those around it; alone where the text of its cell is not known; None without a line.

    Args:
        finding: As the session stamped it.
        run: The run that found it, which knows the text of this cell and of earlier ones.
        caption: What to put above.
    """
    own = finding.code.strip()
    line = finding.line
    if line is None or line < 1:
        return Code(own, caption=caption) if own else None
    source = "" if run is None else run.source_of(run.cell.number if finding.cell is None else finding.cell)
    lines = source.splitlines()
    if line > len(lines) or not lines[line - 1].strip() or (own and lines[line - 1].strip() != own):
        return Code(_clipped(own), caption=caption, first=line, guilty=line) if own else None
    first = max(line - _AROUND, 1)
    skipped, shown = _trimmed(lines[first - 1 : line + _AROUND], line - first)
    return Code("\n".join(shown), caption=caption, first=first + skipped, guilty=line)


def _trimmed(lines: list[str], guilty: int) -> tuple[int, list[str]]:
    """Lines without blank ones at both ends and without the indentation that all have; how many went above."""
    start, end = 0, len(lines)
    while start < guilty and not lines[start].strip():
        start += 1
    while end - 1 > guilty and not lines[end - 1].strip():
        end -= 1
    texts = [line.expandtabs(4).rstrip() for line in (one[: 2 * _LINE_LIMIT] for one in lines[start:end])]
    indent = min((len(text) - len(text.lstrip()) for text in texts if text), default=0)
    return start, [_clipped(text[indent:]) for text in texts]


def _clipped(line: str) -> str:
    return line if len(line) <= _WIDE else clip(short_names(line), _LINE_LIMIT)
