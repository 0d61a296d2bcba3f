"""Something was deleted to get its memory back, and what it named is held by something else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import DeletionFact, Run, syntax
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Less of what was deleted may be meant to stay: the part that is used further.
_MOST = 0.3
# Holders that are named; of the others, how many there are.
_NAMED = 3
# Elements of the tuple of a data set, which `del` refuses.
_OF_DATA_SET = re.compile(r"\.tensors\[\d+\]$")
# Registries of hooks.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_TENSOR_HOOKS, _OWN_HOOKS = "parameter hooks", "tensor hooks"
# Holders that have no use without what was deleted, and that nobody thinks of when deleting it.
_FORGOTTEN = {
    "spent graph": "its history refers to the weights",
    "optimizer": "it holds the parameters, their gradients and its state for them",
    "schedule": "it holds the optimizer, which holds the parameters",
    "function": "it was made with it",
    **dict.fromkeys(_HOOKS, "a hook of it was made with it, and is still registered"),
    _TENSOR_HOOKS: "a hook of one of its parameters was made with it, and is still registered",
    _OWN_HOOKS: "a hook of it was made with it, and is still registered",
}
# Those that somebody means to keep unless the cell asks for memory.
_MEANT = {
    "graph": "its graph needs it for backward",
    "view": "it is a view, which keeps all of it",
    "alias": "it is the same object",
    "object": "it leads to it",
    "tuple": "it is a part of it",
    "other": "it is the same memory",
}
# Calls that make a data set or a loader, and classes of these.
_DATA = re.compile(r"dataset|loader$|loaders$|subset|random_split", re.IGNORECASE)
_MODULES_ONLY = frozenset(("spent graph", "optimizer", "schedule"))
# What is done to see what there is.
_LOOKS = frozenset(["len", "print", "type", "iter", "next", "repr", "str", "display", "isinstance", "id", "dir"])


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds deletions of a cell that is after memory, of which a holder that is easily forgotten keeps the most."""
    pinned = {path for pin in run.after.pins for path in pin.paths}
    for fact in run.after.deleted if run.error is None else ():
        large = fact.held_nbytes >= max(run.min_nbytes, 1) and fact.held_nbytes >= _MOST * fact.nbytes
        used = fact.how == "view" and not _is_waste(fact) and not {fact.holder, *fact.others} <= set(fact.views)
        if large and not used and _is_forgotten(run, fact) and fact.holder not in pinned and not _is_to_come(run, fact):
            yield _finding(fact)


def _is_waste(fact: DeletionFact) -> bool:
    """True if copies of all the views would take much less than what they hold."""
    return fact.held_nbytes - fact.shown_nbytes >= _MOST * fact.nbytes


def _is_forgotten(run: Run, fact: DeletionFact) -> bool:
    if fact.how in _MODULES_ONLY and not fact.is_module:
        return False
    if fact.how in _FORGOTTEN or (fact.how == "graph" and fact.is_module):
        return fact.wants_memory or fact.alone
    # Who puts a tensor into a list of his own knows that it is there, unless a cell only asks for the memory; what an
    # object does with it is forgotten.
    listed = fact.alone and ("[" in fact.holder or fact.how == "tuple")
    known = fact.how in ("alias", "tuple") and not fact.is_module and "." not in fact.holder and not listed
    # A loader is given its data to have it, until it has been gone through; what NumPy shares is not seen in its name.
    known = known or (fact.how == "other" and fact.holder_kind != "ndarray" and not _is_used_loader(run, fact))
    return fact.how in _MEANT and fact.wants_memory and not known


def _is_used_loader(run: Run, fact: DeletionFact) -> bool:
    """True for a loader if the notebook has gone through one of its kind before this cell."""
    used = (loader for past in run.earlier for loader in past.trace.loaders)
    return fact.holder_kind.endswith("Loader") and any(loader.kind == fact.holder_kind for loader in used)


def _is_to_come(run: Run, fact: DeletionFact) -> bool:
    """True if a loader, or a data set without one, holds it that no line has gone through since."""
    names = {one.partition(".")[0].partition("[")[0] for one in (fact.holder, *fact.others)}
    parts = {part for one in (fact.holder, *fact.others) for part in re.findall(r"\.(\w+)", one)}
    trees = [tree for past in (*run.earlier, run) if (tree := syntax.parse(past.cell.code)) is not None]
    defined = (node for tree in trees for node in syntax.walk(tree) if isinstance(node, ast.ClassDef))
    classes = {one.name for one in defined if any(_DATA.search(ast.unparse(base)) for base in one.bases)}
    made: dict[str, tuple[int, int]] = {}
    loaders: set[str] = set()
    for index, tree in enumerate(trees):
        calls = [one for one in syntax.walk(tree) if isinstance(one, ast.Assign)]
        for node in sorted(calls, key=lambda one: one.lineno):
            value = node.value.elts[0] if isinstance(node.value, ast.Tuple) and node.value.elts else node.value
            maker = syntax.name_of(value.func) if isinstance(value, ast.Call) else ""
            targets = {one.id for each in node.targets for one in syntax.walk(each) if isinstance(one, ast.Name)}
            if maker in classes or _DATA.search(maker):
                # Of what goes through the data of an object nothing is known.
                if any(isinstance(one, ast.Attribute) and one.attr in parts for one in node.targets):
                    return True
                made |= dict.fromkeys(targets & names, (index, node.lineno))
                loaders |= targets & names if "loader" in maker.lower() else set()
    if fact.holder_kind in classes or _DATA.search(fact.holder_kind):
        made.setdefault(_root(fact), (0, 0))
    used = [
        (one.id, (index, one.lineno))
        for index, tree in enumerate(trees)
        for node in syntax.walk(tree)
        for one in _gone_through(node, classes)
    ]
    since = {name for name, at in used if name in made and at > made[name]}
    return any(name not in since for name in loaders or made)


