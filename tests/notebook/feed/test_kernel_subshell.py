"""A request beside a running cell, by a subshell of a real kernel: answered at once, and the cell is as it was."""

import time
from importlib.metadata import version
from typing import Any, NamedTuple

import pytest
from jupyter_client.manager import start_new_kernel

from tests.notebook.nudge import Nudge
from tests.notebook.samples import LOOP, SETUP, SLUG
from torch_inspector.notebook.feed.channel import COMM_ID

pytestmark = pytest.mark.skipif(int(version("ipykernel").split(".")[0]) < 7, reason="it has no subshells")

COUNT = 40
# Threads of the user have no request of their own.
PRINTS = f"""\
import threading, time
def work():
    for number in range({COUNT}):
        print(number, flush=True)
        time.sleep(0.1)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


class Heard(NamedTuple):
    """A message of the kernel."""

    kind: str
    content: Any
    parent: str

    @property
    def status(self):
        return self.content.get("execution_state")

    @property
    def op(self):
        return self.content["data"]["op"] if self.kind == "comm_msg" else ""


class FrontEnd:
    """Talks to a kernel in which the extension is loaded."""

    def __init__(self):
        self.manager, self.client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=ERROR"])
        self.nudge = Nudge(self.manager)

    def stop(self):
        self.nudge.stop()
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

    def listen(self, until, within=60.0):
        """All messages up to the one that answers a question with true."""
        heard, end = [], time.monotonic() + within
        while time.monotonic() < end:
            message = self.client.get_iopub_msg(timeout=within)
            one = Heard(message["msg_type"], message["content"], message["parent_header"].get("msg_id", ""))
            heard.append(one)
            if until(one):
                return heard
        raise AssertionError(f"not heard; the last were {heard[-3:]}")

    def run(self, source):
        """A cell from begin to end."""
        cell = self.client.execute(source)
        self.listen(lambda one: one.parent == cell and one.status == "idle")

    def make_subshell(self):
        """Its id."""
        self.client.control_channel.send(self.client.session.msg("create_subshell_request", {}))
        return self.client.get_control_msg(timeout=20)["content"]["subshell_id"]

    def ask(self, subshell_id, **data):
        """Sends a request to a subshell; returns its id."""
        message = self.client.session.msg("comm_msg", {"comm_id": COMM_ID, "data": {"v": 1, **data}})
        message["header"]["subshell_id"] = subshell_id
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]


@pytest.fixture
def front_end(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    one = FrontEnd()
    yield one
    one.stop()


def test_mute_is_answered_while_the_cell_runs_and_nothing_of_the_cell_changes(front_end):
    front_end.run("%load_ext torch_inspector")
    front_end.run(SETUP + LOOP)
    subshell = front_end.make_subshell()
    cell = front_end.client.execute(PRINTS)
    front_end.listen(lambda one: one.kind == "stream")
    request = front_end.ask(subshell, ask="mute", slug=SLUG, scope="cell", cell=2, line=None)
    begun = time.monotonic()
    # What was sent before the request may still be on its way.
    heard = front_end.listen(lambda one: one.op == "muted")
    assert time.monotonic() - begun < 2
    heard += front_end.listen(lambda one: one.parent == cell and one.status == "idle")
    (muted,) = (one.content["data"] for one in heard if one.op == "muted")
    assert (muted["slug"], muted["on"], muted["error"]) == (SLUG, True, "")
    said = [(one.status, one.parent == cell) for one in heard if one.parent in (cell, request) and one.status]
    assert said == [("busy", False), ("idle", False), ("busy", True), ("idle", True)]
    strayed = [one for one in heard if one.kind == "stream" and one.parent != cell]
    assert len(strayed) <= 1, "what a thread prints in the very moment may"
    assert sum(one.content["text"].count("\n") for one in heard if one.kind == "stream") == COUNT - 1


def test_a_look_at_objects_is_refused_there(front_end):
    front_end.run("%load_ext torch_inspector")
    subshell = front_end.make_subshell()
    front_end.client.execute("import time; time.sleep(3)")
    for word in ("account", "free"):
        front_end.ask(subshell, ask=word, item="outputs")
        refused = front_end.listen(lambda one: one.op == "refused")[-1]
        assert refused.content["data"]["ask"] == word
