"""The worlds: they know the time, carry out actions and report events; they decide nothing."""