def _gone_through(node: ast.AST, classes: set[str]) -> Iterator[ast.Name]:
    """Variables that a loop goes through, that are asked for item after item, or given to a function.

    Whoever looks at the first batch may have the loop before him.
    """
    given: list[ast.expr] = []
    if isinstance(node, (ast.For, ast.comprehension)):
        given = [node.iter]
    elif isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Constant):
        given = [node.value]
    elif isinstance(node, ast.Call):
        maker = syntax.name_of(node.func)
        if maker not in _LOOKS | classes and not _DATA.search(maker):
            given = [*node.args, *(one.value for one in node.keywords)]
    yield from (one for one in given if isinstance(one, ast.Name))


def _finding(fact: DeletionFact) -> Finding:
    why = (_FORGOTTEN | _MEANT)[fact.how]
    return Finding(
        message=(
            f"`{fact.path}` is deleted, and {_of(fact.held_nbytes, fact.nbytes)} stay: "
            f"`{fact.holder}` holds them ({why}){_also(fact)}."
        ),
        subject=fact.path,
        fix=_fix(fact),
        line=fact.line,
        severity="warning" if fact.wants_memory and fact.how in _FORGOTTEN else "",
        evidence=(
            Evidence("held still", fact.held_nbytes, "bytes"),
            Evidence("before", fact.nbytes, "bytes"),
            Evidence("held by", fact.holder),
            Evidence("class of the holder", fact.holder_kind),
        ),
    )


def _of(held: int, whole: int) -> str:
    """A part of what was deleted, or all of it."""
    part, total = size_text(held), size_text(whole)
    return f"all {total}" if part == total else f"{part} of {total}"


def _root(fact: DeletionFact) -> str:
    return fact.holder.partition(".")[0].partition("[")[0]


def _also(fact: DeletionFact) -> str:
    """Who else leads there: as long as one of them is left, so is the memory."""
    own = _root(fact)
    others = [f"`{one}`" for one in fact.others if one != own]
    others += [f"another part of `{own}`"] if own in fact.others else []
    if not others:
        return ""
    more = len(others) - _NAMED + 1
    told = [*others[: _NAMED - 1], *([f"{more} more"] if more > 0 else [])]
    return f", and so do{'es' if len(told) == 1 else ''} {', '.join(told[:-1]) + ' and ' if told[1:] else ''}{told[-1]}"


def _listed(fact: DeletionFact) -> str:
    """What `del` is to name, all of it."""
    first = _root(fact) if _root(fact) in fact.others else fact.holder
    known = [*dict.fromkeys(_OF_DATA_SET.sub("", name) for name in (first, *fact.others))]
    names, more = known[:_NAMED], len(known) - _NAMED
    return ", ".join(names) + (f"  # and {more} more" if more > 0 else "")


def _fix(fact: DeletionFact) -> str:
    if fact.how in ("graph", "spent graph"):
        freed = f"{fact.holder} = {fact.holder}.detach()"
        return f"{freed}  # or del {fact.holder}" if not fact.others else f"{freed}\ndel {', '.join(fact.others)}"
    if fact.how == "other" and fact.holder_kind.endswith("Loader"):
        return f"del {_listed(fact)}" + ("" if fact.others else "  # and its data set, if that has a name")
    if fact.how == "view":
        return _of_views(fact)
    return _without_hooks(fact) or f"del {_listed(fact)}"


def _without_hooks(fact: DeletionFact) -> str:
    """What takes away the hooks that hold it; empty where it is no hook that does."""
    if fact.how in _HOOKS:
        return (
            f"for layer in {fact.holder}.modules():\n    layer.{fact.how}.clear()  # or remove() the handle before del"
        )
    if fact.how == _TENSOR_HOOKS:
        return (
            f"for one in {fact.holder}.parameters():\n    (one._backward_hooks or {{}}).clear()"
            "  # or remove() the handle before del; keep it while the hook is needed"
        )
    if fact.how == _OWN_HOOKS:
        return f"{fact.holder}._backward_hooks.clear()  # or remove() the handle before del; keep it while it is needed"
    return ""


def _of_views(fact: DeletionFact) -> str:
    """Copies of all the views, if these are variables, nobody else has them, and the copies take much less."""
    rest = [one for one in fact.others if one not in fact.views]
    if not _is_waste(fact):
        return f"del {_listed(fact)}"
    if rest:
        kept = f"  # or clone() the views, and make {rest[0]} anew of them"
        return f"del {_listed(fact)}" + (kept if len(fact.others) < _NAMED else "")
    names = ", ".join(dict.fromkeys((fact.holder, *fact.others)))
    copies = ", ".join(f"{one}.clone()" for one in dict.fromkeys((fact.holder, *fact.others)))
    return f"{names} = {copies}" + ("" if fact.others else f"  # or del {names}")
