"""Run the examples of all pages: configurations load, commands run or need a site's own file, walks work as shown.

``python tests/test_docs_examples.py`` writes the outputs of walks anew, to be looked at before they are committed.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import click
import pytest
from click.testing import CliRunner

from makeway.config import Config, parse_toml
from makeway.registry import fitting
from makeway.settings import structure
from makeway_app.cli import cli
from makeway_app.cli.loose import load_files

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("plugins/*/README.md"),
        *ROOT.glob("examples/**/*.md"),
    ]
)
WALKS = [ROOT / "docs/write-a-preempt-plugin.md", ROOT / "docs/how-a-decision-is-made.md"]
"""Pages whose blocks are run one after another in one folder; files are named in the line before a block."""
INDEX = ROOT / "docs/index.md"
PLAYED_ELSEWHERE = ("README.md", "hooks.md", *(page.name for page in WALKS))
"""Pages whose Python is run by another test."""

_FENCE = re.compile(
    r"^(?P<tick>`{3,})(?P<language>[\w-]*)\n(?P<text>.*?)^(?P=tick)$", re.MULTILINE | re.DOTALL
)
_FILE = re.compile(r"`([^`\s]+)`:$")
_SHOWN = re.compile(
    r"(^```sh\n(?:(?!```).)*?^(makeway [^\n]*)\n```\n\n```text\n)(.*?)(^```$)", re.MULTILINE | re.DOTALL
)


@attrs.frozen
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str
    before: str
    """The line above the block, blank ones left out."""

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path, *languages: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    text = page.read_text()
    for found in _FENCE.finditer(text):
        if not languages or found["language"] in languages:
            above = text[: found.start()].rstrip().rpartition("\n")[2]
            line = text.count("\n", 0, found.start()) + 1
            yield Block(page, line, found["language"], found["text"], above)


def _all(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks_of(page, *languages)]


# ---------------------------------------------------------------------------------------- menus
def test_every_page_is_in_a_menu() -> None:
    """The build of the site says so too, but not everybody builds it: add the page to docs/index.md."""
    listed: set[Path] = set()
    for block in re.findall(r"^```\{toctree\}\n(.*?)^```", INDEX.read_text(), re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            name = line.rpartition("<")[2].rstrip(">").strip()
            if name and not name.startswith(":"):
                base = ROOT if name.startswith("/") else INDEX.parent
                listed |= set(base.glob(f"{name.lstrip('/')}.md"))
    pages = {page for page in PAGES if page.name in ("README.md",) or page.parent in (ROOT, INDEX.parent)}
    assert {str(page.relative_to(ROOT)) for page in pages - listed - {INDEX}} == set()


# ------------------------------------------------------------------------------- configurations
@pytest.mark.parametrize("block", _all("toml"), ids=str)
def test_configurations_load(block: Block) -> None:
    """A whole one is checked as a file would be; of a part every key and type; of a project its syntax."""
    data = tomllib.loads(block.text)
    if {"project", "build-system"} & set(data):
        return
    if "node" in data:
        parse_toml(block.text, str(block))
        return
    rest = {"node": [{"name": "n1"}], "partition": [{"name": "p", "default": True}]}
    structure({**rest, **data}, Config, str(block))


# ------------------------------------------------------------------------------------- commands
def _commands(block: Block) -> Iterator[list[str]]:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["makeway"]:
            for mark in ("|", ">", ";", "&&"):
                words = words[: words.index(mark)] if mark in words else words
            yield words[1:]


def _context(arguments: list[str]) -> click.Context:
    """Parse a command line as the command would.

    :raises click.ClickException: it is wrong.
    """
    # Other distributions bring commands, too.
    command = cli.get_command(click.Context(cli), arguments[0])
    if command is None:
        raise click.UsageError(f"no command {arguments[0]!r}")
    rest = list(arguments[1:])
    while isinstance(command, click.Group) and rest:
        name = rest.pop(0)
        command = command.get_command(click.Context(command), name)
        if command is None:
            raise click.UsageError(f"no command {' '.join(arguments)!r}")
    return command.make_context(arguments[0], rest)


def _files(context: click.Context) -> list[Path]:
    """Return the files that a command line names to be read."""
    found: list[Path] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        if isinstance(parameter.type, click.Path) and parameter.name not in ("into", "output"):
            found += value if isinstance(value, tuple) else [value] if value is not None else []
    return [Path(path) for path in found]


COMMANDS = [
    pytest.param(block, arguments, id=f"{block}: {' '.join(arguments)[:60]}")
    for block in _all("sh")
    if block.page not in WALKS and "makeway up" not in block.text  # test_first_steps.py has a daemon for it
    for arguments in _commands(block)
]


@pytest.mark.slow
@pytest.mark.parametrize(("block", "arguments"), COMMANDS)
def test_commands_run(
    block: Block, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the root of the repository; where a site's own file is needed, the words are right at least.

    A file of the repository is named with its folder, a site's own by its bare name.
    """
    monkeypatch.chdir(ROOT)
    absent = [path for path in _files(_context(arguments)) if not path.exists()]
    assert [str(path) for path in absent if len(path.parts) > 1] == [], f"{block}: no such file"
    if not absent and not _is_slow(arguments) and arguments[0] != "slurm":  # which asks a running cluster
        done = CliRunner().invoke(cli, _writing_to(tmp_path, arguments), prog_name="makeway")
        assert done.exit_code == 0, done.output


