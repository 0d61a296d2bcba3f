"""How a line that makes a collection or a total grow would read without history."""

from __future__ import annotations

import ast

from torch_inspector.facts import syntax
from torch_inspector.observe.growth import DISPLAYS, FUNCTIONS, Growth, mentions, terms

# A longer line is no help as a correction.
_REMEDY_LENGTH = 100
# What goes through entries of which some may be numbers.
_ENTRIES = frozenset(["items", "values", "zip"])


def remedy(found: Growth, read: str) -> str:
    """The line with `.item()` or `.detach()` where it keeps a tensor; empty where its text does not tell.

    Args:
        found: The line.
        read: `item` or `detach`.
    """
    text = _rewritten(found, read)
    return text if len(text) <= _REMEDY_LENGTH else ""


def past_numbers(found: Growth, text: str, trees: list[ast.Module]) -> str:
    """The line as `remedy` gives it, in a way that takes plain numbers too where the text may give it some."""
    value = _kept(found.node)
    if not text or value is None or not _may_be_number(value, found, trees):
        return text
    own = ast.unparse(value)
    either = {"item": f"float({own})", "detach": f'{own}.detach() if hasattr({own}, "detach") else {own}'}
    for read, new in either.items():
        before, marked, after = text.rpartition(f"{own}.{read}()")
        if marked:
            guarded = f"{before}{new}{after}"
            return guarded if len(guarded) <= _REMEDY_LENGTH else ""
    return text


def _kept(node: ast.AST) -> ast.expr | None:
    """What a line puts into a collection, or adds."""
    if isinstance(node, ast.Call):
        return node.args[0] if node.args else None
    return node.value if isinstance(node, (ast.Assign, ast.AugAssign)) else None


def _may_be_number(value: ast.expr, found: Growth, trees: list[ast.Module]) -> bool:
    """True for `row[k]`, and for a variable that the text may give other things than tensors."""
    if isinstance(value, ast.Subscript):
        return not isinstance(value.slice, ast.Constant)
    if not isinstance(value, ast.Name):
        return False
    return _is_given_by_several(value.id, found.function, trees) or _is_an_entry(value.id, found.node, trees)


def _is_given_by_several(name: str, function: ast.AST | None, trees: list[ast.Module]) -> bool:
    """True for an argument of a function that is called at several places."""
    if not isinstance(function, FUNCTIONS) or name not in syntax.parameters_of(function):
        return False
    calls = (one.func for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.Call))
    named = (one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in calls)
    return [*named].count(getattr(function, "name", None)) > 1


def _is_an_entry(name: str, node: ast.AST, trees: list[ast.Module]) -> bool:
    """True for a variable that goes through the entries of a dictionary, of a written list, or of several at once."""
    loops = (one for tree in trees for one in syntax.walk(tree) if isinstance(one, ast.For))
    around = (one for one in loops if name in syntax.names_in(one.target) and any(n is node for n in syntax.walk(one)))
    return any(_is_mixed(part) for one in around for part in syntax.walk(one.iter))


def _is_mixed(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    word = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return isinstance(node, DISPLAYS) or word in _ENTRIES


def rows_detached(found: Growth) -> str:
    """`rows.append(row)` without history where each row is a dictionary of tensors; empty for any other line."""
    node = found.node
    one = node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords else None
    if not isinstance(node, ast.Call) or not isinstance(one, ast.Name):
        return ""
    return f"{ast.unparse(node.func)}({{k: v.detach() for k, v in {one.id}.items()}})"


def _rewritten(found: Growth, read: str) -> str:
    node = found.node
    if isinstance(node, ast.Call):
        single = len(node.args) == 1 and not node.keywords and not _is_many(node.args[0])
        return f"{ast.unparse(node.func)}({_read(node.args[0], read)})" if single else ""
    if isinstance(node, ast.AugAssign):
        plain = not _is_many(node.value) and not _uses_parameter(node.value, found.function)
        return f"{ast.unparse(node.target)} += {_read(node.value, read)}" if plain and found.kind == "sum" else ""
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return _assignment_rewritten(found, node, ast.unparse(node.targets[0]), read)
    return ""


def _assignment_rewritten(found: Growth, node: ast.Assign, target: str, read: str) -> str:
    value = node.value
    if found.kind == "carried":  # which of several it is, the text does not tell
        return f"{target} = {target}.detach()" if isinstance(node.targets[0], (ast.Name, ast.Attribute)) else ""
    if found.kind == "joined":
        return f"with torch.no_grad():\n    {ast.unparse(node)}"
    if found.kind == "item" and not _is_many(value):
        return f"{target} = {_read(value, read)}"
    if found.kind == "comprehension" and isinstance(value, ast.ListComp) and not _is_many(value.elt):
        loops = ast.unparse(value).removeprefix("[" + ast.unparse(value.elt)).removesuffix("]")
        return f"{target} = [{_read(value.elt, read)}{loops}]"
    return _sum_rewritten(found, value, target, read) if found.kind == "sum" else ""


def _sum_rewritten(found: Growth, value: ast.expr, target: str, read: str) -> str:
    """`total = total + loss.item()`; several terms are read as one sum: some of them may be plain numbers."""
    every = list(terms(value))
    old = [one for one in every if mentions(one, target)]
    new = [one for one in every if one not in old]
    if not new or len(old) != 1 or _is_difference(old[0]) or any(_uses_parameter(one, found.function) for one in new):
        return ""
    added = _read(new[0], read) if len(new) == 1 else f"({' + '.join(map(ast.unparse, new))}).{read}()"
    first, second = (added, ast.unparse(old[0])) if every[-1] is old[0] else (ast.unparse(old[0]), added)
    return f"{target} = {first} + {second}"


def _is_difference(value: ast.expr) -> bool:
    return isinstance(value, ast.BinOp) and isinstance(value.op, ast.Sub)


def _read(value: ast.expr, read: str) -> str:
    text = ast.unparse(value)
    simple = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    return f"{text}.{read}()" if simple else f"({text}).{read}()"


def _is_many(value: ast.expr) -> bool:
    """True if what is kept is no single tensor."""
    return isinstance(value, (*DISPLAYS, *syntax.COMPREHENSIONS, ast.Starred))


def _uses_parameter(value: ast.expr, function: ast.AST | None) -> bool:
    """True if the value comes from a caller, who may well hand over a float elsewhere.

    What a method of the same object gives back, `self.training_step(batch)`, does not.
    """
    if not isinstance(function, FUNCTIONS):
        return False
    given = {argument.arg for argument in function.args.args}
    used = [n for n in syntax.walk(value) if isinstance(n, ast.Name) and n.id in given]
    own = value.func if isinstance(value, ast.Call) else None
    called_on = own.value if isinstance(own, ast.Attribute) else None
    return any(one is not called_on or one.id != "self" for one in used)
