"""Calls of modules, as cells make them."""

import pytest

from tests.cells import a_notebook

SETUP = """
import copy
import torch
from torch import nn
other = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8, 2))
model = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(.5), nn.Linear(8, 2))
opt = torch.optim.SGD(model.parameters(), lr=.1)
x = torch.randn(8, 3)
"""


def run_of(*cells):
    """The run of the last cell."""
    with a_notebook() as notebook:
        notebook.run(SETUP)
        for cell in cells:
            run = notebook.run(cell)
    assert notebook.errors == [None] * (len(cells) + 1)
    return run


def forwards(*cells):
    return run_of(*cells).trace.forwards


def test_only_the_outermost_call_counts():
    (call,) = forwards("for i in range(5):\n    model(x)")
    assert (call.kind, call.count, call.place.line, call.caller) == ("Sequential", 5, 2, "__main__")


def test_what_is_known_of_a_call():
    (call,) = forwards("out = model(x)")
    assert (call.training, call.grad_enabled, call.awake) == (True, True, (("BatchNorm1d", 1), ("Dropout", 1)))
    assert (call.input_shapes, call.input_devices, call.output_shape) == (((8, 3),), ("cpu",), (8, 2))
    assert (call.input_requires_grad, call.output_requires_grad) == (False, True)
    assert len(call.parameter_keys) == 6


def test_modes_are_kept_apart():
    code = (
        "for i in range(4):\n    model.train(i % 2 == 0)\n    with torch.set_grad_enabled(i % 2 == 0):\n"
        "        model(x)"
    )
    assert [(call.training, call.grad_enabled, call.count) for call in forwards(code)] == [
        (True, True, 2),
        (False, False, 2),
    ]


def test_lines_are_kept_apart():
    assert [(call.place.line, call.count) for call in forwards("model(x)\nmodel(x)")] == [(1, 1), (2, 1)]


def test_two_calls_in_one_line():
    assert sum(call.count for call in forwards("a, b = model(x), model(x)")) == 2


def test_layers_asleep():
    (call,) = forwards("model.eval()\nmodel(x)")
    assert (call.training, call.awake, call.asleep) == (False, (), (("BatchNorm1d", 1), ("Dropout", 1)))


def test_the_same_input_again():
    (call,) = forwards("model.train()\nwith torch.no_grad(): ys = [model(x) for _ in range(5)]")
    assert call.same_input


def test_evaluation_once_per_epoch_is_no_sampling():
    epochs = (
        "for epoch in range(3):\n    for batch in x.split(4):\n        opt.zero_grad()\n"
        "        model(batch).sum().backward()\n"
        "        opt.step()\n    with torch.no_grad(): score = model(x).mean()"
    )
    assert [f.slug for f in run_of(epochs).findings] == ["eval-missing"]


def test_reached_by_backward():
    (call,) = forwards("model.eval()\nout = model(x)\nout.sum().backward()")
    assert call.reached is True


def test_not_reached_by_backward():
    evaluated, trained = forwards(
        "model.eval()\nkept = model(x)\nmodel.train()\nfor i in range(4):\n    model(x).sum().backward()"
    )
    assert (evaluated.training, evaluated.reached) == (False, False)
    assert trained.training


def test_nobody_knows_yet():
    (call,) = forwards("model.eval()\nkept = model(x)")
    assert call.reached is None
    assert call.graph_nbytes > 0


def test_bytes_of_the_input_are_not_the_graphs():
    code = "net = nn.Linear(1000, 1).eval()\nbig = torch.randn(500, 1000)\nout = net(big)"
    (call,) = forwards(code)
    assert call.graph_nbytes < 10_000


@pytest.mark.parametrize(
    ("cells", "trained"),
    [
        (["model(x)"], False),
        (["model(x).sum().backward(); opt.step()", "model(x)"], True),
        (["model.load_state_dict(copy.deepcopy(model.state_dict()))", "model(x)"], True),
        (["other.load_state_dict(model.state_dict())", "other(x)"], False),
        (["model(x).sum().backward(); opt.step(); other.load_state_dict(model.state_dict())", "other(x)"], True),
        (["nn.Linear(3, 2).load_state_dict(nn.Linear(3, 2).state_dict())", "model(x)"], False),
    ],
)
def test_trained_or_loaded_before(cells, trained):
    (call,) = forwards(*cells)
    assert call.trained is trained


def test_modes_set_by_the_user():
    modes = run_of("model.eval()\nmodel.train()\nmodel.train(False)\nmodel.train(mode=True)").trace.modes
    assert [(mode.place.line, mode.training) for mode in modes] == [(1, False), (2, True), (3, False), (4, True)]


def test_a_mode_passed_on_in_a_class_of_the_users():
    code = (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.inner = nn.Dropout()\n"
        "    def train(self, mode=True):\n        return super().train(mode)\nnet = Net()\nnet.eval()"
    )
    run = run_of(code)
    assert [mode.training for mode in run.trace.modes] == [False]


