"""Real kernels, real terminals, real notebooks: what arrives at a front end."""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import pytest
from jupyter_client.manager import start_new_kernel

from tests.notebook.nudge import Nudge
from tests.notebook.samples import GOOD_LOOP, LOOP, MIMES, RUN_MIME, SETUP, SLUG, as_function, line_of
from torch_inspector.views.bundle import VIEW_MIME

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Answer:
    """What a front end gets for one cell."""

    status: str = ""
    outputs: list[Any] = field(default_factory=list)
    comms: list[Any] = field(default_factory=list)

    def texts(self, name):
        """Text of one stream."""
        return "".join(
            content["text"] for kind, content in self.outputs if kind == "stream" and content["name"] == name
        )

    def bundles(self):
        """All data that was displayed."""
        return [content["data"] for kind, content in self.outputs if kind == "display_data"]

    def result(self):
        """The text of the last expression."""
        (text,) = [content["data"]["text/plain"] for kind, content in self.outputs if kind == "execute_result"]
        return text

    def found(self):
        """Slug, cell and line in the data of all bundles."""
        messages = [bundle[RUN_MIME] for bundle in self.bundles() if RUN_MIME in bundle]
        return [(f["slug"], f["cell"], f["line"]) for message in messages for f in message["findings"]]


class Kernel:
    """A kernel with a front end in front of it."""

    def __init__(self):
        self._manager, self._client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=ERROR"])
        self._nudge = Nudge(self._manager)
        self.count = 0

    def run(self, source, *, stdin=False, interrupt_s=None):
        """Runs one cell; the front end is one in which somebody can type, or is not."""
        answer = Answer()

        def take(message):
            kind, content = message["msg_type"], message["content"]
            if kind in ("stream", "display_data", "execute_result", "error"):
                answer.outputs.append((kind, content))
            elif kind.startswith("comm"):
                answer.comms.append(content)
            elif kind == "status" and content["execution_state"] == "busy" and interrupt_s is not None:
                threading.Timer(interrupt_s, self._manager.interrupt_kernel).start()

        reply = self._client.execute_interactive(source, allow_stdin=stdin, timeout=60, output_hook=take)
        answer.status = reply["content"]["status"]
        self.count = reply["content"]["execution_count"]
        return answer

    def complete(self, text):
        """What the kernel offers."""
        return self._client.complete(text, reply=True, timeout=30)["content"]["matches"]

    def stop(self):
        """Ends it."""
        self._nudge.stop()
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture(scope="module")
def fresh():
    """A kernel; which cell comes first is up to the first test of this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("IPYTHONDIR", os.devnull + "-none")
        kernel = Kernel()
    yield kernel
    kernel.stop()


@pytest.fixture(scope="module")
def first_cells(fresh):
    """Loads the extension before torch, then trains in the cell that imports it."""
    loaded = fresh.run("%load_ext torch_inspector")
    modules = fresh.run(
        "import sys\n[name for name in ('torch', 'ipywidgets', 'numpy', 'rich') if name in sys.modules]"
    )
    fresh.run("%torchcheck\n'torch' in sys.modules")
    return loaded, modules, fresh.run(SETUP + LOOP), fresh.count


@pytest.fixture
def kernel(fresh, first_cells):
    """The same kernel, in which model and optimizer are there."""
    assert first_cells
    return fresh


def in_step(kernel):
    """Asserts that the next cell is judged, and judged right."""
    answer = kernel.run(LOOP)
    assert answer.found() == [(SLUG, kernel.count, line_of(LOOP))]
    assert answer.texts("stderr") == ""


def test_load_imports_nothing_heavy(first_cells):
    loaded, modules, _, _ = first_cells
    assert (loaded.status, loaded.outputs) == ("ok", [])
    assert modules.result() == "[]"


def test_torch_imported_in_the_cell_that_trains(first_cells):
    _, _, trained, number = first_cells
    assert trained.found() == [(SLUG, number, line_of(SETUP + LOOP))]


def test_finding_is_one_bundle(kernel):
    answer = kernel.run(LOOP)
    assert [kind for kind, _ in answer.outputs] == ["display_data"]
    (bundle,) = answer.bundles()
    assert set(bundle) == MIMES
    assert bundle[RUN_MIME]["version"] == 1
    assert bundle[RUN_MIME]["model_id"] is None
    assert answer.comms == []


@pytest.mark.parametrize("source", ["1 + 1;", GOOD_LOOP, "a = model(x)", "%%time\na = 1", "%%capture\nprint(1)"])
def test_clean_cell_has_no_output_of_ours(kernel, source):
    kernel.run(source)  # it may say that a mistake of an earlier test is gone
    answer = kernel.run(source)
    assert answer.status == "ok"
    assert answer.bundles() == []
    assert answer.texts("stderr") == ""
    assert answer.comms == []


@pytest.mark.parametrize(
    "source",
    [
        "\n\n" + LOOP,
        "%%time\n" + LOOP,
        "%%time\n\n" + LOOP,
        "%%capture\n" + LOOP,
        "%%capture\n\n%%time\n" + LOOP,
        "import asyncio\nawait asyncio.sleep(0)\n" + LOOP,
        "%%torchcheck\nimport asyncio\nawait asyncio.sleep(0)\n" + LOOP,
        "%%torchcheck\n%%time\n" + LOOP,
        as_function() + "%time train()",
        LOOP + "1 / 0",
    ],
)
def test_line_is_the_line_as_typed(kernel, source):
    assert kernel.run(source).found() == [(SLUG, kernel.count, line_of(source))]
    in_step(kernel)


@pytest.mark.parametrize("first", ["", "%%capture\n", "\n\n"])
def test_function_of_an_earlier_cell(kernel, first):
    kernel.run(first + as_function(LOOP))
    defined_in = kernel.count
    kernel.run("pass")
    assert kernel.run("pass\ntrain()").found() == [(SLUG, defined_in, line_of(first + as_function()))]


def test_script(kernel, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SETUP + LOOP, encoding="utf-8")
    assert kernel.run(f"pass\n%run {path}").found() == [(SLUG, kernel.count, 2)]


# Kernels notice an interrupt of `await` when it ends, with and without the extension.
@pytest.mark.parametrize("code", ["import time; time.sleep(30)", "import asyncio; await asyncio.sleep(1)"])
def test_interrupt(kernel, code):
    answer = kernel.run(code, interrupt_s=0.3)
    assert answer.status == "error"
    for _ in range(2):
        in_step(kernel)


def test_interrupt_of_training(kernel):
    answer = kernel.run(LOOP.replace("range(4)", "iter(int, 1)"), interrupt_s=0.5)
    assert answer.status == "error"
    assert answer.found() == [(SLUG, kernel.count, 4)]
    in_step(kernel)


@pytest.mark.parametrize(
    "code", ["1 / 0", "x = = 1", "raise SystemExit(3)", "%no_such", "get_ipython().run_cell('1 / 0')"]
)
def test_in_step_after(kernel, code):
    kernel.run(code)
    in_step(kernel)


def test_error_of_torch_has_no_line_of_ours(kernel):
    answer = kernel.run("%%torchcheck\nmodel(torch.rand(8, 4))")
    (error,) = [content for kind, content in answer.outputs if kind == "error"]
    assert error["ename"] == "RuntimeError"
    assert "torch_inspector" not in "".join(error["traceback"])


def test_report_without_anybody_makes_no_widget(kernel):
    answer = kernel.run("%%torchcheck\n20 + 22")
    assert answer.result() == "42"
    (bundle,) = answer.bundles()
    assert set(bundle) == MIMES
    assert bundle[RUN_MIME]["model_id"] is None
    assert answer.comms == []


def test_report_for_somebody_makes_a_widget(kernel):
    answer = kernel.run("%%torchcheck\n20 + 22", stdin=True)
    (bundle,) = answer.bundles()
    assert set(bundle) == MIMES
    assert bundle[RUN_MIME]["model_id"] in [comm["comm_id"] for comm in answer.comms]
    assert all("torch_inspector" in str(comm) or "LayoutModel" in str(comm) for comm in answer.comms)


@pytest.mark.parametrize(
    ("panel", "mimes"),
    [("text", {"text/plain"}), ("html", MIMES), ("widget", {*MIMES, VIEW_MIME}), ("off", None), ("auto", MIMES)],
)
def test_panel_setting(kernel, panel, mimes):
    kernel.run(f"%config TorchInspector.panel = {panel!r}")
    bundles = kernel.run(LOOP, stdin=True).bundles()
    assert [set(bundle) for bundle in bundles] == ([] if mimes is None else [mimes])
    kernel.run("%config TorchInspector.panel = 'auto'")


def test_bad_setting_is_told_and_nothing_is_lost(kernel):
    kernel.run("%config TorchInspector.panel = 'sparkling'")
    in_step(kernel)
    kernel.run("%config TorchInspector.panel = 'auto'")


def test_completion(kernel):
    assert kernel.complete("%torchcheck mu") == ["mute"]
    assert kernel.complete("x = 1\n%torchcheck mute miss") == [SLUG]


def test_last_run(kernel):
    kernel.run(LOOP)
    number = kernel.count
    answer = kernel.run(
        "import torch_inspector\nrun = torch_inspector.last_run()\nrun.cell.number, run.findings[0].slug"
    )
    assert answer.result() == f"({number}, '{SLUG}')"


def test_unload_in_the_middle_and_load_again(kernel):
    kernel.run(f"{LOOP}%unload_ext torch_inspector\n{LOOP}")
    assert kernel.run(LOOP).outputs == []
    assert "not found" in kernel.run("%torchcheck").texts("stderr")
    kernel.run("%load_ext torch_inspector")
    in_step(kernel)
    assert kernel.run("%reload_ext torch_inspector").outputs == []
    in_step(kernel)


def test_nothing_went_wrong_inside(kernel):
    (bundle,) = kernel.run("%torchcheck failures").bundles()
    assert bundle["text/plain"] == "nothing went wrong inside torch_inspector"


# notebooks and terminals -------------------------------------------------------


def a_saved_notebook():
    """Four cells: load, set up with the mistake, clean, report."""
    sources = ("%load_ext torch_inspector", SETUP + LOOP, GOOD_LOOP, "%%torchcheck\n1 + 1")
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])


def jupyter(command, *arguments):
    """Runs one of Jupyter's commands."""
    program = Path(sys.executable).with_name(f"jupyter-{command}")
    done = subprocess.run([program, *arguments], capture_output=True, text=True, check=False, timeout=100, cwd=ROOT)
    assert done.returncode == 0, done.stderr[-800:]


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """Where a notebook lies after `jupyter execute`, which is nbclient."""
    path = tmp_path_factory.mktemp("executed") / "training.ipynb"
    nbformat.write(a_saved_notebook(), path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        jupyter("execute", "--inplace", str(path))
    return path


def test_executed_notebook_has_the_findings_and_nothing_else(executed):
    notebook = nbformat.read(executed, as_version=4)
    loaded, wrong, clean, report = (cell.outputs for cell in notebook.cells)
    assert (loaded, clean) == ([], [])
    (output,) = wrong
    assert set(output.data) == MIMES
    (finding,) = output.data[RUN_MIME]["findings"]
    assert (finding["slug"], finding["cell"], finding["line"]) == (SLUG, 2, line_of(SETUP + LOOP))
    assert sorted(output.output_type for output in report) == ["display_data", "execute_result"]
    assert "widgets" not in notebook.metadata
    nbformat.validate(notebook)


def test_exported_page_keeps_the_card(executed):
    jupyter("nbconvert", "--to", "html", str(executed))
    page = executed.with_suffix(".html").read_text(encoding="utf-8")
    assert page.count('class="ti-card') >= 2
    assert "without the gradients being cleared" in page


def test_exported_markdown_keeps_the_card(executed):
    jupyter("nbconvert", "--to", "markdown", str(executed))
    text = executed.with_suffix(".md").read_text(encoding="utf-8")
    assert text.count("without the gradients being cleared") >= 1
    assert "optimizer.zero_grad()" in text


def test_report_of_a_slow_cell_shows_memory_over_its_time(kernel):
    (bundle,) = kernel.run("%%torchcheck\nimport time\nfor _ in range(25):\n    time.sleep(0.1)").bundles()
    (table,) = [part for part in json.loads(bundle[RUN_MIME]["card"])["parts"] if part.get("curve")]
    assert re.fullmatch(r"host memory over 2\.\d\d s", table["caption"])
    assert 3 <= len(table["curve"]) <= 10
    assert max(across for across, _ in table["curve"]) <= 1_000


TYPED = f"%load_ext torch_inspector\n{SETUP}\n{LOOP}\n%torchcheck mute {SLUG}\n%%torchcheck\n20 + 22\n\n\nexit\n"


def test_terminal(tmp_path):
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "COLUMNS": "100", "OMP_NUM_THREADS": "1"}
    with contextlib.suppress(KeyError):
        del environment["PYTHONSTARTUP"]
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--simple-prompt", "--no-banner", "--colors=NoColor"],
        input=TYPED,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=environment,
    )
    assert "without the gradients being cleared" in done.stdout
    assert f"line {line_of(LOOP)}:" in done.stdout
    assert f"{SLUG} stays silent" in done.stdout
    assert "<div" not in done.stdout
    report = done.stdout[done.stdout.index("report, ") :]
    assert "Linear" in report
    (number,) = re.findall(r"Out\[(\d+)\]: 42", done.stdout)
    assert f"cell {number}: report" in done.stdout, "the report is that of the cell which shows 42"
    assert done.stderr.strip() == ""
