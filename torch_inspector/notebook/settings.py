"""Settings as IPython users know them: `%config TorchInspector.min_bytes = 0`, or `ipython_config.py`."""

from __future__ import annotations

from typing import Any

from traitlets import Bool, Enum, Int, Set, TraitError, Unicode, observe, validate
from traitlets.config import Configurable

from torch_inspector.session import Settings
from torch_inspector.views.card import ADDRESS


class TorchInspector(Configurable):
    """What torch_inspector may say, how it shows it, and how long it may look."""

    muted = Set(Unicode(), help="Pitfalls that stay silent, by slug.").tag(config=True)
    min_bytes = Int(1 << 20, min=0, help="Memory findings below this many bytes stay silent.").tag(config=True)
    panel = Enum(
        ("auto", "html", "text", "widget", "off"),
        default_value="auto",
        help="How findings are shown: auto, html, text, widget (needs ipywidgets) or off (last_run() still has them).",
    ).tag(config=True)
    sidebar = Bool(True, help="Whether JupyterLab's sidebar is kept informed; read when the extension is loaded.").tag(
        config=True
    )
    docs_url = Unicode(
        "", help="Where the pages of pitfalls are on the web, https://…; links lead to NAME.html there. Empty: nowhere."
    ).tag(config=True)
    time_budget_ms = Int(
        20, min=1, help="Milliseconds per cell that looking may take, or 5 % of the cell if that is more."
    ).tag(config=True)

    def __init__(self, settings: Settings, **kwargs: Any) -> None:
        self._settings = settings
        super().__init__(**kwargs)
        self._apply()

    @validate("docs_url")
    def _is_address(self, proposal: Any) -> str:
        address = str(proposal["value"]).strip()
        if address and ADDRESS.fullmatch(address) is None:
            raise TraitError(f"docs_url has to begin with https:// or http:// and hold no spaces, not {address[:60]!r}")
        return address

    @observe("muted", "min_bytes", "time_budget_ms")
    def _changed(self, _change: object) -> None:
        self._apply()

    def _apply(self) -> None:
        self._settings.muted = frozenset(self.muted)
        self._settings.min_nbytes = self.min_bytes
        self._settings.time_budget_s = self.time_budget_ms / 1000
