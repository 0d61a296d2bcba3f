"""Where a path leads: through plain storage only, and never by code of the user's."""

import sys
from collections import OrderedDict, defaultdict, deque
from typing import Any

import pytest
import torch
from torch import nn

from torch_inspector.observe.followed import followed

COMPARED: list[object] = []
"""What a key of the user's own was compared with."""


class Thing:
    def __init__(self, **fields):
        self.__dict__.update(fields)


class Loud:
    """Shouts when any code of its own is run."""

    def __getattr__(self, name):
        raise AssertionError(name)

    def __getitem__(self, key):
        raise AssertionError(key)

    def __eq__(self, other):
        COMPARED.append(other)
        return False

    def __len__(self):
        raise AssertionError

    def __hash__(self):
        return hash("losses")

    @property
    def losses(self):
        raise AssertionError

    inner = property(losses.fget)  # type: ignore[attr-defined]  # mypy takes a property for its function


class LoudDict(dict[str, Any]):
    def __getitem__(self, key):
        raise AssertionError(key)

    def items(self):
        raise AssertionError


WANTED = [torch.zeros(3)]
NET = nn.Sequential(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("losses", {"losses": WANTED}),
        ("d['losses']", {"d": {"losses": WANTED}}),
        ("d['losses']", {"d": defaultdict(list, losses=WANTED)}),
        ("d['losses']", {"d": OrderedDict(losses=WANTED)}),
        ("d['losses']", {"d": {Loud(): 1, "losses": WANTED}}),
        ("losses", {Loud(): 1, "losses": WANTED}),
        ('d["it\'s"]', {"d": {"it's": WANTED}}),
        (r"d['a\\nb']", {"d": {"a\\nb": WANTED}}),
        (f"d['{'x' * 60}…']", {"d": {"x" * 150: WANTED}}),
        ("d[3]", {"d": {True: 1, 3: WANTED}}),
        ("d[True]", {"d": {True: WANTED}}),
        ("d[0.5][1]", {"d": {0.5: (1, WANTED)}}),
        ("trainer.losses", {"trainer": Thing(losses=WANTED)}),
        ("trainer.log['x'][-1].y", {"trainer": Thing(log={"x": {-1: Thing(y=WANTED)}})}),
        ("q[1]", {"q": deque([1, WANTED])}),
        ("Out[3]", {"Out": {3: WANTED}}),
    ],
)
def test_a_path_leads_to_the_very_object(path, names):
    COMPARED.clear()  # making the dictionaries compares their keys
    met = followed(names, path)
    assert met.found
    assert met.thing is WANTED
    assert not COMPARED


@pytest.mark.parametrize(("path", "thing"), [("net[0]", NET[0]), ("net[0].weight", NET[0].weight), ("net", NET)])
def test_what_modules_register_is_found(path, thing):
    assert followed({"net": NET}, path).thing is thing


@pytest.mark.parametrize("path", ["big", "d['no']", "a[7]", "d['losses'][9]"])
def test_what_surely_leads_nowhere(path):
    met = followed({"d": {"losses": [1]}, "a": (1, 2)}, path)
    assert (met.found, met.ends) == (False, True)


@pytest.mark.parametrize(
    "path",
    [
        "none", "number", "text", "empty", "torch", "Thing", "function", "none.x", "loud.losses", "loud['x']",
        "loud[0]", "loud.inner", "mine['losses']", "a[-1]", "twice['" + "x" * 60 + "…']", "os.path", "vars(a)['x']",
        "a[0]()", "a b", "", "a[", "a[b]", "a['x]", "(" * 2000, "a[…]", "d[a.b]", "net.weight.grad", "thing.gone",
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_said_to_be_gone(path):
    names = {
        "none": None, "number": 7, "text": "x", "empty": (), "torch": torch, "Thing": Thing, "function": followed,
        "loud": Loud(), "mine": LoudDict(losses=WANTED), "a": [1], "d": {}, "net": NET[0], "thing": Thing(),
        "twice": {"x" * 61: WANTED, "x" * 62: WANTED},
    }  # fmt: skip
    met = followed(names, path)
    assert (met.thing, met.found, met.ends) == (None, False, False)


def test_the_last_exception_is_that_of_the_interpreter(monkeypatch):
    error = ValueError()
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    assert followed({"sys": Thing(last_value=7)}, "sys.last_value").thing is error
    monkeypatch.delattr(sys, "last_value")
    assert followed({}, "sys.last_value").ends
    assert not followed({"sys": sys}, "sys.modules").ends
