"""What the inspector must never do to the user's program, each shown on a program that would tell."""

import contextlib
import gc
import io
import json
import os
import subprocess
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch import nn
from traitlets.config import Config

from tests.cells import a_notebook
from torch_inspector.notebook import extension

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120


@contextlib.contextmanager
def a_plain_shell() -> Iterator[Any]:
    """A shell like that of `a_notebook`, without the extension."""
    config = Config()
    config.HistoryManager.enabled = False
    main, hook = sys.modules["__main__"], sys.displayhook
    shell = InteractiveShell(config=config)
    try:
        yield shell
    finally:
        shell.reset(new_session=False)
        sys.modules["__main__"], sys.displayhook = main, hook


def cells(program: str) -> list[str]:
    return textwrap.dedent(program).strip().split("\n# %%\n")


def names_after(program: str, *, watched: bool) -> dict[str, Any]:
    """The variables that a program of several cells leaves behind."""
    if watched:
        with a_notebook() as notebook:
            for cell in cells(program):
                notebook.run(cell)
            assert notebook.errors == [None] * len(notebook.errors)
            return {**notebook.shell.user_ns, "published": notebook.published}
    with a_plain_shell() as shell, contextlib.redirect_stdout(io.StringIO()):
        for cell in cells(program):
            shell.run_cell(cell, store_history=True).raise_error()
        return dict(shell.user_ns)


def in_a_process(program: str, *options: str, timeout: int = 100) -> str:
    """What a Python of its own prints, with `run(code)` for a cell of a watched notebook."""
    start = "import sys\nfrom tests.cells import a_notebook\n"
    body = (
        f"with a_notebook() as notebook:\n    run = notebook.run\n{textwrap.indent(textwrap.dedent(program), '    ')}"
    )
    command = [sys.executable, *options, "-c", start + body]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    assert result.returncode == 0, (result.returncode, result.stdout[-1_000:], result.stderr[-3_000:])
    return result.stdout


# the same numbers --------------------------------------------------------------------------------------

PROGRAM = """
import random
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(3); np.random.seed(4); random.seed(5)
data = TensorDataset(torch.randn(64, 5), torch.randint(0, 3, (64,)))
train, valid = torch.utils.data.random_split(data, [48, 16])
net = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(.3), nn.Linear(32, 3), nn.Softmax(-1))
opt = torch.optim.Adam(net.parameters(), lr=.01)
schedule = torch.optim.lr_scheduler.StepLR(opt, 2)
criterion = nn.CrossEntropyLoss()
losses, scores, kept = [], [], []
# %%
def fit():
    for epoch in range(3):
        for x, y in DataLoader(train, batch_size=8, shuffle=True):
            x = x + float(np.random.rand()) * random.random()
            loss = criterion(net(x), y)
            loss.backward()
            opt.step()
            losses.append(loss.item())
            kept.append(loss)
        schedule.step()
        net.eval()
        with torch.no_grad():
            for x, y in DataLoader(valid, batch_size=8, shuffle=True):
                scores.append(criterion(net(x), y).item())
        net.train()
fit()
# %%
net
# %%
%%torchcheck
fit()
# %%
fs = []
for i in range(3):
    fs.append(lambda: i)
weights = [p.detach().clone() for p in net.parameters()] + [b.clone() for b in net.buffers()]
grads = [p.grad.clone() for p in net.parameters()]
states = [v.clone() for s in opt.state.values() for v in s.values()]
random_states = (torch.get_rng_state(), np.random.get_state(), random.getstate())
"""


