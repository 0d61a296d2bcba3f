"""Cells that are run again and again."""

import pytest

from tests.cells import findings_in

SLUG = "memory-grows-on-rerun"
START = "import torch\nfeatures, known, box = [], {}, type('Box', (), {'kept': []})()\nnumber = 0"


def found(*cells):
    return findings_in(*cells, slug=SLUG)


@pytest.mark.parametrize(
    ("code", "line", "subject"),
    [
        ("for _ in range(3):\n    features.append(torch.randn(400, 400))", 2, "features"),
        ("features += [torch.randn(700, 700), torch.randn(9)]", None, "features"),
        ("for _ in range(2):\n    known[number] = torch.randn(500, 500); number += 1", None, "known"),
    ],
)
def test_what_grows_each_time(code, line, subject):
    (finding,) = found(START, code, code, code)
    assert (finding.line, finding.subject) == (line, subject)


def test_it_is_told_by_what_each_run_gained():
    (finding,) = found(START, *["features.append(torch.randn(1024, 1024))"] * 4)[:1]
    assert "grew by 4.00 MB each time this cell ran" in finding.message


@pytest.mark.parametrize(
    "cells",
    [
        ["features.append(torch.randn(700, 700))"] * 2,
        ["features = [torch.randn(700, 700) for _ in range(3)]"] * 4,
        ["features.append(torch.randn(20, 20))"] * 4,
        ["features = torch.randn(700, 700)"] * 4,
        ["known[number % 2] = torch.randn(700, 700); number += 1"] * 5,
        ["features.append(torch.randn(700, 700))", "features.clear()"] * 4,
        [
            "features.append(torch.randn(700, 700))",
            "features += [torch.randn(700, 700)]",
            "features[:0] = [torch.randn(700, 700)]",
        ],
        ["big = torch.randn(700, 700)\nfeatures.append(big[:2])\nfeatures.append(features[0])"] * 4,
    ],
)
def test_what_does_not(cells):
    assert found(START, *cells) == []


MODEL = "net = torch.nn.Linear(1000, 1000)\n_ = net(torch.ones(1000)) and 0\n"


def test_models_that_each_run_adds():
    (finding,) = found(START, *[MODEL.replace(" and 0", ".sum()") + "features.append(net)"] * 4)
    assert (finding.line, finding.subject) == (3, "features")
    assert "grew by 3.82 MB each time this cell ran" in finding.message


@pytest.mark.parametrize(
    ("code", "times"),
    [
        ("features.append(net)", 2),
        ("features = [net]", 5),
        ("features.append(net)\nfeatures = features[-1:]", 5),
        ("known[number % 2] = net; number += 1", 5),
        ("features.extend(net for _ in range(3))\nfeatures = features[-3:]", 5),
    ],
)
def test_models_that_are_replaced_or_few(code, times):
    assert not found(START, *[MODEL.replace(" and 0", ".sum()") + code] * times)


def test_many_models_of_one_run():
    cell = (
        "for n in range(5):\n    net = torch.nn.Linear(1000, 1000)\n    net(torch.ones(1000))\n    features.append(net)"
    )
    assert not found(START, cell)


def test_layers_that_all_models_share_are_there_once():
    backbone = "backbone = torch.nn.Linear(1000, 1000)"
    cell = "net = torch.nn.Sequential(backbone, torch.nn.Linear(1000, 2))\nnet(torch.ones(1000))\nfeatures.append(net)"
    assert not found(START, backbone, *[cell] * 5)
