"""The feed in a real kernel, as a front end hears it."""

import json
import os
import time

import jsonschema
import pytest
from jupyter_client.manager import start_new_kernel

from tests.notebook.nudge import Nudge
from tests.notebook.samples import LOOP, RUN_MIME, SETUP, SLUG
from torch_inspector.notebook.feed import messages
from torch_inspector.notebook.feed.channel import COMM_ID, TARGET

CHECK = jsonschema.Draft202012Validator(json.loads(messages.SCHEMA.read_text(encoding="utf-8")))
SLOW_LOOP = f"{SETUP}import time\n{LOOP}".replace("range(4)", "range(60)") + "    time.sleep(0.05)\n"


class FrontEnd:
    """Listens to a kernel and checks every message against the schema."""

    def __init__(self):
        self._manager, self.client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=ERROR"])
        self._nudge = Nudge(self._manager)
        self.heard = []
        self.other = []

    def hear(self, until, within=20.0):
        """Listens until a message answers a question with true, and gives that message."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            message = self._next(end)
            if message is not None and until(message):
                return message
        raise AssertionError(f"not heard; the last were {self.heard[-3:]}")

    def hear_op(self, op, within=20.0):
        """The next message of one kind."""
        return self.hear(lambda message: message["op"] == op, within)

    def hear_text(self, kind, within=20.0):
        """The text of the next output of one kind."""
        count, end = len(self.other), time.monotonic() + within
        while time.monotonic() < end:
            self._next(end)
            for one, content in self.other[count:]:
                if one == kind:
                    return content["data"]["text/plain"]
        raise AssertionError(f"no {kind}; the last were {self.other[-3:]}")

    def pause(self, within):
        """All that is heard in so many seconds."""
        count, end = len(self.heard), time.monotonic() + within
        while time.monotonic() < end:
            self._next(end)
        return self.heard[count:]

    def ask(self, **data):
        """Sends a request."""
        content = {"comm_id": COMM_ID, "data": {"v": 1, **data}}
        self.client.shell_channel.send(self.client.session.msg("comm_msg", content))

    def stop(self):
        """Ends the kernel."""
        self._nudge.stop()
        self.client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def _next(self, end):
        try:
            message = self.client.get_iopub_msg(timeout=max(end - time.monotonic(), 0.01))
        except Exception:  # noqa: BLE001  (nothing came)
            return None
        if not message["msg_type"].startswith("comm"):
            self.other.append((message["msg_type"], message["content"]))
            return None
        assert message["msg_type"] == "comm_msg"
        assert message["content"]["comm_id"] == COMM_ID
        assert message["parent_header"] == {}
        data = message["content"]["data"]
        CHECK.validate(data)
        self.heard.append(data)
        return data


@pytest.fixture(scope="module")
def front_end():
    """One kernel for this file, in which the extension is loaded."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("IPYTHONDIR", os.devnull + "-none")
        one = FrontEnd()
    one.client.execute("%load_ext torch_inspector")
    one.hear_op("sample")
    yield one
    one.stop()


def test_a_comm_is_listed_that_nobody_opened(front_end):
    reply = front_end.client.comm_info(target_name=TARGET, reply=True, timeout=20)
    assert list(reply["content"]["comms"]) == [COMM_ID]


def test_a_long_cell_is_told_while_it_runs(front_end):
    # A busy machine takes seconds for it, in which there are no steps to judge.
    front_end.client.execute("import torch")
    front_end.hear_op("cell", within=60)
    front_end.client.execute(SLOW_LOOP)
    front_end.hear(lambda message: message["op"] == "sample" and message["cell"] and message["cell"]["steps"] > 3)
    early = front_end.hear(lambda message: message["op"] == "sample" and message["findings"])
    assert early["findings"][0]["slug"] == SLUG
    ended = front_end.hear_op("cell")
    assert ended["cell"]["steps"] == 60
    assert [finding["slug"] for finding in ended["cell"]["findings"]] == [SLUG]
    assert [module["path"] for module in ended["state"]["modules"]] == ["model"]
    assert [change["device"] for change in ended["cell"]["memory"]] == ["host"]