def test_results_are_the_same_to_the_last_bit():
    plain = names_after(PROGRAM.replace("%%torchcheck\n", ""), watched=False)
    watched = names_after(PROGRAM, watched=True)
    assert len(watched["published"]) >= 3  # the panels were drawn
    assert plain["losses"] == watched["losses"]
    assert plain["scores"] == watched["scores"]
    for name in ("weights", "grads", "states"):
        assert plain[name]
        assert all(torch.equal(one, other) for one, other in zip(plain[name], watched[name], strict=True)), name
    (torch_plain, numpy_plain, random_plain), (torch_own, numpy_own, random_own) = (
        plain["random_states"],
        watched["random_states"],
    )
    assert torch.equal(torch_plain, torch_own)
    assert str(numpy_plain) == str(numpy_own)
    assert (numpy_plain[1] == numpy_own[1]).all()
    assert random_plain == random_own


# nothing outlives its last reference -------------------------------------------------------------------

LIVES = """
import torch, weakref
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
refs = {}
def note(name, thing):
    refs[name] = weakref.ref(thing)
    return thing
# %%
loader = DataLoader(TensorDataset(torch.randn(8, 3)), batch_size=4)
net = note('module', nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(.1), nn.Linear(4, 1)))
for k, p in net.named_parameters(): note(k, p)
opt = note('optimizer', torch.optim.SGD(net.parameters(), lr=.1, momentum=.9))
target = note('target', torch.randn(4))
losses = []
# %%
for (x,) in loader:
    note('batch', x)
    hidden = note('activation', net[0](x))
    out = note('output', net(x))
    loss = note('loss', ((out - target) ** 2).mean())
    loss.backward()
    losses.append(loss)
    opt.step()
note('grad', net[0].weight.grad)
note('momentum', opt.state[net[0].weight]['momentum_buffer'])
total = 0
for i in range(4):
    total = total + net(x).sum()
# %%
net.eval()
kept = note('evaluated', net(x))
# %%
%%torchcheck
g = torch.autograd.grad(net(x).sum(), list(net.parameters()))
for i, t in enumerate(g): note(f'g{i}', t)
del t
# %%
try:
    bad = note('bad', torch.randn(2, 9))
    net(bad)
except RuntimeError as error:
    pass
del bad
# %%
%torchcheck
"""


def alive_after(notebook, delete):
    """Names of the things that are still there after the cell that deletes them; no cycle is collected."""
    gc.collect()
    gc.disable()
    try:
        notebook.run(delete)
        return sorted(name for name, ref in notebook.shell.user_ns["refs"].items() if ref() is not None)
    finally:
        gc.enable()


def test_nothing_outlives_the_cell_that_deletes_it():
    with a_notebook() as notebook:
        for cell in cells(LIVES):
            notebook.run(cell)
        delete = "del net, opt, target, losses, x, hidden, out, loss, total, kept, g, i, k, p, loader"
        assert alive_after(notebook, delete) == []


FUNCTION = """
def step():
    x = note('x', torch.randn(4, 3))
    loss = note('loss', net(x).sum())
    loss.backward()
    BODY
step()
"""


@pytest.mark.parametrize("body", ["pass", "opt.step()", "net.eval(); net(x)", "torch.autograd.grad(net(x).sum(), x0)"])
def test_nothing_outlives_the_function_that_made_it(body):
    with a_notebook() as notebook:
        notebook.run(cells(LIVES)[0])
        notebook.run("net = nn.Linear(3, 2)\nx0 = net.weight\nopt = torch.optim.SGD(net.parameters(), lr=.1)")
        assert alive_after(notebook, FUNCTION.replace("BODY", body)) == []


def test_nothing_outlives_an_exception_that_is_let_go():
    with a_notebook() as notebook:
        notebook.run(cells(LIVES)[0])
        notebook.run("net = nn.Linear(3, 2)\ndef fail(x):\n    own = note('own', x + 1)\n    return net(own)")
        assert alive_after(notebook, "try:\n    fail(torch.randn(2, 9))\nexcept RuntimeError as e:\n    del e") == []


