"""Variables of a frame, read without a trace."""

import gc
import sys
import weakref

import pytest
import torch

from torch_inspector.observe.locals import locals_of


class Thing:
    """Stands for a tensor, of which no weak reference may be made."""


def look_at_caller():
    with locals_of(sys._getframe(1)) as values:
        return dict(values).keys()


def test_variables_are_seen():
    def names():
        one, two = 1, 2
        return look_at_caller() | {one, two}

    assert {"one", "two"} <= names()


def test_nothing_of_a_function_outlives_its_own_del():
    thing = Thing()
    gone = weakref.ref(thing)
    look_at_caller()
    del thing
    assert gone() is None


def test_nothing_of_a_suspended_generator_outlives_its_own_del():
    refs = []

    def batches():
        batch = torch.zeros(4)
        refs.append(weakref.ref(batch))
        yield 1
        del batch
        yield 2

    running = batches()
    next(running)
    with locals_of(running.gi_frame) as values:
        assert "batch" in values
    del values
    next(running)
    assert refs[0]() is None


def test_nothing_of_a_finished_frame_is_kept():
    thing = Thing()
    gone = weakref.ref(thing)

    def fail(thing):
        raise ValueError(thing)

    try:
        fail(thing)
    except ValueError as error:
        frame = error.__traceback__.tb_next.tb_frame
    with locals_of(frame) as values:
        assert values["thing"] is thing
    del values
    frame.clear()
    del frame, thing
    gc.collect()
    assert gone() is None


def test_the_users_own_locals_do_not_change():
    kept = locals()
    kept["extra"] = 1
    look_at_caller()
    assert sorted(kept) == ["extra"]


def test_a_module_frame_is_left_alone():
    names = {"look": look_at_caller, "x": 1}
    exec("look()\nlook()", names)  # noqa: S102
    assert names["x"] == 1


def test_a_class_body_keeps_its_names():
    class Body:
        one = 1
        look_at_caller()
        two = one + 1

    assert (Body.one, Body.two) == (1, 2)


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="a function has no such dictionary any more")
def test_names_that_exec_made_stay():
    exec("rate = 0.5")  # noqa: S102
    look_at_caller()
    assert eval("rate") == 0.5  # noqa: S307


def test_a_comprehension_at_the_top_level_hides_nothing():
    """From Python 3.13 on, `f_locals` shows there the variables of the comprehension only."""
    seen = []

    def look():
        frame = sys._getframe(1)
        with locals_of(frame) as values:
            seen.append((values.get("x", "none"), values.get("outer", frame.f_globals["outer"])))
        return True

    exec("outer = 7\n[look() for x in (1,)]", {"look": look})  # noqa: S102
    assert seen == [(1, 7)]
