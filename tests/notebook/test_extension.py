"""Loading and unloading: everything works in between, and everything is the very object it was afterwards."""

import contextlib
import importlib
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch.optim import optimizer as optim
from torch.utils.data import DataLoader, dataloader

import torch_inspector
from tests.notebook.samples import LOOP, SETUP, SLUG, a_bare_notebook, found, line_of, typed
from torch_inspector import recent
from torch_inspector.notebook import extension

# The older door is the one through which a text can be completed without a front end.
pytestmark = pytest.mark.filterwarnings("ignore:`Completer.complete`:PendingDeprecationWarning")

LOAD, UNLOAD, RELOAD = (f"%{word}_ext torch_inspector" for word in ("load", "unload", "reload"))
# Torch itself wraps `step` of an optimizer class when the first one is made.
torch.optim.SGD([torch.zeros(1, requires_grad=True)])
OWNERS: list[Any] = [
    torch,
    torch.autograd,
    torch.Tensor,
    torch.nn.Module,
    torch.nn.functional,
    torch.optim.Optimizer,
    torch.optim.SGD,
    torch.amp.GradScaler,
    torch.cuda.amp.GradScaler,
    *(kind for kind in vars(torch.optim.lr_scheduler).values() if isinstance(kind, type)),
    DataLoader,
    dataloader._BaseDataLoaderIter,
    dataloader._SingleProcessDataLoaderIter,
    dataloader._MultiProcessingDataLoaderIter,
]
WRAPPED: list[tuple[Any, str]] = [
    (torch.autograd, "backward"),
    (torch.autograd, "grad"),
    (torch.nn.Module, "__call__"),
    (torch.nn.Module, "train"),
    (torch.nn.Module, "zero_grad"),
    (torch.nn.Module, "load_state_dict"),
    (torch.optim.Optimizer, "zero_grad"),
    (torch.amp.GradScaler, "step"),
    (torch.amp.GradScaler, "unscale_"),
    (torch.amp.GradScaler, "update"),
    (torch.optim.lr_scheduler.LRScheduler, "step"),
    (torch.optim.lr_scheduler.SequentialLR, "step"),
    (torch.optim.lr_scheduler.ReduceLROnPlateau, "step"),
    (DataLoader, "__iter__"),
    (dataloader._BaseDataLoaderIter, "__next__"),
]


def state(shell):
    """All that loading may touch, by identity."""
    held = {(owner.__name__, name): id(value) for owner in OWNERS for name, value in vars(owner).items()}
    lists = {
        "configurables": [one for one in shell.configurables if "torch_inspector" in type(one).__module__],
        "cleanup": [id(one) for one in shell.input_transformers_cleanup],
        "post": [id(one) for one in shell.input_transformers_post],
        "meta_path": [id(one) for one in sys.meta_path],
        "pre hooks": list(optim._global_optimizer_pre_hooks),
        "post hooks": list(optim._global_optimizer_post_hooks),
        "modules": [id(torch.nn.modules.module._global_forward_hooks), *torch.nn.modules.module._global_forward_hooks],
        "completer": list(shell.strdispatchers["complete_command"].strs),
        "line magics": sorted(shell.magics_manager.magics["line"]),
        "cell magics": sorted(shell.magics_manager.magics["cell"]),
        **{name: list(map(repr, callbacks)) for name, callbacks in shell.events.callbacks.items()},
    }
    return {**held, **lists}


@pytest.fixture
def notebook():
    with a_bare_notebook() as notebook:
        typed(notebook, SETUP)
        # The completer's dispatcher comes with its first use.
        notebook.shell.strdispatchers.setdefault("complete_command", type("Strs", (), {"strs": {}})())
        yield notebook


def judged(notebook):
    """What `last_run()` says of a cell with the mistake."""
    before = torch_inspector.last_run()
    _, out = typed(notebook, LOOP)
    assert out == ""
    run = torch_inspector.last_run()
    return found(run) if run is not before else None


def mistake(notebook):
    """What it should say of the cell before."""
    return [(SLUG, notebook.shell.execution_count - 1, line_of(LOOP))]


