"""Which file judges which kind of expression."""

from __future__ import annotations

import ast

from torch_inspector.observe.added_up import added_up
from torch_inspector.observe.axes import over_batch, unnamed
from torch_inspector.observe.constructs import columns, legacy
from torch_inspector.observe.copies import lost
from torch_inspector.observe.crossings import crossings
from torch_inspector.observe.cut_batches import cut_batches
from torch_inspector.observe.expressions import Judges
from torch_inspector.observe.growing import growing, grown_by_calls
from torch_inspector.observe.half_steps import half_steps
from torch_inspector.observe.handed_copies import handed_copies
from torch_inspector.observe.over_samples import over_samples
from torch_inspector.observe.picks import picks
from torch_inspector.observe.remainders import remainders
from torch_inspector.observe.reshapes import reshapes
from torch_inspector.observe.second_names import second_names
from torch_inspector.observe.squashed import squashed
from torch_inspector.observe.stored_later import settled
from torch_inspector.observe.tabled import tabled
from torch_inspector.observe.thrown_away import thrown_away
from torch_inspector.observe.visits import visits
from torch_inspector.observe.wraps import wraps
from torch_inspector.observe.zeroed import zeroed

JUDGES: Judges = {
    ast.BinOp: (settled(crossings), wraps),
    ast.Compare: (settled(crossings),),
    ast.Call: (
        *(settled(crossings), wraps, settled(reshapes), lost, unnamed, settled(over_batch), settled(over_samples)),
        *(legacy, columns, tabled, visits, second_names, squashed, handed_copies, thrown_away),
    ),
    ast.Assign: (lost, wraps, second_names, grown_by_calls, zeroed, handed_copies, half_steps),
    ast.Return: (handed_copies,),
    ast.AugAssign: (lost, wraps),
    ast.For: (remainders, growing, visits, cut_batches, added_up),
    ast.While: (growing,),
    ast.ListComp: (visits,),
    ast.GeneratorExp: (visits,),
    ast.Subscript: (settled(picks),),
}
