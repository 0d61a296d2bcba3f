"""What the kernel tells the sidebar: memory while it changes, each cell when it has ended, more on request."""
