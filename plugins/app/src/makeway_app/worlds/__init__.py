"""The world whose clock is simulated."""
