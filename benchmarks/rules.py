"""Every rule over a trace of 100,000 facts: what judging a cell costs at most.

The facts are those of a correct program, of every kind that a correct program brings in numbers: 250 models that take
turns in one cell, each with an optimizer, a loader and a schedule of its own, called, differentiated and stepped again
and again, with the text that does it. Real cells bring some hundred facts, because what repeats is only counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from benchmarks.timing import Row, clocked, time_row
from tests.fakes import (
    a_backward,
    a_call,
    a_clear,
    a_count,
    a_forward,
    a_loader,
    a_mode,
    a_module,
    a_place,
    a_run,
    a_step,
    a_tensor,
    a_witness,
    an_optimizer,
)
from torch_inspector.facts import ClipFact, GradReadFact, LossFact, Run, ScheduleFact, Trace
from torch_inspector.pitfall import Pitfall
from torch_inspector.pitfalls import all_pitfalls

_MODELS, _FACTS = 250, 100_000
# Facts of each model: turns of its loop, words of its text, calls from lines of its own.
_TURNS, _WORDS, _LINES = 60, 190, 10
# An observer notes no more of these in one cell, whatever happens in it.
_LOSSES, _FORWARDS, _CLEARS = 64, 1_000, 64
_TIMES, _WARM_UP = 30, 3
_ALLOWED_MS = 20.0
_SLOWEST = 3


def run() -> Iterator[Row]:
    """Milliseconds for all rules, for the slowest of them, and for all over a trace of nothing.

    Raises:
        RuntimeError: there are fewer facts than it says, or a rule accuses the program.
    """
    busy, rules = _busy_run(), all_pitfalls()
    count = sum(len(facts) for facts in _facts_of(busy.trace))
    found = {rule.slug for rule in rules if list(rule.check(busy))}
    if count < _FACTS or found:
        raise RuntimeError(f"a trace of {count:,} facts in which {found or 'nothing'} is found")
    yield _measured(f"{len(rules)} rules, {count:,} facts", busy, rules, _ALLOWED_MS)
    times = [(_measured(rule.slug, busy, (rule,), None), rule) for rule in rules]
    times.sort(key=lambda pair: -pair[0].cpu.median)
    yield from (row for row, _ in times[:_SLOWEST])
    yield _measured(f"{len(rules)} rules, no facts", replace(busy, trace=Trace()), rules, None)


def _measured(what: str, judged: Run, rules: tuple[Pitfall, ...], allowed: float | None) -> Row:
    def judge() -> None:
        # A run is judged once, so nothing that a rule has remembered of it may help.
        fresh = replace(judged, trace=replace(judged.trace))
        for rule in rules:
            list(rule.check(fresh))

    for _ in range(_WARM_UP):
        judge()
    return time_row("rules", what, [clocked(judge) for _ in range(_TIMES)], allowed)


def _facts_of(trace: Trace) -> Iterator[tuple[Any, ...]]:
    values = (getattr(trace, field.name) for field in fields(trace))
    return (value for value in values if isinstance(value, tuple))


def _busy_run() -> Run:
    after = [one for number in range(_MODELS) for one in _holding(number)]
    happened = [one for number in range(_MODELS) for one in _happened(number)]
    lines = (f"net{n}(x{n}); loss{n}.backward(); opt{n}.step()" for n in range(_MODELS * _LINES))
    return a_run(*happened, before=after, after=after, source="\n".join(lines))


def _keys(number: int) -> frozenset[int]:
    return frozenset(range(10_000 + 8 * number, 10_000 + 8 * number + 8))


def _holding(number: int) -> Iterator[Any]:
    keys = _keys(number)
    names = tuple((key, f"{n}.weight") for n, key in enumerate(sorted(keys)))
    yield a_module(f"net{number}", key=number, parameter_keys=keys, parameter_names=names)
    yield an_optimizer(f"opt{number}", key=1_000 + number, parameter_keys=keys, parameter_count=len(keys))
    yield a_tensor(f"loss{number}", key=100_000 + number)


def _happened(number: int) -> Iterator[Any]:
    """What one model brings, in the order of its turns."""
    first, keys, order = 1 + number * _LINES, _keys(number), number * 10_000
    optimizer = 1_000 + number
    for turn in range(1, _TURNS + 1):
        at = order + 10 * turn
        shared = {"order": at, "place": a_place(first + 3), "index": turn}
        witness = a_witness(leaf_keys=keys, top=("MseLossBackward0",), mean_reduced=True)
        made = {"root": f"loss{number}", "made_at": a_place(first + 2), "number": at}
        yield a_backward(witness=witness, **shared | made)
        if (number * _TURNS + turn) <= _LOSSES:
            yield LossFact(at + 1, a_place(first + 3), turn, 1.0 / turn, gradient_count=len(keys))
        step = {"order": at + 2, "index": turn, "optimizer": optimizer, "backward_at": a_place(first + 3)}
        yield a_step(first + 4, parameter_keys=keys, leaf_keys=keys, parameter_count=len(keys), **step)
    for line in range(first, first + _LINES):
        if line - first < _FORWARDS // _MODELS:
            yield a_forward(line, order=order, module=number, name=f"net{number}", parameter_keys=keys)
        yield a_mode(line=line, order=order, module=number)
        if line <= _CLEARS:
            yield a_clear(line, order=order, owner=optimizer, count=_TURNS)
        yield a_loader(line)
        yield ScheduleFact(order, a_place(line), line, "StepLR", "sched", optimizer, "opt", optimizer_steps=_TURNS)
        yield ClipFact(order, a_place(line), "clip_grad_norm_", 1.0, 0.5, parameter_keys=keys, optimizer=optimizer)
        yield GradReadFact(f"w{number}", line)
        yield from (a_count(kind, _TURNS, line) for kind in ("backward", "step", "zero_grad", "forward"))
    yield from (a_call(f"net{number}.part{word}", first + word % _LINES) for word in range(_WORDS))
