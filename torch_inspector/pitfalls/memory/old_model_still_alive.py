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
# What is done with its model when it has told its result.
_FINDER = re.compile(r"(my_?)?((lr|learning_?rate|rate)_?finder|((lr|rate)_?)?range_?test(er)?)", re.IGNORECASE)
# What finds may find anything: by its class, such as `LRFinder`, it finds a rate.
_FINDS, _RATES = re.compile(r"(my_?)?finder", re.IGNORECASE), re.compile(r"LR|[Rr]ate|[Rr]ange_?[Tt]est|lr_")
_COMMENT = re.compile(r"#.*")
_FILLS = frozenset(["append", "add", "insert", "extend", "update", "setdefault"])


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds models that a second run of a cell has replaced and that are alive although no variable names them."""
    elders = [elder for elder in run.after.elders if elder.nbytes >= max(run.min_nbytes, 1)]
    if not elders or run.error is not None:
        return
    again = any(_code(past) == _code(run) or _is_same_cell(past, run) for past in run.earlier)
    for elder in elders:
        if elder.registry and any(_reads(past, elder.registry) for past in (*run.earlier, run)):
            continue
        if ((again or elder.in_loop) and not elder.attribute) or _is_left_behind(run, elder):
            yield _finding(run, elder)


def _is_left_behind(run: Run, elder: ElderFact) -> bool:
    """True if what is to work with the model of now, by its name, was made from the one before.

    What has more in its name, as `predict_small`, is another thing on purpose.
    """
    line = _line(run, elder.path)
    if elder.methods and line is not None:
        return True
    if (
        "." in elder.path
        or line is None
        or not (_ROLE.fullmatch(elder.holder) or _is_finder(run, elder.holder))
        or _has_a_second(run, elder)
        or _is_known(run, elder)
    ):
        return False
    now = next((one.parameter_keys for one in run.after.modules if one.key == elder.successor), frozenset[int]())
    trained = any(step.parameter_keys & now for step in run.trace.steps)
    return trained or elder.holder in _read_after(run, line)


def _is_finder(run: Run, name: str) -> bool:
    """True for what looks for a learning rate, and is done when it has told it."""
    if not _FINDS.fullmatch(name):
        return _FINDER.fullmatch(name) is not None
    made = (call for one in (*run.earlier, run) for holder, call in _made(one.cell.code) if holder == name)
    return any(_RATES.search(ast.unparse(call.func)) for call in made)


def _reads(run: Run, registry: str) -> bool:
    """True if code of the cell, a function or a class also, reads what objects have put themselves into.

    What the notebook itself puts there, outside of functions, it knows of.
    A class may be called `cls` there, and an object of it `self`.
    """
    tree = syntax.parse(run.cell.code)
    nodes = list(syntax.walk(tree)) if tree is not None else []
    own = {id(one) for one in syntax.own_expressions(tree)} if tree is not None else set()
    named = (one for one in nodes if isinstance(one, ast.Attribute))
    filled = {id(one.value) for one in named if one.attr == "clear" or (one.attr in _FILLS and id(one) not in own)}
    read = (one for one in nodes if isinstance(getattr(one, "ctx", None), ast.Load) and id(one) not in filled)
    name = registry.rpartition(".")[2]
    return any(name == (one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "")) for one in read)


def _is_known(run: Run, elder: ElderFact) -> bool:
    """True if the cell itself names the old model, as `agent.net`: the new one is its copy, or compared with it."""
    return bool(elder.attribute) and re.search(rf"(?<![\w.]){re.escape(elder.attribute)}\b", run.cell.code) is not None


def _has_a_second(run: Run, elder: ElderFact) -> bool:
    """True if the model of now has a holder made by the same call: the two are compared, or play against each other."""
    made = [(name, call) for one in (*run.earlier, run) for name, call in _made(one.cell.code)]
    makers = {ast.unparse(call.func) for name, call in made if name == elder.holder}
    return any(
        name != elder.holder and ast.unparse(call.func) in makers and elder.path in map(ast.unparse, _given(call))
        for name, call in _made(run.cell.code)
    )


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


def _finding(run: Run, elder: ElderFact) -> Finding:
    them = "it" if elder.count == 1 else "them"
    holder = elder.attribute or elder.registry or elder.holder
    by = f"`{holder}` leads to {them}" if elder.holder else f"no variable leads to {them}"
    return Finding(
        message=f"`{elder.path}` was made anew, {_who(elder)} still alive: {size_text(elder.nbytes)}, and {by}.",
        subject=elder.path,
        fix=_fix(run, elder),
        line=_line(run, elder.path),
        evidence=(
            Evidence("class", elder.kind),
            Evidence("earlier instances", elder.count, "count"),
            Evidence("held by them alone", elder.nbytes, "bytes"),
            Evidence("led to by", elder.attribute or elder.registry or elder.holder or "no variable"),
        ),
    )


def _who(elder: ElderFact) -> str:
    if elder.count == 1:
        return f"the {elder.kind} before it is"
    return f"{elder.count} earlier {elder.kind} objects are"


def _fix(run: Run, elder: ElderFact) -> str:
    root = elder.path.partition(".")[0]
    if elder.attribute and _is_finder(run, elder.holder):
        return f"del {elder.holder}  # when its result has been read"
    if elder.attribute:
        return f"{elder.attribute} = {elder.path}  # the one of now"
    if elder.registry:
        return f"{elder.registry}.clear()  # before `{root}` is made anew"
    if elder.holder:
        return f"del {elder.holder}  # or make it anew too, from the `{elder.path}` of now"
    if elder.circular:
        return "import gc; gc.collect()  # frees objects that refer to each other in a circle, as these do"
    return "unregister what still uses it before it is made anew: a callback, as of `atexit`, or the cache of a library"


def _line(run: Run, name: str) -> int | None:
    """The last line that gives the variable its value."""
    tree = syntax.parse(run.cell.code)
    if tree is None:
        return None
    named = (node for node in syntax.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
    lines = [node.lineno for node in named if node.id == name.partition(".")[0]]
    return max(lines) + run.cell.line_offset if lines else None
