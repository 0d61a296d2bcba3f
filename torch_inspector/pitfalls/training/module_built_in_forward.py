"""A layer is made anew in each forward pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import BuiltFact, Run, syntax
from torch_inspector.facts.own_object import in_own_name
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds layers made while a model runs, where each pass was seen to have parameters that the one before had not."""
    if run.trace.unheld:
        return
    told = set()
    for fact in run.trace.built:
        if fact.place not in told and fact.count > 0:
            told.add(fact.place)
            yield _finding(run, fact)


def _finding(run: Run, fact: BuiltFact) -> Finding:
    return Finding(
        message=(
            f"`{_shown(fact)}` is made inside `{fact.function}`: each pass starts with new weights, and no optimizer "
            f"ever holds them ({_many(fact.count)} in each of {fact.pass_count} passes looked at)."
        ),
        subject=fact.function,
        fix=in_own_name(run, fact.place, _fix(run, fact)),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("made in", fact.function),
            Evidence("new parameters in each pass", fact.count, "count"),
            Evidence("passes compared", fact.pass_count, "count"),
        ),
    )


def _many(count: int) -> str:
    return f"{count} new parameter{'s' if count > 1 else ''}"


def _shown(fact: BuiltFact) -> str:
    return f"{fact.name} = {fact.text}" if fact.name else fact.text


def _fix(run: Run, fact: BuiltFact) -> str:
    """The layer as an attribute; where the size is known in `forward` only, one that finds it in its first call."""
    name = fact.name or "layer"
    if not fact.function.endswith(".forward"):
        return f"{name} = {fact.text}  # once, before {fact.function} is called, and listed with the optimizer"
    call, use = syntax.expression(fact.text), "uses" if "Parameter(" in fact.text else "calls"
    local = _local(run, fact)
    if not isinstance(call, ast.Call) or not local & syntax.names_in(call):
        return f"self.{name} = {fact.text}  # once, in __init__; forward {use} self.{name}"
    lazy = _lazy(call, local)
    if not lazy:
        made = f"{ast.unparse(call.func)}(…)"
        return f"self.{name} = {made}  # once, in __init__, where its sizes are known; forward {use} self.{name}"
    return f"self.{name} = {lazy}  # once, in __init__: it finds its size in the first call"


def _lazy(call: ast.Call, local: frozenset[str]) -> str:
    """The same linear layer without the size of its input; empty if `forward` works out more than that."""
    is_linear = ast.unparse(call.func) in ("nn.Linear", "torch.nn.Linear") and len(call.args) > 1
    others = [*call.args[1:], *call.keywords]
    if not is_linear or any(local & syntax.names_in(one) for one in others):
        return ""
    return f"{ast.unparse(call.func).replace('Linear', 'LazyLinear')}({', '.join(map(ast.unparse, others))})"


def _local(run: Run, fact: BuiltFact) -> frozenset[str]:
    """Names that have a value in the function only, in its own arguments and lines."""
    tree = syntax.parse(run.source_of(fact.place.cell))
    function = syntax.function_around(tree, fact.place.line or 0) if tree is not None else None
    nodes = list(syntax.walk(function)) if function is not None else []
    stored = {one.id for one in nodes if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    return frozenset(stored | {one.arg for one in nodes if isinstance(one, ast.arg)}) - {"self"}
