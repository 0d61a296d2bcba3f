"""Mistakes in functions, with tensors that the functions make themselves, of objects that no variable names."""

import pytest

from tests.cells import findings_in

SETUP = """
import torch
import torch.nn.functional as F
torch.manual_seed(0)
x = torch.rand(300, 64)
marks = torch.randint(0, 6, (48,))
batches = [(torch.arange(1500), torch.arange(1500)) for _ in range(3)]
"""
LOST, VISITS, TABLE = "assignment-to-indexed-copy", "python-loop-over-tensor", "broadcast-blowup"

TARGETS = """
class Matcher:
    def __init__(self, n=3, least=0.5):
        self.n, self.least = n, least

    def assign(self, overlap):
        kept = overlap > self.least
        targets = torch.zeros(len(overlap), 4 + self.n)
        targets[kept]{index} = 1.0
        return targets
"""


@pytest.mark.parametrize("call", ["Matcher().assign(x[:9, 0])", "Matcher(n=5).assign(x[:9, 0])"])
def test_sizes_of_an_object_that_is_gone(call):
    (one,) = findings_in(SETUP, TARGETS.format(index="[:, 1]"), f"out = {call}", slug=LOST, fails=False)
    assert (one.line, one.severity) == (9, "error")
    assert not findings_in(SETUP, TARGETS.format(index=""), f"out = {call}", slug=LOST)


COLLATE = """
class Collator:
    def __init__(self, share=0.5):
        self.share = share
    def __call__(self, rows):
        ids = {ids}
        labels = ids.clone()
        picked = torch.rand(labels.shape) < self.share
        number = torch.rand(int(picked.sum()))
        {line}
        return ids
"""


@pytest.mark.parametrize("ids", ["torch.stack(rows)", "torch.cat([row[None] for row in rows])", "rows.to('cpu')"])
def test_a_mask_as_large_as_a_copy(ids):
    rows = "marks.view(6, 8)" if ".to" in ids else "list(marks.view(6, 8))"
    cell = COLLATE.format(ids=ids, line="ids[picked][number < 0.8] = 3")
    (one,) = findings_in(SETUP, cell, f"out = Collator()({rows})", slug=LOST, fails=False)
    assert one.subject == "ids"
    cell = COLLATE.format(
        ids=ids, line="rows = ids[picked]\n        rows[number < 0.8] = 3\n        ids[picked] = rows"
    )
    assert not findings_in(SETUP, cell, f"out = Collator()({rows})", slug=LOST)


def test_an_entry_of_a_dictionary_is_no_copy():
    cell = "def f(table, a):\n    chosen = a > 2\n    table[chosen][0] = 1\n    return table\nt = f({True: [0]}, 3)"
    assert not findings_in(SETUP, cell, slug=LOST)


PAIRS = """
def gram(e):
    e = F.normalize(e, dim=1)
    return e @ e.t()
def pairs(e, marks):
    e = F.normalize(e, dim=1)
    like = {made}
    loss = 0.0
    for i in range(like.size(0)):
        for j in range(like.size(1)):
            if marks[i] == marks[j]:
                loss = loss + like[i, j]
    return loss
loss = pairs(x[:48], marks)
"""


@pytest.mark.parametrize("made", ["e @ e.t()", "torch.mm(e, e.t())", "torch.matmul(e, e.T)", "gram(e)", "e.mm(e.t())"])
def test_a_product_that_is_visited(made):
    (one,) = findings_in(SETUP, PAIRS.format(made=made), slug=VISITS, fails=False)
    assert one.line == 9
    assert "`marks`, `like` one by one, up to 6,912 times" in one.message


def test_functions_that_give_back_one_of_several():
    several = "    if len(e) > 9:\n        return e[:2]\n    return e @ e.t()"
    text = PAIRS.format(made="gram(e)").replace("    return e @ e.t()", several)
    assert not findings_in(SETUP, text.replace("marks[i] == marks[j]", "marks.sum() > 0"), slug=VISITS)


COUNTS = """
def count(loader):
    same = 0
    for {head}:
        for a, b in zip(guess, given):
            if a == b:
                same += 1
    return same
same = count({loader})
"""


@pytest.mark.parametrize(
    ("head", "loader"),
    [
        ("guess, given in loader", "batches"),
        ("guess, given in loader", "[(marks, marks)] * 3"),
        ("i, (guess, given) in enumerate(loader)", "batches"),
    ],
)
def test_a_loop_in_a_loop_over_a_list(head, loader):
    (one,) = findings_in(
        f"{SETUP}marks = marks.repeat(40)\n", COUNTS.format(head=head, loader=loader), slug=VISITS, fails=False
    )
    assert "`guess`, `given` one by one" in one.message
    assert not findings_in(SETUP, COUNTS.format(head=head, loader="[(marks, marks)] * 3"), slug=VISITS)


COMPARED = """
net = torch.nn.Linear(64, 1)
def accuracy(loader):
    total = 0.0
    for rows, wanted in loader:
        guess = net(rows)
        {line}
        total += (guess == wanted).float().mean()
    return total
a = accuracy([(x[:16], torch.rand(16)), (x[16:32], torch.rand(16))])
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [("wanted = wanted.to('cpu')", 1), ("wanted = wanted.view_as(guess)", 0), ("guess = guess.squeeze(1)", 0)],
)
def test_variables_of_a_loop_that_are_given_another_value(line, found):
    assert len(findings_in(SETUP, COMPARED.format(line=line), slug="silent-broadcast", fails=False)) == found


ALL_PAIRS = """
class Propagation:
    def between(self, data):
        return ((data[:, None] - data[None]) ** 2).sum(-1)
    def fit(self, data):
        self.S = self.between(data)
        return self
def fitted(data):
    model = Propagation()
    model.fit(data)
    return model
"""


@pytest.mark.parametrize("call", ["Propagation().fit(x)", "fitted(x)"])
def test_a_method_that_an_unnamed_object_calls(call):
    (one,) = findings_in(SETUP, ALL_PAIRS, f"model = {call}", slug=TABLE, fails=False)
    assert "(300, 300, 64)" in one.message
