"""A list of layers holds one layer several times."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torch_inspector.facts import RepeatedFact, Run, syntax
from torch_inspector.findings import Evidence, Finding
from torch_inspector.pitfall import pitfall


@pitfall(severity="error")
def check(run: Run) -> Iterator[Finding]:
    """Finds lists with one layer several times, where the text shows that it was multiplied."""
    told = set()
    for fact in run.after.repeated:
        if fact.place not in told and fact.count > 1:
            told.add(fact.place)
            yield _finding(fact)


def _finding(fact: RepeatedFact) -> Finding:
    a_kind = "parameter" if fact.layer_kind.endswith("Parameter") else f"{fact.layer_kind}"
    return Finding(
        message=(
            f"{_entries(fact)} of `{fact.path}` are one and the same {a_kind}: `{fact.text}` makes no copies, "
            f"so there are {fact.parameter_count:,} parameters to train instead of "
            f"{fact.parameter_count * fact.count:,}."
        ),
        subject=fact.path,
        fix=_fix(fact),
        line=fact.place.line,
        cell=fact.place.cell,
        # A layer that has a name may be meant to be shared: recurrent networks and some decoders are written so.
        severity="error" if fact.in_call else "hint",
        evidence=(
            Evidence("entries", fact.count, "count"),
            Evidence("different layers among them", 1, "count"),
            Evidence("numbers in its parameters", fact.parameter_count, "count"),
        ),
    )


def _entries(fact: RepeatedFact) -> str:
    return f"{fact.count} of the {fact.entry_count} layers" if fact.entry_count else f"the {fact.count} entries"


def _fix(fact: RepeatedFact) -> str:
    made = f"nn.{fact.layer_kind}(…)" if fact.in_call else "copy.deepcopy(…)"
    written = _multiplied(fact.text) if fact.in_call else ""
    remark = "a new one in each turn" if fact.in_call else "unless one layer for all of them is meant"
    return f"{written or f'[{made} for _ in range({fact.count})]'}  # {remark}"


def _multiplied(text: str) -> str:
    """What `[a(), b()] * n` was to be; empty for other ways to repeat."""
    tree = syntax.parse(text)
    node = tree.body[0] if tree is not None and tree.body else None
    product = node.value if isinstance(node, ast.Expr) and isinstance(node.value, ast.BinOp) else None
    if product is None:
        return ""
    lists = [side for side in (product.left, product.right) if isinstance(side, (ast.List, ast.Tuple))]
    counts = [side for side in (product.left, product.right) if side not in lists]
    if len(lists) != 1 or not counts or any(isinstance(one, ast.Starred) for one in lists[0].elts):
        return ""
    parts, turns = [ast.unparse(one) for one in lists[0].elts], ast.unparse(counts[0])
    if len(parts) == 1:
        return f"[{parts[0]} for _ in range({turns})]"
    return f"[layer for _ in range({turns}) for layer in ({', '.join(parts)})]"
