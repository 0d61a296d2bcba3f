"""Facts and findings drawn for people: everything becomes a card, and a card becomes text, HTML, JSON or a widget.

Nothing here is imported before the first card is drawn.
"""
