"""An earlier instance of a model that was made anew is still held."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from torch_inspector.facts import ElderFact, Run, syntax
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# What works with one model, named by nothing but that.
_ROLE = re.compile(
    r"(my_?)?(predict(or|ion|ions)?|infer(ence|er)?|eval(uat(or|ion|e))?|ev|scor(e|er|ing)|trainer|metrics?|monitor|logger"
    r"|call_?backs?|test(er)?|tracker|engine|agent|learner|solver|runner|explainer|visuali[sz]er|plotter|report(er)?"
    r"|sampler|generat(e|or)|pipe(line)?|early_?stop(per|ping)|saver|checkpoint(er)?|forward|fn|func|run|classify"
    r"|classifier|(train_?|eval_?|val_?)?(step|loop)(_fn)?|loss_fn|closure|encode|embed|decode|translate|detect|segment)",
    re.IGNORECASE,
)
_COMMENT = re.compile(r"#.*")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds models that a second run of a cell has replaced and that are alive although no variable names them."""
    if run.error is not None:
        return
    yield from (_finding(run, elder, _first_read(run, elder.holder)) for elder in _trained_later(run))
    elders = [elder for elder in run.after.elders if elder.nbytes >= max(run.min_nbytes, 1)]
    if not elders:
        return
    again = any(_code(past) == _code(run) or _is_same_cell(past, run) for past in run.earlier)
    for elder in elders:
        if ((again or elder.in_loop) and not elder.attribute) or _is_left_behind(run, elder):
            yield _finding(run, elder, _line(run, elder.path))


def _trained_later(run: Run) -> Iterator[ElderFact]:
    """Models of an earlier cell that this one trains, through what was made from them; the one of now never was."""
    if not run.trace.steps:
        return
    for count, past in enumerate(run.earlier, 1):
        for elder in past.after.elders:
            since = (*run.earlier[count:], run)
            if elder.nbytes >= max(run.min_nbytes, 1) and _trains_the_old(run, elder, since):
                yield elder


def _trains_the_old(run: Run, elder: ElderFact, since: tuple[Run, ...]) -> bool:
    """True if the holder is named for the first time since, by a cell whose steps change the old model."""
    named = (
        [one for one in since if re.search(rf"\b{re.escape(elder.holder)}\b", one.cell.code)] if elder.attribute else []
    )
    if named != [run] or _ROLE.fullmatch(elder.holder) is None or _has_a_second(since, run.earlier, elder):
        return False
    known = {one.path: one for one in run.after.modules if one.key in (elder.key, elder.successor)}
    old, now = known.get(elder.attribute), known.get(elder.path)
    if old is None or now is None or now.trained or _first_read(run, elder.holder) is None:
        return False
    return any(step.parameter_keys & old.parameter_keys for step in run.trace.steps)


def _is_left_behind(run: Run, elder: ElderFact) -> bool:
    """True if what is to work with the model of now, by its name, was made from the one before.

    What has more in its name, as `predict_small`, is another thing on purpose.
    """
    line = _line(run, elder.path)
    if line is None or _ROLE.fullmatch(elder.holder) is None or _has_a_second((run,), run.earlier, elder):
        return False
    now = next((one.parameter_keys for one in run.after.modules if one.key == elder.successor), frozenset[int]())
    trained = any(step.parameter_keys & now for step in run.trace.steps)
    return trained or elder.holder in _read_after(run, line)


def _has_a_second(since: tuple[Run, ...], earlier: tuple[Run, ...], elder: ElderFact) -> bool:
    """True if the model of now has a holder made by the same call: the two are compared, or play against each other."""
    makers = {ast.unparse(call.func) for call in _makings((*earlier, *since), elder)}
    return any(
        name != elder.holder and ast.unparse(call.func) in makers and elder.path in map(ast.unparse, _given(call))
        for one in since
        for name, call in _made(one.cell.code)
    )


def _makings(runs: tuple[Run, ...], elder: ElderFact) -> list[ast.Call]:
    """The calls whose result the holder was given, oldest first."""
    return [call for one in runs for name, call in _made(one.cell.code) if name == elder.holder]


def _made(code: str) -> Iterator[tuple[str, ast.Call]]:
    """Variables that are given the result of a call."""
    tree = syntax.parse(code)
    for node in syntax.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            yield from ((one.id, node.value) for one in node.targets if isinstance(one, ast.Name))


def _given(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(one.value for one in call.keywords)]


def _read_after(run: Run, line: int) -> set[str]:
    tree = syntax.parse(run.cell.code)
    names = (node for node in (syntax.walk(tree) if tree is not None else ()) if isinstance(node, ast.Name))
    return {n.id for n in names if isinstance(n.ctx, ast.Load) and n.lineno + run.cell.line_offset > line}


def _is_same_cell(past: Run, run: Run) -> bool:
    """True if the front end says that this cell ran before, perhaps with another text."""
    return past.cell.id is not None and past.cell.id == run.cell.id


def _code(run: Run) -> str:
    return "".join(_COMMENT.sub("", run.cell.source).split())


def _first_read(run: Run, name: str) -> int | None:
    """The first line that reads a variable, where the cell gives it no other value."""
    tree = syntax.parse(run.cell.code)
    named = [n for n in (syntax.walk(tree) if tree is not None else ()) if isinstance(n, ast.Name) and n.id == name]
    if not named or any(not isinstance(one.ctx, ast.Load) for one in named):
        return None
    return min(one.lineno for one in named) + run.cell.line_offset


def _finding(run: Run, elder: ElderFact, line: int | None) -> Finding:
    them = "it" if elder.count == 1 else "them"
    holder = elder.attribute or elder.holder
    by = f"`{holder}` leads to {them}" if elder.holder else f"no variable leads to {them}"
    return Finding(
        message=f"`{elder.path}` was made anew, {_who(elder)} still alive: {size_text(elder.nbytes)}, and {by}.",
        subject=elder.path,
        fix=_fix(run, elder),
        line=line,
        evidence=(
            Evidence("class", elder.kind),
            Evidence("earlier instances", elder.count, "count"),
            Evidence("held by them alone", elder.nbytes, "bytes"),
            Evidence("led to by", elder.attribute or elder.holder or "no variable"),
        ),
    )


def _who(elder: ElderFact) -> str:
    if elder.count == 1:
        return f"the {elder.kind} before it is"
    return f"{elder.count} of {elder.kind} before it are"


def _fix(run: Run, elder: ElderFact) -> str:
    if elder.attribute:
        # An object made from a model may have an optimizer of it, too: it is made anew as it was made.
        for call in reversed(_makings((*run.earlier, run), elder)):
            if elder.path in map(ast.unparse, _given(call)):
                return f"{elder.holder} = {ast.unparse(call)}  # from the `{elder.path}` of now"
        return f"{elder.attribute} = {elder.path}  # the one of now"
    if elder.holder:
        return f"del {elder.holder}  # or make it anew too, from the `{elder.path}` of now"
    return (
        "import gc; gc.collect()  # frees objects that refer to each other in a circle, such as a hook of its own layer"
    )


def _line(run: Run, name: str) -> int | None:
    """The last line that gives the variable its value."""
    tree = syntax.parse(run.cell.code)
    if tree is None:
        return None
    named = (node for node in syntax.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    lines = [node.lineno for node in named if node.id == name]
    return max(lines) + run.cell.line_offset if lines else None
