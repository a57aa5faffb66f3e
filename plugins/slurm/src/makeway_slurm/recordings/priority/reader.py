"""Read recordings about priorities and limits for ``makeway verify``: they hold their scenarios."""

from __future__ import annotations

import attrs

from makeway.foreign import Source
from makeway_slurm.recordings.priority.judge import judged
from makeway_slurm.recordings.priority.recording import Recording, parse
from makeway_verify.verdicts import Verdict


@attrs.frozen
class Recorded:
    """One recording; a `makeway.foreign.RecordedVerdict`."""

    recording: Recording
    source: str
    """How messages call its file."""

    def verdict(self, *, skip_missing: bool) -> Verdict:
        """Play its scenario, and judge."""
        return judged(self.recording, self.source, skip_missing=skip_missing)


@attrs.frozen
class RecordingReader:
    """Reads them; a `makeway.foreign.RecordingReader`."""

    name: str = "Slurm recordings about priorities"

    def claims(self, name: str, head: str) -> bool:
        """Say whether the file is one: JSON with a release of Slurm and a scenario of its own."""
        return name.endswith(".json") and '"slurm_version"' in head and '"scenario": {' in head

    def recorded(self, source: Source) -> Recorded:
        """Read one.

        :raises ConfigError: it is malformed.
        """
        return Recorded(parse(source.text, source.name), source.name)


__all__ = ["Recorded", "RecordingReader"]
