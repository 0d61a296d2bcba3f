"""Modules that were built on the device `meta`, where tensors have a shape and no numbers.

A module that is moved there may stand for one on another device; built there, it waits for its weights.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

_META = re.compile(r"^(?:(?:torch\.)?device\((?:device=|type=)?)?'meta'\)?$")
_CONTEXTS = re.compile(r"^(?:\w+\.)*(?:init_empty_weights|init_on_device)\(")


def built_on_meta(run: Run, name: str) -> bool:
    """True if the text builds a variable under `torch.device("meta")`, or with `device="meta"`, and in no other way."""
    trees = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.code)) is not None]
    nodes = [node for tree in trees for node in syntax.walk(tree)]
    values = [node.value for node in nodes if isinstance(node, ast.Assign) and _gives(node, name)]
    inside = {id(one.value) for node in nodes if isinstance(node, ast.With) and _is_meta(node) for one in _given(node)}
    built = [value for value in values if isinstance(value, ast.Call) and (id(value) in inside or _says_meta(value))]
    return bool(built) and len(built) == len(values)


def _gives(node: ast.Assign, name: str) -> bool:
    return any(ast.unparse(target) == name for target in node.targets)


def _given(block: ast.With) -> Iterator[ast.Assign]:
    return (node for one in block.body for node in syntax.walk(one) if isinstance(node, ast.Assign))


def _is_meta(block: ast.With) -> bool:
    texts = [ast.unparse(item.context_expr) for item in block.items]
    return any((text.endswith(")") and _META.match(text)) or _CONTEXTS.match(text) for text in texts)


def _says_meta(call: ast.Call) -> bool:
    return any(one.arg == "device" and _META.match(ast.unparse(one.value)) for one in call.keywords)
