"""One server and one browser for all; a page and its kernels for each test."""

import shutil
from pathlib import Path

import pytest

from tests.browser.lab import Lab
from tests.browser.server import BUILT, Server

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
_SIZE = {"width": 1400, "height": 1000}


def pytest_collection_modifyitems(items):
    """Marks every test of this folder."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker("browser")


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """A running JupyterLab."""
    assert (BUILT / "package.json").is_file(), "the sidebar is not built: npm run build:prod in labextension/"
    one = Server(tmp_path_factory.mktemp("lab") / "home")
    yield one
    one.stop()


@pytest.fixture(scope="session")
def chromium():
    """Chromium, not running, and what it is started with."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        yield playwright.chromium, {"executable_path": program, "headless": True, "args": list(_FLAGS)}


@pytest.fixture(scope="session")
def browser(chromium):
    """A running Chromium, for pages that share nothing with the others."""
    kind, options = chromium
    one = kind.launch(**options)
    yield one
    one.close()


@pytest.fixture(scope="session")
def context(chromium, tmp_path_factory):
    """What all pages share: above all the cache, with compiled scripts, or each would load the whole application."""
    kind, options = chromium
    one = kind.launch_persistent_context(tmp_path_factory.mktemp("profile"), viewport=_SIZE, **options)
    yield one
    one.close()


@pytest.fixture
def pages(server, context, request):
    """Makes fresh pages, whose consoles must stay free of errors."""
    made: list[Lab] = []
    others = []

    def make():
        # JupyterLab moves a second window of one browser to another workspace, by loading it again.
        place = context
        if made:
            place = request.getfixturevalue("browser").new_context(viewport=_SIZE)
            others.append(place)
        made.append(Lab(place.new_page(), server))
        return made[-1]

    yield make
    for one in made:
        one.page.close()
    for one in others:
        one.close()
    server.begin_to_end_sessions()
    assert [one.complaints for one in made] == [[]] * len(made)


@pytest.fixture
def lab(pages):
    """A page."""
    return pages()


@pytest.fixture
def another(pages):
    """A second page, as in another window."""
    return pages()


@pytest.fixture
def screenshot(lab):
    """Saves what is to be seen, under a name."""

    def save(name):
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        lab.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    return save
