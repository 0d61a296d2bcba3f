"""Indexing by variables that hold a number: it copies nothing."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

import torch

from torch_inspector.facts import IndexingFact
from torch_inspector.observe import kinds
from torch_inspector.observe.indexing import may_copy


def numbered_facts(facts: Iterable[IndexingFact], names: Mapping[str, Any]) -> frozenset[IndexingFact]:
    """Those whose index is made of variables that hold a number now."""
    return frozenset(fact for fact in facts if _is_numbered(fact.index, names))


def _is_numbered(index: str, names: Mapping[str, Any]) -> bool:
    expression = ast.parse(f"_[{index}]", mode="eval").body
    used = (node.id for node in ast.walk(expression) if isinstance(node, ast.Name))
    return isinstance(expression, ast.Subscript) and not may_copy(
        expression.slice, {name for name in used if name in names and _is_number(names[name])}
    )


def _is_number(value: Any) -> bool:
    if type(value) is torch.Tensor:
        return value.dim() == 0 and value.dtype != torch.bool
    return type(value) is int or (kinds.module_of(type(value)) == "numpy" and "int" in kinds.class_name(value))
