"""Puts an account into rows: names for the largest pieces, sums for the rest."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from torch_inspector.account import UNEXPLAINED, DeviceTotal, MemoryReport, MemoryRow
from torch_inspector.observe.heap.account import STATE, TENSOR, Account, Piece
from torch_inspector.observe.heap.trail import Trails
from torch_inspector.observe.paths import key_text

# Pieces that are named however long that takes, seconds for the small ones after them, and pieces without a root for
# which the garbage collector is asked who refers to them.
_NAMED, _MORE_S, _ASKED = 400, 0.15, 100
_PHASES = {"IPython": "IPython", "exception": "exception", "frame": "frame", "library": "library"}


class Rows:
    """Makes the report of one look."""

    def __init__(
        self, account: Account, trails: Trails, deadline: float, cycles: Callable[[list[Any]], set[int]]
    ) -> None:
        self._account = account
        self._trails = trails
        self._deadline = deadline
        self._find_cycles = cycles
        self._cycles: set[int] | None = None

    def report(self, notes: tuple[str, ...], totals: tuple[DeviceTotal, ...], *, exact: bool) -> MemoryReport:
        """All rows, largest first."""
        pieces = sorted(self._account.pieces, key=lambda piece: -piece.nbytes)
        rows = self._rows_in_time(pieces)
        rows += self._sums(pieces[len(rows) :])
        foreign = [self._row(p)._replace(kind="another library") for p in self._account.foreign[:_NAMED]]
        ordered = tuple(sorted(_merged(rows), key=lambda row: -row.nbytes))
        return MemoryReport(ordered, totals, tuple(foreign), notes, exact=exact)

    def _rows_in_time(self, pieces: list[Piece]) -> list[MemoryRow]:
        """Rows of the largest pieces; of the many small ones, as many as can be named at once."""
        rows, begun = [], perf_counter()
        for place, piece in enumerate(pieces):
            now = perf_counter()
            if place and (now > self._deadline or (place >= _NAMED and now > begun + _MORE_S)):
                break
            rows.append(self._row(piece))
        return rows

    def holder_of(self, path: str) -> Any:
        """The object behind the row of a path; None if there is none."""
        pieces = sorted(self._account.pieces, key=lambda piece: -piece.nbytes)
        return next((piece.holder for piece in pieces[:_NAMED] if self._named(piece)[1] == path), None)

    def _row(self, piece: Piece) -> MemoryRow:
        kind, path = self._named(piece)
        also = tuple(dict.fromkeys(text for o, how in piece.others if (text := self._path(o, how)) and text != path))
        return MemoryRow(path, kind, piece.memory.device, piece.nbytes, piece.count, piece.used_nbytes, also)

    def _named(self, piece: Piece) -> tuple[str, str]:
        if piece.phase == "rest":
            return self._nameless(piece)
        path = self._path(piece.holder, piece.how)
        kind = _PHASES.get(piece.phase) or piece.kind
        return self._trails.flavour(piece.holder) if kind == TENSOR else kind, path or "(no name)"

    def _path(self, holder: Any, how: str) -> str:
        role = self._account.roles.get(id(holder))
        if role is not None and role[0] != STATE:
            owner = self._trails.text(role[1])
            if owner:
                return _registered(owner, role[2]) + how
        text = self._trails.text(holder)
        return text + how if text else ""

    def _nameless(self, piece: Piece) -> tuple[str, str]:
        """What holds something that no root leads to."""
        if self._cycles is None:
            unknown = sorted((p for p in self._account.pieces if p.phase == "rest"), key=lambda p: -p.nbytes)
            self._cycles = self._find_cycles([piece.holder for piece in unknown[:_ASKED]])
        if id(piece.holder) in self._cycles:
            return "cycle", "a reference cycle, freed by the next collection"
        return UNEXPLAINED, "held by something that no name leads to"

    def _sums(self, pieces: list[Piece]) -> list[MemoryRow]:
        """The small rest, by kind and device."""
        sums: dict[tuple[str, str], tuple[int, int]] = {}
        for piece in pieces:
            kind = UNEXPLAINED if piece.phase == "rest" else _PHASES.get(piece.phase, piece.kind)
            nbytes, count = sums.get((kind, piece.memory.device), (0, 0))
            sums[kind, piece.memory.device] = (nbytes + piece.nbytes, count + piece.count)
        return [
            MemoryRow(f"{count} more, not named one by one", kind, device, nbytes, count)
            for (kind, device), (nbytes, count) in sums.items()
        ]


def _registered(owner: str, name: str) -> str:
    if name.isdigit():
        return f"{owner}[{name}]"
    return f"{owner}.{name}" if name.isidentifier() else f"{owner}.get_parameter({key_text(name)})"


def _merged(rows: list[MemoryRow]) -> list[MemoryRow]:
    """Rows of one path, kind and device as one: the activations behind a loss, the parts of a sparse tensor."""
    merged: dict[tuple[str, str, str], MemoryRow] = {}
    for row in rows:
        key = (row.path, row.kind, row.device)
        known = merged.get(key)
        merged[key] = (
            row
            if known is None
            else known._replace(
                nbytes=known.nbytes + row.nbytes,
                pieces=known.pieces + row.pieces,
                shown_nbytes=known.shown_nbytes + row.shown_nbytes,
            )
        )
    return list(merged.values())
