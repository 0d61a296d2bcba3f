"""Which expression of a cell has its result shown below it."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax


def shown(source: str) -> ast.Expr | None:
    """The last expression of a cell, unless a semicolon keeps its result from being shown."""
    # `%%time` shows it as well; without its text the lines keep their numbers.
    text = source if not source.startswith("%%") else source.removeprefix(source.partition("\n")[0])
    tree = syntax.parse(text)
    last = tree.body[-1] if tree is not None and tree.body else None
    if not isinstance(last, ast.Expr) or last.end_lineno is None:
        return None
    line = text.splitlines()[last.end_lineno - 1].encode()
    return last if not line[last.end_col_offset :].lstrip().startswith(b";") else None
