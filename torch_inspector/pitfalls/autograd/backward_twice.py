"""A second backward pass through a graph that the first has freed."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import BackwardFact, ErrorFact, Place, RefusalFact, Run, syntax
from torch_inspector.facts.anew import anew
from torch_inspector.facts.baselines import left_out
from torch_inspector.facts.given import differentiated_at, handed_detached, loop_over_things
from torch_inspector.facts.into_loop import into_loop
from torch_inspector.facts.kept_on import kept_on
from torch_inspector.facts.made_together import made_together
from torch_inspector.facts.on_one_line import made_in_turn, row_at
from torch_inspector.facts.receiver import receiver
from torch_inspector.facts.rivals import judged
from torch_inspector.facts.sharing import Shared, before_step, trains_others, turn_before
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall

_TWO = 2
_REFUSED = "backward through the graph a second time"


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds what was computed once and differentiated twice, when torch has refused the second pass."""
    error = run.error
    if error is None or error.kind != "RuntimeError" or _REFUSED not in error.message:
        return
    refusal = error.refusal or RefusalFact()
    if refusal.states():
        return  # told by `hidden_state_not_detached`
    before = turn_before(run, error, refusal) or run.backward_before()
    shared = before_step(run, error, refusal, before)
    if shared is not None:
        yield _of_stepped(run, error, refusal, shared)
        return
    beside = before if before is not None and _is_first_of_two(run, error, refusal, before) else None
    message, subject, fix = _of_two(error, refusal, beside) if beside else _told(run, error, refusal, before)
    stepped = before is not None and any(s.order > before.order for s in run.trace.steps)
    if before is not None and refusal.olds and stepped:
        # Each loss has an optimizer of its own, as generator and discriminator have: no sum of the two is meant.
        fix = _apart(run, fix, error, refusal, before)
    elif before is not None and not beside and not refusal.carried:
        message, fix = _of_heads(run, error, refusal, before) or _of_row(run, error, refusal, before) or (message, fix)
    named = _of_rivals(run, error, refusal, before) or _summed(run, error)
    if before is not None and "  # once for" in fix:
        fix = anew(run, error, refusal, before.place) or fix
    fix = named or _of_baseline(run, error, refusal, fix) or fix
    yield Finding(
        message=message,
        subject=subject,
        fix=fix,
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(_evidence(refusal, run.backward_before(), error.place)),
    )


def _summed(run: Run, error: ErrorFact) -> str:
    """One call in the place of a loop that does nothing but go back through each of some losses."""
    tree = syntax.parse(run.source_of(error.place.cell))
    for outer in syntax.walk(tree) if tree is not None else ():
        if not isinstance(outer, (ast.For, ast.While)):
            continue
        loop = next((one for one in outer.body if isinstance(one, ast.For) and _is_at(one, error.place)), None)
        if loop is not None and (text := _sum_of(loop)):
            made = {ast.unparse(part) for one in outer.body if isinstance(one, ast.Assign) for part in one.targets}
            name = text.partition(".")[0]
            return f"sum({text}).backward()  # once, in place of the loop" if name in made else ""
    return ""


def _is_at(loop: ast.For, place: Place) -> bool:
    return len(loop.body) == 1 and loop.body[0].lineno == place.line


def _sum_of(loop: ast.For) -> str:
    """`losses` of `for one in losses: one.backward()`, `losses.values()` where it is a dictionary."""
    text, target, over = ast.unparse(loop.body[0]), ast.unparse(loop.target), ast.unparse(loop.iter)
    if isinstance(loop.iter, ast.Name) and text == f"{target}.backward()":
        return over
    if text == f"{target}.backward()" and over.endswith(".values()"):
        return over
    name = over.removesuffix(".items()").removesuffix(".keys()")
    last = ast.unparse(loop.target.elts[-1]) if isinstance(loop.target, ast.Tuple) else ""
    if name.isidentifier() and (
        text == f"{name}[{target}].backward()" or (over.endswith(".items()") and text == f"{last}.backward()")
    ):
        return f"{name}.values()"
    return ""


def _told(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact | None) -> tuple[str, str, str]:
    root = refusal.root or "the loss"
    kept = kept_on(run, error, refusal, before)
    if kept is not None:
        return kept.told(root)
    if refusal.carried:
        return _of_total(root, refusal.carried[0].path)
    if refusal.is_old or not refusal.olds:
        return _of_root(error, refusal, before)
    return _of_shared(run, error, refusal, before)


def _of_total(root: str, path: str) -> tuple[str, str, str]:
    call = f"{receiver(root)}.backward()"
    went = f"`{call}` went back through the losses of earlier steps"
    fix = f"call backward() on the loss of one step, or {call} once after the loop"
    return f"{went}, which `{path}` still adds up: the first call has freed their graph.", path, fix


