"""Objects in circles that were let go of, and objects that something holds."""

import builtins

import pytest

from tests.cells import a_notebook
from torch_inspector.facts.spelled import with_article

SLUG = "cycle-holds-tensors"
START = """\
import functools, gc, weakref
import torch
from torch import nn
kept = {}
class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = nn.Linear(1000, 1000)
        self.leaf.owner = [self]
    def forward(self, x):
        return self.leaf(x)
class Callback:
    def __init__(self, trainer):
        self.trainer = trainer
class Trainer:
    def __init__(self):
        self.model = nn.Linear(1000, 1000)
        self.callback = Callback(self)
class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.leaf = nn.Linear(1000, 1000)
    def forward(self, x):
        return self.leaf(x)
def use(make):
    model = make()
    return model(torch.ones(1, 1000)).sum().item()
"""

pytestmark = pytest.mark.usefixtures("no_collection_by_chance")


def found(*cells):
    with a_notebook() as notebook:
        for code in (START, *cells):
            notebook.run(code)
        assert not [error for error in notebook.errors if error]
        return [(index, f) for index, run in enumerate(notebook.runs) if run for f in run.findings if f.slug == SLUG]


@pytest.mark.parametrize(
    ("make", "let_go", "name", "line"),
    [
        ("tree = Tree()", "del tree", "tree", 1),
        ("tree = Tree()", "print(1)\ntree = None", "tree", 2),
        ("tree = Tree()", "tree = nn.Linear(2, 2)", "tree", 1),
        ("trainer = Trainer()", "del trainer", "trainer", 1),
        ("trainer = Trainer()", "trainer = Trainer()", "trainer", 1),
        ("trainer = Trainer()", "steps = 3\nif steps:\n    trainer = [steps]", "trainer", 3),
        ("trainer = Trainer()\ntrainer.model = Tree()", "trainer.model = None", "trainer.model", 1),
        ("net = nn.Linear(1000, 1000)\nnet.say = net.extra_repr", "del net", "net", 1),
        ("net = Plain()\nnet.leaf.register_forward_hook(lambda *a, n=net: None);", "net = Plain()", "net", 1),
        ("kept['a'] = Tree()", "del kept['a']", "kept['a']", 1),
        ("net = Tree()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)", "del net, opt", "net", 1),
    ],
)
def test_what_waits_is_named(make, let_go, name, line):
    ((cell, finding),) = found(make, let_go)
    assert (cell, finding.line, finding.severity, finding.subject) == (2, line, "hint", name)
    assert "3.82 MB" in finding.message


def test_models_that_had_no_global_name():
    ((cell, finding),) = found("for _ in range(3):\n    use(Tree)")
    assert cell == 1
    assert "3 of Tree" in finding.message
    assert "11.5 MB" in finding.message


def test_it_is_said_once_and_louder_with_empty_cache():
    ((_, finding),) = found("tree = Tree()", "del tree\ntorch.cuda.empty_cache()", "1 + 1;", "use(Plain);")
    assert finding.severity == "warning"


@pytest.mark.parametrize(
    "cells",
    [
        ["net = Plain()", "del net"],
        ["trainer = Trainer()\ntrainer.callback = None", "trainer = Trainer()"],
        ["trainer = Trainer()", "first = trainer\ntrainer = Trainer()"],
        ["trainer = Trainer()", "def make():\n    trainer = 1\n    return trainer\nnumber = make()"],
        ["tree = Tree()", "del tree\ngc.collect();"],
        ["tree = Tree()", "kept['tree'] = tree", "del tree"],
        ["tree = Tree()", "score = functools.partial(print, tree)", "del tree"],
        ["tree = Tree()", "score = (lambda t: lambda x: t(x))(tree)", "tree = None"],
        ["tree = Tree()", "tree", "del tree"],
        ["tree = Tree()\nleaf = tree.leaf", "del tree"],
        ["tree = Tree()", "import types\nbox = types.ModuleType('box')\nbox.tree = tree", "del tree"],
        ["tree = Tree()", "turns = (t for t in [tree, 1])\nnext(turns);", "del tree"],
        ["tree = Tree()", "tree.leaf(torch.ones(1, 1000)).sum();"],
        ["use(Plain)\nuse(Plain);"],
        ["tree = Tree()", "import threading\nlocal = threading.local()\nlocal.tree = tree", "del tree"],
        ["tree = Tree()", "@functools.lru_cache\ndef get():\n    return tree\nget();", "del tree"],
        [
            "tree = Tree()",
            "loss = tree(torch.ones(1, 1000)).sum()\nloss.register_hook(lambda g, t=tree: None);",
            "del tree",
        ],
        [
            "net = Plain()\nopt = torch.optim.Adam(net.parameters())\nplan = torch.optim.lr_scheduler.StepLR(opt, 1)",
            "del net, opt, plan",
        ],
    ],
)
def test_what_is_held_or_gone(cells):
    assert found(*cells) == []


