"""An expression of the user's as what a method is called on."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax

# What binds no less than the dot behind it.
_CLOSE = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.GeneratorExp)


def receiver(text: str) -> str:
    """`(total / i)` for `total / i`, so that a dot may follow; what needs no parentheses, or is no Python, as it is."""
    node = syntax.expression(text)
    return text if node is None or isinstance(node, _CLOSE) else f"({text})"
