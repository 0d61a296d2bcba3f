"""A target network or a teacher that is the trained network itself."""

import pytest

from tests.cells import a_notebook

SETUP = """
import copy
import torch
from torch import nn
torch.manual_seed(0)
x, y = torch.randn(50, 5), torch.randn(50, 1)
def net():
    return nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 1))
"""
START = """
policy_net = net()
target_net = copy.deepcopy(policy_net)
opt = torch.optim.SGD(policy_net.parameters(), lr=0.05)
"""
LOOP = """
for step in range(12):
    with torch.no_grad():
        wanted = y + 0.9 * target_net(x)
    opt.zero_grad()
    nn.functional.mse_loss(policy_net(x), wanted).backward()
    opt.step()
    if step % 4 == 0:
        target_net = policy_net
"""
PLAIN = LOOP[: LOOP.index("    if step")]
AGENT = """
class Agent:
    def __init__(self):
        self.q = net()
        self.q_target = self.q
        self.opt = torch.optim.SGD(self.q.parameters(), lr=0.05)
    def wanted(self):
        with torch.no_grad():
            return y + 0.9 * self.q_target(x)
    def learn(self):
        self.opt.zero_grad()
        nn.functional.mse_loss(self.q(x), self.wanted()).backward()
        self.opt.step()
"""
LEARN = "agent = Agent()\nfor _ in range(4):\n    agent.learn()"
MODULE = AGENT.replace("class Agent:", "class Agent(nn.Module):").replace(
    "(self):\n        self.q =", "(self):\n        super().__init__()\n        self.q ="
)
FUNCTION = """
def sync():
    global target_net
    target_net = policy_net
"""
BORN_AGAIN = """
teacher = None
for generation in range(3):
    student = net()
    opt = torch.optim.SGD(student.parameters(), lr=0.05)
    for _ in range(3):
        wanted = y if teacher is None else teacher(x).detach()
        opt.zero_grad()
        nn.functional.mse_loss(student(x), wanted).backward()
        opt.step()
    teacher = student
"""
GENERATION = """
student = net()
opt = torch.optim.SGD(student.parameters(), lr=0.05)
def train(teacher):
    for _ in range(3):
        wanted = y if teacher is None else teacher(x).detach()
        opt.zero_grad()
        nn.functional.mse_loss(student(x), wanted).backward()
        opt.step()
"""
ATTACK = """
model = net()
opt = torch.optim.SGD(model.parameters(), lr=0.05)
target_model = model
for _ in range(3):
    opt.zero_grad()
    nn.functional.mse_loss(model(x), y).backward()
    opt.step()
score = target_model(x + 0.1).mean().item()
"""
FOUND = {
    "in the loop": ([START, LOOP], 9),
    "before it": ([START.replace("copy.deepcopy(policy_net)", "policy_net"), PLAIN], 3),
    "both at once": (
        [
            START.replace("= net()", "= target_net = net()").replace("target_net = copy.deepcopy(policy_net)\n", ""),
            PLAIN,
        ],
        2,
    ),
    "in one cell": ([START.replace("copy.deepcopy(policy_net)", "policy_net") + PLAIN], 3),
    "a tuple": (
        [START.replace("target_net = copy.deepcopy(policy_net)", "tau, target_net = 0.1, policy_net"), PLAIN],
        3,
    ),
    "an agent": ([AGENT, LEARN], 5),
    "an agent that is a module": ([MODULE, LEARN], 6),
    "a shallow copy": ([START.replace("copy.deepcopy", "copy.copy"), PLAIN], 3),
    "a shallow copy by its name": (["from copy import copy", START.replace("copy.deepcopy", "copy"), PLAIN], 3),
    "an agent's shallow copy": ([AGENT.replace("= self.q\n", "= copy.copy(self.q)\n"), LEARN], 5),
    "a function": ([START, FUNCTION, LOOP.replace("target_net = policy_net", "sync()")], 4),
}
QUIET = {
    "a copy": [START, PLAIN],
    "copied weights": [
        START,
        LOOP.replace("target_net = policy_net", "target_net.load_state_dict(policy_net.state_dict())"),
    ],
    "a copy by another name": ["from copy import deepcopy as copy", START.replace("copy.deepcopy", "copy"), PLAIN],
    "shallow, with layers of its own": [
        START.replace("copy.deepcopy(policy_net)", "copy.copy(policy_net)")
        + "target_net._modules = copy.deepcopy(policy_net)._modules",
        PLAIN,
    ],
    "shallow, with a setting of its own": [
        START.replace("copy.deepcopy(policy_net)", "copy.copy(policy_net)") + "target_net.noise = 0.0",
        PLAIN,
    ],
    "copied in the loop": [START, LOOP.replace("target_net = policy_net", "target_net = copy.deepcopy(policy_net)")],
    "an agent's copy": [AGENT.replace("= self.q\n", "= copy.deepcopy(self.q)\n"), LEARN],
    "a setting": [
        "double = False\n"
        + START.replace(
            "target_net = copy.deepcopy(policy_net)",
            "if double:\n    target_net = copy.deepcopy(policy_net)\nelse:\n    target_net = policy_net",
        ),
        PLAIN,
    ],
    "a setting in one line": [
        "double = False\n" + START.replace("copy.deepcopy(policy_net)", "net() if double else policy_net"),
        PLAIN,
    ],
    "the teacher of the next generation": [BORN_AGAIN],
    "the teacher of the next cell": [GENERATION, "train(None)\nteacher = student", GENERATION, "train(teacher)"],
    "the target of an attack": [ATTACK],
    "not trained": [START.replace("copy.deepcopy(policy_net)", "policy_net"), "target_net(x), policy_net(x);"],
}


def found(*cells):
    with a_notebook() as notebook:
        for source in (SETUP, *cells):
            notebook.run(source)
        assert all(error is None for error in notebook.errors), notebook.errors
        runs = [run for run in notebook.runs if run is not None]
        return [f for run in runs for f in run.findings if f.slug == "state-dict-alias"]


@pytest.mark.parametrize("name", FOUND)
def test_found(name):
    cells, line = FOUND[name]
    one = found(*cells)
    assert [(f.line, f.severity) for f in one] == [(line, "hint" if "shallow" in name else "warning")]


@pytest.mark.parametrize("name", QUIET)
def test_quiet(name):
    assert found(*QUIET[name]) == []


def test_fix():
    assert found(START, LOOP)[0].fix.startswith("target_net = copy.deepcopy(policy_net)  # later: target_net.load_")
    assert found(AGENT, LEARN)[0].fix.startswith("self.q_target = copy.deepcopy(self.q)  #")
    by_name = found("from copy import copy", START.replace("copy.deepcopy", "copy"), PLAIN)[0]
    assert by_name.fix.startswith("from copy import deepcopy\ntarget_net = deepcopy(policy_net)  #")


@pytest.mark.parametrize("cells", [[f"{START}target_net = policy_net{PLAIN}"], [AGENT + LEARN]])
def test_told_once(cells):
    more = "for _ in range(3):\n    opt.zero_grad()\n    policy_net(x).mean().backward()\n    opt.step()"
    later = [more, f"{more}\nprint(1)"] if "policy_net =" in cells[0] else [LEARN, f"{LEARN}\nprint(1)"]
    assert len(found(*cells, *later)) == 1