def _of_stepped(run: Run, error: ErrorFact, refusal: RefusalFact, shared: Shared) -> Finding:
    """Two losses of one turn, each with an optimizer of its own, of which the first has stepped."""
    root, other = refusal.root, shared.call.root
    call = f"`{receiver(other)}.backward()` {_where(shared.call.place, error.place)}"
    step = f"{run.optimizer_name_at(shared.step.optimizer, error.place) or 'the optimizer'}.step()"
    return Finding(
        message=(
            f"`{root}` shares a part of its graph with `{other}`{_made(refusal, error.place)}: {call} had freed it."
        ),
        subject=root,
        fix=shared.mended(run, root, step),
        line=error.place.line,
        cell=error.place.cell,
        evidence=tuple(_evidence(refusal, shared.call, error.place)),
    )


def _is_first_of_two(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact) -> bool:
    """True if another loss of the same pass was differentiated just before, and this one has never been."""
    tried = [call for call in run.trace.backwards if call.place == error.place and call.number != refusal.number]
    made = refusal.made_at
    stepped = any(step.order > before.order for step in run.trace.steps)  # as for a generator and its judge
    if tried or stepped or made is None or before.place.cell != error.place.cell or before.root in ("", refusal.root):
        return False
    lines = (made.line or 0, before.place.line or 0, error.place.line or 0)
    return refusal.named and made.cell == before.place.cell and 0 < lines[0] < lines[1] < lines[2]


def _of_two(error: ErrorFact, refusal: RefusalFact, before: BackwardFact) -> tuple[str, str, str]:
    root, other = refusal.root, before.root
    call = f"`{other}.backward()` {_where(before.place, error.place)}"
    message = f"`{root}` shares a part of its graph with `{other}`, and {call} had freed it."
    return message, root, f"({other} + {root}).backward()  # once for both"


def _of_root(error: ErrorFact, refusal: RefusalFact, before: BackwardFact | None) -> tuple[str, str, str]:
    root = refusal.root or "the loss"
    earlier = f" {_where(before.place, error.place)}" if before is not None and before.place.line is not None else ""
    also = f" (`{refusal.known_as}` where it is made)" if refusal.known_as else ""
    elsewhere = before is not None and before.place != error.place
    first = f"the call{earlier}" if earlier and elsewhere else "the first call"
    made = _made(refusal, error.place)
    message = f"backward() went through the graph of `{root}`{also} again{made}; {first} had freed it."
    if refusal.in_loop:
        fix = f"{root} = ...  # inside the loop, before each backward()" if refusal.named else ""
    else:
        fix = f"run the line that computes {root} again before each backward()" if refusal.named else ""
    return message, refusal.root if refusal.named else "", fix or "compute the loss anew before each backward()"


def _of_shared(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact | None) -> tuple[str, str, str]:
    root, old = refusal.root or "the loss", refusal.olds[0]
    other = before.root if before is not None and before.root and before.place != error.place else ""
    call = f"`{other}.backward()` {_where(before.place, error.place)}" if other and before else "the call before"
    if before is not None and before is turn_before(run, error, refusal):
        call = f"`{receiver(root)}.backward()` of the turn before"
    made = old.made_at if old.made_at is not None and old.made_at.line else None
    where = f" ({_where(made, error.place).removeprefix('in ')})" if made is not None else ""
    every = made_together(run, made, old.path)
    which = every.said()
    message = f"`{root}` was computed from {which}{where}, and {call} had freed the graph behind {which}."
    name = old.path
    if other and other != refusal.root:
        fix = f"({other} + {root}).backward()  # once for both" if refusal.named else ""
        fix = fix or f"{other}.backward(retain_graph=True)  # another pass follows"
    elif (
        refusal.in_loop
        and made is not None
        and made.cell == error.place.cell
        and not made_in_turn(run, made, error.place)
    ):
        fix = into_loop(run, refusal, every, made, before)
        if before is not None and trains_others(run, before):
            fix = f"{name} = {name}.detach()  # before the loop: {root} is not to train what made {name}"
    else:
        fix = f"{every.text}  # computed anew before each backward(), or {every.detached()} if it is not trained"
    return message, name, fix


def _apart(run: Run, fix: str, error: ErrorFact, refusal: RefusalFact, before: BackwardFact) -> str:
    """Two losses on one tensor, with a step between them."""
    name, other = refusal.olds[0].path, before.root
    given = handed_detached(run, before.place, name) if before.place != error.place else None
    if given is not None and ".detach()" in given[0] and not refusal.carried and not refusal.is_old:
        statement, line, cell = given
        where = Place(cell, line).said_in(error.place.cell)
        return f"{statement}  # {where}: that step then leaves alone what made {name}"
    if not other or not fix.startswith(f"({other} + "):
        return fix
    return f"compute {other} from {name}.detach()  # if its step is not to train what is behind {name}"


