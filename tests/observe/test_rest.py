"""When the looks at training steps come to rest."""

from tests.cells import a_notebook

MADE_ANEW = """\
import torch
from torch import nn
net, x, y = nn.Linear(3, 1), torch.rand(8, 3), torch.rand(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
def step():
    criterion = nn.MSELoss()
    opt.zero_grad()
    criterion(net(x), y).backward()
    opt.step()
for _ in range(45):
    step()"""


def test_a_loss_made_anew_in_each_step_lets_the_looks_rest():
    with a_notebook() as notebook:
        run = notebook.run(MADE_ANEW)
    assert len(run.trace.steps) < 20
    assert [one.count for one in run.trace.counts if one.kind == "step"] == [45]


SETUP = """\
import torch
from torch import nn
net, x, y = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), torch.rand(8, 3), torch.rand(8, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
criterion = nn.MSELoss()"""


LATE = """\
for i in range(300):
    opt.zero_grad()
    loss = criterion(net(x), y)
    if {first}:
        loss.backward()
    else:
        (loss * 2).backward()
    opt.step()"""


def counts_of(run, kind):
    return {one.place.line: one.count for one in run.trace.counts if one.kind == kind}


def test_calls_of_a_line_that_is_not_asked_each_time_are_counted():
    code = "for i in range(300):\n    opt.zero_grad()\n    criterion(net(x), y).backward()\n    opt.step()"
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    assert counts_of(run, "backward") == {3: 300}
    assert [one.count for one in run.trace.counts if one.kind == "forward"] == [300, 300]


def test_a_line_that_begins_to_call_backward_late_is_noticed_soon():
    code = LATE.format(first="i < 110")
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    counted = counts_of(run, "backward")
    assert sum(counted.values()) == 300
    assert 110 <= counted[5] < 118
    assert any(fact.place.line == 7 for fact in run.trace.backwards)


def test_a_line_that_begins_to_call_the_model_late_is_noticed_soon():
    code = """\
for i in range(300):
    opt.zero_grad()
    criterion(net(x), y).backward()
    opt.step()
    if i >= 100:
        seen = net(x)"""
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    counted = {one.place.line: one.count for one in run.trace.forwards if one.kind == "Sequential"}
    assert sum(counted.values()) == 500
    assert 185 <= counted[6] <= 200


def test_lines_that_come_to_call_backward_in_turn_are_noticed_soon():
    code = LATE.format(first="i < 110 or i % 2")
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    assert 86 <= counts_of(run, "backward")[7] <= 95


def test_a_pass_in_another_mode_is_noticed_at_once():
    code = """\
for i in range(300):
    opt.zero_grad()
    criterion(net(x), y).backward()
    opt.step()
    if i == 200:
        with torch.no_grad():
            seen = net(x)"""
    with a_notebook() as notebook:
        notebook.run(SETUP)
        run = notebook.run(code)
    assert {one.place.line: one.count for one in run.trace.forwards if not one.grad_enabled} == {7: 1}
