"""Runs the tour in a kernel of its own and compares what was found in each cell with what the notebook expects.

    python demo/run_tour.py [--html PATH]

The exit status is 1 if a mistake was missed, if anything else was found, or if a cell failed.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbconvert import HTMLExporter
from nbformat import NotebookNode
from traitlets.config import Config

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "demo" / "tour.ipynb"
RUN_MIME = "application/vnd.torch-inspector.run+json"
# Interactive widgets would need a kernel; the HTML of a panel needs none.
SHOWN = ["text/html", "text/markdown", "image/svg+xml", "image/png", "text/latex", "text/plain"]


@dataclass(frozen=True)
class Outcome:
    """What one code cell was expected to show, and what it showed."""

    cell: NotebookNode
    found: list[dict[str, Any]]
    missing: list[dict[str, Any]]
    surplus: list[dict[str, Any]]
    failed: bool

    @property
    def good(self) -> bool:
        """True if the cell ran and showed what was expected, no less and no more."""
        return not (self.missing or self.surplus or self.failed)


def execute(notebook: NotebookNode) -> None:
    """Runs all cells, up to the first that fails; the repository is the kernel's working folder."""
    # Two small convolutions gain nothing from more threads, and the numbers stay the same from run to run.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,
        resources={"metadata": {"path": str(ROOT)}},
        extra_arguments=["--log-level=ERROR"],
    )
    try:
        client.execute()
    except CellExecutionError as error:
        print(error, file=sys.stderr)


def findings_of(cell: NotebookNode) -> list[dict[str, Any]]:
    """The findings in the cell's outputs, read as any other program would read them."""
    messages = [output.get("data", {}).get(RUN_MIME) for output in cell.outputs]
    return [finding for message in messages if message for finding in message["findings"]]


def fits(finding: dict[str, Any], expected: dict[str, Any], cell: NotebookNode) -> bool:
    """True if the finding names the mistake, the line in this cell, and the subject if one is given."""
    return (
        finding["slug"] == expected["slug"]
        and finding["line"] == expected["line"]
        and finding["cell"] == cell.execution_count
        and expected.get("subject_contains", "") in finding["subject"]
    )


def compare(cell: NotebookNode) -> Outcome:
    """Pairs each expectation with one finding; what is left over on either side is wrong."""
    found = findings_of(cell)
    missing, surplus = [], list(found)
    for expected in cell.metadata.get("torch_inspector", {}).get("expect", []):
        match = next((finding for finding in surplus if fits(finding, expected, cell)), None)
        if match is None:
            missing.append(expected)
        else:
            surplus.remove(match)
    failed = cell.execution_count is None or any(output.output_type == "error" for output in cell.outputs)
    return Outcome(cell, found, missing, surplus, failed)


def describe(outcome: Outcome) -> str:
    """One line per cell, and under it one per finding or complaint."""
    first = outcome.cell.source.splitlines()[0]
    lines = [f"{outcome.cell.id}  {'' if outcome.good else 'WRONG  '}{first}"]
    for finding in outcome.found:
        lines.append(f"    found: {finding['slug']} ({finding['severity']}, line {finding['line']})")
        lines.append(f"        {finding['message']}")
    lines += [f"    MISSING: {expected['slug']}, line {expected['line']}" for expected in outcome.missing]
    lines += [f"    NOT EXPECTED: {finding['slug']}, line {finding['line']}" for finding in outcome.surplus]
    if outcome.failed:
        lines.append("    FAILED or not run")
    return "\n".join(lines)


def write_html(notebook: NotebookNode, path: Path) -> None:
    """Writes the notebook with its panels as one page."""
    config = Config()
    config.NbConvertBase.display_data_priority = SHOWN
    page, _ = HTMLExporter(config=config).from_notebook_node(notebook)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(page, encoding="utf-8")


def final_accuracy(notebook: NotebookNode) -> str:
    """What the last cell printed about held-out digits; a question mark if it did not come that far."""
    text = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    match = re.search(r"held-out accuracy (\d+\.\d%)", text)
    return match[1] if match else "?"


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--html", type=Path, default=ROOT / "build" / "tour.html", metavar="PATH")
    return parser.parse_args()


def main() -> int:
    """Runs, reports and writes the page."""
    options = arguments()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    execute(notebook)
    outcomes = [compare(cell) for cell in notebook.cells if cell.cell_type == "code"]
    print("\n".join(describe(outcome) for outcome in outcomes))
    write_html(notebook, options.html)
    wrong = sum(not outcome.good for outcome in outcomes)
    found = sum(len(outcome.found) for outcome in outcomes)
    print(f"\n{found} findings in {len(outcomes)} cells, {wrong} cells not as expected")
    print(f"held-out accuracy {final_accuracy(notebook)}; page: {options.html}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
