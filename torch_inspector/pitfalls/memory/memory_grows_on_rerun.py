"""Each re-run of one cell leaves more memory behind than the one before."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from torch_inspector.facts import Run, Snapshot
from torch_inspector.findings import Evidence, Finding, size_text
from torch_inspector.pitfall import pitfall

# Runs of the same cell in which the same variable must have grown; the first and second may be meant.
_RUNS = 3
# A run that adds less than this share of what the one before added is a cache that fills up.
_STEADY = 0.9
_LARGE_NBYTES = 64 << 20
_Sizes = dict[int, tuple[int, frozenset[int]]]
"""Bytes and parameters of models by key, told when they were called."""
_COMMENT = re.compile(r"#.*")
_COLLECTS = re.compile(r"\.(append|add|extend|insert|update|setdefault|appendleft)$")


@pitfall(severity="hint")
def check(run: Run) -> Iterator[Finding]:
    """Finds variables whose tensors or models took more memory after each of the last runs of this cell."""
    if run.before.tensors == run.after.tensors and len(run.before.modules) == len(run.after.modules):
        return
    runs = [*(past for past in run.earlier if _is_same(past, run)), run][-_RUNS:]
    if len(runs) < _RUNS or not all(one.before.complete and one.after.complete for one in runs):
        return
    called = (one for past in (*run.earlier, run) for one in past.after.modules if one.parameter_nbytes)
    sizes = {one.key: (one.parameter_nbytes, one.parameter_keys) for one in called}
    grown = {name: nbytes for name, nbytes in _growth(run, sizes).items() if nbytes >= max(run.min_nbytes, 1)}
    before = [_growth(one, sizes) for one in runs[:-1]] if grown else []
    for name, nbytes in grown.items():
        steps = [*(growth.get(name, 0) for growth in before), nbytes]
        if min(steps) >= max(run.min_nbytes, 1) and _is_steady(steps):
            yield _finding(run, name, steps, sizes)


def _is_same(past: Run, run: Run) -> bool:
    """True if it was the same cell, comments and blanks aside, and came to its end."""
    return past.error is None and _code(past.cell.source) == _code(run.cell.source)


@lru_cache(maxsize=64)
def _code(source: str) -> str:
    return "".join(_COMMENT.sub("", source).split())


def _is_steady(steps: list[int]) -> bool:
    return all(later >= _STEADY * earlier for earlier, later in pairwise(steps))


def _growth(run: Run, sizes: _Sizes) -> dict[str, int]:
    """Bytes that each variable has gained in a run: variables that were there before and hold more tensors now."""
    before, after = _by_name(run.before), _by_name(run.after)
    found = _growth_by_models(run, sizes)
    for name, (nbytes, count) in after.items():
        if name in before and count > before[name][1] > 0:
            found[name] = nbytes - before[name][0]
        elif name not in before and count > 1:
            found[name] = nbytes
    return found


def _growth_by_models(run: Run, sizes: _Sizes) -> dict[str, int]:
    """The same for containers of models that hold all of before, and more."""
    before, after = _models(run.before, sizes), _models(run.after, sizes)
    old = {name: before.get(name, {}) for name in after}
    return {n: sum(own.values()) - sum(old[n].values()) for n, own in after.items() if own.keys() > old[n].keys()}


def _by_name(snapshot: Snapshot) -> dict[str, tuple[int, int]]:
    """Bytes and number of the tensors that each variable leads to, views not counted."""
    sums: dict[str, tuple[int, int]] = {}
    for fact in {fact.key: fact for fact in snapshot.tensors}.values():
        name = fact.path.partition("[")[0].partition(".")[0]
        nbytes, count = sums.get(name, (0, 0))
        own = fact.nbytes if fact.nbytes >= fact.storage_nbytes else 0
        sums[name] = (nbytes + own, count + 1)
    return sums


def _models(snapshot: Snapshot, sizes: _Sizes) -> dict[str, dict[int, int]]:
    """The models in the containers of each variable, with their bytes: none if another one shares parameters."""
    found: dict[str, dict[int, int]] = {}
    shared = Counter(key for one in {one.key for one in snapshot.modules} & sizes.keys() for key in sizes[one][1])
    for one in snapshot.modules:
        name, bracket, _ = one.path.partition("[")
        if bracket and one.key in sizes:
            nbytes, keys = sizes[one.key]
            alone = all(shared[key] == 1 for key in keys)
            found.setdefault(name.partition(".")[0], {})[one.key] = nbytes if alone else 0
    return found


def _finding(run: Run, name: str, steps: list[int], sizes: _Sizes) -> Finding:
    now = _by_name(run.after).get(name, (0, 0))[0] + sum(_models(run.after, sizes).get(name, {}).values())
    lines = [call.line for call in run.trace.calls if call.name.startswith(f"{name}.") and _COLLECTS.search(call.name)]
    return Finding(
        message=f"`{name}` grew by {size_text(steps[-1])} each time this cell ran and holds {size_text(now)} now.",
        subject=name,
        held=name,
        fix=f"{name} = []  # made anew at the top of the cell that fills it",
        line=lines[-1] if lines else None,
        severity="warning" if now >= _LARGE_NBYTES else "",
        evidence=(
            *(Evidence(f"gained {_ORDER[-len(steps) + place]}", step, "bytes") for place, step in enumerate(steps)),
            Evidence("held now", now, "bytes"),
        ),
    )


_ORDER = ("two runs ago", "in the last run", "in this run")
