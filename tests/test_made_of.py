"""What a text makes its variables of, from statement to statement."""

import pytest

from torch_inspector.facts import made_of
from torch_inspector.facts.made_of import ingredients_of

TEXTS = {
    "a chain": ("b = a\nc = b + d", "c", {"b", "a", "d"}),
    "a circle": ("b = a\na = b", "b", {"a"}),
    "a loop": ("for row in rows: total += row", "total", {"row", "rows"}),
    "a pair": ("a, b = c, d", "b", {"c", "d"}),
    "a list": ("kept.append(x)", "kept", {"x"}),
    "a definition": ("def f(): return a\nb = f()", "b", {"f"}),
    "nothing": ("b = a", "a", set()),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_ingredients(name):
    text, variable, wanted = TEXTS[name]
    assert set(ingredients_of(text, [variable])) == {variable} | wanted


def test_each_statement_is_read_once(monkeypatch):
    read: list[object] = []

    def reading(given, **how):
        read.append(given)
        return sorted(given, **how)

    monkeypatch.setattr(made_of, "sorted", reading, raising=False)
    chain = "\n".join(f"c{i} = c{i - 1} + u{i}" for i in range(1, 200))
    made_of.steps_of(chain)
    read.clear()
    assert len(ingredients_of(chain, ["c199"])) == 2 * 199 + 1
    assert len(read) <= 2 * 199