def test_a_failed_cell_keeps_only_what_ipython_keeps():
    with a_notebook() as notebook:
        notebook.run(cells(LIVES)[0])
        notebook.run("net = nn.Linear(3, 2)\ndef fail(x):\n    own = note('own', x + 1)\n    return net(own)")
        notebook.run("fail(torch.randn(2, 9))")
        for name in ("last_value", "last_exc", "last_type", "last_traceback"):
            if hasattr(sys, name):
                delattr(sys, name)
        notebook.errors.clear()
        notebook.shell.InteractiveTB.tb = notebook.shell.InteractiveTB.etype = None
        notebook.shell.last_execution_result = None
        notebook.run("1")
        gc.collect()
        assert notebook.shell.user_ns["refs"]["own"]() is None


def test_a_generator_lets_go_what_it_deletes():
    with a_notebook() as notebook:
        notebook.run(cells(LIVES)[0])
        notebook.run(
            "net = nn.Linear(3, 2)\ndef batches():\n    b = note('b', torch.randn(4, 3))\n    loss = net(b).sum()\n"
            "    loss.backward()\n    yield 1\n    del b, loss\n    yield 2\ng = batches()\nnext(g)"
        )
        gc.collect()
        assert alive_after(notebook, "next(g)") == []


SWAP = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
opt = torch.optim.SGD(net.parameters(), lr=.1)
x = torch.randn(4, 3)
# %%
for i in range(3):
    opt.zero_grad()
    loss = net(x).sum()
    loss.backward()
    opt.step()
# %%
%torchcheck
# %%
opt.zero_grad()
del loss
a, b = torch.ones(2), torch.zeros(3)
# %%
torch.utils.swap_tensors(a, b)
torch.utils.swap_tensors(net[0].weight, nn.Parameter(torch.ones(4, 3)))
torch.__future__.set_swap_module_params_on_conversion(True)
try:
    before = [id(p) for p in net.parameters()]
    net.to(torch.float64)
    net.load_state_dict(net.state_dict())
finally:
    torch.__future__.set_swap_module_params_on_conversion(False)
