"""What `%torchcheck free` would do, and what it has done."""

from __future__ import annotations

from collections.abc import Sequence

from torch_inspector.account import MemoryRow
from torch_inspector.views.card import Card, Code, Line, Part, Table
from torch_inspector.views.quantity import size

_STILL = 10


def plan_card(rows: Sequence[tuple[str, int, str, bool]], proposals: Sequence[tuple[str, int]]) -> Card:
    """What can be let go of.

    Args:
        rows: What, bytes, why that is safe, and False for what `--yes` alone does not touch.
        proposals: Lines for the user to run, with the bytes they would free.
    """
    parts: list[Part] = []
    if rows:
        table = tuple(
            (what, size(nbytes), why, "" if asked else "with --traceback") for what, nbytes, why, asked in rows
        )
        parts.append(
            Table(
                table, ("what", "frees", "why it is safe", "how"), "Held by the notebook, not by your variables", (1,)
            )
        )
        parts.append(Line("`%torchcheck free --yes` lets go of it."))
    else:
        parts.append(Line("The notebook itself holds no memory of tensors."))
    return Card("torch_inspector: what can be freed", "calm", (*parts, *_yours(proposals)))


def freed_card(
    rows: Sequence[tuple[str, int, int]], kept: Sequence[MemoryRow], proposals: Sequence[tuple[str, int]]
) -> Card:
    """What came free.

    Args:
        rows: What, bytes that came free, bytes that did not.
        kept: Who holds what did not come free.
        proposals: Lines for the user to run, with the bytes they would free.
    """
    total = sum(freed for _, freed, _ in rows)
    table = tuple((what, size(freed), *([size(left)] if kept else [])) for what, freed, left in rows)
    columns = ("what", "came free", "still held") if kept else ("what", "came free")
    parts: list[Part] = [Table(table, columns, "", (1, 2))] if table else []
    if kept:
        still = tuple((row.path, row.kind, size(row.nbytes)) for row in kept[:_STILL])
        parts.append(Table(still, ("held by", "kind", "size"), "Not freed", (2,)))
    return Card(f"torch_inspector: {size(total)} came free", "calm", (*parts, *_yours(proposals)))


def _yours(proposals: Sequence[tuple[str, int]]) -> list[Part]:
    if not proposals:
        return []
    text = "\n".join(f"{line}  # {size(nbytes)}" for line, nbytes in proposals)
    return [Code(text, caption="Your own variables hold more; these lines would free the most")]
