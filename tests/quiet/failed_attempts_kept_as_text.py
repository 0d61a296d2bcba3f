"""Batch sizes tried from the largest down; of a failure the text is kept, of the last one its empty frames."""

# %%
import traceback

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8))
LARGEST = 1024


def encode(rows):
    songs = torch.randn(rows, 64)
    codes = encoder(songs)
    if rows > LARGEST:
        raise MemoryError(f"{rows} rows do not fit")
    return codes.pow(2).mean()


# %%
notes, size = [], 8192
while size:
    try:
        encode(size).backward()
    except MemoryError as error:
        notes.append((size, str(error)))
        size //= 2
    else:
        break

# %%
last = None
try:
    encode(2 * LARGEST)
except MemoryError as error:
    traceback.clear_frames(error.__traceback__)
    last = error

# %%
cause = None
try:
    raise ValueError("no such layer") from last
except ValueError as error:
    cause = error
