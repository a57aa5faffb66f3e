"""Read records that ``makeway replay --json`` wrote, job by job.

The layout that makeway writes, a job to a line, is read as a stream; any other layout of the same JSON is read
whole. docs/record.schema.json has the shape.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import attrs

from makeway.errors import ConfigError, MakewayError, Problem
from makeway.history import RECORD_VERSION

_JOBS = '"jobs":{'
_PREEMPTIONS = '"preemptions":['
_GZIP = b"\x1f\x8b"


@attrs.frozen(kw_only=True)
class RecordFile:
    """A record on disk; what is large is read again each time that it is asked for."""

    path: Path
    heading: Mapping[str, Any]
    """Key ``record``: version, label, workload, date of second 0, policy."""
    cluster: Mapping[str, Any]
    rest: Mapping[str, Any]
    """All other keys but jobs and preemptions: ``metrics``, ``compared`` and so on."""
    _whole: Mapping[str, Any] | None = None
    """All of it, where the layout is not makeway's own."""

    def jobs(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield id and job, in order of submission."""
        if self._whole is not None:
            yield from self._whole["jobs"].items()
            return
        for line in _section(self.path, _JOBS):
            (pair,) = _parsed(self.path, f"{{{line}}}").items()
            yield pair

    def preemptions(self) -> Iterator[dict[str, Any]]:
        """Yield preemptions in order of time."""
        if self._whole is not None:
            yield from self._whole["preemptions"]
            return
        for line in _section(self.path, _PREEMPTIONS):
            yield _parsed(self.path, line)


@contextlib.contextmanager
def understanding(*paths: Path) -> Iterator[None]:
    """Do something with records, and say so where what they hold makes no sense.

    :raises ConfigError: in place of what follows from values that no replay ever wrote.
    """
    try:
        yield
    except MakewayError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RecursionError) as error:
        what = f"{type(error).__name__}: {str(error)[:80]}"
        raise _refused(paths[0], f"what it holds is damaged ({what}); replay it again", *paths[1:]) from error


def read_record(path: Path) -> RecordFile:
    """Open a record.

    :raises ConfigError: it cannot be read, is no record, or of a version that this makeway does not know.
    """
    try:
        with _opened(path) as stream:
            streamed = stream.readline() == "{\n" and stream.readline().startswith('"record":{')
        whole = None if streamed else _whole(path)
        keys = dict(_small_keys(path)) if whole is None else whole
    except (OSError, EOFError, zlib.error) as error:
        raise _refused(path, f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    except UnicodeDecodeError:
        raise _refused(path, "is binary, not a record of makeway") from None
    _check(path, keys)
    large = ("record", "cluster", "jobs", "preemptions")
    return RecordFile(
        path=path,
        heading=keys["record"],
        cluster=keys["cluster"],
        rest={key: value for key, value in keys.items() if key not in large},
        whole=whole,
    )


def _opened(path: Path) -> IO[str]:
    import gzip

    with path.open("rb") as raw:
        packed = raw.read(2) == _GZIP
    return gzip.open(path, "rt", encoding="utf-8") if packed else path.open(encoding="utf-8")


def _whole(path: Path) -> dict[str, Any]:
    with _opened(path) as stream:
        try:
            found = json.load(stream)
        except ValueError:
            stream.seek(0)
            if stream.readline().startswith('{"at":'):
                raise _refused(path, "is a log; a record is what --json writes") from None
            raise _refused(path, "is no record of makeway: it is not JSON") from None
    if not isinstance(found, dict):
        raise _refused(path, "is no record of makeway: it is not a JSON object")
    if found.get("kind") == "record":
        raise _refused(path, "is a log; a record is what --json writes")
    return found


def _check(path: Path, keys: Mapping[str, Any]) -> None:
    if "record" not in keys:
        known = "jobs" in keys and "metrics" in keys
        older = "was written by an older makeway; replay it again" if known else "is no record of makeway"
        raise _refused(path, older)
    version = keys["record"].get("version")
    if version != RECORD_VERSION:
        raise _refused(path, f"is a record of version {version!r}; this makeway reads {RECORD_VERSION}")
    missing = [key for key in ("cluster", "jobs", "preemptions", "metrics") if key not in keys]
    if missing:
        raise _refused(path, f"breaks off: {', '.join(missing)} missing")


def _small_keys(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield all keys of a streamed record, the large ones without their content."""
    within = False
    with _opened(path) as stream:
        for line in stream:
            if within:
                within = not line.startswith(("}", "]"))
            elif line.startswith((_JOBS, _PREEMPTIONS)):
                within = line.rstrip("\n")[-1] in "{["
                yield line[1 : line.index('":')], None
            elif line[0] == '"':
                yield from _parsed(path, "{" + line.rstrip(",\n") + "}").items()


def _section(path: Path, head: str) -> Iterator[str]:
    """Yield the lines of a large key, without the commas between them."""
    end = {"{": "}", "[": "]"}[head[-1]]
    with _opened(path) as stream:
        for line in stream:
            if line.startswith(head):
                if line.rstrip(",\n") != head:
                    return  # it is empty
                break
        for line in stream:
            if line.startswith(end):
                return
            yield line.rstrip(",\n")


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
    except ValueError as error:
        raise _refused(path, f"is damaged: {error}: {text[:60]}") from None
    return found


def _refused(path: Path, problem: str, *others: Path) -> ConfigError:
    return ConfigError(" or ".join(map(str, (path, *others))), [Problem("", problem)])
