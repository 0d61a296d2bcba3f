import asyncio
import threading

from torch_inspector.failures import Failures
from torch_inspector.notebook.feed.prompt import Prompt


class Kernel:
    """Writes down what is done to it."""

    def __init__(self):
        self.done = []
        self.session = self
        self.iopub_socket = "socket"
        self._parent_ident = {"shell": b"page"}

    def get_parent(self, channel):
        return f"a cell of the {channel}"

    def set_parent(self, ident, parent):
        self.done.append((ident, parent))

    def send(self, socket, kind, content, *, parent, ident):
        self.done.append((socket, kind, content["execution_state"], parent, ident))


def answer_elsewhere(kernel, prompt):
    """What a subshell does: handles a request, and says that it is idle."""

    async def handle():
        prompt.repair_soon()
        kernel.done.append("idle")
        await asyncio.sleep(0)

    thread = threading.Thread(target=lambda: asyncio.run(handle()))
    thread.start()
    thread.join()


def test_a_running_cell_is_busy_again_after_the_subshell_is_idle():
    kernel = Kernel()
    prompt = Prompt(kernel, Failures())
    prompt.begin()
    answer_elsewhere(kernel, prompt)
    cell = "a cell of the shell"
    assert kernel.done == ["idle", (b"page", cell), ("socket", "status", "busy", cell, b"status")]


def test_after_the_cell_idle_is_the_last_word():
    kernel = Kernel()
    prompt = Prompt(kernel, Failures())
    answer_elsewhere(kernel, prompt)
    prompt.begin()
    prompt.end()
    answer_elsewhere(kernel, prompt)
    assert kernel.done == ["idle", "idle"]


def test_cells_of_subshells_are_not_the_one_at_the_prompt():
    kernel = Kernel()
    prompt = Prompt(kernel, Failures())
    thread = threading.Thread(target=prompt.begin)
    thread.start()
    thread.join()
    answer_elsewhere(kernel, prompt)
    prompt.begin()
    thread = threading.Thread(target=prompt.end)
    thread.start()
    thread.join()
    answer_elsewhere(kernel, prompt)
    assert [one[:2] for one in kernel.done if "status" in one] == [("socket", "status")]


def test_nothing_is_to_be_done_where_the_main_thread_answers():
    kernel = Kernel()
    prompt = Prompt(kernel, Failures())
    prompt.begin()
    prompt.repair_soon()
    assert kernel.done == []


def test_a_kernel_that_fails_is_noted_and_not_heard():
    kernel, failures = Kernel(), Failures()
    del kernel._parent_ident
    Prompt(kernel, failures).begin()
    kernel = Kernel()
    prompt = Prompt(kernel, failures)
    prompt.begin()
    del kernel.iopub_socket
    answer_elsewhere(kernel, prompt)
    assert failures.counts == {"prompt": 2}
