"""Names around a call: what the variables of a frame lead to, and what is never gone through for it."""

import sys
from types import SimpleNamespace

import torch

from tests.fakes import a_cell
from torch_inspector.observe import kinds
from torch_inspector.observe.near import Near, near
from torch_inspector.observe.place import Places


def names_in(code, **names):
    """What each optimizer is called around a call of `look()` in a cell."""
    places = Places()
    found: list[Near] = []
    places.add_cell("<cell>", a_cell(code))
    look = lambda: found.extend(near(sys._getframe(1), places, (torch.optim.Optimizer,)))  # noqa: E731
    exec(compile(code, "<cell>", "exec"), {"look": look, **names})  # noqa: S102
    return [path for one in found for path in one.paths.values()]


def an_optimizer():
    return torch.optim.SGD([torch.zeros(2, requires_grad=True)], lr=1.0)


def test_variables_and_two_attributes_on_the_way_have_names():
    runner = SimpleNamespace(engine=SimpleNamespace(optimizer=an_optimizer()))
    assert names_in("runner\nlook()", runner=runner) == ["runner.engine.optimizer"]
    assert names_in("def step(opt):\n    look()\nstep(optimizer)", optimizer=an_optimizer()) == ["opt", "optimizer"]


def test_what_was_imported_is_not_gone_through(monkeypatch):
    asked, fields_of = [], kinds.fields_of

    def counted(thing):
        asked.append(thing)
        return fields_of(thing)

    monkeypatch.setattr(kinds, "fields_of", counted)
    code = "def step():\n    torch, nn, Net, show, runner\n    look()\nstep()"
    names = {"torch": torch, "nn": torch.nn, "Net": SimpleNamespace, "show": an_optimizer}
    assert names_in(code, runner=SimpleNamespace(optimizer=an_optimizer()), **names) == ["runner.optimizer"]
    assert len(asked) < 20


def test_many_variables_cost_no_more_than_some():
    wide = SimpleNamespace(**{f"part{n}": SimpleNamespace(more=SimpleNamespace()) for n in range(5_000)})
    assert names_in("wide, optimizer\nlook()", wide=wide, optimizer=an_optimizer()) == ["optimizer"]
