"""Translate foreign files, each reader owning the words of its format."""
