"""The account of memory as a card: what holds it by kind, and by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch_inspector.account import UNEXPLAINED, DeviceTotal, HoldersReport, MemoryReport, MemoryRow
from torch_inspector.views.card import Bars, Card, Code, Line, Part, Table
from torch_inspector.views.quantity import seconds, several, size

ROW_COUNT = 20
"""Holders that the table names."""
_ALIKE = 3
_INDEX = re.compile(r"\[(\d+)\]")
_OUTPUT = re.compile(r"Out\[(\d+)\]")
_GRAPH = " (its graph)"
_PER_MILLE = 1_000


@dataclass(frozen=True)
class Group:
    """Rows that differ in one index only, as one: `losses[0]` to `losses[199]`."""

    rows: tuple[MemoryRow, ...]

    @property
    def path(self) -> str:
        """The holder, or the first and the last of them."""
        first, last = self.rows[0].path, self.rows[-1].path
        if len(self.rows) == 1:
            return first
        return f"{first.removesuffix(_GRAPH)} to {last}" if last.endswith(_GRAPH) else f"{first} to {last}"

    @property
    def nbytes(self) -> int:
        """Bytes of all of them."""
        return sum(row.nbytes for row in self.rows)


def grouped(rows: Iterable[MemoryRow]) -> list[Group]:
    """Rows from the largest on; three and more elements of one list are one."""
    alike: dict[tuple[str, str, str], list[MemoryRow]] = {}
    for row in rows:
        alike.setdefault((_INDEX.sub("[]", row.path), row.kind, row.device), []).append(row)
    groups = []
    for members in alike.values():
        members.sort(key=lambda row: tuple(map(int, _INDEX.findall(row.path))))
        together = len(members) >= _ALIKE and len(_INDEX.findall(members[0].path)) > 0
        groups += [Group(tuple(members))] if together else [Group((row,)) for row in members]
    return sorted(groups, key=lambda group: -group.nbytes)


def memory_card(report: MemoryReport, cells: Mapping[str, int] | None = None) -> Card:
    """Who holds the memory of live tensors.

    Args:
        report: The account.
        cells: For each path, the cell that made what it leads to.
    """
    parts: list[Part] = [Line(f"{note[:1].upper()}{note[1:]}.") for note in report.notes]
    if not report.rows and not report.totals:
        return Card("torch_inspector: memory", "calm", (*parts, Line("No tensor holds memory.")))
    parts += account_parts(report, cells or {})
    parts += _foreign(report)
    parts.append(Line("`%torchcheck holders 1` names everything that keeps the first of them alive."))
    return Card(
        f"torch_inspector: who holds the memory (looked for {seconds(report.duration_s)})", "calm", tuple(parts)
    )


def account_parts(report: MemoryReport, cells: Mapping[str, int], row_count: int = ROW_COUNT) -> list[Part]:
    """The sums per device by kind, and the largest holders.

    Args:
        report: The account.
        cells: For each path, the cell that made what it leads to.
        row_count: Holders that are named.
    """
    parts = [part for device in report.devices for part in _device(report, device)]
    return [*parts, _table(grouped(report.rows), cells, row_count)]


def _device(report: MemoryReport, device: str) -> list[Part]:
    explained, unexplained = report.explained_bytes(device), report.unexplained_bytes(device)
    line = f"{device}: {size(explained + unexplained)} in live tensors, {size(unexplained)} of it {UNEXPLAINED}."
    total = next((one for one in report.totals if one.device == device), None)
    by_kind = report.by_kind(device)
    widest = max(by_kind.values(), default=1)
    bars = Bars(
        tuple((kind, size(nbytes)) for kind, nbytes in by_kind.items()),
        tuple(_PER_MILLE * nbytes // max(widest, 1) for nbytes in by_kind.values()),
    )
    return [Line(line, strong=True), *_cache(total), bars]


def _cache(total: DeviceTotal | None) -> list[Part]:
    if total is None or total.reserved_nbytes is None or total.allocated_nbytes is None:
        return []
    free = max(total.reserved_nbytes - total.allocated_nbytes, 0)
    largest = (
        "" if total.largest_free_nbytes is None else f", the largest free block is {size(total.largest_free_nbytes)}"
    )
    others = "" if not total.others_nbytes else f" Other processes use {size(total.others_nbytes)}."
    return [Line(f"Reserved {size(total.reserved_nbytes)}, of it {size(free)} free inside the cache{largest}.{others}")]


def _table(groups: list[Group], cells: Mapping[str, int], row_count: int) -> Table:
    rows = tuple(
        (str(n), g.path, g.rows[0].kind, size(g.nbytes), _cell(g, cells), _remark(g))
        for n, g in enumerate(groups[:row_count], 1)
    )
    caption = "Largest holders" if len(groups) <= row_count else f"Largest holders ({row_count} of {len(groups)})"
    return Table(rows, ("no.", "held by", "kind", "size", "made in cell", "remark"), caption, (3,))


def _cell(group: Group, cells: Mapping[str, int]) -> str:
    made = sorted({cell for row in group.rows if (cell := _made_in(row.path.removesuffix(_GRAPH), cells))})
    return "" if not made else str(made[0]) if made[0] == made[-1] else f"{made[0]} to {made[-1]}"


def _made_in(path: str, cells: Mapping[str, int]) -> int | None:
    shown = _OUTPUT.match(path)
    return int(shown[1]) if shown is not None else cells.get(path)


def _remark(group: Group) -> str:
    row = group.rows[0]
    if len(group.rows) > 1:
        return several(len(group.rows), "holder")
    if row.pieces == 1 and 0 < row.shown_nbytes < row.nbytes // 2:
        return f"shows {size(row.shown_nbytes)} of it"
    if row.also:
        more = f" and {len(row.also) - 1} more" if len(row.also) > 1 else ""
        return f"also `{row.also[0]}`{more}"
    return ""


def _foreign(report: MemoryReport) -> list[Part]:
    if not report.foreign:
        return []
    nbytes, names = sum(row.nbytes for row in report.foreign), ", ".join(f"`{row.path}`" for row in report.foreign[:3])
    return [Line(f"Besides, {names} share {size(nbytes)} of another library, such as NumPy; no sum counts it.")]


def holders_card(report: HoldersReport) -> Card:
    """What keeps an object alive, and the lines that let go of it."""
    amount = f", {size(report.nbytes)}" if report.nbytes else ""
    on = f" on {report.device}" if report.device else ""
    title = f"torch_inspector: {several(len(report.rows), 'holder')} of `{report.subject}`{amount}{on}"
    notes = [Line(f"{note[:1].upper()}{note[1:]}.") for note in report.notes]
    if not report.rows:
        return Card(title, "calm", (*notes, Line("Nothing that Python can see holds it.")))
    rows = tuple((row.path, row.kind) for row in report.rows[:ROW_COUNT])
    caption = "Held by" if len(report.rows) <= ROW_COUNT else f"Held by ({ROW_COUNT} of {len(report.rows)})"
    fixes = list(dict.fromkeys(row.fix for row in report.rows[:ROW_COUNT] if row.fix))
    code = [Code("\n".join(fixes), caption="It is freed when all of them let go")] if fixes else []
    return Card(title, "calm", (*notes, Table(rows, ("holder", "kind"), caption), *code))
