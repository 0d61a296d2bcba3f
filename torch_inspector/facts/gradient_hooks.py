"""Hooks that give back gradients of another length: `p.register_hook(lambda g: g / n)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from torch_inspector.facts import syntax
from torch_inspector.facts.gradient_names import scales_gradients

_REGISTER = frozenset(["register_hook", "register_post_accumulate_grad_hook"])
_SCALES = frozenset(["div", "mul", "divide", "multiply", "true_divide"])
# Hooks that keep or show a gradient: `norms.append`.
_KEEPS = frozenset(["append", "appendleft", "add", "extend", "put", "print"])

_Function = ast.FunctionDef | ast.AsyncFunctionDef


@lru_cache(maxsize=2)
def scaled_by_hooks(texts: tuple[str, ...]) -> bool:
    """True if the texts register such a hook, or one that they do not define."""
    trees = [tree for text in texts if "_hook" in text and (tree := syntax.parse(text)) is not None]
    hooks = [hook for tree in trees for hook in _hooks(tree)]
    return bool(hooks) and any(_scales(hook, _defined(texts)) for hook in hooks)


def _hooks(tree: ast.Module) -> Iterator[ast.expr]:
    for node in syntax.walk(tree):
        if isinstance(node, ast.Call) and syntax.last_part(node.func) in _REGISTER:
            yield from (*node.args[:1], *(one.value for one in node.keywords if one.arg == "hook"))


def _defined(texts: tuple[str, ...]) -> dict[str, list[_Function | ast.Lambda]]:
    found: dict[str, list[_Function | ast.Lambda]] = {}
    for tree in filter(None, map(syntax.parse, texts)):
        for one in syntax.functions_of(tree):
            found.setdefault(one.name, []).append(one)
        for node in syntax.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                for name in map(syntax.last_part, node.targets):
                    found.setdefault(name, []).append(node.value)
    return found


def _scales(hook: ast.expr, defined: dict[str, list[_Function | ast.Lambda]]) -> bool:
    """True for a function that scales, and for one that no text defines."""
    if isinstance(hook, ast.Lambda):
        return _gives_scaled(hook) or any(map(_gives_scaled, _called(hook.body, defined)))
    name = syntax.last_part(hook) if isinstance(hook, (ast.Name, ast.Attribute)) else ""
    known = defined.get(name, []) if name else _called(hook, defined)
    return (not known and name not in _KEEPS) or any(map(_gives_scaled, known))


def _called(node: ast.expr, defined: dict[str, list[_Function | ast.Lambda]]) -> list[_Function | ast.Lambda]:
    """The functions of the texts that an expression names: `scale` of `partial(scale, n)` and of `scale(g, n)`."""
    names = {getattr(one, "attr", "") or getattr(one, "id", "") for one in syntax.walk(node)}
    return [one for name in sorted(names) for one in defined.get(name, ())]


def _gives_scaled(function: _Function | ast.Lambda) -> bool:
    """True if a result of the function, or of one inside of it, is a product, or if it scales what it is given."""
    nodes = list(syntax.walk(function))
    results = [one.value for one in nodes if isinstance(one, ast.Return)]
    results += [one.body for one in nodes if isinstance(one, ast.Lambda)]
    named = {name for one in nodes if isinstance(one, ast.Return) for name in syntax.names_in(one)}
    results += [
        one.value for one in nodes if isinstance(one, ast.Assign) and named & set(map(syntax.root_of, one.targets))
    ]
    return any(map(_is_product, results)) or scales_gradients(function, syntax.parameters_of(function))


def _is_product(node: ast.expr | None) -> bool:
    """True for `g / n`, `-g * n`, `g.div(n)`, `torch.mul(g, n)` and choices of one."""
    if isinstance(node, ast.IfExp):
        return _is_product(node.body) or _is_product(node.orelse)
    if isinstance(node, ast.UnaryOp):
        return _is_product(node.operand)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, (ast.Div, ast.Mult)) or _is_product(node.left) or _is_product(node.right)
    return isinstance(node, ast.Call) and syntax.last_part(node.func) in _SCALES
