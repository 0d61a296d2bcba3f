"""Text with another expression in the place of one of its own."""

from __future__ import annotations

import ast


def replaced_in(text: str, node: ast.expr, new: str) -> str:
    """The text with something else where a node of its tree stands; all the rest, comments too, as it is written."""
    lines = text.splitlines(keepends=True)
    start, end = (
        sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())
        for line, column in ((node.lineno, node.col_offset), (node.end_lineno or 1, node.end_col_offset or 0))
    )
    return f"{text[:start]}{new}{text[end:]}"
