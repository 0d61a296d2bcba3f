"""How long objects that no variable ever named are looked for."""

import ast
import inspect
from time import thread_time

import pytest

from torch_inspector.observe import circles
from torch_inspector.observe.keys import Keys
from torch_inspector.observe.namespace import walk_paths


class Segment:
    def __init__(self, prev=None):
        self.prev, self.next = prev, None
        if prev is not None:
            prev.next = self


@pytest.mark.parametrize(("deadline", "looks"), [(0.0, 3), (float("inf"), 5)], ids=["too long", "in time"])
def test_a_search_that_a_big_heap_makes_too_long_is_given_up(monkeypatch, deadline, looks):
    seen: list[list[type]] = []
    monkeypatch.setattr(circles, "_LONG_S", 0.0)
    monkeypatch.setattr(circles, "_objects", lambda classes: seen.append(classes) or [])  # type: ignore[func-returns-value]
    variables = {"Segment": Segment}
    cells = [ast.parse(inspect.getsource(Segment))]
    found, names = circles.Circles(Keys()), walk_paths([], thread_time() + 1)
    for _ in range(5):
        found.unnamed(names, variables, "Segment()", cells, deadline)
    assert len(seen) == looks


def test_objects_of_several_classes_are_looked_for_once(monkeypatch):
    class Other(Segment):
        pass

    looks: list[list[type]] = []
    real = circles._instances
    monkeypatch.setattr(circles, "_instances", lambda classes: looks.append(classes) or real(classes))  # type: ignore[func-returns-value]
    things = [Segment(), Segment(), Other()]
    more = [Segment(), Segment()]
    groups = circles._groups(things, frozenset(map(id, [*things, more[0]])))
    assert [len(group) for group in groups] == [3, 1]
    assert groups[0][2] is more[0]
    assert len(looks) == 1