def test_everything_named_in_the_docs_is_wrapped_while_a_cell_runs(notebook):
    notebook.shell.user_ns["look"] = lambda: [vars(owner)[name] for owner, name in WRAPPED]
    originals = notebook.shell.user_ns["look"]()
    typed(notebook, LOAD)
    typed(notebook, "during = look()")
    for ours, original, (owner, name) in zip(notebook.shell.user_ns["during"], originals, WRAPPED, strict=True):
        assert ours is not original, f"{owner.__name__}.{name} is not watched"
        assert ours.__wrapped__ is original
        assert (ours.__name__, ours.__doc__) == (original.__name__, original.__doc__)
    typed(notebook, UNLOAD)
    assert notebook.shell.user_ns["look"]() == originals


def test_unload_puts_back_everything(notebook):
    before = state(notebook.shell)
    typed(notebook, LOAD)
    assert state(notebook.shell) != before
    assert judged(notebook) == mistake(notebook)
    typed(notebook, "%%torchcheck\n1")
    typed(notebook, "%torchcheck list")
    typed(notebook, UNLOAD)
    assert state(notebook.shell) == before


@pytest.mark.parametrize(
    "source", [UNLOAD, f"{LOOP}{UNLOAD}\n{LOOP}", f"%%time\n{UNLOAD}\n1", f"%%capture\n{UNLOAD}\n1"]
)
def test_unload_inside_a_cell_puts_back_everything_at_once(notebook, source):
    notebook.shell.user_ns["state"] = lambda: state(notebook.shell)
    before = state(notebook.shell)
    typed(notebook, LOAD)
    notebook.shell.run_cell(source + "\nafterwards = state()")
    assert state(notebook.shell) == before
    during = notebook.shell.user_ns["afterwards"]
    # A callback that is being called stays in no list; only ours may be gone.
    assert {name for name in before if during[name] != before[name]} == set()
    assert judged(notebook) is None


def test_unload_in_a_cell_that_fails(notebook):
    before = state(notebook.shell)
    typed(notebook, LOAD)
    result, _ = typed(notebook, f"{LOOP}{UNLOAD}\n1 / 0")
    assert type(result.error_in_exec) is ZeroDivisionError
    assert state(notebook.shell) == before


def test_load_in_the_cell_that_trains(notebook):
    typed(notebook, f"{LOAD}\n{LOOP}")
    assert judged(notebook) == mistake(notebook)


def test_load_in_a_nested_cell(notebook):
    typed(notebook, f"_ = get_ipython().run_cell('{LOAD}')\n_ = get_ipython().run_cell('1')")
    assert judged(notebook) == mistake(notebook)


def test_load_twice_is_once(notebook):
    typed(notebook, LOAD)
    typed(notebook, "1")
    before = state(notebook.shell)
    _, out = typed(notebook, LOAD)
    assert "already loaded" in out
    torch_inspector.load_ipython_extension(notebook.shell)
    assert state(notebook.shell) == before
    judged(notebook)
    assert len(notebook.published) == 1


def test_unload_twice(notebook):
    typed(notebook, LOAD)
    typed(notebook, UNLOAD)
    before = state(notebook.shell)
    result, out = typed(notebook, UNLOAD)
    assert result.success
    assert "not loaded" in out
    torch_inspector.unload_ipython_extension(notebook.shell)
    assert state(notebook.shell) == before


def test_reload(notebook):
    before = state(notebook.shell)
    typed(notebook, LOAD)
    for _ in range(2):
        result, _ = typed(notebook, RELOAD)
        assert result.success
        assert judged(notebook) == mistake(notebook)
    assert len(notebook.published) == 2
    typed(notebook, UNLOAD)
    assert state(notebook.shell) == before
    importlib.import_module("torch_inspector")


def test_load_again_after_unload(notebook):
    for _ in range(3):
        typed(notebook, LOAD)
        assert judged(notebook) == mistake(notebook)
        typed(notebook, UNLOAD)
        assert judged(notebook) is None


