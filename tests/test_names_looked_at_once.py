"""Searches through what the texts give variables: a name that is given a value in many lines is not a tree of them."""

import ast

import pytest

from tests.fakes import a_run
from torch_inspector.facts import floored, made_blind, vanished

LINES = 30


@pytest.fixture
def counted(monkeypatch):
    """Replaces a function by one that counts its calls."""

    def counting(module, name):
        calls, own = list[object](), getattr(module, name)

        def one(*given):
            calls.append(given)
            return own(*given)

        monkeypatch.setattr(module, name, one)
        return calls

    return counting


def test_what_a_divisor_is(counted):
    calls = counted(floored, "_given")
    run = a_run(source="\n".join(["x = torch.ones(3)", *["x = x / y.sin(x)"] * LINES, "y = x"]))
    assert floored.kind_of(run, ast.parse("x", mode="eval").body) == ""
    assert len(calls) <= 2 * floored._DEEP


def test_where_a_loss_without_history_comes_from(counted):
    calls = counted(made_blind, "_stores")
    run = a_run(source="\n".join(["x = 0", *["x += x.mean()"] * LINES]))
    tree = ast.parse(run.cell.source)
    spot = made_blind._Spot(run, tree, LINES + 2, set())
    assert made_blind._given(run, spot, "x", made_blind._STEPS) is None
    assert len(calls) <= LINES * made_blind._STEPS


def test_whether_a_divisor_may_meet_infinity(counted):
    calls = counted(vanished, "_is_weighted")
    names = {"x": ast.parse("x + x + x + y + y", mode="eval").body, "y": ast.parse("x + y + x + y", mode="eval").body}
    assert not vanished._may_meet_infinity(names["x"], names)
    assert len(calls) == 3
