"""``makeway new-plugin``: write a distribution with a plugin that works, to be changed into one's own."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import attrs
import click

from makeway import registry
from makeway.errors import ConfigError, Problem

if TYPE_CHECKING:
    import jinja2

TEMPLATES = "templates/plugin"
_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
_LONGEST = 60
_CONTRACT = "makeway-core>=0.1,<0.2"
_TESTING = "makeway[dev]>=0.1,<0.2"
_PARTITION_PRIO = "makeway-preempt-partition-prio>=0.1,<0.2"


@attrs.frozen(kw_only=True)
class Kind:
    """One kind of plugin that can be written."""

    summary: str
    """What the plugin as written does; one phrase."""
    needs: tuple[str, ...] = ()
    """Distributions that its tests and its example need beside the core and the kit."""
    replay: tuple[str, ...] = ("example.toml",)
    """Arguments of ``makeway replay``: files of the new folder, options, and NAME for the plugin's name."""

    def command(self, name: str, folder: Path | None = None) -> str:
        """Return the ``makeway replay`` that shows the plugin at work, to be typed beside `folder`, or in it."""
        words = [name if word == "NAME" else word for word in self.replay]
        placed = [str(folder / word) if folder is not None and "." in word else word for word in words]
        return shlex.join(["makeway", "replay", *placed])


KINDS: Mapping[str, Kind] = {
    "preempt": Kind(summary="Lets jobs displace jobs of lower priority tiers, the youngest first"),
    "action": Kind(
        summary="Signals jobs some time before they have to make way",
        needs=(_PARTITION_PRIO,),
    ),
    "select": Kind(summary="Gives jobs whole nodes, the largest first"),
    "gang": Kind(summary="Lets jobs on the same cores take turns, round robin"),
    "priority": Kind(summary="Puts users in front who have used less of late"),
    "protect": Kind(
        summary="Protects the jobs of some users, and jobs that are about to end",
        needs=(_PARTITION_PRIO,),
    ),
    "search": Kind(
        summary="Takes victims until the job fits, then gives back those it does not need",
        needs=(_PARTITION_PRIO,),
    ),
    "world": Kind(
        summary="Runs jobs in a world of its own",
        replay=("example.toml", "--world", "NAME"),
    ),
    "reader": Kind(
        summary="Reads workloads that are tables with commas",
        replay=("example.toml", "example.csv"),
    ),
}


@attrs.frozen(kw_only=True)
class Names:
    """One name, as each place spells it."""

    kind: str
    name: str
    """With underscores."""

    @property
    def entry(self) -> str:
        """The value that users write in a configuration."""
        return f"{self.kind}/{self.name}"

    @property
    def package(self) -> str:
        """The import package."""
        return f"makeway_{self.kind}_{self.name}"

    @property
    def distribution(self) -> str:
        """The distribution, and the folder."""
        return registry.pip_name(self.entry)


@click.command("new-plugin")
@click.argument("name")
@click.option(
    "--kind", required=True, type=click.Choice(tuple(KINDS)), help="What the plugin is to decide or to do."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    metavar="FOLDER",
    help="Where to make the new folder; the current one unless given.",
)
def new_plugin(name: str, kind: str, into: Path) -> None:
    """Write a distribution with a plugin NAME that works: policy, settings, tests, example, README.

    NAME is a word such as youngest or least_work_lost.  The folder is called like the distribution,
    makeway-KIND-NAME, and must not exist.
    """
    names = Names(kind=kind, name=_checked(name, kind))
    folder = into / names.distribution
    _check_free(names, folder)
    written = _written(names, folder)
    click.echo(_told(names, folder, written))


# ------------------------------------------------------------------------------------------- names
def _checked(given: str, kind: str) -> str:
    """Return the name with underscores.

    :raises ConfigError: it is none.
    """
    name = given.removeprefix(f"{kind}/").replace("-", "_")
    prefix, slash, _ = given.partition("/")
    if slash and prefix != kind:
        raise _wrong(f"got {given!r}; the part before the slash is the kind, and --kind says {kind!r}")
    if not _NAME.fullmatch(name):
        better = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_0123456789")
        hint = f"; such as {better!r}" if _NAME.fullmatch(better) else ""
        raise _wrong(f"got {given!r}; allowed: small letters, digits and underscores, a letter first{hint}")
    if len(name) > _LONGEST:
        raise _wrong(f"got {len(name)} letters; allowed: at most {_LONGEST}")
    return name


