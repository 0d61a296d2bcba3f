"""Models that are made anew while something holds the one before."""

import gc

import pytest

from tests.cells import a_notebook, findings_in

SLUG = "old-model-still-alive"
START = "import copy\nimport functools\nimport torch\nfrom torch import nn\nkept, hooks = [], {}"
BUILD = "net = nn.Linear(1000, 1000)"
WATCHING = """\
class Watching(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(1000, 1000)
        def note(module, args, output):
            self.last = 1
        self.body.register_forward_hook(note)"""


def found(*cells):
    return findings_in(*cells, slug=SLUG)


@pytest.mark.parametrize(
    ("code", "holder"),
    [
        ("predict = functools.partial(print, net)", "predict"),
        ("say = net.extra_repr", "say"),
        ("def make(m):\n    return lambda x: m(x)\npredict = make(net)\ndel make", "predict"),
        ("def predict(x, m=net):\n    return m(x)", "predict"),
        ("def rows(m):\n    yield m\n    yield m\nturns = rows(net)\n_x = next(turns) and 0", "turns"),
    ],
)
def test_what_holds_the_one_before_is_named(code, holder):
    (finding,) = found(START, BUILD, code, BUILD)
    assert (finding.subject, finding.line, finding.severity) == ("net", 1, "hint")
    assert f"`{holder}` leads to it" in finding.message
    assert "3.82 MB" in finding.message


def test_a_class_that_the_cell_makes_anew_too():
    cell = WATCHING.replace("self.last = 1", "return None") + "\nnet = Watching()"
    (finding,) = found(START, cell, "say = net.extra_repr", cell)
    assert (finding.subject, finding.line) == ("net", 8)
    assert "`say` leads to it" in finding.message


def test_a_circle_is_held_by_no_variable():
    gc.collect()
    gc.disable()
    try:
        (finding,) = found(START, WATCHING, "net = Watching()", "net = Watching()")
    finally:
        gc.enable()
    assert "no variable leads to it" in finding.message
    assert finding.fix.startswith("import gc; gc.collect()  # frees objects that refer to each other in a circle")


@pytest.mark.parametrize(
    "cells",
    [
        [BUILD, BUILD],
        [BUILD, "kept.append(net)", BUILD],
        [BUILD, "hooks['a'] = {'net': net}", BUILD],
        [BUILD, "class Trainer: pass\ntrainer = Trainer()\ntrainer.model = net", BUILD],
        [BUILD, "old = net", BUILD],
        [BUILD, "ema = copy.deepcopy(net)", BUILD, "ema = copy.deepcopy(net)"],
        [BUILD, "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)", BUILD],
        [BUILD, "predict = functools.partial(print, net)", "net = nn.Linear(1000, 900)"],
        [BUILD, "predict = functools.partial(print, net)", "net = nn.Sequential(nn.Linear(1000, 1000))"],
        ["net = nn.Linear(10, 10)", "predict = functools.partial(print, net)", "net = nn.Linear(10, 10)"],
        [BUILD, "net", BUILD],
        ["net = nn.Sequential(nn.Linear(1000, 1000))", "net = nn.Sequential(net, nn.ReLU())"] * 2,
        [BUILD, "head = nn.Sequential(net)", BUILD],
        [BUILD, "predict = functools.partial(print, net)", BUILD + "\npredict = functools.partial(print, net)"],
        ["net = nn.Linear(1000, 1000)\npredict = functools.partial(print, net)"] * 3,
    ],
)
def test_what_is_held_on_purpose_or_gone(cells):
    assert found(START, *cells) == []


def test_it_is_said_once():
    assert len(found(START, BUILD, "predict = functools.partial(print, net)", BUILD, "1 + 1")) == 1


def test_circles_made_in_one_loop_are_counted():
    gc.collect()
    gc.disable()
    try:
        (finding,) = found(START, WATCHING, "for width in range(4):\n    net = Watching()\n    net.width = width")
    finally:
        gc.enable()
    assert "3 earlier Watching objects are still alive: 11.5 MB" in finding.message
    assert finding.line == 2


@pytest.mark.parametrize(
    "code",
    [
        "for width in (1, 2, 3):\n    net = nn.Linear(1000, 1000)",
        "for width in (1, 2, 3):\n    net = nn.Linear(1000, 1000)\n    kept.append(functools.partial(print, net))",
        "for width in (1, 2, 3):\n    net = nn.Sequential(nn.Linear(1000, 1000))\n    hooks[width] = net",
        "for width in (1, 2, 3):\n    net = nn.Sequential(nn.Sequential(nn.Linear(1000, 1000)), nn.ReLU())",
        "def fit():\n    for _ in (1, 2):\n        net = nn.Linear(1000, 1000)\n    return net\nnet = fit()",
    ],
)
def test_loops_that_leave_nothing_unknown(code):
    assert found(START, code, code) == []


