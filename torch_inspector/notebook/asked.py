"""`%torchcheck memory`, `holders` and `free`: each asks for a full look and draws the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_inspector import asking
from torch_inspector.account import HoldersReport, MemoryReport

if TYPE_CHECKING:
    from torch_inspector.notebook.extension import Extension

_GRAPH = " (its graph)"


class Asked:
    """The words of `%torchcheck` that look at the whole heap."""

    def __init__(self, extension: Extension) -> None:
        self._extension = extension
        self._listed: tuple[str, ...] = ()
        """Paths of the last table, by number."""

    def memory(self, rest: list[str]) -> None:
        """`memory` and `memory --since 12`."""
        if not rest:
            report = asking.memory(shell=self._extension.shell)
            self._extension.draw(lambda: self._show_memory(report))
        elif rest[0] == "--since" and len(rest) == 2 and rest[1].isdigit():  # noqa: PLR2004
            self._extension.draw(lambda: self._show_since(int(rest[1])))
        else:
            self._extension.say("%torchcheck memory takes no words, or --since with the number of a cell")

    def holders(self, text: str) -> None:
        """`holders NAME_OR_EXPRESSION` and `holders NUMBER`."""
        if not text:
            self._extension.say("%torchcheck holders takes a name, an expression, or a number of the last memory table")
            return
        report = self._by_number(int(text)) if text.isdigit() else self._by_expression(text)
        if report is not None:
            self._extension.draw(lambda: self._show_holders(report))

    def free(self, rest: list[str]) -> None:
        """`free`, `free --yes`, `free --yes --traceback`."""
        if not set(rest) <= {"--yes", "--traceback"}:
            self._extension.say("%torchcheck free takes --yes, and --traceback to drop the last exception as well")
            return
        report, traceback = asking.memory(shell=self._extension.shell), "--traceback" in rest
        if "--yes" not in rest:
            self._extension.draw(lambda: self._show_plan(report))
            return
        from torch_inspector.notebook.freeing import let_go

        let_go(self._extension.shell, report, traceback=traceback)
        after = asking.memory(shell=self._extension.shell)
        self._extension.draw(lambda: self._show_freed(report, after, traceback=traceback))

    # answers ------------------------------------------------------------------

    def _by_number(self, number: int) -> HoldersReport | None:
        if not 0 < number <= len(self._listed):
            self._extension.say(f"the last memory table has no number {number}; %torchcheck memory shows one")
            return None
        path = self._listed[number - 1]
        report = asking.holders_of_row(path, shell=self._extension.shell)
        if report is None:
            self._extension.say(f"{path[:80]} holds no memory any more")
        return report

    def _by_expression(self, text: str) -> HoldersReport | None:
        try:
            thing = eval(text, self._extension.shell.user_ns)  # noqa: S307  (the user's own expression)
        except Exception as error:  # noqa: BLE001
            self._extension.say(f"%torchcheck holders: {text[:60]!r} gives {type(error).__name__}")
            return None
        return asking.holders_of(thing, text, shell=self._extension.shell)

    # showing ------------------------------------------------------------------

    def _show_memory(self, report: MemoryReport) -> None:
        from torch_inspector.views.memory import ROW_COUNT, grouped, memory_card

        self._listed = tuple(group.rows[0].path for group in grouped(report.rows)[:ROW_COUNT])
        self._extension.show(memory_card(report, self._cells()))

    def _show_since(self, number: int) -> None:
        from torch_inspector.views.report import since_card

        self._extension.show(since_card(self._extension.session.state(), number))

    def _show_holders(self, report: HoldersReport) -> None:
        from torch_inspector.views.memory import holders_card

        self._extension.show(holders_card(report))

    def _show_plan(self, report: MemoryReport) -> None:
        from torch_inspector.notebook.freeing import plan, proposals
        from torch_inspector.views.free import plan_card

        rows = [(item.what, item.nbytes, item.why, item.asked) for item in plan(report)]
        self._extension.show(plan_card(rows, proposals(report)))

    def _show_freed(self, before: MemoryReport, after: MemoryReport, *, traceback: bool) -> None:
        from torch_inspector.notebook.freeing import plan, proposals
        from torch_inspector.views.free import freed_card

        left = {item.what: item.nbytes for item in plan(after)}
        rows = [
            (item.what, item.nbytes - left.get(item.what, 0), left.get(item.what, 0))
            for item in plan(before)
            if item.asked or traceback
        ]
        kept = [row for row in after.rows if row.kind in ("IPython", "exception", "cycle")]
        self._extension.show(freed_card(rows, kept, proposals(after)))

    def _cells(self) -> dict[str, int]:
        """The cell in which each named tensor was first seen."""
        snapshot: Any = self._extension.session.state()
        return {fact.path: fact.first_seen_cell for fact in snapshot.tensors if fact.first_seen_cell is not None}
