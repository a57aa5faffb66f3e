"""Say how a job stands that an engine did not bring about itself: what adoption starts from."""

from makeway.state import Held, Standing

__all__ = ["Held", "Standing"]
