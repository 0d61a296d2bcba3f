"""The tour in a kernel of its own: six mistakes at their lines, nothing else, and a network that has learned."""

import importlib.util
from pathlib import Path

import nbformat
import pytest

PATH = Path(__file__).resolve().parents[1] / "demo" / "run_tour.py"
EXPECTED = [
    ("softmax-before-cross-entropy", 6),
    ("missing-zero-grad", 5),
    ("eval-missing", 2),
    ("train-not-restored", 8),
    ("graph-retained-in-list", 5),
    ("optimizer-of-another-model", 6),
]


@pytest.fixture(scope="module")
def tour():
    """The program that runs the tour."""
    spec = importlib.util.spec_from_file_location("run_tour", PATH)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "run_tour", module)
        assert spec.loader is not None
        spec.loader.exec_module(module)
        yield module


@pytest.fixture(scope="module")
def notebook(tour):
    """The notebook after its run."""
    notebook = nbformat.read(tour.NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        tour.execute(notebook)
    return notebook


def code_cells(notebook):
    """Its cells of code."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def test_six_mistakes_at_their_lines_and_nothing_else(tour, notebook):
    found = [(f["slug"], f["line"]) for cell in code_cells(notebook) for f in tour.findings_of(cell)]
    assert found == EXPECTED


def test_each_under_its_own_cell(tour, notebook):
    outcomes = [tour.compare(cell) for cell in code_cells(notebook)]
    assert [tour.describe(outcome) for outcome in outcomes if not outcome.good] == []
    assert sum(len(outcome.found) for outcome in outcomes) == len(EXPECTED)


def test_expectations_are_these_six(notebook):
    stated = [cell.metadata.get("torch_inspector", {}).get("expect", []) for cell in code_cells(notebook)]
    assert [(one["slug"], one["line"]) for cell in stated for one in cell] == EXPECTED


def test_one_panel_per_mistake_one_per_mend_and_no_other_output_of_ours(tour, notebook):
    for cell in code_cells(notebook):
        panels = [output for output in cell.outputs if output.output_type in ("display_data", "execute_result")]
        mends = [output for output in panels if output.data[tour.RUN_MIME]["fixed"]]
        assert len(panels) == max(len(tour.findings_of(cell)), len(mends))
        assert all({"text/plain", "text/html", tour.RUN_MIME} == set(output.data) for output in panels)


def test_nothing_on_stderr(notebook):
    streams = [output for cell in code_cells(notebook) for output in cell.outputs if output.output_type == "stream"]
    assert {output.name for output in streams} == {"stdout"}


def test_network_has_learned(tour, notebook):
    assert float(tour.final_accuracy(notebook).rstrip("%")) >= 97


def test_page_keeps_the_panels(tour, notebook, tmp_path):
    path = tmp_path / "tour.html"
    tour.write_html(notebook, path)
    page = path.read_text(encoding="utf-8")
    assert page.count('class="ti-card') >= len(EXPECTED)
    assert all(slug in page for slug, _ in EXPECTED)


def test_a_miss_a_surplus_and_a_failure_are_noticed(tour):
    cell = nbformat.v4.new_code_cell("1 / 0", metadata={"torch_inspector": {"expect": [{"slug": "a", "line": 1}]}})
    other = {"slug": "b", "line": 1, "cell": 1, "subject": "", "severity": "hint", "message": "m"}
    cell.outputs = [nbformat.v4.new_output("display_data", {tour.RUN_MIME: {"findings": [other]}})]
    outcome = tour.compare(cell)
    assert ([one["slug"] for one in outcome.missing], outcome.surplus, outcome.failed) == (["a"], [other], True)
    assert not outcome.good
    assert all(word in tour.describe(outcome) for word in ("a", "b", "FAILED"))