same = before == [id(p) for p in net.parameters()]
"""


def test_tensors_can_be_swapped():
    names = names_after(SWAP, watched=True)
    assert names["same"]
    assert names["net"][0].weight.dtype is torch.float64


# torch.compile -----------------------------------------------------------------------------------------

COMPILED = {
    "model": ("c = torch.compile(model, fullgraph=True, backend=backend)", "c(x)"),
    "model, trained": ("c = torch.compile(model, fullgraph=True, backend=backend)", "c(x).sum().backward()"),
    "model, both modes": (
        "c = torch.compile(model, fullgraph=True, backend=backend)",
        "c.train(); c(x); c.eval(); c(x)",
    ),
    "function": ("@torch.compile(fullgraph=True, backend=backend)\ndef f(x): return model(x).relu()", "f(x)"),
    "function with a break": (
        (
            "@torch.compile(backend=backend)\ndef f(x):\n    y = model[0](x)\n"
            "    torch._dynamo.graph_break()\n    return model[2](y)"
        ),
        "f(x)",
    ),
    "mode switched inside": (
        (
            "@torch.compile(backend=backend)\ndef f(x):\n    model.eval()\n    y = model(x)\n"
            "    model.train()\n    return y + model(x)"
        ),
        "f(x)",
    ),
    "zero_grad inside": (
        "@torch.compile(backend=backend)\ndef f(x):\n    model.zero_grad()\n    return model(x)",
        "f(x)",
    ),
    "train step": (
        (
            "@torch.compile(backend=backend)\ndef step(x):\n    opt.zero_grad()\n    loss = model(x).pow(2).mean()\n"
            "    loss.backward()\n    opt.step()\n    return loss"
        ),
        "for i in range(3): step(x)",
    ),
    "optimizer": (
        (
            "s = torch.compile(opt.step, backend=backend)\ndef one():\n    opt.zero_grad()\n"
            "    model(x).sum().backward()\n    s()"
        ),
        "one(); one()",
    ),
    "grad inside": (
        (
            "@torch.compile(backend=backend)\ndef f(x):\n    x = x.clone().requires_grad_()\n"
            "    return torch.autograd.grad(model(x).sum(), x)[0] * 2"
        ),
        "f(x)",
    ),
    "layer by __call__, also inside a model": (
        (
            "@torch.compile(backend=backend)\ndef f(x): return model[0].__call__(x)\n"
            "class Around(nn.Module):\n    def forward(self, x): return f(x)\naround = Around()"
        ),
        "f(x); around(x); f(x)",
    ),
    "func.grad inside": (
        (
            "@torch.compile(backend=backend, fullgraph=True)\ndef f(x):\n"
            "    return torch.func.grad(lambda x: model(x).sum())(x)"
        ),
        "f(x)",
    ),
}
COMPILE = """
import contextlib, io, json, os, sys, warnings
import torch
from IPython.core.interactiveshell import InteractiveShell
from torch_inspector.notebook import extension
watched, programs = json.loads(sys.argv[1])
SETUP = '''
import torch
from torch import nn
frames = []
def backend(graph, inputs):
    frames.append(1)
    return graph.forward
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(.5), nn.Linear(4, 2))
opt = torch.optim.SGD(model.parameters(), lr=.1)
x = torch.randn(8, 3)
'''
told = {}
for name, (make, use) in programs.items():
    shell = InteractiveShell()
    shell.display_pub.publish = lambda *args, **kwargs: None
    seen, failures = [], {}
    def cell(code):
        with contextlib.redirect_stdout(io.StringIO()):
            shell.run_cell(code, store_history=True).raise_error()
        seen.append(len(shell.user_ns["frames"]))
    def load():
        if watched:
            extension.load(shell)
    def unload():
        if watched:
            failures.update(extension._loaded[id(shell)].session.failures.counts)
            extension.unload(shell)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load()
        for code in (SETUP, make, use, use):
            cell(code)
        loaded = list(seen)
        unload()
        cell(use)
        load()
        cell(use)
        unload()
    told[name] = {
        "loaded": loaded[-2:],
        "all": seen[-4:],
        "warnings": sorted({str(w.message)[:60] for w in caught}),
        "failures": failures,
    }
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
told["knows the real call"] = torch._dynamo.utils.unpatched_nn_module_call is torch.nn.Module.__call__
print("TOLD" + json.dumps(told))
sys.stdout.flush()
os._exit(0)
"""


@pytest.fixture(scope="module")
def compiled() -> tuple[dict[str, Any], dict[str, Any]]:
    """What torch.compile did for each program without and with the extension, in processes of their own."""
    given = [json.dumps([watched, COMPILED]) for watched in (False, True)]
    commands = [[sys.executable, "-c", COMPILE, arguments] for arguments in given]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    answers = [process.communicate(timeout=110) for process in running]
    assert all("TOLD" in out for out, _ in answers), [err[-1_500:] for _, err in answers]
    plain, watched = (json.loads(out.split("TOLD")[1]) for out, _ in answers)
    return plain, watched


GUARDS = "wrapper.py: code that was compiled while loaded guards on our wrapper, so it is compiled again after unload"


def marked(failing):
    """All programs, those that fail now with the reason."""
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=failing[name])) if name in failing else name
        for name in COMPILED
    ]


@pytest.mark.timeout(150)
@pytest.mark.parametrize("name", COMPILED)
def test_the_same_frames_are_compiled(name, compiled):
    plain, watched = compiled
    assert plain[name]["loaded"][-1] > 0
    assert watched[name]["loaded"] == plain[name]["loaded"]
    assert watched[name]["failures"] == {}


@pytest.mark.parametrize("name", COMPILED)
def test_compiling_warns_of_nothing_new(name, compiled):
    plain, watched = compiled
    assert watched[name]["warnings"] == plain[name]["warnings"]


AGAIN = dict.fromkeys(["mode switched inside", "zero_grad inside", "grad inside"], GUARDS)


@pytest.mark.parametrize("name", marked(AGAIN))
def test_nothing_is_compiled_again_after_unload_and_load(name, compiled):
    plain, watched = compiled
    if name.startswith("layer by __call__") and watched[name]["all"] != plain[name]["all"]:
        release = tuple(int(part) for part in torch.__version__.split(".")[:2])
        if (2, 4) < release < (2, 13):  # 2.7 guards on the closure of what is called; no attribute tells
            pytest.xfail(GUARDS)
    assert watched[name]["all"] == plain[name]["all"]


def test_dynamo_first_imported_in_a_watched_cell_knows_the_real_call(compiled):
    plain, watched = compiled
    assert plain["knows the real call"]
    assert watched["knows the real call"]


TRACED = """
import torch
from torch import nn
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).eval()
x = torch.randn(2, 3)
# %%
texts = [torch.fx.symbolic_trace(net).code, [n.kind() for n in torch.jit.trace(net, x).inlined_graph.nodes()]]
"""


@pytest.mark.filterwarnings("ignore")
def test_traces_are_the_same():
    plain, watched = names_after(TRACED, watched=False), names_after(TRACED, watched=True)
    assert plain["texts"] == watched["texts"]
    assert len(plain["texts"][1]) > 3


def test_an_exported_program_is_the_same():
    code = TRACED + "# %%\ntexts = [str(torch.export.export(net, (x,)).graph)]"
    assert names_after(code, watched=False)["texts"] == names_after(code, watched=True)["texts"]


# what is wrapped is put back ---------------------------------------------------------------------------


def wrapped() -> dict[str, object]:
    """Everything that could be wrapped, by name."""
    from torch.optim import lr_scheduler, optimizer
    from torch.utils.data import DataLoader, dataloader

    owners: dict[str, Any] = {
        "autograd": torch.autograd,
        "Tensor": torch.Tensor,
        "Module": nn.Module,
        "Optimizer": torch.optim.Optimizer,
        "GradScaler": torch.amp.GradScaler,
        "DataLoader": DataLoader,
        "iter": dataloader._BaseDataLoaderIter,
        "optim": optimizer,
        **{name: kind for name, kind in vars(lr_scheduler).items() if isinstance(kind, type)},
        **{name: kind for name, kind in vars(torch.optim).items() if isinstance(kind, type)},
    }
    return {f"{owner}.{name}": value for owner, kind in owners.items() for name, value in vars(kind).items()}


def test_every_attribute_is_the_very_object_it_was():
    torch.optim.Adam([torch.zeros(1)])  # torch itself wraps `step` of a class when its first optimizer is made
    before = wrapped()
    with a_notebook() as notebook:
        for cell in cells(PROGRAM)[:2]:
            notebook.run(cell)
    after = wrapped()
    assert after.keys() == before.keys()
    assert [name for name in before if after[name] is not before[name]] == []


def test_even_when_unloaded_in_the_middle_of_a_cell():
    before = wrapped()
    with a_notebook() as notebook:
        notebook.run("import torch")
        notebook.shell.run_cell("from torch_inspector.notebook import extension\nextension.unload(get_ipython())")
        after = wrapped()
        extension.load(notebook.shell)
    assert [name for name in before if after[name] is not before[name]] == []


def test_a_traceback_is_that_of_torch_alone():
    code = (
        "import torch\nfrom torch import nn\nnet = nn.Sequential(nn.Linear(3, 2))\n"
        "opt = torch.optim.SGD(net.parameters(), lr=.1)\n"
        "# %%\nimport traceback\ntexts = []\nclass Loader(torch.utils.data.Dataset):\n    def __len__(self): return 1\n"
        "    def __getitem__(self, i): raise KeyError(i)\n"
        "for act in (lambda: net(torch.ones(1, 9)), lambda: torch.ones(1).backward(),\n"
        "            lambda: net.load_state_dict({}),\n"
        "            lambda: opt.step(lambda: 1 / 0), lambda: list(torch.utils.data.DataLoader(Loader())),\n"
        "            lambda: net.train(3),\n"
        "            lambda: torch.autograd.grad(torch.ones(1), net[0].bias), lambda: opt.zero_grad(1, 2)):\n"
        "    try:\n        act()\n    except Exception:\n        texts.append(traceback.format_exc())"
    )
    plain, watched = names_after(code, watched=False), names_after(code, watched=True)
    # Nested calls skip a frame of torch that does nothing, to leave the user the depth that our own one costs.
    skipped = "in _wrapped_call_impl"
    frames, expected = (
        [
            [line for line in text.splitlines() if line.startswith("  File") and not line.endswith(skipped)]
            for text in names["texts"]
        ]
        for names in (watched, plain)
    )
    assert frames == expected
    assert len(frames) == 8


# graphs that are long, or in use -----------------------------------------------------------------------


def test_very_long_graphs_are_freed_safely():
    program = """
        run("import torch; w = torch.ones((), requires_grad=True); total = torch.zeros(())")
        run("for i in range(200_000): total = total + w")
        for i in range(4): run("x = 1")
        run("%torchcheck")
        run("del total")
        run("loss = w * 2; total = torch.zeros(())")
        for i in range(110): run("for i in range(60): total = total + loss")
        run("del total, loss")
        print("alive")
    """
    assert "alive" in in_a_process(program)


def test_a_graph_that_grows_by_thousands_of_nodes_a_cell_is_freed_safely():
    program = """
        run("import torch; w = torch.ones((), requires_grad=True); total = torch.zeros(())")
        for i in range(40): run("for i in range(3_000): total = total + w")
        run("del total")
        print("alive")
    """
    assert "alive" in in_a_process(program)


BACKGROUND = """
import torch, threading
from torch import nn
net = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(60)])
x, stop, count = torch.randn(32, 16), False, 0
def train():
    global loss, outs, count
    while not stop:
        outs = [net(x) for _ in range(2)]
        loss = sum(out.pow(2).mean() for out in outs)
        loss.backward()
        count += 1
