"""Settings of all tests: Hypothesis never fails a test for being slow, as machines are shared and noisy."""

import gc
import os

from hypothesis import HealthCheck, settings

if not os.environ.get(
    "CI"
):  # there Hypothesis takes its own profile, which is patient too and draws the same cases
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def pytest_runtest_teardown() -> None:
    """Unfreeze what a daemon or a command froze: Hypothesis asks the collector who refers to its random numbers."""
    if hasattr(gc, "unfreeze"):
        gc.unfreeze()