def _wrong(message: str) -> ConfigError:
    return ConfigError("NAME", [Problem("", message)])


def _check_free(names: Names, folder: Path) -> None:
    """See that nothing is overwritten and no name is taken.

    :raises ConfigError: with the first thing in the way.
    """
    if folder.exists() or folder.is_symlink():
        raise ConfigError(str(folder), [Problem("", "it is there already; nothing was written")])
    if not folder.parent.is_dir():
        raise ConfigError(str(folder.parent), [Problem("", "no such folder")])
    for item in registry.installed():
        if item.name == names.entry:
            text = f"{names.entry!r} is offered by {item.distribution} {item.version}, which is installed"
            raise _wrong(f"{text}; choose another name")
    try:
        version = importlib.metadata.version(names.distribution)
    except importlib.metadata.PackageNotFoundError:
        pass
    else:
        raise _wrong(f"{names.distribution} {version} is installed already; choose another name")
    if importlib.util.find_spec(names.package) is not None:
        raise _wrong(f"a package called {names.package} can be imported already; choose another name")


# ------------------------------------------------------------------------------------------ writing
def _written(names: Names, folder: Path) -> Sequence[str]:
    """Write all files, or none; return their names within `folder`."""
    files = _rendered(names)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, text in files.items():
            path = scratch / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        scratch.chmod(0o755)
        if folder.exists():  # it was made meanwhile
            raise ConfigError(str(folder), [Problem("", "it is there already; nothing was written")])
        scratch.rename(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return list(files)


def _rendered(names: Names) -> dict[str, str]:
    """Return the text of every file, by its name in the new folder."""
    kind = KINDS[names.kind]
    environment = _environment()
    found: dict[str, str] = {}
    templates = {
        _target(template, names): template
        for template in environment.list_templates()
        if template.partition("/")[0] in ("common", names.kind) and not template.endswith("/about.md")
    }
    facts: dict[str, Any] = {
        **{key: getattr(names, key) for key in ("kind", "name", "entry", "package", "distribution")},
        "summary": kind.summary,
        "requirements": ["attrs>=23.2", _CONTRACT],
        "test_requirements": [_TESTING, *kind.needs],
        "replay": kind.command(names.name),
    }
    facts["files"] = _described(sorted(templates))
    for target in sorted(templates):
        found[target] = environment.get_template(templates[target]).render(facts)
    return found


def _target(template: str, names: Names) -> str:
    inner = template.partition("/")[2].removesuffix(".jinja")
    return inner.replace("PACKAGE", names.package).replace("NAME", names.name)


_MEANINGS: Mapping[str, str] = {
    "__init__.py": "the plugin: its rule, its settings, its hooks",
    "test_contract.py": "holds it to the contract of its kind",
    "test_rule.py": "its own rule, in small tables",
    "example.toml": "a configuration that uses it",
    "example.csv": "a workload of the kind",
    "pyproject.toml": "name, version, entry point, dependencies",
}


def _described(files: Sequence[str]) -> list[tuple[str, str]]:
    """Return the files that people change, with what they are."""
    described = [(name, _MEANINGS.get(PurePosixPath(name).name, "")) for name in files]
    return [(name, what) for name, what in described if what]


def _environment() -> jinja2.Environment:
    """Return the template engine."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.PackageLoader("makeway_testing", TEMPLATES),
        undefined=jinja2.StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _told(names: Names, folder: Path, written: Sequence[str]) -> str:
    """Say what was written and what to type next."""
    place = shlex.quote(str(folder))
    install = shlex.quote(f"{folder if folder.is_absolute() else f'./{folder}'}[test]")
    described = _described(written)
    width = max(len(name) for name, _ in described)
    return "\n".join(
        [
            f"{folder}: {names.entry}",
            *(f"  {name:<{width}}  {what}" for name, what in described),
            "next:",
            f"  python -m pip install -e {install}",
            f"  python -m pytest {place}",
            f"  {KINDS[names.kind].command(names.name, folder)}",
        ]
    )