def _of_heads(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact) -> tuple[str, str] | None:
    """Losses of several heads, differentiated one after the other without a step between them."""
    here = error.place.scope
    if not refusal.root or not refusal.olds or refusal.is_old or before.place.scope != here:
        return None
    root, old = refusal.root, refusal.olds[0]
    made = f" ({_where(old.made_at, error.place).removeprefix('in ')})" if old.made_at and old.made_at.line else ""
    shared = f"behind `{old.path.partition('[')[0]}`{made}"
    if before.place != error.place:
        other = before.root or differentiated_at(run, before.place)
        if not other or refusal.named:
            return None
        call = f"`{receiver(other)}.backward()` {_where(before.place, error.place)}"
        message = f"`{root}` and `{other}` share a part of their graph, {shared}: {call} had freed it."
        return message, f"({other} + {root}).backward()  # once for both"
    if not refusal.named or not refusal.in_loop or not loop_over_things(run, error.place):
        return None
    total = "total" if "total" not in run.source_of(error.place.cell) else "total_loss"
    message = (
        f"`{root}` shares a part of its graph, {shared}, with the loss of the turn before, whose backward() freed it."
    )
    return message, (
        f"{total} = 0  # before the loop\n{total} = {total} + {root}  # in place of {root}.backward()\n"
        f"{total}.backward()  # once after the loop; or {root}.backward(retain_graph=True) in all turns but the last"
    )


def _of_row(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact) -> tuple[str, str] | None:
    """Losses that one line differentiates one after the other, all made in this turn of the loop."""
    old = refusal.olds[0] if refusal.olds else None
    made = refusal.made_at or (old.made_at if old is not None else None)
    row = row_at(run, error.place, refusal.root) if before.place == error.place else None
    if row is None or not made_in_turn(run, made, error.place):
        return None
    shared = f", behind `{old.path.partition('[')[0]}`" if old is not None and old.path != refusal.root else ""
    other = f"`{row.before[0]}`" if len(row.before) == 1 else "those before it in the line"
    call = f"`{receiver(row.before[0])}.backward()`" if len(row.before) == 1 else "a call of these"
    message = f"`{refusal.root}` shares a part of its graph with {other}{shared}, and {call} had freed it."
    return message, f"({row.total}).backward()  # once for {'both' if row.count == _TWO else 'all'}"


def _of_rivals(run: Run, error: ErrorFact, refusal: RefusalFact, before: BackwardFact | None) -> str:
    """One model judges what another makes: each loss takes an answer of its own, and the sum of both trains neither."""
    if before is None or not refusal.olds or before.root in ("", refusal.root):
        return ""
    name = refusal.olds[0].path
    one = judged(run, run.source_of(error.place.cell), name)
    if one is None:
        return ""
    stepped = any(step.order > before.order for step in run.trace.steps)
    then = "" if stepped else f"\n{one.optimizer}.step()  # before {refusal.root or 'the other loss'}.backward()"
    made = f"{one.before}\n" if one.before else ""
    first = f"{made}{name} = {one.judge}({one.given}.detach(){one.others})  # for {before.root}"
    return (
        f"{first}{then}\n{name} = {one.judge}({one.given}{one.others})  # anew, for {refusal.root or 'the other loss'}"
    )


def _of_baseline(run: Run, error: ErrorFact, refusal: RefusalFact, fix: str) -> str:
    """The critic is a baseline of the actor's loss, which is not to train it; both may share layers all the same."""
    before = run.backward_before()
    roots = (before.root, refusal.root) if before is not None else ("", "")
    if not all(roots) or roots[0] == roots[1]:
        return ""
    first = left_out(run, error.place, *roots) or left_out(run, error.place, roots[1], roots[0])
    return f"{first}\n{fix}" if first and fix.startswith(f"({roots[0]} + {roots[1]}).backward()") else first


def _made(refusal: RefusalFact, here: Place) -> str:
    made = refusal.made_at
    return f", which is made {_where(made, here)}" if made is not None and made.line is not None else ""


def _where(place: Place, here: Place) -> str:
    return f"in line {place.line}" + (f" of cell {place.cell}" if place.cell not in (here.cell, None) else "")


def _evidence(refusal: RefusalFact, before: BackwardFact | None, here: Place) -> Iterator[Evidence]:
    for old in refusal.olds:
        yield Evidence(f"{old.path} (from before)", f"{old.kind} {old.shape}")
    if before is not None and before.place.line is not None:
        yield Evidence("backward call before", _where(before.place, here).removeprefix("in "))
