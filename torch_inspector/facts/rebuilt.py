"""The statement that makes an optimizer, written again for the model that is to be trained."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from torch_inspector.facts import syntax
from torch_inspector.facts.rates_by_hand import rates_set, sets_rate
from torch_inspector.facts.source_edits import replaced_in

if TYPE_CHECKING:
    from torch_inspector.facts.optimizers import OptimizerFact
    from torch_inspector.facts.run import Run

_GIVEN = re.compile(r"([\w.]+)\.parameters\(\)")
_SELF = re.compile(r"\bself\.")


def rebuilt(run: Run, key: int, target: str, path: str) -> str:
    """`opt = torch.optim.SGD(net.parameters(), lr=0.1)`: as it was written, if that is known, else by what it holds.

    The learning rate as written is the one that was meant; that of the live optimizer may be where a schedule has led
    it. Where there is no schedule, only the code can have set another one, and the live one is what is meant now.

    Args:
        run: The cell that made its steps.
        key: Of the optimizer.
        target: What is to be assigned.
        path: Of the model; empty if it has no name.
    """
    fact = run.after.optimizer(key)
    written = _at_rate(run, fact, _written(run, run.optimizer_path(key), path))
    if written and (target.startswith("self.") or not _SELF.search(written)):
        return f"{target} = {written}  # again, after the model"
    rate = f", lr={fact.learning_rate:g}" if fact and fact.learning_rate is not None else ""
    groups = len(fact.groups) if fact else 0
    also = f", with the {groups} groups that it had" if groups > 1 else ""
    kind = fact.kind if fact else "SGD"
    return f"{target} = torch.optim.{kind}({path or 'model'}.parameters(){rate})  # again, after the model{also}"


def _at_rate(run: Run, fact: OptimizerFact | None, written: str) -> str:
    """The call with the rate that the code has set since, if it has set one and no schedule did."""
    call, rate = syntax.expression(written), fact.learning_rate if fact is not None else None
    if fact is None or rate is None or fact.initial_rate is not None or not isinstance(call, ast.Call):
        return written
    given = [one.value for one in call.keywords if one.arg == "lr"] or call.args[1:2]
    if _has_own_rates(call) or (given and _is_current(run, given[0], rate)):
        return written
    if given:
        return replaced_in(written, given[0], f"{rate:g}")
    head = written.rstrip()[:-1].rstrip().removesuffix(",") if sets_rate(run) else ""
    return f"{head}, lr={rate:g})" if head else written


def _has_own_rates(call: ast.Call) -> bool:
    """True if groups of parameters have rates of their own, or all that it is given is not to be seen."""
    hidden = any(one.arg is None for one in call.keywords) or any(isinstance(one, ast.Starred) for one in call.args)
    return hidden or any(isinstance(one, ast.Constant) and one.value == "lr" for one in syntax.walk(call))


def _is_current(run: Run, given: ast.expr, rate: float) -> bool:
    """True if what is written gives the live rate, as far as it is known: a variable may be set along with it."""
    if isinstance(given, ast.Constant):
        return bool(given.value == rate)
    return ast.unparse(given) in rates_set(run) or not sets_rate(run)


def with_more(run: Run, key: int, target: str, more: str) -> str:
    """An optimizer that takes one group only, made again with more parameters than those of the module that it has.

    Args:
        run: The cell that made its steps.
        key: Of the optimizer.
        target: What is to be assigned.
        more: The parameters to add, as elements of a list.
    """
    fact = run.after.optimizer(key)
    kind, keys = (fact.kind, fact.parameter_keys) if fact is not None else ("", frozenset[int]())
    held = next((one.path for one in run.after.modules if one.path and one.parameter_keys == keys), "")
    made, own = rebuilt(run, key, target, held).partition("  # ")[0], f"{held}.parameters()"
    if held and made.count(own) == 1:
        return f"{made.replace(own, f'[*{own}, {more}]')}  # {kind} takes one group"
    return f"# {kind} takes one group: make {target} anew, with {more} in its list too"


def given_modules(run: Run, name: str) -> list[str]:
    """Of whose `parameters()` an optimizer was made, as the texts have it: `["net.body"]`."""
    return _GIVEN.findall(last_made(run, name))


def _written(run: Run, name: str, path: str) -> str:
    """What the optimizer was made by, if that takes this model, or can be given its parameters in place of others."""
    made = last_made(run, name)
    return _for_model(made, path) if made else ""


def last_made(run: Run, name: str) -> str:
    """The call that made an optimizer of this name the last time, as written; empty if there is none."""
    for one in (run, *reversed(run.earlier)):
        tree = syntax.parse(one.cell.source)
        calls = [call for node in syntax.walk(tree) for call in _made_by(node, name)] if tree is not None else []
        if calls:
            last = max(calls, key=lambda call: call.lineno)
            return ast.get_source_segment(one.cell.source, last) or ""
    return ""


def _made_by(node: ast.AST, name: str) -> list[ast.Call]:
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call) or len(node.targets) > 1:
        return []
    return [node.value] if ast.unparse(node.targets[0]) == name else []


def _for_model(text: str, path: str) -> str:
    if not path:
        return text if _GIVEN.search(text) else ""
    whole = rf"(?<![\w.]){re.escape(path)}(\.(named_)?parameters\(\)|(?![\w.\[(]))"
    if re.search(whole, text):
        return text
    others = _GIVEN.findall(text)
    return text.replace(f"{others[0]}.parameters()", f"{path}.parameters()") if len(others) == 1 else ""