thread = threading.Thread(target=train)
thread.start()
"""


def test_a_look_while_another_thread_is_in_backward():
    program = f"""
        import time
        run({BACKGROUND!r})
        least, most, cells, names = time.time() + 4, time.time() + 60, 0, notebook.shell.user_ns
        while time.time() < least or (min(cells, names["count"]) <= 5 and time.time() < most):
            run("y = 1" if cells % 2 else "z = nn.Linear(3, 2)(torch.ones(4, 3)).sum(); z.backward()")
            cells += 1
        run("stop = True; thread.join()")
        assert cells > 5 and names["count"] > 5
        print("alive")
    """
    assert "alive" in in_a_process(program)


# quiet in every other way ------------------------------------------------------------------------------


def test_nothing_warns_and_no_device_is_started():
    program = f"""
        for cell in {cells(PROGRAM)!r}: run(cell)
        run("for i in range(2): kept.append(net(torch.ones(4, 5)).sum())")
        run("%torchcheck")
        run("%torchcheck list")
        assert notebook.errors == [None] * len(notebook.errors), notebook.errors
        assert len(notebook.published) >= 5
        import torch
        print(torch.cuda.is_initialized(), "pynvml" in sys.modules)
    """
    assert in_a_process(program, "-W", "error").split() == ["False", "False"]


def test_warnings_that_come_once_still_come():
    code = (
        "import torch\nfrom torch import nn\nw = torch.ones(2, requires_grad=True)\nmiddle = w * 2\n"
        "loss = middle.sum()\n"
        "loss.backward()\n# %%\nimport warnings\nwith warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n    middle.grad\nmessages = [str(w.message)[:30] for w in caught]"
    )
    (message,) = names_after(code, watched=True)["messages"]
    assert message.startswith("The .grad attribute of a Tenso")


WARNED = """
import torch, warnings
from torch import nn
opt = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, 1)
class Net(nn.Module):
    def forward(self, x):
        warnings.warn("own", stacklevel=4)
        return x
