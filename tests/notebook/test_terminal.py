"""IPython in a real terminal of 80 columns."""

import os
import re
import sys
from io import StringIO

import pytest
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from tests.images import IMAGES
from tests.notebook.samples import GOOD_LOOP, LOOP, SETUP, SLUG, line_of

pexpect = pytest.importorskip("pexpect", reason="terminals of this kind are those of Unix")

COLUMNS = 80
PROMPT = r"(In \[\d+\]|\.\.\.): $"
LOADED = f"%load_ext torch_inspector\n{SETUP}"
# The format that rich has names fonts on the web, which pictures must not load.
PICTURE = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


@pytest.fixture
def terminal(tmp_path):
    """IPython at its first prompt."""
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path), "OMP_NUM_THREADS": "1", "TERM": "xterm-256color"}
    for name in ("COLUMNS", "LINES", "PYTHONSTARTUP"):
        environment.pop(name, None)
    arguments = ["-m", "IPython", "--simple-prompt", "--no-banner"]
    child = pexpect.spawn(
        sys.executable, arguments, env=environment, dimensions=(40, COLUMNS), encoding="utf-8", timeout=60
    )
    child.expect(PROMPT)
    yield child
    child.close(force=True)


def typed(terminal, code):
    """What the terminal shows for some lines, with the prompts of the first and the last."""
    shown = terminal.after
    for line in code.split("\n"):
        terminal.sendline(line)
        terminal.expect(PROMPT)
        shown += terminal.before + terminal.after
    return shown.replace("\r\n", "\n")


def picture(shown, name):
    """Draws a terminal as it looks."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_jupyter=False, _environ={})
    console.print(Text.from_ansi(shown))
    IMAGES.mkdir(parents=True, exist_ok=True)
    console.save_svg(str(IMAGES / f"{name}.svg"), title="IPython", code_format=PICTURE)


def test_a_finding_fits_80_columns_and_says_all(terminal):
    typed(terminal, LOADED)
    shown = typed(terminal, LOOP)
    picture(shown.rpartition("\n")[0].rstrip(), "terminal")
    lines = Text.from_ansi(shown).plain.split("\n")
    assert max(map(cell_len, lines)) <= COLUMNS
    text = " ".join(" ".join(lines).split())
    assert f"line {line_of(LOOP)}: " in text
    assert "optimizer.zero_grad()" in text
    assert f"%torchcheck explain {SLUG}" in text
    # What can be typed is typed.
    assert "gradients" in typed(terminal, f"%torchcheck explain {SLUG}")


def test_a_clean_cell_shows_nothing(terminal):
    typed(terminal, LOADED)
    shown = typed(terminal, GOOD_LOOP)
    last = shown.rpartition("optimizer.step()\n")[2]
    assert re.fullmatch(r"\s*\.\.\.: \n\s*\n?In \[\d+\]: ", last)
