"""JupyterLab in a page of Chromium, as a test sees and uses it."""

import time

import nbformat

PANEL = "#torch-inspector-panel"
_TIMEOUT_MS = 20_000
# What JupyterLab itself says on its console.
_NOT_OURS = (
    "favicon",
    "net::ERR_ABORTED",
    "Not same Y.Doc",
    "reading 'schema'",
    "reading 'last_modified'",
    "Menu entry",
    "Comm not found",
    "restore the debugger state",
    "Canceled future for debug_request",
    # JupyterLab makes a subshell for the widgets of a kernel, which is restarted before it is there.
    "Per comm-target subshell creation failed",
    # A server whose kernels are elsewhere answers the first try without a protocol; the second one names none.
    "Sec-WebSocket-Protocol",
)

# The notebook in front; none has the focus when a page has just been opened.
_CURRENT = (
    "[window.jupyterapp.shell.currentWidget, ...window.jupyterapp.shell.widgets('main')]"
    ".find(one => one?.sessionContext)"
)
# Since version 7 ipykernel can miss a request that comes while it replies to another one, until the next one comes.
_WAKE = """
    const wake = () => {
        const kernel = context?.session?.kernel;
        if (kernel?.connectionStatus === 'connected' && kernel.status !== 'busy') {
            kernel.requestKernelInfo().catch(() => undefined);
        }
    };
"""
_READY = f"""() => {{
    const context = ({_CURRENT})?.sessionContext;
    const kernel = context?.session?.kernel;
    {_WAKE}
    const now = performance.now();
    if (now - (window.tiWaiting ?? now) > 5000) {{
        wake();
        window.tiWaiting = now;
    }}
    const ready = context?.isReady && kernel?.connectionStatus === 'connected' && kernel.status === 'idle';
    window.tiWaiting = ready ? undefined : window.tiWaiting ?? now;
    return ready;
}}"""
_RUN = f"""async ([index, wait]) => {{
    const panel = {_CURRENT};
    const context = panel.sessionContext;
    {_WAKE}
    panel.content.activeCellIndex = index;
    const done = window.jupyterapp.commands.execute('notebook:run-cell');
    const timer = setInterval(wake, 5000);
    void done.finally(() => clearInterval(timer));
    if (wait) {{ await done; }}
}}"""


class Lab:
    """One page.

    Args:
        page: Playwright's page.
        server: The server that it looks at.
    """

    def __init__(self, page, server):
        self.page = page
        self.server = server
        self.complaints: list[str] = []
        page.set_default_timeout(_TIMEOUT_MS)
        page.on("console", self._heard)
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("dialog", lambda dialog: dialog.accept())

    def _heard(self, message):
        where = message.location.get("url", "")
        # Older ones go on asking for the kernels of an earlier test, which are being ended.
        gone = "404" in message.text and "/api/kernels/" in message.text + where
        if message.type == "error" and not gone:
            self._complain(message.text)

    def _complain(self, text):
        if not any(word in text for word in _NOT_OURS):
            self.complaints.append(text)

    def write(self, name, *sources):
        """A notebook with these cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.server.work / name)

    def open(self, name, *sources):
        """Opens a notebook, makes it first if it has cells, and shows the sidebar."""
        if sources:
            self.write(name, *sources)
        self.goto(name)
        self.wait_for_kernel()
        self.command("torch-inspector:open")
        self.page.locator(PANEL).wait_for(state="visible")

    def goto(self, name):
        """Loads the page anew, with this notebook; its kernel may be busy."""
        self.page.goto(self.server.page(name))
        self.page.wait_for_function("() => window.jupyterapp !== undefined")
        self.page.evaluate("async () => { await window.jupyterapp.restored; }")

    def wait_for_kernel(self):
        """Waits until the notebook in front has a kernel that is idle."""
        self.page.wait_for_function(_READY, polling=100)

    def command(self, name, arguments=None):
        """Runs a command of the application."""
        self.page.evaluate(
            "([name, args]) => { void window.jupyterapp.commands.execute(name, args ?? {}); }", [name, arguments]
        )

    def start(self, index):
        """Begins to run a cell."""
        self._run(index, wait=False)

    def run(self, *indices):
        """Runs cells and waits for each."""
        for index in indices:
            self._run(index, wait=True)

    def _run(self, index, *, wait):
        self.page.evaluate(_RUN, [index, wait])

    def is_busy(self):
        """True while the kernel of the notebook in front runs something."""
        return self.status() == "busy"

    def status(self):
        """What the prompt's kernel is said to do."""
        return self.page.evaluate(f"() => ({_CURRENT}).sessionContext.session.kernel.status")

    def has_subshells(self):
        """True if kernel and application have them."""
        return self.page.evaluate(f"() => ({_CURRENT}).sessionContext.session.kernel.supportsSubshells === true")

    def outputs(self, index):
        """How many outputs a cell has."""
        return self.page.evaluate(f"index => {_CURRENT}.content.widgets[index].model.outputs.length", index)

    def set_source(self, index, source):
        """Types another text into a cell."""
        self.page.evaluate(
            f"([index, source]) => {{ {_CURRENT}.content.widgets[index].model.sharedModel.setSource(source); }}",
            [index, source],
        )

    def wait_request(self, fields):
        """Waits until the sidebar asks the kernel for something with these fields; call `listen` before."""
        self.page.wait_for_function(
            "fields => window.tiSent.some(data => Object.keys(fields).every(name => data[name] === fields[name]))",
            arg=fields,
        )

    def listen(self):
        """Writes down what the sidebar asks the kernel for from now on."""
        self.page.evaluate(
            f"() => {{ window.tiSent = []; {_CURRENT}.sessionContext.session.kernel.anyMessage.connect((_, one) => {{"
            " if (one.direction === 'send' && one.msg.header.msg_type === 'comm_msg')"
            " window.tiSent.push(one.msg.content.data); }); }"
        )

    def save(self):
        """Saves the notebook in front."""
        self.page.evaluate(f"async () => {{ await {_CURRENT}.context.save(); }}")

    def active_cell(self):
        """Which cell is active."""
        return self.page.evaluate(f"() => {_CURRENT}.content.activeCellIndex")

    def wait_state(self, state):
        """Waits until the panel says what it says in this state."""
        self.page.locator(f"{PANEL}[data-ti-state={state}]").wait_for()

    def find(self, selector):
        """Something in the panel."""
        return self.page.locator(PANEL).locator(selector)

    def words(self, selector=""):
        """All text of the panel, or of a part of it."""
        return (self.find(selector).first if selector else self.page.locator(PANEL)).inner_text()

    def restart(self):
        """Restarts the kernel, as a click would after its question is answered."""
        self.page.evaluate(f"() => {_CURRENT}.sessionContext.session.kernel.restart()")

    def share_kernel(self, name):
        """Opens another notebook beside it, on the kernel of the one in front."""
        self.page.evaluate(
            f"""async name => {{
                const {{ kernel }} = {_CURRENT}.sessionContext.session;
                const {{ commands, serviceManager }} = window.jupyterapp;
                const its = {{ id: kernel.id, name: kernel.name }};
                await serviceManager.sessions.startNew({{ path: name, name, type: 'notebook', kernel: its }});
                await commands.execute('docmanager:open', {{ path: name }});
            }}""",
            name,
        )

    def theme(self, *, dark):
        """Changes the theme."""
        name = "JupyterLab Dark" if dark else "JupyterLab Light"
        self.command("apputils:change-theme", {"theme": name})
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight === light", arg="false" if dark else "true"
        )
        time.sleep(0.5)
