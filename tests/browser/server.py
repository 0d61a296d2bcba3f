"""A JupyterLab of its own: folders, settings and port are the test's, the sidebar is the one that was built here."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from threading import Thread

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "torch_inspector" / "labextension"
SETTINGS = {
    "@jupyterlab/apputils-extension/notification.jupyterlab-settings": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/docmanager-extension/plugin.jupyterlab-settings": {"autosave": False},
}
_START_S = 60
# `lab`, or `notebook` for Notebook 7 where that is installed.
APP = os.environ.get("TORCH_INSPECTOR_APP", "lab")
SINGLE = APP == "notebook"
# Another environment's Python, for another JupyterLab and another kernel than those of the environment that tests.
PYTHON = os.environ.get("TORCH_INSPECTOR_PYTHON", sys.executable)
# Widgets of anywidget are drawn by an extension of its own.
HAS_ANYWIDGET = (Path(PYTHON).parents[1] / "share" / "jupyter" / "labextensions" / "anywidget").is_dir()
if sys.executable != PYTHON:
    # Older ones take cells that are out of sight out of the page.
    SETTINGS["@jupyterlab/notebook-extension/tracker.jupyterlab-settings"] = {"windowingMode": "none"}


class Server:
    """Started when it is made.

    Args:
        folder: Where everything of it lies; notebooks are in `work` below, pages of tests in `static`.
        kernels: Address of another server, on which the kernels run; empty for this one.
    """

    def __init__(self, folder: Path, kernels: str = ""):
        self.folder = folder
        self.kernels = kernels
        self.work = folder / "work"
        self.static = folder / "static"
        self.port = _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._ending: list[Thread] = []
        self._prepare()
        self._log = (folder / "server.log").open("wb")
        self._process = subprocess.Popen(
            [PYTHON, "-m", "notebook" if SINGLE else "jupyterlab", *self._options()],
            env=self._environment(),
            cwd=folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._wait()

    def page(self, name):
        """Where a notebook is shown."""
        return f"{self.url}/notebooks/{name}" if SINGLE else f"{self.url}/lab/tree/{name}?reset"

    def stop(self):
        """Ends it and its kernels."""
        self._join()
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._log.close()

    def call(self, method, path):
        """One request to the server's API."""
        request = urllib.request.Request(f"{self.url}/api/{path}", method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            body = answer.read()
        return json.loads(body) if body else None

    def set_setting(self, name, *, value):
        """Changes one of our settings; pages that are loaded later see it."""
        file = self.folder / "settings" / "torch-inspector" / "plugin.jupyterlab-settings"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({name: value}), encoding="utf-8")

    def reset_settings(self):
        """Ours are the defaults again, for pages that are loaded later."""
        (self.folder / "settings" / "torch-inspector" / "plugin.jupyterlab-settings").unlink(missing_ok=True)

    def end_sessions(self):
        """Ends all kernels and waits for it."""
        self.begin_to_end_sessions()
        self._join()

    def begin_to_end_sessions(self):
        """Ends all kernels; what comes next need not wait for them."""
        self._join()
        for kernel in self.call("GET", "kernels"):
            self._ending.append(Thread(target=self.call, args=("DELETE", f"kernels/{kernel['id']}")))
            self._ending[-1].start()

    def _join(self):
        while self._ending:
            self._ending.pop().join()

    def _prepare(self):
        self.work.mkdir(parents=True)
        self.static.mkdir()
        for path, settings in SETTINGS.items():
            file = self.folder / "settings" / path
            file.parent.mkdir(parents=True)
            file.write_text(json.dumps(settings), encoding="utf-8")
        extensions = self.folder / "path" / "labextensions"
        extensions.mkdir(parents=True)
        (extensions / "torch-inspector").symlink_to(BUILT, target_is_directory=True)

    def _options(self):
        return [
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={self.port}",
            "--ServerApp.port_retries=0",
            "--IdentityProvider.token=",
            "--ServerApp.password=",
            "--ServerApp.disable_check_xsrf=True",
            f"--{'JupyterNotebookApp' if SINGLE else 'LabApp'}.expose_app_in_browser=True",
            f"--ServerApp.root_dir={self.work}",
            f"--ServerApp.extra_static_paths={self.static}",
            *([f"--GatewayClient.url={self.kernels}"] if self.kernels else ()),
        ]

    def _environment(self):
        folders = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
        return {
            **os.environ,
            **{f"JUPYTER_{name}": str(self.folder / name.lower()) for name in folders},
            "JUPYTER_PATH": str(self.folder / "path"),
            "JUPYTERLAB_SETTINGS_DIR": str(self.folder / "settings"),
            "JUPYTERLAB_WORKSPACES_DIR": str(self.folder / "workspaces"),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "PYTHONPATH": str(ROOT),
            "OMP_NUM_THREADS": "1",
        }

    def _wait(self):
        end = time.monotonic() + _START_S
        while time.monotonic() < end:
            if self._answers():
                return
            time.sleep(0.1)
        log = (self.folder / "server.log").read_text(encoding="utf-8", errors="replace")
        raise RuntimeError(f"JupyterLab did not start:\n{log[-2000:]}")

    def _answers(self):
        try:
            return bool(self.call("GET", "status"))
        except OSError:
            return False


def _free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
