"""Tell people without rights what is decided about their jobs, and why; nothing here changes anything."""
