"""A network that is to stay behind, as a target or a teacher, and is the very module that is trained.

Live values say that both names, of variables or of the fields of one object, lead to one module which was stepped, or
to it and a shallow copy, which has the same parameters. The text says where one was given the other, and that a loop, a
function or a class which trains calls both.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from torch import nn

from torch_inspector.facts import ExpressionFact, Place, StepFact, syntax
from torch_inspector.observe.kinds import fields_of, is_a, is_registry, module_of
from torch_inspector.observe.layers import walk_parameters
from torch_inspector.observe.namespace import hidden
from torch_inspector.observe.place import CodeFile
from torch_inspector.observe.second_names import pairs
from torch_inspector.observe.shallow import copied_shallowly, is_one_module
from torch_inspector.observe.source import dotted

# Names for a network that follows another one, or stays as it was.
_BEHIND = re.compile(r"target|tgt|teacher|(?:^|_)(?:ema|old|ref|reference|momentum)(?:_|$)", re.IGNORECASE)
_AGAIN = (ast.FunctionDef, ast.For, ast.While)
# Variables looked at after one cell.
_VARIABLES = 2_000
# Fields that say nothing of a purpose.
_OF_EVERY = frozenset(["training", "requires_grad"])
_TRAINED = (ast.FunctionDef, ast.ClassDef, ast.For, ast.While)


def namesakes(names: Mapping[str, Any], files: list[CodeFile], steps: list[StepFact]) -> Iterator[ExpressionFact]:
    """One fact for each name of a network that stays behind, if steps moved it under another name.

    Args:
        names: The user's variables.
        files: Code of the cell that is done, then of the others, latest first.
        steps: Steps of the optimizers in the cell.
    """
    stepped = frozenset[int]().union(*(step.parameter_keys for step in steps))
    for behind, others in _same(names, stepped) if stepped else ():
        if any(_trains_with_both(file, behind, others) for file in files):
            given = [(file, found) for file in files if (found := _given(file, behind, others)) is not None]
            if given and _has_own_fields(files, given[0][1][1]):
                continue
            if given and (given[0][0].cell != files[0].cell or not _is_last(*given[0], steps)):
                yield _fact(*given[0])


def _same(names: Mapping[str, Any], stepped: frozenset[int]) -> Iterator[tuple[str, frozenset[str]]]:
    """Each name of a network that stays behind, with the others of the same module, which was stepped."""
    for fields in _namespaces(names):
        modules = [(name, value) for name, value in fields.items() if is_a(value, nn.Module)]
        for behind, module in modules:
            others = _others(modules, module)
            if _BEHIND.search(behind) and others and any(id(one) in stepped for _, one in walk_parameters(module)):
                yield behind, others


def _others(modules: list[tuple[str, Any]], module: Any) -> frozenset[str]:
    """The names of a module, and of those that it was copied from or to without its parts."""
    return frozenset(name for name, one in modules if not _BEHIND.search(name) and is_one_module(one, module))


def _namespaces(names: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The user's variables, and the fields of each object of a class of the notebook."""
    own = {name: value for name, value in islice(list(names.items()), _VARIABLES) if not hidden(name)}
    yield own
    for value in own.values():
        if module_of(type(value)) == "__main__":
            fields = fields_of(value)
            inner = fields.get("_modules") if is_a(value, nn.Module) else None
            yield {**fields, **inner} if is_registry(inner) else dict(fields)


def _trains_with_both(file: CodeFile, behind: str, others: frozenset[str]) -> bool:
    """True if a loop, a function or a class calls both, and `backward`."""
    for node in syntax.walk(file.tree) if file.tree is not None else ():
        if isinstance(node, _TRAINED):
            called = [dotted(one.func) for one in syntax.walk(node) if isinstance(one, ast.Call)]
            ends = {name.removesuffix(".forward").rpartition(".")[2] for name in called}
            if behind in ends and ends & others and _backwards(node):
                return True
    return False


def _backwards(node: ast.AST) -> bool:
    return any(isinstance(one, ast.Attribute) and one.attr == "backward" for one in syntax.walk(node))


def _given(file: CodeFile, behind: str, others: frozenset[str]) -> tuple[ast.Assign, str, str] | None:
    """The statement that gives the name the other module, and both as written."""
    found = None
    for node in syntax.walk(file.tree) if file.tree is not None else ():
        if isinstance(node, ast.Assign) and not _is_choice(file, node, behind):
            for kept, model in _both(node, others):
                if _end(kept) == behind and not _is_made_anew(file, _end(model)):
                    found = node, kept, model
    return found


def _has_own_fields(files: list[CodeFile], kept: str) -> bool:
    """True if a line gives the name something of its own, as a shallow copy has it: `teacher.noise = 0.0`."""
    nodes = (one for file in files if file.tree is not None for one in syntax.walk(file.tree))
    stored = (one for one in nodes if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store))
    return any(dotted(one.value) == kept and one.attr not in _OF_EVERY for one in stored)


def _both(node: ast.Assign, others: frozenset[str]) -> Iterator[tuple[str, str]]:
    """`target = net`, `a, target = b, net`, and `net = target = Net()`."""
    if len(node.targets) > 1:
        written = [name for one in node.targets if (name := dotted(one))]
        ahead = next((name for name in (*written, dotted(node.value)) if name and _end(name) in others), "")
        yield from ((one, ahead) for one in written if ahead)
        return
    for target, value in pairs(node.targets[0], node.value):
        kept, model = dotted(target), dotted(copied_shallowly(value, bare=True) or value)
        if model and (_end(model) in others or "." in kept):
            yield kept, model


def _is_made_anew(file: CodeFile, model: str) -> bool:
    """True if a loop or a method makes the model anew: then the one before it may stay behind, as a teacher does."""
    return any(
        model in _stored(node)
        for node in (syntax.walk(file.tree) if file.tree is not None else ())
        if isinstance(node, _AGAIN) and getattr(node, "name", "") != "__init__"
    )


def _end(name: str) -> str:
    return name.rpartition(".")[2]


def _is_choice(file: CodeFile, node: ast.Assign, behind: str) -> bool:
    """True in a branch whose other branch gives the name something else: then no copy is one of two settings."""
    return any(
        any(one is node for part in side for one in syntax.walk(part))
        and any(behind in _stored(part) for part in other)
        for branch in (syntax.walk(file.tree) if file.tree is not None else ())
        if isinstance(branch, ast.If)
        for side, other in ((branch.body, branch.orelse), (branch.orelse, branch.body))
    )


def _stored(part: ast.AST) -> set[str]:
    return {_end(dotted(one)) for one in syntax.walk(part) if isinstance(getattr(one, "ctx", None), ast.Store)}


def _is_last(file: CodeFile, given: tuple[ast.Assign, str, str], steps: list[StepFact]) -> bool:
    """True for a statement of the cell itself that comes once, after its steps, as for a teacher."""
    node = given[0]
    around = syntax.walk(file.tree) if file.tree is not None else ()
    again = any(isinstance(one, (*_AGAIN, ast.ClassDef)) and node in syntax.walk(one) for one in around)
    later = any(step.place.cell == file.cell and (step.place.line or 0) > node.lineno + file.offset for step in steps)
    return not again and not later


def _fact(file: CodeFile, given: tuple[ast.Assign, str, str]) -> ExpressionFact:
    node, kept, model = given
    place = Place(file.cell, node.lineno + file.offset, "")
    copied = f"copy.deepcopy({model})"
    return ExpressionFact("namesake", place, ast.unparse(node), names=(kept, model), target=kept, detail=copied)
