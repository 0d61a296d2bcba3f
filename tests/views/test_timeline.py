from tests.fakes import (
    a_backward,
    a_clear,
    a_count,
    a_forward,
    a_mode,
    a_module,
    a_place,
    a_run,
    a_step,
    an_optimizer,
)
from torch_inspector.facts import LossFact, MomentFact
from torch_inspector.views.explain import Drawing
from torch_inspector.views.report import report_card
from torch_inspector.views.timeline import timeline_parts, untold_counts

NAMED = [a_module(), an_optimizer()]


def rows(*facts, **changes):
    """The calls of the timeline."""
    return timeline_parts(a_run(*facts, after=NAMED, **changes))[0].rows


def test_calls_stand_in_order_of_their_first():
    assert rows(
        a_step(order=40),
        a_step(order=9, index=1),
        a_clear(order=10, count=18),
        a_backward(order=3),
        a_backward(order=4, place=a_place(7), is_grad_call=True),
        a_forward(order=2, count=18),
        a_forward(order=50, line=12, training=False, grad_enabled=False, count=3),
        a_mode(order=1),
        a_mode(order=45, training=False, line=11),
        a_mode(order=48, training=False, line=11),
        a_count("backward", 18, line=3),
        a_count("step", 1_800, line=4),
        a_count("zero_grad", 1_800, line=5),
    ) == (
        ("model.train()", "line 1", "1"),
        ("model(…), train", "line 2", "18"),
        ("loss.backward()", "line 3", "18"),
        ("grad(loss)", "line 7", "1"),
        ("optimizer.step()", "line 4", "1,800"),
        ("optimizer.zero_grad()", "line 5", "1,800"),
        ("model.eval()", "line 11", "2"),
        ("model(…), eval, no grad", "line 12", "3"),
    )


def test_what_has_no_name_goes_by_its_kind():
    unnamed = (a_forward(module=77, kind="ResNet"), a_backward(root=""), a_step(optimizer=78), a_clear(owner=79))
    assert [row[0] for row in rows(*unnamed)] == ["ResNet(…), train", "loss.backward()", "SGD.step()", "zero_grad()"]


def test_many_lines_are_cut_and_counted():
    (table,) = timeline_parts(a_run(*(a_forward(line, order=line) for line in range(1, 31)), after=NAMED))
    assert (len(table.rows), table.caption) == (20, "What happened, in order (20 of 30)")


def test_calls_that_stand_there_are_not_told_twice():
    counts = (a_count("step", 4, line=4), a_count("scheduler", 2, line=6))
    run = a_run(a_step(), *counts, after=NAMED)
    assert untold_counts(run) == [counts[1]]
    captions = [getattr(part, "caption", "") for part in report_card(Drawing.of(run, [])).parts]
    assert captions.index("What happened, in order") < captions.index("Calls")


def test_losses_of_each_line_are_a_line():
    facts = [LossFact(n, a_place(line), n + 1, float(n)) for line in (3, 5) for n in range(3)]
    assert [table.caption for table in timeline_parts(a_run(*facts))] == ["loss, as far as looked at"] * 2


def test_memory_is_a_line_per_device():
    looks = [MomentFact(at / 2, "host", (300 + at) << 20) for at in range(5)]
    looks += [MomentFact(at / 2, "cuda:0", (at % 2) << 30) for at in range(5)]
    host, device = timeline_parts(a_run(moments=tuple(looks), duration_s=4.0))
    assert host.caption == "host memory over 4.00 s"
    assert host.rows == (
        ("first look", "300 MB", "after 0 s"),
        ("highest", "304 MB", "after 2.00 s"),
        ("last look", "304 MB", "after 2.00 s"),
    )
    assert host.curve == ((0, 0), (125, 250), (250, 500), (375, 750), (500, 1_000))
    assert [height for _, height in device.curve] == [0, 1_000, 0, 1_000, 0]


def test_long_cells_keep_their_peak():
    looks = tuple(MomentFact(at / 1, "host", 1 << 30 if at == 777 else 1 << 20) for at in range(4_000))
    (table,) = timeline_parts(a_run(moments=looks, duration_s=4_000.0))
    assert len(table.curve) <= 60
    assert max(height for _, height in table.curve) == 1_000
    assert table.rows[1] == ("highest", "1.00 GB", "after 12 min 57 s")


def test_two_looks_are_no_line_and_nothing_is_nothing():
    assert timeline_parts(a_run(moments=(MomentFact(0.0, "host", 1), MomentFact(1.0, "host", 2)))) == []
    assert timeline_parts(a_run()) == []


def test_equal_memory_is_flat():
    looks = tuple(MomentFact(float(at), "host", 7 << 20) for at in range(4))
    assert {height for _, height in timeline_parts(a_run(moments=looks))[0].curve} == {0}
