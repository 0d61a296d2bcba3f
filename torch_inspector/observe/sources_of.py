"""Where the operands of a failing expression come from: the line that made them, and their names further out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch_inspector.facts import OperandFact, Place
from torch_inspector.observe import lines
from torch_inspector.observe.locals import locals_of

if TYPE_CHECKING:
    from types import TracebackType

    from torch_inspector.observe.place import Places


class Sources:
    """Where the operands of a failing expression come from. Holds a traceback: drop it at once."""

    def __init__(self, entry: TracebackType, places: Places) -> None:
        self._entry, self._places = entry, places

    def add(self, fact: OperandFact, thing: Any) -> OperandFact:
        """The fact with the line that made the variable, and its name in the code that called the function."""
        file, frame = self._places.file_of(self._entry.tb_frame), self._entry.tb_frame
        tree = file.tree if file is not None else None
        # A statement that failed has given nothing a value.
        line = lines.assignment_line(tree, fact.path, self._entry.tb_lineno - 1) if tree is not None else None
        made_at = self._places.place(frame, line) if line is not None else self._earlier(fact.path)
        return fact._replace(made_at=made_at, known_as=self.known_as(thing))

    def _earlier(self, name: str) -> Place | None:
        """The line at the top level of an earlier cell that gave a variable its value."""
        if self._entry.tb_frame.f_code.co_name != "<module>":
            return None
        for file in self._places.latest():
            line = lines.assignment_line(file.tree, name, 1 << 30) if file.tree is not None else None
            if line is not None:
                return Place(file.cell, line + file.offset)
        return None

    def known_as(self, thing: Any) -> str:
        """Name of the same object in the next of the user's frames outwards."""
        outer = self._places.user_frame(self._entry.tb_frame.f_back)
        if outer is None or thing is None or self._entry.tb_frame.f_code.co_name == "<module>":
            return ""
        names = (*outer.f_code.co_varnames, *outer.f_code.co_names)
        with locals_of(outer) as values:
            return next((name for name in names if name in values and values[name] is thing), "")
