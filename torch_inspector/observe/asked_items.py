"""What an object surely names when it is asked for an item: not what stands behind a test that it does not meet."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from torch_inspector.facts import syntax
from torch_inspector.observe import kinds
from torch_inspector.observe.definitions import definition
from torch_inspector.observe.source import dotted
from torch_inspector.observe.truths import truth

TreeOf = Callable[[CodeType], ast.Module | None]
_ENTRIES = ("__getitem__", "__getitems__", "__iter__", "__next__", "__call__")
_DEEPEST, _NODES = 6, 5_000
_LEAVES = (ast.Return, ast.Break, ast.Continue)


class Asked(NamedTuple):
    """A function of an object, with the name that its code has for the object."""

    function: Any
    owner: Any


def named_by(holder: Any, tree_of: TreeOf) -> frozenset[str] | None:
    """Names and attributes as written, `self.rng`, `np.random.rand` and `noise()`; None if code is not at hand.

    Args:
        holder: A function, or an object whose items are asked for, or that is called.
        tree_of: Gives the text of code.
    """
    return _named_by([Asked(holder, None)] if type(holder) is FunctionType else list(_entries(holder)), tree_of)


def named_by_calls(thing: Any, name: str, named: frozenset[str], tree_of: TreeOf) -> frozenset[str]:
    """The same for an object of the notebook, of its methods that other code surely calls; none if that is not known.

    Args:
        thing: The object.
        name: What it is called.
        named: What the other code surely names.
        tree_of: Gives the text of code.
    """
    called = {one.removeprefix(f"{name}.").removesuffix("()") for one in named if one.startswith(f"{name}.")}
    called = {one for one in called if f"{name}.{one}()" in named} | ({"__call__"} if f"{name}()" in named else set())
    methods = (_method(thing, one) for one in sorted(called))
    return _named_by([Asked(one, thing) for one in methods if one is not None], tree_of) or frozenset()


def _named_by(functions: list[Asked], tree_of: TreeOf) -> frozenset[str] | None:
    found, stack, seen = set[str](), [(one, 0) for one in functions], set[CodeType]()
    while stack:
        one, depth = stack.pop()
        node = _node_of(one.function.__code__, tree_of)
        if node is None:
            return None
        if one.function.__code__ in seen or depth > _DEEPEST or len(found) > _NODES:
            continue
        seen.add(one.function.__code__)
        names = frozenset(_named_in(node, one))
        found |= names
        stack.extend((inner, depth + 1) for name in names for inner in _called(name, one))
    return frozenset(found) if functions else None


def _entries(holder: Any) -> Iterator[Asked]:
    for name in _ENTRIES:
        function = _method(holder, name)
        if function is not None and function.__module__ == "__main__":
            yield Asked(function, holder)


def _method(owner: Any, name: str) -> FunctionType | None:
    """The function behind a method; None for anything else of that name."""
    fields = (kinds.class_fields(kind) for kind in kinds.mro_of(type(owner)))
    found: Any = next((one[name] for one in fields if name in one), None)
    found = found.__func__ if kinds.is_one_of(found, (staticmethod, classmethod)) else found
    return found if type(found) is FunctionType else None


def _called(name: str, by: Asked) -> Iterator[Asked]:
    """Functions of the notebook that a name stands for, `self.noise` and `jitter`; a property is asked as well."""
    if name.startswith("self.") and by.owner is not None:
        wanted = name.removeprefix("self.").partition(".")[0]
        found: Any = _method(by.owner, wanted) or getattr(_property(by.owner, wanted), "fget", None)
    elif name.startswith("super()."):
        wanted = name.removeprefix("super().")
        fields = (kinds.class_fields(kind) for kind in kinds.mro_of(type(by.owner)))
        yield from (Asked(one[wanted], by.owner) for one in fields if type(one.get(wanted)) is FunctionType)
        return
    else:
        found = dict.get(by.function.__globals__, name)
    if type(found) is FunctionType and found.__module__ == "__main__":
        yield Asked(found, by.owner if name.startswith("self.") else None)


def _property(owner: Any, name: str) -> property | None:
    fields = (kinds.class_fields(kind) for kind in kinds.mro_of(type(owner)))
    found = next((one[name] for one in fields if name in one), None)
    return found if type(found) is property else None


def _node_of(code: CodeType, tree_of: TreeOf) -> ast.FunctionDef | ast.Lambda | None:
    """A function in the text of its cell."""
    tree = tree_of(code)
    found = definition(tree, code) if tree is not None else None
    return None if isinstance(found, ast.AsyncFunctionDef) else found


def _named_in(node: ast.FunctionDef | ast.Lambda, asked: Asked) -> Iterator[str]:
    """What the parts of a function that surely run name; the object that it belongs to is `self`."""
    first = next((one.arg for one in node.args.args), "") if asked.owner is not None else ""
    body = node.body if isinstance(node.body, list) else [ast.copy_location(ast.Return(node.body), node.body)]
    for one in _surely(body, asked, first):
        if isinstance(one, (ast.Name, ast.Attribute)) and isinstance(one.ctx, ast.Load):
            text = "super()" + ast.unparse(one)[7:] if ast.unparse(one).startswith("super().") else dotted(one)
            root, point, rest = text.partition(".")
            yield f"self{point}{rest}" if root == first and first else text
        elif isinstance(one, ast.Call) and (called := dotted(one.func)):
            yield f"{called}()"


def _surely(block: Iterable[ast.stmt], asked: Asked, first: str) -> Iterator[ast.AST]:
    """The nodes of a block that are come to whenever it is."""
    for one in block:
        yield from _parts(one, asked, first)
        if _may_leave(one, asked, first):
            return


def _parts(node: ast.AST, asked: Asked, first: str) -> Iterator[ast.AST]:
    yield node
    if isinstance(node, syntax.INNER):
        return
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        yield from _parts(node.test, asked, first)
        known = truth(node.test, asked.function, asked.owner, first)
        taken = [] if known is None else node.body if known else node.orelse
        yield from _surely(taken, asked, first) if isinstance(taken, list) else _parts(taken, asked, first)
    elif isinstance(node, ast.BoolOp):
        for one in node.values:
            yield from _parts(one, asked, first)
            if truth(one, asked.function, asked.owner, first) is not isinstance(node.op, ast.And):
                return
    elif isinstance(node, (ast.For, ast.With)):
        heads = [node.iter] if isinstance(node, ast.For) else [one.context_expr for one in node.items]
        yield from (part for one in heads for part in _parts(one, asked, first))
        yield from _surely(node.body, asked, first)
    elif isinstance(node, ast.Try):
        yield from _surely([*node.body, *node.finalbody], asked, first)
    else:
        conditional = any(one.ifs for one in getattr(node, "generators", ()))
        inner = [node.generators[0].iter] if conditional else syntax.children(node)  # type: ignore[attr-defined]
        yield from (part for one in inner for part in _parts(one, asked, first))


def _may_leave(one: ast.AST, asked: Asked, first: str) -> bool:
    """True if what follows a statement may not be come to."""
    if isinstance(one, ast.If):
        known = truth(one.test, asked.function, asked.owner, first)
        inside: list[ast.stmt] = [*one.body, *one.orelse] if known is None else one.body if known else one.orelse
        return any(_may_leave(part, asked, first) for part in inside)
    leaves = (ast.Return,) if isinstance(one, (ast.For, ast.While)) else _LEAVES
    if isinstance(one, leaves):
        return True
    inner = [part for part in syntax.children(one) if isinstance(part, (ast.stmt, ast.ExceptHandler))]
    if isinstance(one, (ast.For, ast.While)):
        return any(isinstance(part, ast.Return) for part in syntax.walk(one))
    return not isinstance(one, syntax.INNER) and any(_may_leave(part, asked, first) for part in inner)
