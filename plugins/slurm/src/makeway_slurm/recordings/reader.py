"""Play what a real Slurm was seen to do for ``makeway verify``, and judge: scenarios, and recordings of priorities."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from makeway import registry
from makeway.errors import PluginError
from makeway.foreign import Dialect, Source
from makeway.hookspecs import hookimpl
from makeway_slurm.recordings.play import play
from makeway_slurm.recordings.priority.judge import judged, verdict
from makeway_slurm.recordings.priority.recording import Recording, looks_so, parse
from makeway_slurm.recordings.scenario import Scenario
from makeway_slurm.recordings.verify import verify_one
from makeway_verify.verdicts import Outcome, Verdict


@attrs.frozen
class ScenarioReader:
    """Plays scenarios that the oracle recorded; a `makeway.foreign.ScenarioReader`."""

    name: str = "Slurm scenarios"

    def claims(self, name: str, head: str) -> bool:
        """Say whether the file is a scenario: TOML, whatever it holds."""
        return name.endswith(".toml")

    def verdict(self, scenario: str, recorded: str, *, skip_missing: bool) -> Verdict:
        """Replay a scenario and compare.

        :raises ConfigError: the scenario or the recording is malformed.
        """
        path = Path(recorded)
        if path.is_file() and looks_so(path.read_text(encoding="utf-8", errors="replace")):
            return verdict(path, skip_missing=skip_missing)
        player = _Player(skip_missing=skip_missing)
        return player.verdict(Path(scenario), Path(recorded))


@attrs.define
class _Player:
    """Plays a scenario, and remembers whether plugins are missing."""

    skip_missing: bool
    _missing: str = ""

    def verdict(self, scenario: Path, recording: Path) -> Verdict:
        """Judge it."""
        found = verify_one(scenario, recording, self._play)
        if not self._missing:
            return found
        outcome = Outcome.SKIPPED if self.skip_missing else Outcome.FAILED
        return attrs.evolve(found, outcome=outcome, why=self._missing)

    def _play(self, scenario: Scenario) -> Mapping[str, Any]:
        self._missing = registry.missing_to_play(scenario.config)
        if self._missing:
            raise PluginError(self._missing)
        return play(scenario)


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


@hookimpl
def makeway_dialect() -> Dialect:
    """Hand over recordings of Slurm, as the plugin ``recordings/slurm``."""
    return Dialect(recordings=[ScenarioReader(), RecordingReader()])