@pytest.mark.parametrize(("second", "count"), [("a", 1), ("b", 0)])
def test_a_cell_that_runs_again_with_another_text(second, count):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(START)
        notebook.shell.run_cell(BUILD + "\nscore = net.forward", store_history=True, cell_id="a")
        notebook.shell.run_cell("net = nn.Linear(1000, 900)", store_history=True, cell_id=second)
        run = notebook.extension.session.runs[-1]
        assert len([one for one in run.findings if one.slug == SLUG]) == count


REGISTERED = """\
import atexit
class Det(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(1000, 1000)
def build():
    made = Det()
    atexit.register(lambda: made.eval())
    return made
"""


def test_what_python_holds_is_no_circle():
    (finding,) = found(START, REGISTERED, "net = build()", "net = build()")
    assert "no variable leads to it" in finding.message
    assert "gc.collect()" not in finding.fix


def test_a_circle_that_python_holds_as_well():
    hook = "made.body.register_forward_hook(lambda *args: made.train())"
    both = REGISTERED.replace("    return", f"    {hook}\n    return")
    (finding,) = found(START, both, "net = build()", "net = build()")
    assert "gc.collect()" not in finding.fix


NET = """\
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.body, self.head = nn.Linear(1000, 1000), nn.Linear(1000, n)
    def tell(self):
        return 0"""
OWNER = """\
callbacks = []
class Owner:
    callbacks = []
    def __init__(self, n):
        self.model = Net(n)
        {}
    def tell(self):
        return 0"""


@pytest.mark.parametrize("holder", ["Owner.callbacks", "callbacks"])
def test_objects_that_put_a_method_into_a_list(holder):
    owner = OWNER.format(f"{holder}.append(self.tell)")
    (finding,) = found(START, NET, owner, "own = Owner(4)", "own = Owner(5)")
    assert (finding.subject, finding.line, finding.severity) == ("own.model", 1, "hint")
    assert f"`{holder}` leads to it" in finding.message
    assert finding.fix.startswith(f"{holder}.clear()")


def test_a_register_of_all_objects_is_told_where_the_cell_runs_again():
    owner = OWNER.format("Owner.callbacks.append(self)")
    assert not found(START, NET, owner, "own = Owner(4)", "own = Owner(5)")
    (finding,) = found(START, NET, owner, "own = Owner(4)", "own = Owner(4)")
    assert "`Owner.callbacks` leads to it" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        ("own = Owner(4)\ncallbacks.append(own.tell)", "own = Owner(5)\ncallbacks.append(own.tell)"),
        ("own = Owner(4)", "own = Owner(5)\nfor one in callbacks:\n    one()"),
        ("own = Owner(4)", "other = Owner(5)"),
        ("own = Owner(4)", "callbacks.clear()\nown = Owner(5)"),
        ("owns = [Owner(n) for n in range(3)]", "own = owns[0]", "own = owns[1]"),
        ("for n in range(3):\n    own = Owner(n)",),
        ("own = Owner(4)\nfirst = own", "own = Owner(5)"),
    ],
)
def test_objects_that_are_wanted_on(cells):
    assert not found(START, NET, OWNER.format("callbacks.append(self.tell)"), *cells)
    assert not found(START, NET, OWNER.format("pass"), *cells)


@pytest.mark.parametrize(
    "reads",
    [
        "    @classmethod\n    def vote(cls):\n        return [one() for one in cls.callbacks]",
        "    def others(self):\n        return len(self.callbacks)",
        "def fire():\n    return [one() for one in Owner.callbacks]",
    ],
)
def test_a_register_that_the_program_reads(reads):
    owner = OWNER.format("Owner.callbacks.append(self.tell)")
    assert not found(START, NET, f"{owner}\n{reads}", "own = Owner(4)", "own = Owner(5)")
    assert not found(START, NET, f"{owner}\n{reads}", "own = Owner(4)", "own = Owner(4)")


FINDER = """\
class Finder:
    def __init__(self, model):
        self.model, self.history = model, []
    def plot(self):
        return self.history
class LRFinder(Finder):
    pass"""
STEP = """\
net = nn.Linear(1000, 1000)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(4, 1000)).mean().backward()
opt.step()"""


@pytest.mark.parametrize("made", ["lr_finder = Finder", "finder = LRFinder", "range_test = Finder"])
def test_a_finder_of_rates_is_done_when_the_next_model_trains(made):
    name = made.partition(" ")[0]
    (finding,) = found(START, FINDER, f"{BUILD}\n{made}(net)", STEP)
    assert finding.fix == f"del {name}  # when its result has been read"


@pytest.mark.parametrize(
    "cells",
    [
        (f"{BUILD}\nlr_finder = Finder(net)", BUILD),
        (f"{BUILD}\nlr_finder = Finder(net)", f"{STEP}\nlr_finder = Finder(net)"),
        (f"{BUILD}\nlr_finder = Finder(net)", f"{STEP}\nsecond = Finder(net)"),
        (f"{BUILD}\npathfinder = Finder(net)", STEP),
        (f"{BUILD}\nfinder = Finder(net)", STEP),
    ],
)
def test_finders_that_are_compared_or_made_anew(cells):
    assert not found(START, FINDER, *cells)
