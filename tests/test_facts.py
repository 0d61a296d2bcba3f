import dataclasses
import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest

from tests.fakes import (
    MODEL,
    OPTIMIZER,
    a_backward,
    a_count,
    a_loader,
    a_module,
    a_run,
    a_snapshot,
    a_step,
    a_tensor,
    a_trace,
    an_error,
    an_optimizer,
)
from torch_inspector import account, facts, findings

PLAIN = {str, int, float, bool, type(None)}
KINDS = [
    kind
    for kind in (*vars(facts).values(), *vars(account).values(), findings.Evidence, findings.Finding)
    if isinstance(kind, type) and kind.__module__.startswith("torch_inspector.")
]


def fields_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, localns={"Finding": findings.Finding, "MemoryReport": account.MemoryReport})


def leaves(hint: Any) -> set[Any]:
    """The types at the bottom of an annotation; those that hold others and can be changed are leaves too."""
    if get_origin(hint) is Literal:
        return {type(value) for value in get_args(hint)}
    if get_origin(hint) in (tuple, frozenset, Union, types.UnionType):
        return set().union(*(leaves(part) for part in get_args(hint) if part is not ...))
    return {hint}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fact_is_frozen(kind):
    parameters = getattr(kind, "__dataclass_params__", None)
    assert parameters.frozen if parameters else issubclass(kind, tuple)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_fact_holds_plain_values_and_facts_only(kind):
    assert set().union(*map(leaves, fields_of(kind).values())) <= PLAIN | set(KINDS)


def test_whole_run_can_be_hashed_so_no_part_of_it_can_change():
    error = an_error("boom")
    run = a_run(
        a_backward(), a_step(), a_loader(), before=[a_tensor()], after=[a_module(), an_optimizer()], error=error
    )
    assert hash(run) == hash(dataclasses.replace(run))


def test_snapshot_finds_by_key():
    snapshot = a_snapshot(a_module(), an_optimizer())
    assert snapshot.module(MODEL).path == "model"
    assert snapshot.optimizer(OPTIMIZER).path == "optimizer"
    assert snapshot.module(OPTIMIZER) is None
    assert snapshot.optimizer(MODEL) is None


def test_trace_counts_calls_of_one_kind():
    trace = a_trace(a_count("backward", 3, line=3), a_count("backward", 4, line=9), a_count("step", 5))
    assert trace.count("backward") == 7
    assert trace.count("scheduler") == 0


def test_run_calls_things_as_the_user_does():
    run = a_run(before=[a_module("old"), an_optimizer("optimizer")], after=[a_module("model")])
    assert run.module_path(MODEL) == "model"
    assert run.optimizer_path(OPTIMIZER) == "optimizer"
    assert run.module_path(999) == ""


def test_module_without_a_variable_goes_by_its_class():
    assert a_run(after=[a_module(path="", kind="ResNet")]).module_path(MODEL) == "ResNet"
