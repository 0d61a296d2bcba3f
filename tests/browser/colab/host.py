"""A page that is not JupyterLab: Colab's own manager of widgets on a real kernel, where somebody has built it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from tests.browser.server import PYTHON
from tests.browser.vscode import host as vscode

HERE = Path(__file__).parent
# The folder of `manager.min.js`, as the sources that Google has published are built.
BUILT = os.environ.get("TORCH_INSPECTOR_COLAB", "")
MANAGER = Path(BUILT) / "manager.min.js"
WIDGETS = Path(PYTHON).parents[1] / "share" / "jupyter" / "nbextensions" / "anywidget" / "index.js"
VIEW_MIME = vscode.VIEW_MIME
_HEAD = '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>a host of widgets</title>'
_PAGE = f"""{_HEAD}<style>iframe {{ border: 0; width: 100%; }}</style>
<script src="services.js"></script><script type="module" src="page.js"></script>
</head><body><div id="outputs"></div></body></html>"""
_FRAME = f"""{_HEAD}<script type="module" src="frame.js"></script></head><body></body></html>"""
# What a kernel of Colab has and no other.
LIKE_COLAB = """\
import sys, types
made = {name: types.ModuleType(name) for name in ("google", "google.colab", "google.colab.output")}
made["google.colab.output"].enable_custom_widget_manager = lambda: None
made["google.colab.output"]._widgets = types.SimpleNamespace(_installed_url="https://example.org/manager.min.js")
sys.modules.update(made)
%config TorchInspector.panel = "widget"
"""


def is_built():
    """True if the manager is there."""
    return bool(BUILT) and MANAGER.is_file()


def set_up(server):
    """Puts the page and its scripts where the server serves them: Chromium lets no other page speak to the kernels."""
    folder = server.static / "colab"
    folder.mkdir()
    for path in (MANAGER, HERE / "page.js", HERE / "frame.js"):
        shutil.copy(path, folder)
    (folder / "index.html").write_text(_PAGE, encoding="utf-8")
    (folder / "frame.html").write_text(_FRAME, encoding="utf-8")
    subprocess.run([vscode.NODE, Path(vscode.__file__).parent / "services.mjs", folder], check=True)


class Host(vscode.Host):
    """The page."""

    folder = "colab"

    def __init__(self, page, server):
        page.route(re.compile("^https:"), self._give)
        super().__init__(page, server)

    def _give(self, route):
        """What Colab loads from elsewhere: packages of widgets, as npm has them, and a font."""
        if "/anywidget@" in route.request.url:
            route.fulfill(path=WIDGETS, content_type="text/javascript", headers={"Access-Control-Allow-Origin": "*"})
        else:
            route.fulfill(body="", content_type="text/css")

    def draw(self, output):
        """Shows an output as Colab does: as a widget."""
        assert self.page.evaluate("view => window.host.draw(view)", output[VIEW_MIME]) == ""
        return self.page.frame_locator("#outputs > iframe").last

    def leave(self):
        """As a notebook is that was opened anew: what was saved with it is there, and no kernel that knows of it."""
        self.page.evaluate("() => window.host.leave()")
