"""What has crashed a kernel, kept a tensor alive or run code of the user in other tools' looks."""

import contextlib
import gc
import subprocess
import sys
import textwrap
import threading
import types
import warnings
import weakref
from typing import ClassVar

import pytest
import torch
from torch import nn

from torch_inspector.observe.heap.explain import Roots, explain
from torch_inspector.observe.heap.holders import holders, holders_of_row


def look(names, budget_s=10.0):
    return explain(Roots(names), budget_s)


def in_a_process(program):
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_a_long_chain_is_freed_after_a_look():
    done = in_a_process("""
        import torch
        from torch_inspector.observe.heap.explain import Roots, explain
        total = torch.ones(1, requires_grad=True)
        for _ in range(200_000):
            total = total + 1
        report = explain(Roots({"total": total}), 10.0)
        assert "too deep" in " ".join(report.notes), report.notes
        del total
        print("freed")
    """)
    assert done.stdout.strip() == "freed", (done.returncode, done.stderr[-500:])


def test_a_look_while_another_thread_trains():
    done = in_a_process("""
        import threading, time, torch
        from torch import nn
        from torch_inspector.observe.heap.explain import Roots, explain
        model = nn.Sequential(*[nn.Linear(32, 32) for _ in range(10)])
        losses, stop = [], []
        def train():
            while not stop:
                loss = model(torch.randn(8, 32)).pow(2).mean()
                loss.backward()
                losses[:] = [model(torch.randn(8, 32)).mean()]
        thread = threading.Thread(target=train)
        thread.start()
        looks, until = 0, time.time() + 6
        while time.time() < until:
            explain(Roots({"model": model, "losses": losses}), 1.0)
            looks += 1
        stop.append(1)
        thread.join()
        print("alive", looks > 5)
    """)
    assert done.stdout.strip() == "alive True", (done.returncode, done.stderr[-500:])


def test_a_generators_local_is_freed_by_its_own_del():
    died: list[int] = []

    def work():
        local = torch.randn(1_000)
        weakref.finalize(local, died.append, 1)
        yield 1
        del local
        yield 2

    running = work()
    next(running)
    assert "local local of the paused work" in " ".join(row.path for row in look({"running": running}).rows)
    next(running)
    assert died


def test_a_look_keeps_nothing():
    tensor = torch.randn(1_000)
    graph = (torch.randn(10, requires_grad=True) * 2).exp()
    model = nn.Linear(10, 10)
    died = [weakref.ref(one) for one in (tensor, graph, model)]
    look({"a": [tensor], "b": {"graph": graph}, "model": model})
    del tensor, graph, model
    gc.collect()
    assert [one() for one in died] == [None] * 3


def test_a_look_leaves_no_list_behind():
    names = {"a": torch.randn(10)}
    look(names)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(3):
        look(names)
    gc.collect()
    assert len(gc.get_objects()) - before < 50


@contextlib.contextmanager
def without_collector():
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def ask_holders(names):
    holders(Roots(names), names["model"].weight, "model.weight", 10.0)


def ask_a_row(names):
    holders_of_row(Roots(names), "model.weight", 10.0)


def is_ours(thing):
    """True for objects of a look, and for frames of its functions."""
    if type(thing) is types.FrameType:
        return "torch_inspector" in thing.f_code.co_filename and "tests" not in thing.f_code.co_filename
    return str(type(thing).__module__).startswith("torch_inspector.")


