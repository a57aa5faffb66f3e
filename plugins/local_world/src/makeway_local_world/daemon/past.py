"""What a local world's journal tells beside what any journal does: the keys of submissions."""

from __future__ import annotations

import makeway_live.past
from makeway_local_world.requests import KEY


class Past(makeway_live.past.Past):
    """Reads one journal."""

    def keys(self) -> dict[str, list[str]]:
        """Return key of a submission -> the jobs that it made, in order."""
        found: dict[str, list[str]] = {}
        path = f"$.attributes.{KEY}"
        rows = self.rows(
            "SELECT json_extract(spec, ?), id FROM jobs WHERE json_extract(spec, ?) IS NOT NULL ORDER BY place",
            path,
            path,
        )
        for key, job_id in rows:
            found.setdefault(str(key), []).append(str(job_id))
        return found
