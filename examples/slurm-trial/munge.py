"""Start and stop a munge daemon of its own, so that a trial cluster has credentials as a real one.

Needs root and Debian's package munge, whose service is left alone.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

READY = 60.0


class Munge:
    """A munge daemon in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self._daemon: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """Where it is asked."""
        return self.directory / "socket"

    def settings(self) -> str:
        """Return the lines of slurm.conf with which a cluster uses it."""
        return f"AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={self.socket}\n"

    def start(self) -> None:
        """Start it; return once it answers.

        :raises RuntimeError: it does not.
        """
        self.directory.mkdir(parents=True, exist_ok=True)
        self.directory.chmod(0o755)
        key = self.directory / "key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        words = ["munged", "--foreground", "--force", "--num-threads=2"]
        for name in ("socket", "key-file", "pid-file", "seed-file", "log-file"):
            words.append(f"--{name}={self.directory / name.removesuffix('-file')}")
        with open(self.directory / "out", "wb") as out:
            self._daemon = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        until = time.monotonic() + READY
        while not self._answers():
            if time.monotonic() > until or self._daemon.poll() is not None:
                raise RuntimeError(f"munged does not answer: {(self.directory / 'out').read_text()}")
            time.sleep(0.1)

    def _answers(self) -> bool:
        words = ["munge", "-n", "-S", str(self.socket)]
        return subprocess.run(words, capture_output=True, timeout=READY, check=False).returncode == 0

    def stop(self) -> None:
        """End it."""
        if self._daemon is not None:
            self._daemon.terminate()
            try:
                self._daemon.wait(10.0)
            except subprocess.TimeoutExpired:
                self._daemon.kill()
                self._daemon.wait()
            self._daemon = None
