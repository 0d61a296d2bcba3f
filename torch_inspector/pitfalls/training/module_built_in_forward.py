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
            f"ever holds them ({fact.count} new parameters in each of {fact.pass_count} passes looked at)."
        ),
        subject=fact.function,
        fix=in_own_name(run, fact.place, _fix(fact)),
        line=fact.place.line,
        cell=fact.place.cell,
        evidence=(
            Evidence("made in", fact.function),
            Evidence("new parameters in each pass", fact.count, "count"),
            Evidence("passes compared", fact.pass_count, "count"),
        ),
    )


def _shown(fact: BuiltFact) -> str:
    return f"{fact.name} = {fact.text}" if fact.name else fact.text


def _fix(fact: BuiltFact) -> str:
    """The layer as an attribute; where the size is known in `forward` only, one that finds it in its first call."""
    name = fact.name or "layer"
    if not fact.function.endswith(".forward"):
        return f"{name} = {fact.text}  # once, before {fact.function} is called, and listed with the optimizer"
    call = syntax.expression(fact.text)
    lazy = (
        isinstance(call, ast.Call) and ast.unparse(call.func) in ("nn.Linear", "torch.nn.Linear") and len(call.args) > 1
    )
    if not isinstance(call, ast.Call) or not lazy or isinstance(call.args[0], ast.Constant):
        return f"self.{name} = {fact.text}  # once, in __init__; forward calls self.{name}"
    call.args.pop(0)
    made = f"{ast.unparse(call.func).replace('Linear', 'LazyLinear')}({ast.unparse(call).partition('(')[2]}"
    return f"self.{name} = {made}  # once, in __init__: it finds its size in the first call"
