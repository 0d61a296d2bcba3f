"""The same hook, several times on one layer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import HookCountFact, Place, Run, syntax
from torch_inspector.facts.part_names import typed
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

_SHOWN = 3
_OF_WEIGHTS = "parameter_"
_HOOK = re.compile(r"register_\w*hook")
_REGISTERS = re.compile(r"\.register_\w*hook\(")
_LOOPS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.DictComp, ast.SetComp)


@pitfall(severity="warning")
def check(run: Run) -> Iterator[Finding]:
    """Finds cells after which layers have a hook more often than before, twice or more."""
    before = {(one.path, one.kind, one.name): one.count for one in run.before.hook_counts}
    grown = [one for one in run.after.hook_counts if one.count > before.get((one.path, one.kind, one.name), 1)]
    if not grown:
        return
    names: dict[tuple[str, str], list[HookCountFact]] = {}
    again, asked = _was_run_before(run) or _adds_while_running(run), _that_ask(run, ast.FunctionDef)
    for one in grown:
        if one.same or again or _maker_of(one, run) in asked:
            names.setdefault((one.kind, one.name), []).append(one)
    for several in names.values():
        yield _finding(run, several)


def _was_run_before(run: Run) -> bool:
    """True if the cell runs again, as it was or changed."""
    return any(
        past.cell.code == run.cell.code or (past.cell.id is not None and past.cell.id == run.cell.id)
        for past in run.earlier
    )


def _places(run: Run) -> Iterator[Place]:
    """Lines that led to calls of models and to backward calls."""
    for call in run.trace.forwards:
        yield from (call.place, *(caller.place for caller in call.callers))
    yield from (one.place for one in run.trace.backwards)


def _adds_while_running(run: Run) -> bool:
    """True if a loop of the cell registers hooks in each turn, removes none, and calls the model too."""
    tree = syntax.parse(run.cell.code)
    loops = [node for node in syntax.walk(tree) if isinstance(node, _LOOPS)] if tree is not None else []
    own = [one for one in _places(run) if one.cell == run.cell.number]
    lines = [one.line - run.cell.line_offset for one in own if one.line is not None]
    makers, asking = _makers(run), _that_ask(run)
    return any(
        _registers(loop, makers)
        and (_called(loop) & asking or any(loop.lineno <= line <= (loop.end_lineno or loop.lineno) for line in lines))
        for loop in loops
    )


def _that_ask(run: Run, kind: type[ast.AST] = ast.AST) -> frozenset[str]:
    """Functions and classes that register hooks, remove none, and call the model themselves, for one pass each."""
    makers, places, found = _makers(run, kind), list(_places(run)), set[str]()
    for one in (run, *run.earlier):
        lines = {place.line - one.cell.line_offset for place in places if place.cell == one.cell.number and place.line}
        within = (node for node in _defined(one) if node.name in makers)
        found.update(n.name for n in within if any(n.lineno <= line <= (n.end_lineno or 0) for line in lines))
    return frozenset(found)


def _maker_of(hook: HookCountFact, run: Run) -> str:
    """The function around the hook's own text, or the only one that registers it by its name."""
    outer, _, last = hook.name.rpartition(".<locals>.")
    if outer:
        return outer.rpartition(".")[2]
    return next((one for one in _makers(run, ast.FunctionDef) if _line_in(run, one, last) is not None), "")


def _registers(node: ast.AST, makers: frozenset[str]) -> bool:
    """True if a part of a text registers hooks, itself or by what is known to, and removes none."""
    names = _called(node)
    return "remove" not in names and any(name in makers or _HOOK.fullmatch(name) for name in names)


def _called(node: ast.AST) -> set[str]:
    """Last parts of the names of what a part of a text calls."""
    called = (one.func for one in syntax.walk(node) if isinstance(one, ast.Call))
    return {one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in called}


def _makers(run: Run, kind: type[ast.AST] = ast.AST) -> frozenset[str]:
    """Functions and classes of the notebook that register hooks and remove none."""
    nodes = (node for one in (run, *run.earlier) for node in _defined(one))
    return frozenset(node.name for node in nodes if isinstance(node, kind) and _registers(node, frozenset()))


def _defined(run: Run) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    tree = syntax.parse(run.cell.code) if "hook(" in run.cell.code else None
    nodes = syntax.walk(tree) if tree is not None else ()
    return (node for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef)))