class Inner(nn.Module):
    def forward(self, level):
        warnings.warn("own", stacklevel=level)
class Outer(nn.Module):
    def __init__(self, level):
        super().__init__()
        self.level = level
        self.inner = Inner()
    def forward(self, x):
        self.inner(self.level)
# %%
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    opt.step()
    ACT
places = [(w.filename.rsplit("/", 1)[-1].split("-")[0], w.lineno) for w in caught]
"""


@pytest.mark.parametrize(
    "act", ["schedule.step(3)", "Net()(torch.ones(1))", "Outer(3)(2)", "Outer(4)(2)", "Outer(5)(2)", "Outer(7)(2)"]
)
def test_warnings_point_at_the_users_line(act):
    code = WARNED.replace("ACT", act)
    assert names_after(code, watched=True)["places"] == names_after(code, watched=False)["places"]


def test_the_last_exception_is_the_users():
    with a_notebook() as notebook:
        notebook.run("import torch\nnet = torch.nn.Linear(2, 2)")
        notebook.run("x = torch.ones(3)\nnet(x)")
        assert sys.last_value is notebook.errors[-1]
        names = [frame.name for frame in traceback.extract_tb(sys.last_traceback)]
        assert "call" not in names
        assert not any("torch_inspector" in frame.filename for frame in traceback.extract_tb(sys.last_traceback))


DEEP = """
import sys, torch
from torch import nn
class Deep(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, x):
        return x if self.inner is None else self.inner(x)
