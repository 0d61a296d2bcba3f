"""Where a text uses gradients, or the norm that a clip of them returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.gradient_logs import Logs, is_shown
from torch_inspector.facts.mentions import calls_in, meanings_in, stored_in, takers_in

if TYPE_CHECKING:
    from torch_inspector.facts.run import Run

# What clears a gradient, and what may stand on the way.
_CLEARS = frozenset(["zero_", "fill_", "detach_", "requires_grad_"])
_CLEARING = re.compile(
    r"zero_grad|zero_\b|\.fill_\(|\bgrad\b.*\bNone\b|\bgrad\b.*\*= *0|clear\w*grad|zeros_like|\bgrad\b.* = *0"
)
# Calls that are given the name of a field and do not read it.
_WRITES = frozenset(["hasattr", "setattr", "delattr"])
_READS = re.compile(r"\bgrad\b|\bregister_|jacobian|hessian|\b[vj][jv]p\b")
# Calls that are given, or called of, what somebody wants the gradient of.
_ASKING = frozenset(
    ["grad", "jacobian", "hessian", "vjp", "jvp", "register_hook", "register_post_accumulate_grad_hook", "getattr"]
)
# Calls that go over a collection, or give one of the same elements.
_GOES_OVER = frozenset(
    ["items", "values", "enumerate", "zip", "dict", "list", "tuple", "sorted", "reversed", "iter", "filter"]
)
# `for k, v in table.items()`, `table = dict(parts)`, `parts = [("gate", gate)]`.
_HOPS = 3
_INNER = (*syntax.INNER, *syntax.COMPREHENSIONS, ast.For)


def uses_gradients(run: Run, keys: frozenset[int]) -> bool:
    """True if the text of a cell reads gradients of these parameters or of nobody knows whom, or the norm of a clip."""
    for past in (run, *run.earlier):
        tree = syntax.parse(past.cell.code)
        owners = _owners(tree) if tree is not None else ()
        if any(one is None or not _is_another(past, one, keys) for one in owners):
            return True
    return False


def collects_gradients(run: Run, name: str, *, of_module: bool) -> bool:
    """True if the texts make something of the gradients of one variable: a score of how much a mask matters.

    Args:
        run: The cell, and those before.
        name: Path of the variable.
        of_module: True for a parameter of a module, which code knows by other first names: `self.gate`.
    """
    texts = _Texts(run, name, of_module=of_module)
    return any(_asks(tree, texts.own) or not all(_used(tree, texts)) for tree in texts.reading)


def logs_gradients(run: Run, name: str, *, of_module: bool) -> bool:
    """True if the texts keep norms of the gradients of one variable, to be drawn or shown."""
    texts = _Texts(run, name, of_module=of_module)
    return any(any(_used(tree, texts)) for tree in texts.reading)


class _Texts:
    """The texts that name a variable, and those that read gradients.

    Args:
        run: The cell, and those before.
        name: Path of the variable.
        of_module: True for a parameter of a module.
    """

    def __init__(self, run: Run, name: str, *, of_module: bool) -> None:
        self.name = name
        self.own = name.partition(".")[2] if of_module else re.split(r"\W+", name.partition("[")[0])[-1]
        texts = dict.fromkeys(one.cell.source for one in (run, *run.earlier) if self.own)
        self.reading = [tree for text in texts if _READS.search(text) and (tree := syntax.parse(text)) is not None]
        self.every = [tree for text in texts if self.reading and (tree := syntax.parse(text)) is not None]
        self.logs = Logs(self.every)
        self._leading: dict[tuple[int, str], bool] = {}

    def lead_from(self, owner: ast.expr, tree: ast.Module) -> bool:
        """True for what a loop, an assignment, or a function that is given the variable calls otherwise."""
        first = next((one.id for one in syntax.walk(owner) if isinstance(one, ast.Name)), "")
        key = (id(tree), first)
        if key not in self._leading:
            self._leading[key] = _leads_to(first, tree, self)
        return self._leading[key]


def _used(tree: ast.Module, texts: _Texts) -> Iterator[bool]:
    """For each gradient of the variable that a text uses, whether that only keeps its norm, to be shown."""
    parents = syntax.parents(tree)
    for one in syntax.walk(tree):
        if isinstance(one, ast.Attribute) and one.attr == "grad" and _is_used(one, parents.get(id(one))):
            idle = _is_idle(one, parents) or is_shown(one, parents)
            if not idle and (_is_of(one.value, texts.own, texts.name) or texts.lead_from(one.value, tree)):
                yield texts.logs.is_logged(one, tree)


def _asks(tree: ast.Module, own: str) -> bool:
    """True if a text asks for the gradient of the variable: `torch.autograd.grad(loss, gate)`."""
    for one in syntax.walk(tree):
        if isinstance(one, ast.Call) and syntax.last_part(one.func) in _ASKING:
            asked = (one.func, *one.args) if syntax.last_part(one.func) != "getattr" or _reads_by_name(one) else ()
            if any(_is_called(part, own) for each in asked for part in syntax.walk(each)):
                return True
    return False


def _is_called(node: ast.AST, own: str) -> bool:
    """True for the variable itself, whatever is before its own name."""
    text = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
    return text == own or text.endswith(f".{own}")


def _is_of(owner: ast.AST, own: str, name: str) -> bool:
    """True for the variable, or an element of it."""
    owner = syntax.whole_of(owner)
    bare = isinstance(owner, ast.Name) and "." in name
    return _is_called(owner, own) and (not bare or ast.unparse(owner) == name)


def _leads_to(first: str, tree: ast.Module, texts: _Texts) -> bool:
    names = {first}
    trees = [tree]
    for _ in range(_HOPS):
        given = [part for each in trees for name in names for part in _meant_by(each, texts.every, name)]
        if any(_is_called(part, texts.own) for each in given for part in syntax.walk(each)):
            return True
        names = {
            part.id for each in given if _hands_on(each) for part in syntax.walk(each) if isinstance(part, ast.Name)
        }
        trees = texts.every
    return False


def _hands_on(value: ast.AST) -> bool:
    """True for a collection, or what goes over one: `{"gate": gate}`, `table.items()`; not for what is computed."""
    if isinstance(value, ast.Call):
        return syntax.last_part(value.func) in _GOES_OVER
    return isinstance(value, (*syntax.COMPREHENSIONS, ast.List, ast.Tuple, ast.Set, ast.Dict, ast.Name, ast.Subscript))


def _meant_by(tree: ast.Module, every: list[ast.Module], name: str) -> Iterator[ast.AST]:
    """What a variable of a loop, a comprehension or a function stands for, and what is assigned to it."""
    yield from meanings_in(tree).get(name, ())
    functions = [one.name for one in takers_in(tree).get(name, ()) if isinstance(one, ast.FunctionDef)]
    for function in functions:
        for call in (one for other in every for one in calls_in(other).get(function, ())):
            if isinstance(call, ast.Call):
                yield from (*call.args, *(each.value for each in call.keywords))


def clears_gradients(run: Run) -> bool:
    """True if the text of the cell, or of a function of an earlier one, clears gradients: else each goes on."""
    return any(_CLEARING.search(text) for text in (run.cell.code, *_functions(run)))


def _functions(run: Run) -> Iterator[str]:
    for past in run.earlier:
        tree = syntax.parse(past.cell.code) if _CLEARING.search(past.cell.code) else None
        for one in syntax.walk(tree) if tree is not None else ():
            if isinstance(one, (ast.FunctionDef, ast.Lambda)):
                yield ast.unparse(one)


def _owners(tree: ast.Module) -> Iterator[str | None]:
    """Whose gradients are read, as the text says it; None where that can be anybody."""
    parents = syntax.parents(tree)
    local = {name for one in syntax.walk(tree) if isinstance(one, _INNER) for name in stored_in(one)}
    for one in syntax.walk(tree):
        if isinstance(one, ast.Attribute) and one.attr == "grad" and _is_used(one, parents.get(id(one))):
            owner = ast.unparse(one.value)
            if not _is_idle(one, parents):
                yield None if owner.partition(".")[0] in local else owner
        elif isinstance(one, ast.Call) and (_reads_by_name(one) or _is_norm(one, parents)):
            yield None


def _is_used(gradient: ast.Attribute, parent: ast.AST | None) -> bool:
    """True for a gradient that is read, also by `p.grad *= 0.9`; `p.grad *= 0` clears it."""
    if isinstance(parent, ast.AugAssign) and parent.target is gradient:
        by = parent.value.value if isinstance(parent.value, ast.Constant) else None
        return not (isinstance(parent.op, ast.Mult) and by == 0)
    return isinstance(gradient.ctx, ast.Load)


def _is_idle(read: ast.AST, parents: dict[int, ast.AST]) -> bool:
    """True for a gradient that is only cleared, `p.grad.zero_()`, or asked whether it is there."""
    node, parent, cleared = read, parents.get(id(read)), False
    if isinstance(parent, ast.Compare):
        return all(isinstance(one, (ast.Is, ast.IsNot)) for one in parent.ops)
    while isinstance(parent, (ast.Attribute, ast.Call)):
        if isinstance(parent, ast.Attribute) and parent.attr not in (*_CLEARS, "data"):
            return False
        if isinstance(parent, ast.Call) and parent.func is not node:
            return False
        cleared = cleared or isinstance(parent, ast.Call)
        node, parent = parent, parents.get(id(parent))
    return cleared and isinstance(parent, ast.Expr)


def _reads_by_name(call: ast.Call) -> bool:
    """True for `getattr(p, "grad")` and `attrgetter("grad")`."""
    texts = [one.value for one in call.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return syntax.last_part(call.func) not in _WRITES and any("grad" in one.split(".") for one in texts)


def _is_norm(call: ast.Call, parents: dict[int, ast.AST]) -> bool:
    """True for a clip whose result is taken."""
    return syntax.last_part(call.func).startswith("clip_grad") and not isinstance(parents.get(id(call)), ast.Expr)


def _is_another(past: Run, owner: str, keys: frozenset[int]) -> bool:
    """True if what a cell calls so is known, and is none of these parameters."""
    known = {one.key for one in (*past.before.tensors, *past.after.tensors) if one.path == owner}
    whole = owner.rpartition(".")[0]
    parts = (one.parameter_keys for one in past.after.modules if one.path == whole and whole)
    known = known.union(*parts)
    return bool(known) and not known & keys
