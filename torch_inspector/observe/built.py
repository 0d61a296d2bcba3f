"""Layers that the text makes inside `forward`, or makes and calls at once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torch_inspector.facts import BuiltFact, Place, syntax
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.source import dotted

# Beginnings of the names of layers that have weights.
_LAYERS = (
    *("Linear", "Bilinear", "Conv", "LSTM", "GRU", "RNN", "Embedding", "Transformer", "MultiheadAttention"),
    *("BatchNorm", "LayerNorm", "GroupNorm", "InstanceNorm", "RMSNorm", "PReLU", "Parameter", "LazyLinear"),
)
_TEXT = 60
_KEEPING = ("setattr", "add_module", "register_module", "append", "insert", "setdefault", "update")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Made(NamedTuple):
    node: ast.Call
    function: str
    is_in_branch: bool = False
    """True behind a condition: where another layer is made in any case, it may be that one."""


def built_facts(files: list[CodeFile], kinds: set[str], count: int, pass_count: int) -> Iterator[BuiltFact]:
    """One fact per line that makes a layer while a model runs.

    Args:
        files: Code of the cells, latest first; of two classes of one name the latest counts.
        kinds: Classes of the modules that were called.
        count: Parameters that are new in each pass.
        pass_count: Passes that were compared.
    """
    found = list(_found(files, kinds))
    certain = any(not made.is_in_branch for _, made in found)
    for file, made in found:
        if not (certain and made.is_in_branch):
            text = ast.unparse(made.node)
            place = Place(file.cell, made.node.lineno + file.offset)
            shown, name = text if len(text) < _TEXT else text[:_TEXT] + "…", _name_of(file, made.node)
            yield BuiltFact(place, shown, made.function, count, pass_count, name)


def _found(files: list[CodeFile], kinds: set[str]) -> Iterator[tuple[CodeFile, _Made]]:
    seen: set[str] = set()
    for file in files:
        yield from ((file, made) for made in _made_in(file, kinds - seen))
        if file.tree is not None:
            seen |= {n.name for n in file.tree.body if isinstance(n, ast.ClassDef)}


def _name_of(file: CodeFile, call: ast.Call) -> str:
    """`proj` for `proj = nn.Linear(…)`."""
    stores = (n for n in syntax.walk(file.tree) if isinstance(n, ast.Assign)) if file.tree is not None else ()
    targets = next((one.targets for one in stores if one.value is call), [])
    return targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else ""


def _made_in(file: CodeFile, kinds: set[str]) -> Iterator[_Made]:
    if file.tree is None or not any(layer in file.code for layer in _LAYERS):
        return
    modules = {n.name for n in syntax.walk(file.tree) if isinstance(n, ast.ClassDef) and _is_module(n)}
    for node in syntax.walk(file.tree):
        if isinstance(node, ast.ClassDef) and (node.name in kinds or node.name in modules):
            for one in node.body:
                if isinstance(one, _Function) and one.name == "forward":
                    yield from (_Made(call, f"{node.name}.forward", may) for call, may in _layers_in(one, modules))
        elif isinstance(node, _Function) and node.name not in ("forward", "__init__"):
            at_once = [n.func for n in syntax.walk(node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Call)]
            yield from (_Made(call, node.name) for call in at_once if _is_layer(call, modules))


def _is_module(node: ast.ClassDef) -> bool:
    return any(dotted(base).rpartition(".")[2] == "Module" for base in node.bases)


def _layers_in(function: _Function, modules: set[str]) -> Iterator[tuple[ast.Call, bool]]:
    """Layers made in a function, and whether behind a condition, but for those that are made only once there."""
    stack: list[tuple[ast.AST, bool]] = [(one, False) for one in function.body]
    while stack:
        node, may = stack.pop(0)
        if isinstance(node, ast.Call) and _is_layer(node, modules):
            yield node, may
        elif isinstance(node, ast.If):
            stack.extend((one, True) for one in ([] if _keeps(node) else node.body))
            stack.extend((one, may) for one in node.orelse)
        else:
            stack.extend((one, may) for one in syntax.children(node))


def _keeps(branch: ast.If) -> bool:
    """True if a branch may keep what it makes, so that the next pass does not take it."""
    nodes = [node for statement in branch.body for node in syntax.walk(statement)]
    stores = any(isinstance(one, (ast.Attribute, ast.Subscript)) and isinstance(one.ctx, ast.Store) for one in nodes)
    hands_on = any(isinstance(one, ast.Call) and dotted(one.func).rpartition(".")[2] in _KEEPING for one in nodes)
    asks = any(isinstance(one, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for one in syntax.walk(branch.test))
    return stores or hands_on or asks or "hasattr" in syntax.names_in(branch.test)


def _is_layer(node: ast.Call, modules: set[str]) -> bool:
    name = dotted(node.func)
    last = name.rpartition(".")[2]
    return (
        last in modules
        or (name.startswith(("nn.", "torch.nn.")) and last.startswith(_LAYERS))
        or (name == last and last.startswith(_LAYERS) and last[:1].isupper())
    )