def deep(count):
    net = None
    for _ in range(count): net = Deep(net)
    return net
def works(count, act):
    try:
        act(deep(count))
        return True
    except RecursionError:
        return False
def deepest(act):
    low, high = 10, 1_200
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle, act) else (low, middle)
    return low
# %%
called, switched = deepest(lambda net: net(torch.ones(1))), deepest(lambda net: net.train())
"""


@pytest.fixture(scope="module")
def depths() -> tuple[dict[str, Any], dict[str, Any]]:
    """How deep a tree of modules may be without and with the extension."""
    return names_after(DEEP, watched=False), names_after(DEEP, watched=True)


@pytest.mark.parametrize(
    "name",
    ["called", pytest.param("switched", marks=pytest.mark.xfail(reason="each nested train() costs one frame more"))],
)
def test_a_tree_as_deep_as_the_stack_allows_still_runs(name, depths):
    # A few frames more for the outermost call are fine; they are not for every level.
    plain, watched = depths
    assert watched[name] >= plain[name] - 10


def test_a_deep_tree_of_a_usual_kind_runs(depths):
    _, watched = depths
    assert watched["called"] > 120
    assert watched["switched"] > 300


THREADS = """
import torch, threading
from torch import nn
def train(seed):
    net = nn.Linear(3, 2)
    opt = torch.optim.SGD(net.parameters(), lr=.1)
    for i in range(60):
        opt.zero_grad()
        net(torch.ones(4, 3)).sum().backward()
        opt.step()
    done.append(seed)
done = []
# %%
threads = [threading.Thread(target=train, args=(i,)) for i in range(4)]
for t in threads: t.start()
train(9)
for t in threads: t.join()
"""


def test_threads_may_train_at_the_same_time():
    first, again = cells(THREADS)
    program = f"""
        run({first!r})
        for i in range(25): run({again!r})
        assert len(notebook.shell.user_ns["done"]) == 125
        print("alive")
    """
    assert "alive" in in_a_process(program)


def test_no_filter_of_warnings_is_left_behind():
    before = list(warnings.filters)
    names_after(PROGRAM, watched=True)
    assert list(warnings.filters) == before