def test_magic_is_gone_after_unload(notebook):
    typed(notebook, LOAD)
    typed(notebook, UNLOAD)
    assert "not found" in typed(notebook, "%torchcheck list")[1]
    assert "not found" in typed(notebook, "%%torchcheck\n1")[1]
    text = "%torchcheck mu"
    assert "mute" not in notebook.shell.complete(None, text, len(text))[1]
    assert "TorchInspector" not in typed(notebook, "%config")[1]


def test_somebody_else_s_wrapper_is_left_alone(notebook, monkeypatch):
    typed(notebook, LOAD)
    theirs = lambda *args, **kwargs: None  # noqa: ARG005, E731
    with monkeypatch.context() as patch:
        patch.setattr(torch.autograd, "backward", torch.autograd.backward)
        notebook.shell.user_ns["theirs"] = theirs
        typed(notebook, "torch.autograd.backward = theirs")
        assert torch.autograd.backward is theirs
        typed(notebook, "1")
        typed(notebook, UNLOAD)
        assert torch.autograd.backward is theirs


def test_tracebacks_and_random_numbers_are_untouched(notebook):
    draw = "import random, numpy\ndrawn = random.random(), numpy.random.rand(), torch.rand(1).item()"
    seed = "import random, numpy\nrandom.seed(0); numpy.random.seed(0); torch.manual_seed(0)"

    def drawn():
        for source in (seed, LOOP, "%%torchcheck\n1", draw):
            typed(notebook, source.replace("%%torchcheck", "#"))
        return notebook.shell.user_ns["drawn"]

    expected = drawn()
    typed(notebook, LOAD)
    assert drawn() == expected
    for source in (seed, "%%torchcheck\n" + LOOP, "%torchcheck list", "%torchcheck", draw):
        typed(notebook, source)
    assert notebook.shell.user_ns["drawn"][:2] == expected[:2]


def test_doors_of_the_package(notebook):
    typed(notebook, LOAD)
    judged(notebook)
    run = torch_inspector.last_run()
    assert torch_inspector.runs()[-1] is run
    assert recent.last_run() is run
    assert torch_inspector.explain(SLUG).startswith("# ")
    with pytest.raises(ValueError, match="did you mean missing-zero-grad"):
        torch_inspector.explain("missing-zero-gard")


# before torch ------------------------------------------------------------------

FRESH = """\
import sys
from tests.notebook.samples import LOOP, SETUP, found
from tests.cells import a_notebook
with a_notebook() as notebook:
    assert "torch" not in sys.modules, "torch came too early"
    assert "ipywidgets" not in sys.modules, "ipywidgets came too early"
    for source in {first!r}:
        notebook.run(source)
        assert notebook.errors[-1] is None, notebook.errors[-1]
    assert "torch" not in sys.modules, "torch came too early"
    run = notebook.run(SETUP + LOOP)
    print(found(run))
    import torch
    print(type(torch.__spec__.loader).__module__, type(torch.__loader__).__module__)
    print([finder for finder in sys.meta_path if "torch_inspector" in type(finder).__module__])
"""
LOADERS = "_frozen_importlib_external _frozen_importlib_external"


@pytest.mark.parametrize(
    "first",
    [
        [],
        ["import importlib.util\nfound = importlib.util.find_spec('torch')\nfound.loader.get_filename('torch')"],
    ],
    ids=["at once", "somebody has asked for it"],
)
def test_torch_imported_in_the_cell_that_trains(first):
    done = subprocess.run(
        [sys.executable, "-c", FRESH.format(first=["1", "%torchcheck", "%%torchcheck\n1", *first])],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    line = line_of(SETUP + LOOP)
    assert done.stdout.splitlines() == [f"[('{SLUG}', {4 + len(first)}, {line})]", LOADERS, "[]"], done.stderr[-800:]


def test_unload_before_torch_comes(notebook):
    class Torchless(dict[str, Any]):
        """`sys.modules` without torch."""

    before = list(sys.meta_path)
    hidden = {name: module for name, module in sys.modules.items() if name != "torch"}
    with contextlib.ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(sys, "modules", Torchless(hidden))
        extension.load(notebook.shell)
        assert len(sys.meta_path) == len(before) + 1
        extension.unload(notebook.shell)
    assert sys.meta_path == before
