"""Which threads may begin a backward pass while a graph is read."""

import gc
import queue
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import thread_time
from types import ModuleType

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from torch_inspector.observe import others
from torch_inspector.observe.graph import GraphReader


def of_a_file(file, code, **names):
    """A function as a file defines it."""
    exec(compile(code, file, "exec"), names)  # noqa: S102
    return names["work"]


of_a_cell = partial(of_a_file, "<ipython-input-1-abc>")


@contextmanager
def running(work):
    """Another thread does this."""
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


stop = threading.Event()


def becomes(expected: bool) -> bool:
    """True if that is the answer once the thread is where it is going; a busy machine takes its time."""
    time.sleep(0.1)
    for _ in range(100):
        time.sleep(0.02)
        if others.may_train() == expected:
            return True
    return False


@pytest.fixture(autouse=True)
def _again():
    stop.clear()


def shows_itself():
    """True if a thread that was woken up is seen after a moment; a busy machine may need some of them."""
    for _ in range(20):
        others.let_them_begin()
        if others.may_train():
            return True
    return False


def test_nobody_trains_who_is_not_there():
    assert not others.may_train()


def test_this_thread_is_no_other():
    seen = []
    tensor = torch.ones(2, requires_grad=True)
    out = tensor * 1
    out.register_hook(lambda _: seen.append(others.may_train()))
    out.sum().backward()
    assert seen == [False]


def test_a_backward_pass_that_waits_in_a_hook():
    def train():
        out = torch.ones(2, requires_grad=True) * 1
        out.register_hook(lambda _: stop.wait(10) and None)
        out.sum().backward()

    with running(train):
        assert becomes(True)
    assert not others.may_train()


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def work():\n    while not stop.is_set(): sleep(0.01)", True),
        ("def work():\n    while not stop.is_set(): pass", True),
        ("def work():\n    stop.wait()", False),
        ("def work():\n    while not stop.wait(5): pass", True),
        ("def work():\n    lines.get()", False),
        ("def work():\n    lines.get(timeout=5)", True),
    ],
    ids=["between two steps", "computes", "told to stop", "by the clock", "waits for work", "not for ever"],
)
def test_code_of_a_cell_in_another_thread(code, expected):
    lines: queue.Queue[int] = queue.Queue()
    work = of_a_cell(code, stop=stop, sleep=time.sleep, lines=lines)
    with running(work):
        answered = becomes(expected)
        lines.put(1)
    assert answered


def test_between_the_backward_passes_of_another_thread_no_graph_is_read():
    net, x = torch.nn.Linear(4, 2), torch.ones(3, 4)
    train = "def work():\n    while not stop.is_set(): names['loss'] = net(x).sum(); names['loss'].backward()"
    names = {"loss": net(x).sum()}
    with running(of_a_cell(train, stop=stop, names=names, net=net, x=x)):
        assert becomes(True)
        read = [GraphReader().walk([names["loss"].grad_fn], thread_time() + 1) for _ in range(200)]
    assert read == [None] * 200


def test_who_waits_for_a_batch_goes_on_by_itself():
    class Slow(torch.utils.data.Dataset[int]):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            stop.wait(10)
            return index

    def load():
        for _ in DataLoader(Slow()):
            pass

    with running(load):
        assert becomes(True)


def test_a_thread_that_is_woken_up_at_the_end_gets_a_moment():
    computes = "def work():\n    woken.wait()\n    while not stop.is_set(): pass"
    woken = threading.Event()
    with running(of_a_cell(computes, stop=stop, woken=woken)):
        assert becomes(False)
        woken.set()
        assert shows_itself()


def test_work_that_a_pool_is_given_at_the_end_gets_a_moment():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        pool.submit(of_a_cell("def work():\n    while not stop.is_set(): pass", stop=stop))
        trains = shows_itself()
        stop.set()
    assert trains


def test_threads_of_libraries_do_not_train():
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        assert not others.may_train()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (("torch/utils/data/_utils/pin_memory.py", "torch/multiprocessing/reductions.py"), False),
        (("torch/_inductor/compile_worker/subproc_pool.py",), False),
        (("lightning/trainer.py",), False),
        (("lightning/trainer.py", "torch/optim/sgd.py"), True),
        (("lightning/trainer.py", "torch/utils/data/dataloader.py"), True),
    ],
)
def test_whose_thread_it_is_tells_what_it_may_do(files, expected):
    packages, work = Path(torch.__file__).parents[1], stop.wait
    for file in reversed(files):
        work = of_a_file(str(packages / file), "def work(): inner()", inner=work)
    with running(work):
        assert becomes(expected)


@pytest.mark.parametrize(("file", "expected"), [("zmq/garbage.py", False), ("mine/train.py", True)])
def test_threads_of_a_kernel_that_is_installed_anywhere_do_not_train(monkeypatch, file, expected):
    there = ModuleType("zmq")
    there.__file__ = "/a/place/zmq/__init__.py"
    monkeypatch.setitem(sys.modules, "zmq", there)
    others._kernel_folders.cache_clear()
    others._kind_of.cache_clear()
    work = of_a_file(
        f"/a/place/{file}", "def work():\n    while not stop.is_set(): sleep(0.01)", stop=stop, sleep=time.sleep
    )
    with running(work):
        assert becomes(expected)
    others._kernel_folders.cache_clear()


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_torchs_own_threads_do_not_train():
    loader = iter(DataLoader(TensorDataset(torch.ones(8)), num_workers=1))
    next(loader)
    assert not others.may_train()


def test_looking_keeps_no_frame_alive():
    def caller():
        batch = torch.zeros(3)
        gone = weakref.ref(batch)
        others.may_train()
        return gone

    gc.disable()
    try:
        assert caller()() is None
    finally:
        gc.enable()
