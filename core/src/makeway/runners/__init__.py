"""Worlds by the old contract of runners; `makeway.worlds` replaces it."""
