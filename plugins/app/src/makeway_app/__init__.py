"""What people call: the command `makeway`, the readers of its own files, replays and their reports."""
