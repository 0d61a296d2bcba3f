"""What an optimizer remembers of weights that were given another type or another place since."""

import pytest

from tests.cells import a_notebook
from tests.fakes import a_run, an_error
from torch_inspector.facts import StaleStateFact
from torch_inspector.pitfalls.device.device_mismatch import check as check_devices
from torch_inspector.pitfalls.device.dtype_mismatch import check as check_types

START = """\
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Linear(3, 1)
class Trainer:
    def __init__(self, kind, **settings):
        self.opt = kind(net.parameters(), lr=0.01, **settings)
    def loss(self):
        self.opt.zero_grad()
        loss = net(torch.ones(4, 3, dtype=net.weight.dtype)).pow(2).mean()
        loss.backward()
        return loss
    def run(self):
        self.opt.step(self.loss)"""


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "NAdam", "LBFGS"])
@pytest.mark.parametrize("to", ["double", "bfloat16"])
def test_the_optimizer_is_named_and_the_fix_works(kind, to):
    with a_notebook() as notebook:
        notebook.run(START + f"\ntrainer = Trainer(torch.optim.{kind})\ntrainer.run()\nnet.{to}()")
        run = notebook.run("trainer.run()")
        assert notebook.errors[-1] is not None
        (finding,) = run.findings
        assert (finding.slug, finding.subject) == ("dtype-mismatch", "self.opt")
        notebook.run(finding.fix.replace("self", "trainer"))
        assert notebook.run("trainer.run()").findings == ()
        assert notebook.errors[-1] is None


HELD = {
    "s.opt": "s.opt, d = torch.optim.Adam(net.parameters()), None",
    "d['a']": "d = {'a': torch.optim.Adam(net.parameters())}",
    "d()": "d = (lambda one: lambda: one)(torch.optim.Adam(net.parameters()))",
}
STEP = "def fit(s, d):\n    net(torch.ones(4, 3, dtype=net.weight.dtype)).mean().backward()\n    {}.step()\nfit(s, d)"


@pytest.mark.parametrize("path", HELD)
def test_the_fix_names_what_can_be_typed(path):
    with a_notebook() as notebook:
        notebook.run(f"{START}\nclass State:\n    pass\ns = State()\n{HELD[path]}\n{STEP.format(path)}")
        notebook.run("net.double();")
        (finding,) = notebook.run(STEP.format(path)).findings
    called = (
        f"{path}.load_state_dict({path}.state_dict())" if path != "d()" else "# call load_state_dict() of that Adam"
    )
    assert finding.fix.startswith(called)


@pytest.mark.parametrize(
    "code",
    [
        "trainer = Trainer(torch.optim.SGD, momentum=0.9)\ntrainer.run()\nnet.double()\ntrainer.run()",
        "trainer = Trainer(torch.optim.Adam)\nnet.double()\ntrainer.run()",
        (
            "trainer = Trainer(torch.optim.Adam)\ntrainer.run()\nnet.double()\ntry:\n    trainer.run()\n"
            "except RuntimeError:\n    trainer = Trainer(torch.optim.Adam)\ntrainer.run()"
        ),
    ],
)
def test_what_goes_on_is_not_told(code):
    with a_notebook() as notebook:
        notebook.run(START)
        run = notebook.run(code)
        assert notebook.errors[-1] is None
    assert run.findings == ()


def test_an_error_of_the_closure_is_told_for_itself():
    with a_notebook() as notebook:
        notebook.run(START + "\ntrainer = Trainer(torch.optim.Adam)\ntrainer.run()\nnet.double()")
        run = notebook.run("def closure():\n    return net(torch.ones(4, 3))\ntrainer.opt.step(closure)")
    (finding,) = run.findings
    assert "exp_avg" not in finding.message


def test_on_another_device():
    state = StaleStateFact("opt", "Adam", "exp_avg", "float32", "float32", "cpu", "cuda:0")
    message = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu"
    run = a_run(error=an_error(message, stale_state=state))
    (finding,) = check_devices(run)
    assert finding.subject == "opt"
    assert "on cpu; they are on cuda:0 now" in finding.message
    assert finding.fix.startswith("opt.load_state_dict(opt.state_dict())")
    assert list(check_types(run)) == []


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("expected dtype float for `end` but got dtype double", True),
        ("expected scalar type Double but found Float", True),
        ("unsupported operand type(s) for *: 'NoneType' and 'float'", False),
        ("can't multiply sequence by non-int of type 'float'", False),
    ],
)
def test_only_what_is_said_of_numbers_is_of_their_type(message, told):
    state = StaleStateFact("opt", "Adam", "exp_avg", "float32", "float64", "cpu", "cpu")
    found = list(check_types(a_run(error=an_error(message, stale_state=state))))
    assert [one.subject for one in found if "` from when its weights were" in one.message] == ["opt"] * told
