"""All that keeps an object alive, and what lets go of it."""

import sys

import torch
from torch import nn

from torch_inspector.observe.heap.explain import Roots
from torch_inspector.observe.heap.holders import holders, holders_of_row


def asked(names, thing, ipython=()):
    return holders(Roots(names, ipython), thing, "thing", 10.0)


def paths(report):
    return {row.path: row.fix for row in report.rows if "test_" not in row.path and row.kind != "frame"}


def test_every_way_is_listed_the_shortest_first():
    x = torch.randn(1_000)
    names = {"x": x, "history": {"x": [x]}, "part": x[2:]}
    report = asked(names, x)
    assert report.nbytes == 4_000
    assert report.device == "cpu"
    assert paths(report) == {"x": "del x", "part": "del part", "history['x'][0]": "del history['x'][0]"}
    assert report.rows[0].path == "x"


def test_a_graph_is_a_holder():
    x = torch.randn(10, 10)
    names = {"loss": nn.Linear(10, 10)(x).mean()}
    assert "loss (its graph)" in paths(asked(names, x))


def test_a_module_is_held_by_names_and_attributes():
    class Trainer:
        pass

    Trainer.__module__ = "__main__"
    trainer, model = Trainer(), nn.Linear(10, 10)
    trainer.__dict__["model"] = model
    report = asked({"trainer": trainer, "model": model}, model)
    assert paths(report) == {"model": "del model", "trainer.model": "del trainer.model"}
    assert report.nbytes == 440


def test_a_parameter_is_held_by_its_model_and_optimizer():
    model = nn.Linear(10, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    found = paths(asked({"model": model, "optimizer": optimizer}, model.weight))
    assert found == {"model.weight": "del model", "optimizer.param_groups[0]['params'][0]": "del optimizer"}


def test_the_output_history_is_freed_by_the_magic():
    shown = torch.randn(10)
    report = asked({"_3": shown}, shown, (("Out", {3: shown}),))
    assert paths(report) == {"_3": "%torchcheck free", "Out[3]": "%torchcheck free"}


def test_a_closure_is_named():
    def make():
        cached = torch.randn(100)
        return (lambda: cached), cached

    later, cached = make()
    report = asked({"later": later}, cached)
    assert any(row.path.startswith("later (closure over cached)") and row.kind == "closure" for row in report.rows)


def test_a_row_without_an_expression_can_be_asked_about():
    def make():
        cached = torch.randn(100)
        return lambda: cached

    report = holders_of_row(Roots({"later": make()}), "later (closure over cached)", 10.0)
    assert report is not None
    assert report.nbytes == 400
    assert holders_of_row(Roots({}), "later (closure over cached)", 10.0) is None


def test_an_object_without_memory_has_holders_too():
    settings = {"rate": 1}
    report = asked({"kept": [settings]}, settings)
    assert report.nbytes == 0
    assert "kept[0]" in paths(report)


def test_the_last_exception_is_let_go_of_by_the_command_that_does_so(monkeypatch):
    error = ValueError()
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    report = asked({"failures": [error]}, error)
    found = paths(report)
    assert found["sys.last_value"] == "%torchcheck free --traceback"
    assert found["failures[0]"] == "del failures[0]"
    assert not any(path.startswith("sys[") for path in found)
