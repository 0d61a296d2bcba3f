"""What only the frames of kept exceptions hold, and how exceptions are found."""

import builtins
import gc
import sys
import weakref
from collections import deque

import pytest
import torch

from torch_inspector.facts import Cell
from torch_inspector.observe.graph import GraphReader
from torch_inspector.observe.namespace import walk_names
from torch_inspector.observe.place import CodeFile, Places
from torch_inspector.observe.raised import chain_of, exceptions_in, frames_of
from torch_inspector.observe.tracebacks import Tracebacks

LATER = float("inf")
NBYTES = 1 << 20


def fail(rows=256):
    big = torch.ones(rows, 1024)
    raise ValueError(big.shape)


def caught(call=fail):
    try:
        call()
    except Exception as error:  # noqa: BLE001
        return error


def facts(**names):
    places = Places()
    places.add(__file__, CodeFile(3, 0, "except"))
    return Tracebacks(GraphReader(), places).facts(names, {}, walk_names(list(names.items()), LATER), 3)


def test_a_local_of_a_failed_function():
    (fact,) = facts(failure=caught())
    assert (fact.path, fact.kind, fact.nbytes) == ("failure", "ValueError", NBYTES)
    (local,) = fact.locals
    assert (local.path, local.function, local.nbytes, local.shape) == ("big", "fail", NBYTES, (256, 1024))
    assert local.place.line == fail.__code__.co_firstlineno + 2


def test_nothing_is_kept_by_the_look():
    class Marked:
        pass

    def inner():
        big, marked = torch.ones(256, 1024), Marked()
        seen.append(weakref.ref(marked))
        raise ValueError(big.shape)

    seen: list[weakref.ref[Marked]] = []
    names = {"failure": caught(inner)}
    places = Places()
    places.add(__file__, CodeFile(3, 0, "except"))
    tracebacks = Tracebacks(GraphReader(), places)
    assert tracebacks.facts(names, {}, walk_names(list(names.items()), LATER), 3)
    gc.disable()
    try:
        names.clear()
        assert seen[0]() is None
    finally:
        gc.enable()


def test_two_exceptions_that_share_memory_count_it_once():
    shared = [torch.ones(256, 1024)]

    def first(x):
        raise ValueError(x.shape)

    names = {"one": caught(lambda: first(shared[0])), "two": caught(lambda: first(shared[0]))}
    shared.clear()
    assert sum(fact.nbytes for fact in facts(**names)) == NBYTES


def test_a_frame_that_still_runs_is_not_the_exceptions():
    here = torch.ones(256, 1024)
    assert facts(failure=caught(lambda: 1 / 0)) == ()
    del here


def test_the_last_exception_counts_only_for_the_cell_that_raised_it(monkeypatch):
    monkeypatch.setattr(sys, "last_value", caught(), raising=False)
    assert [fact.path for fact in facts()] == ["sys.last_value"]
    places = Places()
    places.add_cell(__file__, Cell(2, None, "", ""))
    assert Tracebacks(GraphReader(), places).facts({}, {}, walk_names([], LATER), 3) == ()


class Trial:
    error = None


@pytest.mark.parametrize(
    ("holder", "path"),
    [
        (lambda e: e, "x"),
        (lambda e: [1, e], "x[1]"),
        (lambda e: [0] * 500 + [e], "x[500]"),
        (lambda e: {"a": (0, e)}, "x['a'][1]"),
        (lambda e: deque([e]), "x[0]"),
        (lambda e: [[e]], "x[0][0]"),
    ],
)
def test_where_exceptions_are_found(holder, path):
    error = ValueError()
    assert exceptions_in([("x", holder(error))], LATER) == [(path, error)]


def test_a_list_that_holds_itself():
    endless: list[object] = []
    endless.append(endless)
    assert exceptions_in([("x", endless)], LATER) == []


def test_causes_and_groups_belong_to_an_exception():
    first, second = ValueError(), KeyError()
    first.__cause__ = second
    second.__context__ = first
    assert chain_of(first) == [first, second]
    group_of = getattr(builtins, "ExceptionGroup", None)
    if group_of is not None:
        group = group_of("several", [first])
        assert chain_of(group) == [group, first, second]


def test_an_exception_with_a_property_for_its_traceback():
    class HostileError(Exception):
        @property
        def __traceback__(self):  # type: ignore[override]
            raise AssertionError

    def raising():
        raise HostileError

    assert [passed.frame.f_code.co_name for passed in frames_of(caught(raising))][-1] == "raising"


def test_an_endless_recursion():
    def endless():
        return endless()

    assert len(list(frames_of(caught(endless)))) <= 400