def _writing_to(folder: Path, arguments: list[str]) -> list[str]:
    """Return the command line with what it writes in `folder`."""
    options = ("-o", "--json", "--log", "--rejected", "--report")
    return [
        str(folder / Path(word).name) if before in options and word != "-" else word
        for before, word in zip(["", *arguments], arguments, strict=False)
    ]


def _is_slow(arguments: list[str]) -> bool:
    """Whether another test runs it, with its output (``test_readme.py``), or it takes long."""
    large = any("kth" in word or "recordings" in word for word in arguments)
    return arguments[0] == "tune" or (arguments[0] in ("verify", "replay", "sweep") and large)


@pytest.mark.parametrize(
    "line",
    [
        "makeway replay a.toml --compere x=1",
        "makeway repaly a.toml",
        "makeway replay cluster.toml --limit many",
    ],
)
def test_wrong_commands_would_be_found(line: str) -> None:
    """The check itself: unknown options, commands and values."""
    with pytest.raises(click.ClickException):
        _context(shlex.split(line)[1:])


# --------------------------------------------------------------------------------------- Python
@pytest.mark.parametrize(
    "block", [each for each in _all("python") if each.page.name not in PLAYED_ELSEWHERE], ids=str
)
def test_python_runs(block: Block, tmp_path: Path) -> None:
    """As a module of its own."""
    (tmp_path / "example.py").write_text(block.text)
    load_files({"x/example": tmp_path / "example.py"})


# ---------------------------------------------------------------------------------------- links
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_elsewhere_are_links(page: Path) -> None:
    """A scheme, a host with a dot, no blanks: whether they answer is not for a test without a network."""
    links = re.findall(r"\]\((https?:[^)]*)\)|<(https?:[^>]*)>", page.read_text())
    wrong = []
    for link in map("".join, links):
        parts = urlsplit(link)
        if parts.scheme != "https" or "." not in (parts.hostname or "") or re.search(r"\s", link):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize(
    "page", [ROOT / "docs/_static/way-of-a-job.svg", *WALKS, ROOT / "README.md"], ids=lambda page: page.name
)
def test_hooks_that_are_named_exist(page: Path) -> None:
    """In the drawing, too; packages of plugins have such names as well."""
    words = set(re.findall(r"\bmakeway_[a-z_]+", page.read_text()))
    # What the walk does wrong on purpose, and packages.
    others = {"makeway_preempt_candidate", "makeway_preempt_own_jobs", "makeway_preempt_youngest"}
    assert words & set(fitting.specified())
    assert words - set(fitting.specified()) - others == set()


