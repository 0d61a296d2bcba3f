import pytest

from torch_inspector.page import HEADINGS, Page

TEXT = """# Two softmaxes

The loss applies softmax to what
is already softmax.

A second paragraph.

## Why it hurts

Gradients shrink.

## Bad

```python
import torch
```

Then, in the next cell:

```python
loss = criterion(out.softmax(1), labels)  # finding
```

```text
not a cell
```

## Good

```python
loss = criterion(out, labels)
```

## Not flagged

Nothing.

## Sources

- A book.
"""


def test_page_is_cut_at_its_headings():
    page = Page.parse(TEXT)
    assert page.title == "Two softmaxes"
    assert page.summary == "The loss applies softmax to what is already softmax."
    assert tuple(page.sections) == HEADINGS
    assert page.sections["Why it hurts"] == "Gradients shrink."
    assert page.sections["Sources"] == "- A book."
    assert page.text == TEXT


def test_blocks_are_the_python_cells_in_order():
    page = Page.parse(TEXT)
    assert page.blocks("Bad") == ("import torch\n", "loss = criterion(out.softmax(1), labels)  # finding\n")
    assert page.blocks("Not flagged") == ()


def test_heading_of_a_lower_level_belongs_to_its_section():
    page = Page.parse(TEXT.replace("Gradients shrink.", "### By how much\n\nBy half."))
    assert page.sections["Why it hurts"] == "### By how much\n\nBy half."


@pytest.mark.parametrize(
    "text",
    [
        "",
        TEXT.removeprefix("# "),
        TEXT.replace("## Sources", "Sources"),
        TEXT.replace("## Good", "## Better"),
        TEXT.replace("## Good", "## Bad"),
        TEXT + "\n## More\n",
        TEXT.replace("## Bad", "## swap").replace("## Good", "## Bad").replace("## swap", "## Good"),
    ],
    ids=["empty", "no title", "heading missing", "unknown", "twice", "one too many", "out of order"],
)
def test_wrong_shape_is_refused(text):
    with pytest.raises(ValueError, match="a page needs a title and the headings"):
        Page.parse(text)
