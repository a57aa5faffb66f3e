"""Count the jobs of each user that wait or run, and the bytes that their submissions take."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence

from makeway_local_world.submission import stored_as


class Tally:
    """The live jobs by user; used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[str, str] = {}
        """Job -> whose it is."""
        self._live: Counter[str] = Counter()
        """Submission -> jobs of it that have not ended."""
        self._sizes: dict[str, int] = {}
        """Submission -> bytes."""
        self._jobs: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def held_by(self, user: str) -> tuple[int, int]:
        """Return how many jobs a user has, and how many bytes they take."""
        with self._lock:
            return self._jobs[user], self._bytes[user]

    def enter(self, user: str, jobs: Sequence[str], size: int) -> None:
        """Count the jobs of a submission, which takes `size` bytes."""
        with self._lock:
            for job_id in jobs:
                if job_id not in self._users:
                    self._users[job_id] = user
                    self._jobs[user] += 1
                    self._live[stored_as(job_id)] += 1
            stored = stored_as(jobs[0])
            self._bytes[user] += size - self._sizes.get(stored, 0)
            self._sizes[stored] = size

    def ended(self, job_id: str) -> bool:
        """Forget a job; say whether it was the last one of its submission."""
        with self._lock:
            user = self._users.pop(job_id, None)
            if user is None:
                return False
            self._jobs[user] -= 1
            stored = stored_as(job_id)
            self._live[stored] -= 1
            if self._live[stored] > 0:
                return False
            del self._live[stored]
            self._bytes[user] -= self._sizes.pop(stored, 0)
            return True
