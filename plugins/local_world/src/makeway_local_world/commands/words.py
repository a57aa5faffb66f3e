"""Read command lines: what a command takes is said in tables, and read by these alone.

A command of a queue is typed a thousand times a day, so it has to begin at once: nothing here imports more than the
interpreter has at hand. Help, completion and the look of an error come from click, which is imported for these only
(`look`, `face`).
"""

from __future__ import annotations

from makeway.fault import MakewayError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Read = Callable[[str], Any]


class Wrong(Exception):  # noqa: N818  # an answer, not a fault
    """A command line that cannot be taken as it is."""


class Option:
    """One option of a command."""

    def __init__(
        self,
        *names: str,
        to: str = "",
        reads: Read = str,
        flag: bool = False,
        off: Sequence[str] = (),
        bare: Any = None,
        many: bool = False,
        default: Any = None,
        metavar: str | None = None,
        choices: Sequence[str] = (),
        offers: str = "",
        shown: bool = False,
        help: str = "",
    ) -> None:
        """Make it.

        :param names: as typed: ``-n``, ``--lines``.
        :param to: name of its value; empty: that of its longest name.
        :param reads: makes the value of a text, or raises ValueError.
        :param flag: whether it takes no value.
        :param off: names that say the opposite of a flag.
        :param bare: the value where none follows; None: one has to.
        :param many: whether it may be repeated; the value is a tuple of texts then, read together by `reads`.
        :param choices: the only texts that it takes.
        :param offers: what completion offers: ``jobs``, ``partitions``, ``users``, ``files``.
        :param shown: whether the help names the default.
        """
        self.names = names
        self.off = tuple(off)
        self.to = to or max(names, key=len).lstrip("-").replace("-", "_")
        self.reads = reads
        self.flag = flag
        self.bare = bare
        self.many = many
        self.default = False if flag and default is None and not off else default
        self.metavar = metavar
        self.choices = tuple(choices)
        self.offers = offers
        self.shown = shown
        self.help = help

    @property
    def title(self) -> str:
        """The option as errors name it."""
        return " / ".join(f"'{name}'" for name in self.names)

    def value(self, text: Any) -> Any:
        """Read what was given.

        :raises Wrong: it cannot be read.
        """
        if self.choices and text not in self.choices:
            raise Wrong(f"Invalid value for {self.title}: got {text!r}; allowed: {', '.join(self.choices)}")
        try:
            return self.reads(text)
        except ValueError as error:
            raise Wrong(f"Invalid value for {self.title}: {error}") from None


class Argument:
    """Words that are no options."""

    def __init__(
        self, to: str, metavar: str, *, many: bool = False, required: bool = True, offers: str = ""
    ) -> None:
        self.to = to
        self.metavar = metavar
        self.many = many
        self.required = required
        self.offers = offers


class Command:
    """One command: what it takes, and what it does."""

    face = "makeway_local_world.commands.face:face"
    """What makes a command of click of it, as the list of all commands has them."""

    def __init__(
        self,
        name: str,
        run: Callable[..., int | None],
        params: Sequence[Option | Argument],
        *,
        mixed: bool = True,
        behind: str = "",
    ) -> None:
        """Make it.

        :param run: called with the values; returns the exit status, None is 0.
        :param mixed: whether options may stand behind the first word that is none.
        :param behind: name of the value of what follows ``--``; empty: these are words like others.
        """
        self.name = name
        self.run = run
        self.options = [each for each in params if isinstance(each, Option)]
        self.arguments = [each for each in params if isinstance(each, Argument)]
        self.mixed = mixed
        self.behind = behind
        self.known = {name: each for each in self.options for name in (*each.names, *each.off)}

    # -------------------------------------------------------------------------------- reading
    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the values that a command line gives.

        :raises Wrong: it cannot be taken.
        """
        given, plain, behind = self._told(words)
        found = {each.to: given.get(each.to, each.default) for each in self.options}
        found |= self._arguments(plain)
        return found | ({self.behind: tuple(behind)} if self.behind else {})

    def _told(self, words: Sequence[str]) -> tuple[dict[str, Any], list[str], list[str]]:
        """Return values of options, words that are none, and what stands behind ``--``."""
        left = list(words)
        behind: list[str] = []
        if self.behind and "--" in left:
            at = left.index("--")
            left, behind = left[:at], left[at + 1 :]
        left.reverse()
        texts: dict[str, list[str]] = {}
        given: dict[str, Any] = {}
        plain: list[str] = []
        while left:
            word = left.pop()
            if word == "--":
                plain += reversed(left)
                break
            if len(word) < 2 or not word.startswith("-"):
                plain.append(word)
                if not self.mixed:
                    plain += reversed(left)
                    break
                continue
            option, name, value = self._named(word, left)
            if option.flag:
                given[option.to] = name not in option.off
                continue
            if value is None:
                value = self._next(option, name, left)
            if value is None:
                given[option.to] = option.bare
            elif option.many:
                texts.setdefault(option.to, []).append(value)
                given[option.to] = option.value(tuple(texts[option.to]))
            else:
                given[option.to] = option.value(value)
        return given, plain, behind

    def _named(self, word: str, left: list[str]) -> tuple[Option, str, str | None]:
        """Return the option that a word names, the name, and the value in it; what else is in it is put back."""
        name, equals, value = word.partition("=") if word.startswith("--") else (word[:2], "", word[2:])
        option = self.known.get(name)
        if option is None:
            raise Wrong(f"No such option: {name}{_nearest(name, self.known)}")
        if not option.flag:
            return option, name, value if value or equals else None
        if equals:
            raise Wrong(f"Option {name!r} does not take a value.")
        if value:
            left.append(f"-{value}")
        return option, name, None

    def _next(self, option: Option, name: str, left: list[str]) -> str | None:
        """Take the value of an option off the words that follow; None: it does without one."""
        if left and (option.bare is None or not left[-1].startswith("-")):
            return left.pop()
        if option.bare is None:
            raise Wrong(f"Option {name!r} requires an argument.")
        return None

    def _arguments(self, plain: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for each in self.arguments:
            if each.many:
                found[each.to], plain = tuple(plain), []
            else:
                found[each.to] = plain.pop(0) if plain else None
            if each.required and not found[each.to]:
                raise Wrong(f"Missing argument '{each.metavar}'.")
        if plain:
            more = "s" if len(plain) > 1 else ""
            raise Wrong(f"Got unexpected extra argument{more} ({' '.join(plain)})")
        return found


class Failed(MakewayError):  # noqa: N818  # an answer, not a fault
    """What was asked for was not done; the text says why."""

    exit_status = 1


def _nearest(word: str, known: Iterable[str]) -> str:
    from makeway.errors import nearest

    return nearest(word, known)


def command(
    name: str, *params: Option | Argument, mixed: bool = True, behind: str = ""
) -> Callable[[Callable[..., int | None]], Command]:
    """Make a command of a function; its text is the command's help."""
    return lambda run: Command(name, run, params, mixed=mixed, behind=behind)


# --------------------------------------------------------------------------------------- values
def whole(low: int | None = None, high: int | None = None) -> Read:
    """Return what reads a whole number within bounds."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError(f"got {text!r}; allowed: a whole number") from None
        if (low is not None and number < low) or (high is not None and number > high):
            bounds = f"from {low} on" if high is None else f"{low} to {high}"
            raise ValueError(f"got {text}; allowed: {bounds}")
        return number

    return read


def seconds(text: str) -> float:
    """Read a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.0 <= number <= 1e9:
        raise ValueError(f"got {text!r}; allowed: a number of seconds")
    return number
