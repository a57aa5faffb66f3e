"""Make candidates: edits of the site's own files, read by the site's own reader.

A candidate is never built but read: its files lie in a folder of their own, with links to all that stays as it is. So
what is replayed is what the difference says, and what the reader refuses is no candidate.
"""

from __future__ import annotations

import contextlib
import difflib
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from makeway.config import Config
from makeway.errors import ConfigError, Problem, nearest
from makeway.foreign import Knob
from makeway.readers.lines import read_text
from makeway_app.cli.inputs import accounts_of, guarded, reader_of
from makeway_app.readers.foreign import FileSource
from makeway_tune import native

Chosen = tuple[tuple[str, str], ...]
"""Name of a knob -> the value that it takes, for those that do not stay as they are; in the order of the knobs."""


@attrs.define(eq=False, slots=False)
class Site:
    """The files of a site, and what may be changed in them."""

    path: Path
    knobs: tuple[Knob, ...]
    accounting: tuple[Path, ...] = ()
    texts: dict[str, str] = attrs.field(factory=dict)
    """File relative to the folder, or of accounting -> its text as it is; empty: there is none."""

    def chosen(self, values: Mapping[str, str]) -> Chosen:
        """Return what is changed, in the order of the knobs."""
        return tuple(
            (each.name, values[each.name])
            for each in self.knobs
            if each.name in values and values[each.name] != each.now
        )

    def words(self, chosen: Chosen) -> Iterator[str]:
        """Yield each change in one line."""
        now = {each.name: each.now for each in self.knobs}
        for name, value in chosen:
            yield f"{name}: {now[name] or 'not set'} -> {value or 'not set'}"

    def edited(self, chosen: Chosen) -> dict[str, str]:
        """Return the text of each file that a candidate changes."""
        by_name = {each.name: each for each in self.knobs}
        found: dict[str, str] = {}
        for name, value in chosen:
            knob = by_name[name]
            found[knob.file] = knob.written(found.get(knob.file, self.texts[knob.file]), value)
        return found

    def diff(self, chosen: Chosen) -> str:
        """Return a candidate as a unified difference of the site's files, and the commands for what is in none."""
        typed = {each.name: each.typed for each in self.knobs if each.typed is not None}
        lines: list[str] = []
        for file, text in self.edited(tuple(each for each in chosen if each[0] not in typed)).items():
            before = self.texts[file]
            lines += difflib.unified_diff(_lines(before), _lines(text), file if before else "/dev/null", file)
        return "".join((*lines, *(f"{typed[name](value)}\n" for name, value in chosen if name in typed)))

    @contextlib.contextmanager
    def placed(self, chosen: Chosen) -> Iterator[tuple[Path, tuple[Path, ...]]]:
        """Lay out the files of a candidate for as long as the body runs; yield its configuration and accounting."""
        with tempfile.TemporaryDirectory(prefix="makeway-tune.") as folder:
            root = Path(folder)
            edited = self.edited(chosen)
            accounting = []
            for at, source in enumerate(self.accounting):
                changed = edited.pop(str(source.absolute()), None)
                accounting.append(source if changed is None else root / f".accounting.{at}.{source.name}")
                if changed is not None:
                    accounting[-1].write_text(changed, encoding="utf-8", errors="surrogateescape")
            _links(self.path.parent.resolve(), root, {Path(file).parts for file in edited})
            for file, text in edited.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(text, encoding="utf-8", errors="surrogateescape")
            yield root / self.path.name, tuple(accounting)


def _lines(text: str) -> list[str]:
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    return lines


def _links(source: Path, target: Path, real: set[tuple[str, ...]]) -> None:
    """Link all that lies in a folder, save what `real` leads to."""
    heads = {parts[0] for parts in real}
    for each in source.iterdir():
        if each.name not in heads:
            (target / each.name).symlink_to(each)
            continue
        deeper = {parts[1:] for parts in real if parts[0] == each.name and len(parts) > 1}
        if deeper and each.is_dir():
            (target / each.name).mkdir()
            _links(each, target / each.name, deeper)


def site_of(
    path: Path,
    config: Config,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    accounting: tuple[Path, ...] = (),
) -> Site:
    """Ask the reader of a configuration what may be changed in it.

    :param config: what it says.
    :param only: parts of the names of what is changed; empty: all.
    :param without: parts of the names of what is not.
    :param accounting: files of ``--accounting``.
    :raises ConfigError: nothing may be changed, or a part fits no name.
    """
    reader = reader_of(path)
    if reader is None:
        found: Sequence[Knob] = native.knobs(read_text(path), config, path.name)
    else:
        asked = getattr(reader.inner, "knobs", None)
        if asked is None:
            text = f"the reader of {reader.name} does not say which settings may be changed"
            raise ConfigError(str(path), [Problem("", text)])
        found = guarded(reader.name, lambda: asked(FileSource(path)))
    asked = getattr(accounts_of(accounting), "knobs", None) if accounting else None
    more = guarded("accounting", lambda: asked(config, accounting)) if asked is not None else ()
    knobs = [each for each in (*found, *more) if each.values]
    for option, parts in (("--only", only), ("--without", without)):
        for part in parts:
            if not any(_fits(part, each) for each in knobs):
                names = ", ".join(each.name for each in knobs)
                close = nearest(part, {word for each in knobs for word in re.split("[ =]", each.name)})
                text = f"no setting has that in its name{close}; there are {names}"
                raise ConfigError(f"{option} {part}", [Problem("", text)])
    kept = [each for each in knobs if not only or any(_fits(part, each) for part in only)]
    kept = [each for each in kept if not any(_fits(part, each) for part in without)]
    if not kept:
        why = "nothing is left to change" if knobs else "no job makes way here, so there is nothing to change"
        raise ConfigError(str(path), [Problem("", why)])
    site = Site(path=path, knobs=tuple(kept), accounting=accounting)
    for each in kept:
        file = path.parent / each.file
        site.texts[each.file] = read_text(file) if file.exists() else ""
    return site


def _fits(part: str, knob: Knob) -> bool:
    return part.lower() in knob.name.lower()