# ---------------------------------------------------------------------------------------- walks
class Walk:
    """Does what a page says, in one folder."""

    def __init__(self, folder: Path, *, installs: bool) -> None:
        self.folder = folder
        self.installs = installs
        """Whether commands of pip and pytest are carried out."""

    def do(self, block: Block) -> str:
        """Take over a block; return what its last command printed."""
        named = _FILE.search(block.before)
        if block.language == "sh":
            return self._run(block)
        if named is not None:
            self._write(block, self.folder / named[1])
        return ""

    def _write(self, block: Block, file: Path) -> None:
        replaced = re.match(r"Replace `(\w+)` in ", block.before)
        if replaced is not None:
            # One function stands for the one of that name.
            pattern = rf"^def {replaced[1]}\(.*?(?=\n\n\n)"
            text, count = re.subn(
                pattern, lambda _: block.text.rstrip(), file.read_text(), flags=re.MULTILINE | re.DOTALL
            )
            assert count == 1, f"{block}: {file} has no function {replaced[1]}"
            file.write_text(text)
        elif block.before.startswith("Add to "):
            file.write_text(f"{file.read_text()}\n\n{block.text}")
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)

    def _run(self, block: Block) -> str:
        printed = ""
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["makeway"]:
                printed = self._makeway(block, words[1:])
            elif words[:3] == ["python", "-m", "pip"]:
                self._install(words)
            elif words[:3] == ["python", "-m", "pytest"]:
                self._test(words[3:])
            else:
                raise AssertionError(f"{block}: it is not known how to run {line!r}")
        return printed

    def _makeway(self, block: Block, arguments: list[str]) -> str:
        of_ours = "/" in arguments[1] and (ROOT / arguments[1]).is_file()
        with contextlib.chdir(ROOT if of_ours else self.folder):
            done = CliRunner().invoke(cli, arguments, prog_name="makeway")
        assert done.exit_code == 0, f"{block}: {done.output}"
        return done.stdout

    def _install(self, words: list[str]) -> None:
        """Put the folder on the path with the metadata that pip would write."""
        folder = self.folder / words[-1].partition("[")[0]
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        info = folder / "src" / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
        info.mkdir()
        requires = "".join(f"Requires-Dist: {each}\n" for each in project["dependencies"])
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n{requires}"
        )
        points = project["entry-points"]["makeway"].items()
        (info / "entry_points.txt").write_text("[makeway]\n" + "".join(f"{k} = {v}\n" for k, v in points))
        sys.path.insert(0, str(folder / "src"))

    def _test(self, arguments: list[str]) -> None:
        if not self.installs:
            return
        folder = self.folder / arguments[-1]
        # The settings of this repository are not those of a stranger's.
        options = [
            "--rootdir",
            str(folder),
            "-c",
            str(folder / "pyproject.toml"),
            "-q",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, str(folder)],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(folder / "src"), "MAKEWAY_PROFILE": "quick"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def walk(page: Path, folder: Path, *, installs: bool = False) -> Iterator[tuple[Block, str, str]]:
    """Walk through a page; yield each command block that shows an output, what it shows, and what came out."""
    path, modules = list(sys.path), set(sys.modules)
    guide = Walk(folder, installs=installs)
    blocks = list(blocks_of(page))
    try:
        for at, block in enumerate(blocks):
            printed = guide.do(block)
            after = blocks[at + 1] if at + 1 < len(blocks) else None
            if block.language == "sh" and after is not None and after.language == "text":
                yield block, after.text, printed
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name.startswith("makeway_"):
                del sys.modules[name]


@pytest.mark.slow
@pytest.mark.looks_anew
@pytest.mark.parametrize("page", WALKS, ids=lambda page: page.stem)
def test_a_walk_works_as_shown(page: Path, tmp_path: Path) -> None:
    """Every file and command, in order; what comes out is what the page shows."""
    seen = 0
    for block, shown, printed in walk(page, tmp_path):
        assert printed == shown, str(block)
        seen += 1
    assert seen


@pytest.mark.looks_anew
@pytest.mark.slow
def test_the_tests_of_the_tutorial_pass(tmp_path: Path) -> None:
    """Those that ``makeway new-plugin`` wrote, with the rule changed and the test added as the page says."""
    for _ in walk(WALKS[0], tmp_path, installs=True):
        pass


def _rewrite() -> None:
    """Put the outputs of today into the walks."""
    for page in WALKS:
        with tempfile.TemporaryDirectory() as folder:
            outputs: Mapping[str, str] = {block.text: out for block, _, out in walk(page, Path(folder))}
        shown = functools.partial(_with_output, outputs)
        page.write_text(_SHOWN.sub(shown, page.read_text()))


def _with_output(outputs: Mapping[str, str], found: re.Match[str]) -> str:
    block = found[1].partition("```sh\n")[2].partition("```")[0]
    return f"{found[1]}{outputs[block]}{found[4]}"


if __name__ == "__main__":
    _rewrite()
