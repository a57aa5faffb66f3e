"""The runner whose clock is simulated."""
