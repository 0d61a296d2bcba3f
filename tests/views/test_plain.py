import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.views.samples import HOSTILE
from torch_inspector.views.plain import block, clip, one_line, plain

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)


def test_clip_marks_the_cut():
    assert clip("short", 5) == "short"
    assert clip("longer", 5) == "long…"


def test_plain_writes_out_what_cannot_be_seen():
    assert plain("a\nb\x1b[0m\u202e\ud800") == r"a\nb\x1b[0m\u202e\ud800"


def test_plain_leaves_letters_of_all_scripts_alone():
    text = "größe, вес, 重み, وزن, 👩\u200d🔬, \\n"
    assert plain(text) == text


def test_block_keeps_lines_and_counts_them():
    assert block("\n\tx\r\ny\x00\n\n", 100) == "    x\ny\\x00"
    assert block("a\nb\nc", 100, line_limit=2) == "a\nb\n…"


@given(ANY_TEXT)
def test_nothing_unseen_is_left(text):
    shown = one_line(text, 50) + block(text, 50).replace("\n", "")
    assert {unicodedata.category(c) for c in shown}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})
    assert {unicodedata.bidirectional(c) for c in shown}.isdisjoint({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI"})
    shown.encode()


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_length_is_bounded(text):
    assert len(one_line(text, 100)) <= 100
    assert len(block(text, 100)) <= 102