def test_an_exception_leaves_everything_in_step():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        failed = notebook.run("try:\n    model(torch.randn(8, 4))\nexcept RuntimeError:\n    pass\nmodel(x)")
    assert [(call.place.line, call.count) for call in failed.trace.forwards] == [(2, 1), (5, 1)]


def test_calls_of_other_threads_are_not_the_cells():
    code = "import threading\nt = threading.Thread(target=lambda: model(x))\nt.start(); t.join()\nmodel(x)"
    assert [(call.place.line, call.count) for call in forwards(code)] == [(4, 1)]


def test_a_module_without_parameters():
    (call,) = forwards("nn.ReLU()(x)")
    assert (call.parameter_keys, call.awake, call.trained) == (frozenset(), (), False)


@pytest.mark.parametrize(
    ("result", "shape"),
    [
        ("(x, x)", (8, 3)),
        ("{'logits': x}", (8, 3)),
        ("[None, x]", (8, 3)),
        ("3", None),
        ("None", None),
        ("type('Own', (dict,), {})(logits=x)", (8, 3)),
    ],
)
def test_results_of_all_kinds(result, shape):
    code = f"class Net(nn.Module):\n    def forward(self, x):\n        return {result}\nNet()(x)"
    (call,) = forwards(code)
    assert call.output_shape == shape


def test_a_kernel_of_modules_made_anew_each_time():
    calls = forwards("for i in range(4):\n    nn.Linear(3, 2)(x)")
    assert sum(call.count for call in calls) == 4


def test_a_module_at_the_address_of_another_is_another():
    calls = forwards(
        "ids = set()\nfor i in range(6):\n    net = nn.Linear(3, 2)\n    net(x)\n    ids.add(id(net))\n    del net"
    )
    assert len({call.module for call in calls}) == 6


def test_calls_of_each_kind_are_counted():
    run = run_of("for i in range(3):\n    model(x)\nnn.ReLU()(x)")
    assert {(fact.name, fact.count) for fact in run.trace.counts if fact.kind == "forward"} == {
        ("Sequential", 3),
        ("ReLU", 1),
    }


def test_modules_nest_as_deep_as_without_us():
    code = (
        "import sys\nclass Tree(nn.Module):\n    def forward(self, x, depth):\n"
        "        return self(x, depth - 1) if depth else sys._getframe(3).f_code.co_name\nname = Tree()(x, 5)"
    )
    with a_notebook() as notebook:
        notebook.run(SETUP)
        notebook.run(code)
        assert notebook.shell.user_ns["name"] == "forward"  # torch alone has one frame more in between


def test_backward_after_the_call_or_not():
    first, last = forwards("model(x).sum().backward()\nmodel(x)")
    assert (first.followed, last.followed) == (True, False)


def test_loops_of_the_callers():
    (call,) = forwards("def ask(net):\n    return net(x)\nfor i in range(2):\n    ask(model)")
    assert [(one.place.line, one.loops) for one in call.callers] == [(2, ()), (4, ((3, 4),))]
    assert call.name == "net"


@pytest.mark.parametrize(
    "result",
    ["collections.namedtuple('Out', 'mask logits')(torch.ones(1), x * w)", "types.SimpleNamespace(a=1, b=x * w)"],
)
def test_the_result_with_history_is_found(result):
    code = (
        "import collections, types\nw = torch.ones(3, requires_grad=True)\nclass Net(nn.Module):\n"
        f"    def forward(self, x):\n        return {result}\nNet()(x)"
    )
    (call,) = forwards(code)
    assert (call.output_shape, call.output_requires_grad) == ((8, 3), True)


def test_traced_calls_wait_for_nothing():
    (call,) = forwards(
        "import torch.utils.flop_counter as f\nmodel.eval()\nwith f.FlopCounterMode(display=False): model(x)"
    )
    assert call.graph_nbytes == 0


def test_heads_that_go_back_before_their_backbone():
    code = (
        "model.eval()\nfor i in range(3):\n    out = model(x)\n    cut = out.detach().requires_grad_()\n"
        "    for k in range(6): (cut * k).sum().backward()\n    out.backward(cut.grad)"
    )
    (call,) = forwards(code)
    assert call.reached is True


ANEW = """\
net = nn.Linear(3, 1)
for step in range(40):
    loss = nn.MSELoss()(net(torch.ones(2, 3)), torch.ones(2, 1))"""


def test_losses_made_anew_in_each_turn_are_counted_and_not_all_described():
    with a_notebook() as notebook:
        notebook.run("import torch\nfrom torch import nn")
        run = notebook.run(ANEW)
    losses = [call for call in run.trace.forwards if call.kind == "MSELoss"]
    assert len(losses) == 8
    assert sum(call.count for call in losses) == 40