def test_history_on_request(front_end):
    front_end.client.execute("1 + 1")
    front_end.hear_op("cell")
    front_end.ask(ask="hello")
    history = front_end.hear_op("history")
    assert history["complete"]
    assert [cell["number"] for cell in history["cells"]][-1] == front_end.heard[-1]["cells"][-1]["number"]
    assert len(history["cells"]) >= 2


def test_account_on_request(front_end):
    front_end.ask(ask="account")
    rows = front_end.hear_op("account")["rows"]
    assert "model.weight" in [row["path"] for row in rows]
    front_end.ask(ask="holders", path="model.weight")
    assert front_end.hear_op("holders")["rows"]


def test_a_card_names_the_load_that_it_comes_from_and_is_muted_by_what_it_holds(front_end):
    front_end.client.execute(LOOP)
    ended = front_end.hear_op("cell")
    front_end.pause(0.5)  # the card follows
    (run, *_) = [content["data"][RUN_MIME] for kind, content in reversed(front_end.other) if kind == "display_data"]
    assert (run["session"], run["cell"]) == (ended["run"], ended["cell"]["number"])
    (finding,) = run["findings"]
    place = {name: finding[name] for name in ("slug", "cell", "line")}
    front_end.ask(ask="mute", scope="cell", **place)
    told = front_end.hear_op("muted")
    assert (told["slug"], told["scope"], told["on"], told["error"]) == (SLUG, "cell", True, "")
    front_end.client.execute(LOOP)
    assert front_end.hear_op("cell")["cell"]["findings"] == []
    front_end.ask(ask="mute", scope="cell", on=False, **place)
    front_end.hear_op("muted")
    front_end.client.execute(LOOP)
    assert [one["slug"] for one in front_end.hear_op("cell")["cell"]["findings"]] == [SLUG]


def test_what_a_magic_undoes_is_told(front_end):
    before = len(front_end.heard)
    front_end.client.execute(f"%torchcheck mute {SLUG}\n%torchcheck unmute {SLUG}")
    told = front_end.hear_op("muted")
    assert (told["slug"], told["scope"], told["on"], told["error"]) == (SLUG, "notebook", False, "")
    # A thread that wakes late tells of the end of so short a cell first.
    if all(message["op"] != "cell" for message in front_end.heard[before:]):
        front_end.hear_op("cell")


def test_nothing_is_sent_while_nothing_happens(front_end):
    front_end.pause(2.5)
    assert front_end.pause(3) == []


def test_unload_ends_it_and_load_begins_anew(front_end):
    run = front_end.heard[-1]["run"]
    front_end.client.execute("%unload_ext torch_inspector")
    front_end.hear_op("bye")
    assert front_end.client.comm_info(target_name=TARGET, reply=True, timeout=20)["content"]["comms"] == {}
    front_end.client.execute("import threading; [t.name for t in threading.enumerate() if 'torch_inspector' in t.name]")
    assert front_end.hear_text("execute_result") == "[]"
    front_end.client.execute("%load_ext torch_inspector")
    assert front_end.hear_op("sample")["run"] != run


def test_setting_keeps_it_from_starting(front_end):
    front_end.client.execute(
        "%unload_ext torch_inspector\n"
        "get_ipython().config.TorchInspector.sidebar = False\n"
        "%load_ext torch_inspector\n"
        "get_ipython().config.TorchInspector.sidebar = True\n"
    )
    front_end.hear_op("bye")
    assert front_end.pause(2) == []
    front_end.client.execute("%reload_ext torch_inspector")
    front_end.hear_op("sample")


def test_nothing_was_printed_and_nothing_went_wrong(front_end):
    front_end.client.execute("%torchcheck failures")
    assert front_end.hear_text("display_data") == "nothing went wrong inside torch_inspector"
    assert [content for kind, content in front_end.other if kind in ("stream", "error")] == []
