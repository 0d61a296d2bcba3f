"""`%config TorchInspector` and configuration files."""

import subprocess
import sys

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.cells import a_notebook
from tests.notebook.samples import LOOP, SETUP, SLUG, a_bare_notebook, found, in_step, typed
from torch_inspector.notebook import extension
from torch_inspector.notebook.settings import TorchInspector
from torch_inspector.session import Settings

KEEP = "kept = []\nfor _ in range(3):\n    kept.append(nn.functional.mse_loss(model(x), y))\n"


@pytest.fixture
def notebook():
    with a_notebook() as notebook:
        notebook.run(SETUP)
        yield notebook


def test_defaults_are_the_session_s():
    settings = Settings()
    TorchInspector(settings)
    assert settings == Settings()


def test_min_bytes(notebook):
    assert found(notebook.run(KEEP)) == []
    _, out = typed(notebook, "%config TorchInspector.min_bytes = 0")
    assert out == ""
    assert [slug for slug, _, _ in found(notebook.run("del kept\n" + KEEP))] == ["graph-retained-in-list"]


def test_muted(notebook):
    typed(notebook, f"%config TorchInspector.muted = ['{SLUG}']")
    assert found(notebook.run(LOOP)) == []
    typed(notebook, "%config TorchInspector.muted = []")
    in_step(notebook)


def test_time_budget(notebook):
    typed(notebook, "%config TorchInspector.time_budget_ms = 7")
    assert notebook.extension.session.settings.time_budget_s == 0.007


def test_docs_url_makes_links_lead_to_the_web(notebook):
    notebook.run(LOOP)
    assert f"<p><code>%torchcheck explain {SLUG}</code></p>" in notebook.published[-1]["text/html"]
    assert "<a " not in notebook.published[-1]["text/html"]
    typed(notebook, "%config TorchInspector.docs_url = ' https://docs.example/pages/ '")
    notebook.run(LOOP)
    address = f"https://docs.example/pages/{SLUG}.html#torch-inspector-{SLUG}"
    assert f"<a class=ti-doc-link href={address}>" in notebook.published[-1]["text/html"]


@pytest.mark.parametrize("value", ["javascript:alert(1)", "docs.example", "https://", 'https://x/"><b>', "file:///x"])
def test_docs_url_has_to_be_an_address(notebook, value, caplog):
    typed(notebook, f"%config TorchInspector.docs_url = {value!r}")
    assert "docs_url has to begin with https://" in caplog.text
    assert notebook.extension.settings.docs_url == ""


@pytest.mark.parametrize(
    "line",
    ["min_bytes = -1", "min_bytes = 'many'", "panel = 'sparkling'", "time_budget_ms = 0", "muted = [3]", "muted = 5"],
)
def test_bad_value_is_told_and_nothing_is_lost(notebook, line, caplog):
    before = notebook.extension.session.settings.__dict__.copy()
    typed(notebook, f"%config TorchInspector.{line}")
    assert f"The '{line.split()[0]}' trait" in caplog.text or f"the '{line.split()[0]}' trait" in caplog.text
    assert notebook.extension.session.settings.__dict__ == before
    in_step(notebook)


@pytest.mark.parametrize("line", ["panel = 'sparkling'", "min_bytes = -1"])
def test_bad_value_does_not_keep_the_extension_from_loading_again(line):
    with a_bare_notebook() as notebook:
        for source in (SETUP, "%load_ext torch_inspector", f"%config TorchInspector.{line}"):
            typed(notebook, source)
        try:
            result, out = typed(notebook, "%reload_ext torch_inspector")
            assert result.success, out
            in_step(notebook)
        finally:
            notebook.shell.config.pop("TorchInspector", None)


def test_config_shows_all_settings_with_help(notebook):
    _, out = typed(notebook, "%config TorchInspector")
    for name, trait in TorchInspector.class_own_traits(config=True).items():
        assert f"TorchInspector.{name}=" in out
        assert trait.help
    _, out = typed(notebook, "%config")
    assert "TorchInspector" in out


def test_config_of_the_shell_is_read():
    config = Config()
    config.HistoryManager.enabled = False
    config.TorchInspector.min_bytes = 5
    config.TorchInspector.muted = {SLUG}
    shell = InteractiveShell(config=config)
    extension.load(shell)
    try:
        settings = extension._loaded[id(shell)].session.settings
        assert (settings.min_nbytes, settings.muted) == (5, frozenset({SLUG}))
    finally:
        extension.unload(shell)


def test_config_file(tmp_path):
    profile = tmp_path / "profile_default"
    profile.mkdir()
    lines = (
        "c = get_config()",
        "c.InteractiveShellApp.extensions = ['torch_inspector']",
        "c.TorchInspector.min_bytes = 5",
        f"c.TorchInspector.muted = ['{SLUG}']",
        "c.TorchInspector.panel = 'text'",
    )
    (profile / "ipython_config.py").write_text("\n".join(lines), encoding="utf-8")
    show = (
        "import sys; from torch_inspector.notebook.extension import _loaded; "
        "s = _loaded[id(get_ipython())].settings; "
        "print(s.min_bytes, sorted(s.muted), s.panel, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-m", "IPython", "--ipython-dir", str(tmp_path), "--colors=NoColor", "-c", show],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.stdout.strip(), done.stderr) == (f"5 ['{SLUG}'] text False", "")