@pytest.mark.parametrize("ask", [look, ask_holders, ask_a_row])
def test_a_look_leaves_nothing_to_the_collector(ask):
    model = nn.Linear(3, 2)
    names = {"model": model, "kept": {model.weight: torch.ones(3)}, "loss": model(torch.ones(4, 3)).sum()}
    ask(names)
    with without_collector():
        ask(names)
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            gc.collect()
            left = [type(one).__name__ for one in gc.garbage if is_ours(one)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
    assert left == []


def test_locals_of_a_function_go_with_it_though_it_asked_for_a_look():
    def ask():
        local = torch.ones(5)
        look({})
        return weakref.ref(local)

    ask()
    with without_collector():
        assert ask()() is None


def test_no_hook_is_run_and_nothing_is_unpacked():
    calls = []

    def pack(tensor):
        return tensor

    def unpack(tensor):
        calls.append("unpack")
        return tensor

    weight = torch.randn(10, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        out = (weight * 2).exp()
    out.register_hook(lambda _: calls.append("hook"))
    look({"weight": weight, "out": out})
    assert calls == []


def test_a_checkpoint_is_not_computed_again():
    calls = []

    def block(value):
        calls.append(1)
        return value.exp().sin()

    out = torch.utils.checkpoint.checkpoint(block, torch.randn(10, requires_grad=True) * 1, use_reentrant=False)
    look({"out": out})
    assert len(calls) == 1


class Loud(torch.Tensor):
    calls: ClassVar[list[object]] = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func)
        return super().__torch_function__(func, types, args, kwargs or {})


def test_subclasses_are_not_asked():
    loud = torch.randn(10).as_subclass(Loud)
    Loud.calls = []
    look({"loud": loud})
    assert Loud.calls == []


class Hostile:
    def __init__(self, tensor):
        self.tensor = tensor

    def __getattribute__(self, name):
        raise RuntimeError(name)

    def __eq__(self, other):
        raise RuntimeError

    def __hash__(self):
        raise RuntimeError

    def __len__(self):
        raise RuntimeError

    def __repr__(self):
        raise RuntimeError


def test_hostile_objects_are_walked_past_their_methods():
    thing = Hostile(torch.randn(1_000))
    report = look({"thing": thing, "many": [thing]})
    assert sum(row.nbytes for row in report.rows if row.path.startswith("thing")) == 4_000


def test_no_warning_is_given():
    middle = torch.randn(10, requires_grad=True) * 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        look({"middle": middle, "coo": torch.eye(3).to_sparse(), "storage": torch.randn(3).untyped_storage()})


def test_the_collector_is_as_it_was():
    gc.disable()
    try:
        look({})
        assert not gc.isenabled()
    finally:
        gc.enable()
    look({})
    assert gc.isenabled()


def test_random_numbers_and_grad_mode_are_as_they_were():
    state = torch.get_rng_state()
    look({"a": torch.ones(3)})
    assert torch.equal(state, torch.get_rng_state())
    assert torch.is_grad_enabled()


def test_without_time_the_bytes_are_still_counted():
    names = {f"t{n}": torch.randn(1_000) for n in range(500)}
    report = look(names, budget_s=0.0)
    assert sum(row.nbytes for row in report.rows if row.device == "cpu") >= 500 * 4_000
    assert report.notes


def test_what_a_context_variable_holds_is_no_cycle():
    done = in_a_process("""
        import contextvars, torch
        from torch_inspector.observe.heap.explain import Roots, explain
        variable = contextvars.ContextVar("held")
        variable.set(torch.randn(7_000))
        print({row.kind for row in explain(Roots({}), 10.0).rows if row.nbytes == 28_000})
    """)
    assert done.stdout.strip() == "{'not explained'}", done.stderr[-500:]


def test_python_modules_that_are_nowhere_registered_are_looked_into():
    module = types.ModuleType("loose")
    module.__dict__["tensor"] = torch.randn(1_000)
    assert "loose.tensor" in [row.path for row in look({"loose": module}).rows]


def test_a_deep_nest_has_a_name():
    nest: list[object] = [torch.randn(3_000)]
    for _ in range(200):
        nest = [nest]
    (path,) = [row.path for row in look({"nest": nest}).rows if row.nbytes == 12_000]
    assert path.startswith("nest[0][0]")


@pytest.mark.parametrize("first", ["storage", "tensor"])
def test_a_cycle_is_one_whether_its_tensor_or_its_storage_was_known_to_python_first(first):
    done = in_a_process(f"""
        import gc, torch
        from torch_inspector.observe.heap.explain import Roots, explain
        gc.disable()
        class C: pass
        def make():
            c = C()
            if {first!r} == "storage":
                storage = torch.UntypedStorage(28_000)
                c.data = torch.empty(0).set_(storage)
            else:
                c.data = torch.randn(7_000)
            c.me = c
            c.data.untyped_storage()
        make()
        print({{row.kind for row in explain(Roots({{}}), 10.0).rows if row.nbytes == 28_000}})
    """)
    assert done.stdout.strip() == "{'cycle'}", done.stderr[-500:]


def test_a_cycle_that_a_variable_leads_to_is_no_cycle():
    holder: dict[str, object] = {"data": torch.randn(2_000)}
    holder["self"] = holder
    report = look({"holder": holder})
    assert ("holder['data']", "tensor") in [(row.path, row.kind) for row in report.rows]


@pytest.mark.parametrize("wrap", [lambda t: (t,), lambda t: {"k": t}, lambda t: [[t]]])
def test_what_only_a_running_function_holds_is_named_by_it(wrap):
    def inner():
        held = wrap(torch.randn(3_000))
        report = look({})
        return [row for row in report.rows if "inner: held" in row.path], held

    rows, _ = inner()
    assert [(row.kind, row.nbytes) for row in rows] == [("frame", 12_000)]


def test_the_local_of_another_thread_is_named_by_the_thread():
    started, stop = threading.Event(), threading.Event()

    def work():
        batch = torch.randn(3_000)
        started.set()
        stop.wait(30)
        return batch

    thread = threading.Thread(target=work, name="loader")
    thread.start()
    started.wait(30)
    try:
        report = look({})
    finally:
        stop.set()
        thread.join()
    assert "work of thread loader: batch" in [row.path for row in report.rows]
