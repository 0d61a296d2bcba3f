"""A page that is not JupyterLab: VS Code's own bundle of widgets on a real kernel."""

import json
import shutil
import subprocess
from pathlib import Path

from tests.browser.server import PYTHON, ROOT

NODE = shutil.which("node") or "node"
TIMEOUT_MS = 20_000
HERE = Path(__file__).parent
VIEW_MIME = "application/vnd.jupyter.widget-view+json"
MODULES = ROOT / "labextension" / "node_modules"
BUNDLE = MODULES / "@vscode" / "jupyter-ipywidgets8" / "dist" / "ipywidgets.js"
LOADER = MODULES / "requirejs" / "require.js"
_EXTENSIONS = Path(PYTHON).parents[1] / "share" / "jupyter" / "nbextensions"
_PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>a host of widgets</title>
<script src="services.js"></script><script src="require.js"></script><script type="module" src="page.js"></script>
</head><body><div id="outputs"></div></body></html>"""


def missing():
    """What is not installed; empty if everything is."""
    return ", ".join(one.parts[len(MODULES.parts)] for one in (BUNDLE, LOADER) if not one.is_file())


def add_kernel(server, name, **env):
    """Another kernel of the server: the same Python, with more in its environment."""
    folder = server.folder / "path" / "kernels" / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": name, "language": "python", "env": env}
    (folder / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")


def set_up(server):
    """Puts the page and its scripts where the server serves them: Chromium lets no other page speak to the kernels."""
    folder = server.static / "vscode"
    scripts = {"require.js": LOADER, "ipywidgets.js": BUNDLE, "page.js": HERE / "page.js"}
    scripts["nbextensions/anywidget/index.js"] = _EXTENSIONS / "anywidget" / "index.js"
    for name, path in scripts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, folder / name)
    (folder / "index.html").write_text(_PAGE, encoding="utf-8")
    subprocess.run([NODE, HERE / "services.mjs", folder], check=True)


class Host:
    """The page.

    Args:
        page: Playwright's page.
        server: The server that it comes from, and whose kernels it uses.
    """

    folder = "vscode"

    def __init__(self, page, server):
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(TIMEOUT_MS)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._heard)
        page.goto(f"{server.url}/static/{self.folder}/index.html")
        page.wait_for_function("() => window.host !== undefined")

    def _heard(self, message):
        if message.type == "error" and "favicon" not in message.text + message.location.get("url", ""):
            self.complaints.append(message.text)

    def start(self, kernel):
        """Starts a kernel."""
        self.page.evaluate("name => window.host.start(name)", kernel)

    def run(self, code):
        """Runs a cell; gives the data of its outputs."""
        return self.page.evaluate("code => window.host.run(code)", code)

    def draw(self, output):
        """Shows an output as VS Code does: as a widget."""
        self.page.evaluate("view => window.host.draw(view)", output[VIEW_MIME])
        return self.page.locator("#outputs > div").last

    def violations(self, axe):
        """What axe, a script, finds wrong with what is shown; it must have been able to look at colours and buttons."""
        self.page.evaluate(axe.read_text(encoding="utf-8"))
        found = self.page.evaluate("() => axe.run('#outputs')")
        assert {"color-contrast", "button-name"} <= {rule["id"] for rule in found["passes"]}
        return [(rule["id"], [node["html"] for node in rule["nodes"]]) for rule in found["violations"]]

    def end(self):
        """Ends the kernel."""
        self.page.evaluate("() => window.host.end()")

    def restart(self):
        """Restarts the kernel."""
        self.page.evaluate("() => window.host.restart()")

    def begin(self, code):
        """Begins to run a cell."""
        self.page.evaluate("code => { void window.host.run(code); }", code)