def test_what_a_program_puts_among_the_builtins_is_no_part_of_the_circle(monkeypatch):
    """`get_ipython` stands there while a cell runs, and leads to the shell and all that it has."""
    monkeypatch.setattr(builtins, "crowd", [[number] for number in range(100_000)], raising=False)
    ((_, finding),) = found("net = nn.Linear(1000, 1000)\nnet.say = net.extra_repr", "del net")
    assert finding.subject == "net"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("trainer = Trainer()\ntrainer = None", ("Trainer.callback", "Callback.trainer")),
        ("tree = Tree()\ntree = None", ("Linear.owner",)),
        (("for fold in range(3):\n    runner = Trainer()\n    runner.model.owner = runner\n    del runner.callback\n"
         "    runner.model(torch.ones(1, 1000))\ndel runner"), ("Linear.owner", "Trainer.model")),
    ],
)  # fmt: skip
def test_the_attributes_that_make_the_circle_are_named(code, names):
    made, _, let_go = code.rpartition("\n")
    told = [f for _, f in found(made, let_go)]
    assert told
    assert any(all(f"`{name}`" in f.message for name in names) and names[-1] in f.fix for f in told), told


NODES = """
class Node:
    def __init__(self, parent=None, depth=2):
        self.parent, self.state = parent, torch.zeros(250_000)
        self.children = [Node(self, depth - 1) for _ in range(4)] if depth else []
root = Node()
"""


@pytest.mark.parametrize("more", ["", "best = root.children[1]\n", "other = Node(depth=1)\n"])
def test_all_nodes_of_what_waits_are_counted(more):
    ((_, finding),) = found(NODES + more, "del root, best" if "best" in more else "del root")
    assert "21 of Node are held" in finding.message
    assert "20.0 MB" in finding.message


def test_a_node_that_a_variable_names_holds_all_others():
    assert found(NODES + "best = root.children[1].children[0]\n", "del root") == []


@pytest.mark.parametrize(("kind", "said"), [("Experiment", "an Experiment"), ("Trainer", "a Trainer")])
def test_kinds_have_their_article(kind, said):
    assert with_article(kind) == said


def test_what_no_cell_but_this_one_named_is_counted_with_what_was_named_before():
    loop = "gc.collect()\nfor _ in range(3):\n    trainer = Trainer()\ntrainer = None"
    ((cell, finding),) = found("trainer = Trainer()\nkept = Trainer()", loop.replace("gc.collect()\n", ""))
    assert (cell, finding.message[:12]) == (2, "4 of Trainer")
    assert "15.3 MB" in finding.message


OWNED = """
class Head:
    def set_owner(self, owner):
        self.owner = owner
class Model:
    def __init__(self):
        self.weight, self.head = torch.zeros(1000, 1000), Head()
        self.head.set_owner(self)
def score():
    return Model().weight.mean().item()
"""


def test_only_what_something_else_holds_may_be_weak():
    """A weak reference in `Model.head` would drop the head at once."""
    ((_, finding),) = found(OWNED + "model = Model()", "del model")
    assert finding.fix.endswith("a weakref.ref() to `model` in Head.owner, or None there once it is done")
    ((_, finding),) = found(OWNED, "score();")
    assert finding.fix.endswith("or a weakref.ref() in the one whose object something else holds")


WAYS = """
class Node:
    def __init__(self, parent=None):
        self.state, self.parent, self.children = torch.zeros(500_000), parent, []
        if parent is not None:
            parent.children.append(self)
def grow():
    root = Node()
    Node(root)
    return Node(root)
class Call:
    def __init__(self, fn):
        self.fn = fn
class Env:
    def __init__(self):
        self.agent = Agent(self)
class Agent:
    def __init__(self, env):
        self.env, self.state = env, torch.zeros(500_000)
    def end(self):
        return self.state
def with_call(wrap):
    agent = Agent(None)
    agent.call = Call(wrap(agent))
    return agent
"""


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (
            "grow()",
            "so rather a weakref.ref() in Node.parent, if something else holds what that leads to, or None there",
        ),
        ("with_call(lambda a: a.end)", ": a weakref.WeakMethod() in Call.fn, which gives the method"),
        ("with_call(lambda a: [a.end, print])", ": a weakref.WeakMethod() in Call.fn, which gives the method"),
        ("with_call(lambda a: lambda: a.end())", ": a weakref.ref() to `one` in the function in Call.fn, or None"),
        ("with_call(lambda a: a)", ": a weakref.ref() to `one` in Call.fn, or None"),
        ("Env().agent", ": None in Agent.env or Env.agent once it is done, or"),
    ],
)
def test_a_weak_reference_is_offered_where_the_program_goes_on_with_it(made, said):
    ((_, finding),) = found(f"{WAYS}one = {made}", "del one")
    assert said in finding.fix


def test_what_a_hook_holds_is_given_back_by_its_handle():
    code = "net = Plain()\nnet.leaf.register_forward_hook(lambda *a, n=net: None);"
    ((_, finding),) = found(code, "net = Plain()")
    said = "in Linear._forward_hooks that has a weakref.ref() to `net`, or remove() of its handle once it is done"
    assert finding.fix.endswith(said)


def test_torch_would_give_a_weak_method_the_arguments():
    seen = "class Seen(Plain):\n    def seen(self, *given):\n        self.last = given[0]"
    ((_, finding),) = found(f"{seen}\nnet = Seen()\nnet.leaf.register_forward_hook(net.seen);", "del net")
    assert "WeakMethod" not in finding.fix
    assert "remove()" in finding.fix


def test_a_weak_method_keeps_the_callback():
    code = f"{WAYS}one = with_call(lambda a: weakref.WeakMethod(a.end))\nassert one.call.fn()() is one.state"
    assert found(code, "del one") == []
