"""The door to IPython: events, magics, settings and what is shown under a cell."""