def _line_in(run: Run, maker: str, hook: str = "") -> Place | None:
    """The line in which a function or class of the notebook registers a hook."""
    for one in (run, *reversed(run.earlier)):
        for node in _defined(one):
            lines = one.cell.code.splitlines()[node.lineno - 1 : node.end_lineno] if node.name == maker else []
            for number, line in enumerate(lines, node.lineno + one.cell.line_offset):
                if _REGISTERS.search(line) and hook in line:
                    return Place(one.cell.number, number, maker)
    return None


def _registering(run: Run) -> Place | None:
    """The line of the cell that registers hooks, or that of a function or class which it calls."""
    lines = enumerate(run.cell.code.splitlines(), run.cell.line_offset + 1)
    own = next((number for number, line in lines if _REGISTERS.search(line)), None)
    if own is not None:
        return Place(run.cell.number, own)
    called = {call.name.rpartition(".")[2] for call in run.trace.calls}
    return next((place for one in sorted(_makers(run) & called) if (place := _line_in(run, one))), None)


def _calling(run: Run, place: Place | None) -> int | None:
    """The line of this cell that registers hooks, or calls what does."""
    if place is None or place.cell == run.cell.number:
        return place.line if place is not None else None
    calls = (call for call in run.trace.calls if call.name.rpartition(".")[2] == place.function)
    return next((call.line for call in calls), None)


def _why(run: Run, place: Place | None) -> str:
    if place is not None and place.function and (_adds_while_running(run) or not _was_run_before(run)):
        return f": each call of `{place.function}` adds it once more, in {place.said_in(run.cell.number)}"
    if _was_run_before(run):
        return ": running the cell again added it once more"
    return ": each turn of the loop adds it once more" if _adds_while_running(run) else ""


def _finding(run: Run, several: list[HookCountFact]) -> Finding:
    one = max(several, key=lambda fact: fact.count)
    where = ", ".join(f"`{typed(fact.path)}`" for fact in several[:_SHOWN]) + (", …" if len(several) > _SHOWN else "")
    layers = f"{where} has" if len(several) == 1 else f"{where} have"
    name, place = one.name.rpartition(".<locals>.")[2], _registering(run)
    return Finding(
        message=(
            f"{layers} the hook `{name}` {one.count} times{_why(run, place)}; "
            f"it runs as often in each pass{_held(run, several)}."
        ),
        subject=one.owner,
        fix=_fix(run, several, place),
        line=_calling(run, place),
        evidence=(
            Evidence("hook", one.name),
            Evidence("kind", one.kind),
            Evidence("times on one layer", one.count, "count"),
            Evidence("layers", len(several), "count"),
            *((Evidence("held by the hooks alone", held, "bytes"),) if (held := _held_nbytes(several)) else ()),
        ),
    )


def _held_nbytes(several: list[HookCountFact]) -> int:
    return sum(one.held_nbytes for one in several)


def _held(run: Run, several: list[HookCountFact]) -> str:
    nbytes = _held_nbytes(several)
    return (
        f", and keeps {size_text(nbytes)} alive that no variable leads to" if nbytes >= max(run.min_nbytes, 1) else ""
    )


def _fix(run: Run, several: list[HookCountFact], place: Place | None) -> str:
    """Takes off those that are there, and has the line that registers keep what it is given."""
    kind, path, owner = several[0].kind, typed(several[0].path), several[0].owner
    field, weights = f"_{kind.removeprefix(_OF_WEIGHTS)}", kind.startswith(_OF_WEIGHTS)
    every = f"for layer in {owner}.modules():\n    layer.{field}.clear()"
    if weights:
        every = f"for weight in {owner}.parameters():\n    (weight.{field} or {{}}).clear()"
    clear = f"{path}.{field}.clear()" if len(several) == 1 else every
    lines = run.source_of(place.cell).splitlines() if place is not None else []
    text = lines[(place.line or 1) - 1].strip() if place is not None and len(lines) >= (place.line or 1) else ""
    kept = f"handle = {text}" if _REGISTERS.search(text) and re.match(r"[\w.\[\]]+\.register_", text) else ""
    where = f" ({place.said_in(run.cell.number)})" if place is not None and place.function else ""
    then = f"then {kept}" if kept else "then keep what register_..._hook() returns as handle"
    return f"{clear}  # those that are there\n# {then}{where}, and after the pass: handle.remove()"
