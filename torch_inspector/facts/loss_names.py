"""Names by which people call their losses."""

from __future__ import annotations

import re

_SAYS = re.compile(r"loss|nll|cost|xent|perplex|(?<![a-z])(ce|ppl|ll)(?![a-z])|likelihood|logl", re.IGNORECASE)


def says_loss(name: str) -> bool:
    """True for `val_loss` and `history['nll']`; not for `m` and `confidence`, which may be turned round later."""
    return _SAYS.search(name) is not None
