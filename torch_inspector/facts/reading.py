"""What the text of a cell says about facts of it."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax

if TYPE_CHECKING:
    from torch_inspector.facts.place import Place
    from torch_inspector.facts.run import Run

# What is done with predictions, and not with what a loss will be made of.
_READS = re.compile(
    r"\.(detach|argmax|numpy|tolist|topk)\(|torch\.(argmax|topk)\(|\.data\b|(\.|torch\.)(max|round)\(|[<>]=? *0?\.\d"
)
_LOOPS = (ast.For, ast.While)
# Somebody has a loss in mind, which may be differentiated in a later cell.
_LOSSES = re.compile(r"loss|criterion|cross_entropy|nll|objective|backward|autograd", re.IGNORECASE)


def only_reads_outputs(run: Run) -> bool:
    """True if a cell trains nothing, makes numbers of outputs, and keeps outputs, none of them a loss, with history."""
    trace = run.trace
    if run.error is not None or trace.steps or trace.backwards or trace.count("step") or trace.count("backward"):
        return False
    kept = [graph for graph in run.after.graphs if graph.newest_nodes and not graph.spent]
    if not kept or any(graph.scalar for graph in kept):
        return False
    code = "\n".join(line.partition("#")[0] for line in run.cell.code.splitlines())
    return _READS.search(code) is not None and _LOSSES.search(code) is None


def line_at(run: Run, place: Place) -> str:
    """The line of a place as typed; empty if it is not known."""
    lines = run.source_of(place.cell).splitlines()
    return lines[place.line - 1] if place.line is not None and 0 < place.line <= len(lines) else ""


def looped_over(run: Run, place: Place) -> str:
    """What the `for` in one line goes through, if it is one thing: `for x in enumerate(loaders["val"])`; else empty."""
    tree = syntax.parse(run.source_of(place.cell))
    if tree is None:
        return ""
    loops = (node for node in syntax.walk(tree) if isinstance(node, (ast.For, ast.comprehension)))
    sources = [loop.iter for loop in loops if loop.iter.lineno == place.line]
    while sources and isinstance(sources[0], ast.Call) and sources[0].args and _is_wrap(sources[0]):
        sources[0] = sources[0].args[0]
    return ast.unparse(sources[0]) if len(sources) == 1 and not isinstance(sources[0], ast.Call) else ""


def _is_wrap(call: ast.Call) -> bool:
    """True for `enumerate(loader)` and `tqdm(loader)`; `DataLoader(data)` and `get_loader(data)` make another thing."""
    name = str(getattr(call.func, "attr", "") or getattr(call.func, "id", ""))
    return name.islower() and "load" not in name


def function_at(run: Run, place: Place) -> str:
    """The function of a place by a name that was written: that around a comprehension or lambda; empty outside."""
    if not place.function.startswith("<"):
        return place.function
    tree = syntax.parse(run.source_of(place.cell))
    return syntax.name_around(tree, place.line) if tree is not None and place.line is not None else ""


def loop_without(run: Run, inside: Place, outside: Place) -> bool:
    """True if a loop of the same function holds one line, and not the other."""
    tree = syntax.parse(run.source_of(inside.cell))
    if tree is None or inside.scope != outside.scope:
        return False
    loops = (node for node in syntax.walk(tree) if isinstance(node, (ast.For, ast.While)))
    return any(_holds(loop, inside) and not _holds(loop, outside) for loop in loops)


def loop_around(run: Run, place: Place) -> str:
    """The innermost loop that holds a line, in words: `for epoch`, line 3; empty if there is none in its function."""
    tree = syntax.parse(run.source_of(place.cell))
    nodes = [node for node in syntax.walk(tree) if isinstance(node, ast.stmt) and _holds(node, place)] if tree else []
    around = [node for node in nodes if isinstance(node, (*_LOOPS, ast.FunctionDef, ast.AsyncFunctionDef))]
    inner = max(around, key=lambda node: node.lineno, default=None)
    if not isinstance(inner, _LOOPS):
        return ""
    what = f"for {ast.unparse(inner.target)}" if isinstance(inner, ast.For) else "while"
    return f"`{what}`, line {inner.lineno}"


def seen_from(run: Run, name: str, at: Place, other: Place) -> bool:
    """True if a name of one place means the same in another: in a function of the function, or method of the class."""
    tree = syntax.parse(run.source_of(at.cell))
    if tree is None or at.cell != other.cell or not name:
        return False
    kinds: tuple[type[ast.stmt], ...] = (ast.FunctionDef, ast.AsyncFunctionDef)
    kinds = (*kinds, ast.ClassDef) if name.startswith("self.") else kinds
    around = (node for node in syntax.walk(tree) if isinstance(node, kinds))
    return any(_holds(node, at) and _holds(node, other) for node in around)


def _holds(node: ast.stmt, place: Place) -> bool:
    return place.line is not None and node.lineno <= place.line <= (node.end_lineno or node.lineno)


def differentiated(run: Run, place: Place) -> str:
    """What `.backward()` is called on in a line, as it is written: `losses.mean()`; empty if that is not one thing."""
    tree = syntax.parse(run.source_of(place.cell))
    calls = [node.func for node in syntax.walk(tree) if isinstance(node, ast.Call)] if tree is not None else []
    owners = [
        one.value
        for one in calls
        if isinstance(one, ast.Attribute) and one.attr == "backward" and one.end_lineno == place.line
    ]
    return ast.unparse(owners[0]) if len(owners) == 1 and owners[0].lineno == place.line else ""


def returned_by_closure(run: Run, place: Place) -> tuple[str, str]:
    """Name of the function that a step in a line is given, and of what it returns; empty where that is not plain."""
    trees = [tree for one in (run, *reversed(run.earlier)) if (tree := syntax.parse(one.cell.source)) is not None]
    here = syntax.parse(run.source_of(place.cell))
    calls = (node for node in syntax.walk(here) if isinstance(node, ast.Call)) if here is not None else ()
    given = [call.args[0] for call in calls if call.args and call.lineno == place.line and _is_step(call)]
    name = given[0].id if len(given) == 1 and isinstance(given[0], ast.Name) else ""
    for node in (node for tree in trees for node in syntax.walk(tree)):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            returned = [one.value for one in syntax.own_statements(node) if isinstance(one, ast.Return)]
            value = returned[-1] if returned else None
            return name, value.id if isinstance(value, ast.Name) else ""
    return name, ""


def _is_step(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr == "step"
