"""How findings say numbers of things, and names of any length."""

import json

import pytest

from tests.cells import a_notebook
from torch_inspector.findings import Evidence, Finding, all_of, with_short_names

RUN_MIME = "application/vnd.torch-inspector.run+json"
LAYER = "seq = nn.Sequential()\nseq.add_module(N, nn.Linear(5, 2))\nseq(torch.ones(3, 4))"
KIND = "net = type(N, (nn.Linear,), {})(5, 2)\nnet(torch.ones(3, 4))"
LISTED = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        setattr(self, N, [nn.Linear(4, 2)])
    def forward(self, x):
        return getattr(self, N)[0](x)
net = Net()
net(torch.ones(3, 4)).sum().backward()"""
VARIABLE = "net = nn.Linear(64, 64)\nNAME = []\nfor _ in range(40): NAME.append(net(torch.rand(64, 64)).sum())"


@pytest.mark.parametrize("length", [120, 1_000, 100_000])
@pytest.mark.parametrize("source", [LAYER, KIND, LISTED, VARIABLE])
def test_a_finding_about_long_names_is_small_and_its_sentence_whole(source, length):
    with a_notebook(min_bytes=0) as notebook:
        notebook.run(f"import torch\nfrom torch import nn\nN = 'x' * {length}")
        notebook.run(source.replace("NAME", "x" * min(length, 2_000)))
        (bundle,) = [one for one in notebook.published if RUN_MIME in one]
    forms = [json.dumps(form, ensure_ascii=False) for form in bundle.values()]
    (found,) = bundle[RUN_MIME]["findings"]
    assert len("".join(forms).encode()) <= 8_000
    assert found["message"].endswith(".")
    assert found["message"].count("`") % 2 == 0
    summary = json.loads(bundle[RUN_MIME]["card"])["parts"][0]["summary"]
    assert summary.endswith(found["message"][-20:])


def test_a_name_keeps_its_ends_and_numbers_stay():
    name = f"begin{'x' * 10**6}end"
    evidence = (Evidence(f"of {name}", 3, "count"), Evidence("module", name))
    found = with_short_names(Finding(f"`{name}` met `{name}.weight`.", name, f"del {name}", evidence=evidence))
    assert found.message.startswith("`beginx")
    assert found.message.endswith("xend.weight`.")
    assert found.fix.startswith("del beginx")
    assert found.evidence[0].value == 3
    assert all(len(str(one)) < 70 for one in (found.fix, found.evidence[0].label, found.evidence[1].value))
    # What it is about is looked up by its whole name.
    assert found.subject == name


def test_backticks_stay_paired_where_a_sentence_is_cut():
    for count in (20, 21, 22, 50):
        found = with_short_names(Finding(" and ".join(f"`part_{n}.weight`" for n in range(count))))
        assert len(found.message) <= 382
        assert found.message.count("`") % 2 == 0


def test_what_is_short_stays_as_it_is():
    found = Finding("`a` is `b`.", "a", "del a", evidence=(Evidence("c", "d"), Evidence("e", 0.5)))
    assert with_short_names(found) == found


@pytest.mark.parametrize(
    ("count", "text"),
    [(1, "the only gradient"), (2, "both gradients"), (3, "all 3 gradients"), (1024, "all 1,024 gradients")],
)
def test_all_of_some_things(count, text):
    assert all_of(count, "gradient") == text
