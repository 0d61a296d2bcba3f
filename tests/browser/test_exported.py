"""A card as HTML among the rules that JupyterLab and pages of nbconvert have for all tables, code and paragraphs."""

import nbformat
import pytest
from nbconvert import HTMLExporter

from tests.browser.test_sidebar import a_live_notebook
from tests.views.test_bundle import bundle_of, ten_findings

LOOKS = """() => {
    const looks = (selector, ...names) => [...new Set([...document.querySelectorAll(`.ti-card ${selector}`)].map(
        one => names.map(name => getComputedStyle(one)[name]).join()))];
    return {
        words: looks(':is(th, td):not(.ti-figure)', 'textAlign'),
        figures: looks('.ti-figure', 'textAlign'),
        rows: looks('tr', 'backgroundColor'),
        code: looks('code', 'backgroundColor', 'paddingLeft'),
        paragraphs: looks('p:not(.ti-head)', 'marginBottom'),
        links: looks('a', 'display'),
    };
}"""
NOTHING = "rgba(0, 0, 0, 0)"


def looks_as_meant(page):
    found = page.evaluate(LOOKS)
    assert found["words"] == ["left"]
    assert found["figures"] in ([], ["right"])
    assert found["rows"] == [NOTHING]
    assert found["code"] in ([], [f"{NOTHING},0px"])
    assert set(found["paragraphs"]) <= {"2px", "4px"}
    assert found["links"] == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_in_a_page_of_nbconvert(browser, tmp_path, theme):
    output = nbformat.v4.new_output("display_data", data=bundle_of(*ten_findings()))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(outputs=[output])])
    text, _ = HTMLExporter(theme=theme).from_notebook_node(notebook)
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    page = browser.new_context(offline=True).new_page()
    page.goto(file.as_uri(), wait_until="domcontentloaded")
    page.locator(".ti-card").first.wait_for()
    looks_as_meant(page)
    page.context.close()


def test_in_lab(lab):
    a_live_notebook(lab, "html.ipynb", "%torchcheck list", "%torchcheck memory")
    lab.run(1, 2)
    lab.page.locator(".jp-RenderedHTMLCommon .ti-card").nth(1).wait_for()
    for dark in (False, True):
        lab.theme(dark=dark)
        looks_as_meant(lab.page)
