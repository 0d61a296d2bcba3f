"""Which line of the user's own code led here."""

from __future__ import annotations

import ast
from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FrameType

from torch_inspector.facts import Cell, Place, syntax

# Files of cells that are remembered, so that functions of earlier cells still have a place.
_KEPT = 1_000
# Frames between a recorder and the user's line; trainer libraries nest some dozens.
_DEPTH = 200
_UNNAMED = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_CODE_NAMES = dict(zip(_UNNAMED, ("<lambda>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"), strict=True))
_TIMED = ("<timed exec>", "<timed eval>")


@dataclass(frozen=True)
class CodeFile:
    """The code of one cell (or script) under the file name that its frames carry."""

    cell: int | None
    offset: int
    code: str
    timed: bool = False
    """True for the shared file name of `%%time`, where functions of other cells may hide."""

    @cached_property
    def tree(self) -> ast.Module | None:
        """The parsed code; None if it does not parse on its own (top-level magics are already replaced)."""
        return syntax.parse(self.code)

    @cached_property
    def function_lines(self) -> frozenset[tuple[str, int]]:
        """Name and first line of every function in it, as its code object has them."""
        found = set()
        for node in syntax.walk(self.tree) if self.tree else ():
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                found.add((node.name, node.decorator_list[0].lineno if node.decorator_list else node.lineno))
            elif isinstance(node, _UNNAMED):
                found.add((_CODE_NAMES[type(node)], node.lineno))
        return frozenset(found)

    def owns(self, code: CodeType) -> bool:
        """True if this code object was compiled from this text."""
        if not self.timed or code.co_name == "<module>":
            return True
        return (code.co_name, code.co_firstlineno) in self.function_lines


class Places:
    """All cells whose lines can be found again."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, CodeFile] = OrderedDict()

    def add_cell(self, filename: str, cell: Cell) -> None:
        """Remembers a cell by the file name that IPython gives its code."""
        self.add(filename, CodeFile(cell.number, cell.line_offset, cell.code))
        for name in _TIMED:
            self._files.pop(name, None)
        if cell.body_offset:
            body = "\n".join(cell.source.splitlines()[cell.body_offset :])
            for name in _TIMED:
                self.add(name, CodeFile(cell.number, cell.body_offset, body, timed=True))

    def add(self, filename: str, file: CodeFile) -> None:
        """Remembers the code behind a file name."""
        self._files[filename] = file
        self._files.move_to_end(filename)
        while len(self._files) > _KEPT:
            self._files.popitem(last=False)

    def latest(self, count: int = 20) -> list[CodeFile]:
        """Code of the last cells, the newest first."""
        return [file for _, file in zip(range(count), reversed(self._files.values()), strict=False)]

    def file_of(self, frame: FrameType) -> CodeFile | None:
        """The cell that a frame runs, if it is one."""
        return self.file_of_code(frame.f_code)

    def file_of_code(self, code: CodeType) -> CodeFile | None:
        """The cell that a code object was compiled from, if it was."""
        file = self._files.get(code.co_filename)
        return file if file and file.owns(code) else None

    def tree_of(self, code: CodeType) -> ast.Module | None:
        """The parsed text of that cell."""
        file = self.file_of_code(code)
        return file.tree if file is not None else None

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame, from `frame` outwards, that runs the user's own code."""
        for _ in range(_DEPTH):
            if frame is None or self.file_of(frame):
                return frame
            frame = frame.f_back
        return None

    def trail(self, frame: FrameType | None) -> int:
        """Stands for all calls of the user's own code that lead to a frame: equal only for the same way."""
        steps: list[tuple[int, int]] = []
        for _ in range(_DEPTH):
            frame = self.user_frame(frame)
            if frame is None:
                break
            steps.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        return hash(tuple(steps))

    def find(self, frame: FrameType | None) -> Place:
        """The innermost line of the user's own code, from `frame` outwards; empty if there is none."""
        frame = self.user_frame(frame)
        if frame is None:
            return Place()
        return self.place(frame, frame.f_lineno)

    def place(self, frame: FrameType, line: int | None) -> Place:
        """The place of a line in a frame that runs a known cell."""
        file = self.file_of(frame)
        if file is None or line is None:
            return Place()
        name = frame.f_code.co_name
        return Place(file.cell, line + file.offset, "" if name == "<module>" else name)

    @staticmethod
    def place_in(file: CodeFile, code: CodeType, line: int) -> Place:
        """The place of a line of a function whose file is known."""
        return Place(file.cell, line + file.offset, "" if code.co_name == "<module>" else code.co_name)
