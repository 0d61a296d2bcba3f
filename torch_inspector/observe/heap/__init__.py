"""Explains the bytes of live tensors: what there is, who holds it, what it is called."""
