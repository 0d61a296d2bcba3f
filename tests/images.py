"""Where the pictures lie that tests take."""

import os
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
# Pictures of the docs are taken by `TORCH_INSPECTOR_IMAGES=docs/images`.
IMAGES = Path(os.environ.get("TORCH_INSPECTOR_IMAGES", _ROOT / "build" / "screenshots"))
