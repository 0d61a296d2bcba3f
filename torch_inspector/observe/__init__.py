"""Watching live torch objects: the only folder that imports torch and psutil. Nothing is imported here."""
