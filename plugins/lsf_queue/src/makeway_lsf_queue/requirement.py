"""Understand RES_REQ of queues and jobs where it decides what makes way: which hosts, and how many on each (lsf 9.3).

``select[...]`` is asked of each host once: of its name, processors, memory, GPUs, and of the resources that it has as
features: ``bigmem`` a boolean one, ``os=linux`` one whose value is a word. What changes while the cluster runs (load,
free memory) is not known here, and neither shuts a host out nor lets one in.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import attrs

from makeway import bitmap
from makeway.bitmap import NodeBits
from makeway.model import Node
from makeway_lsf_queue.values import WrongValueError

Verdict = bool | None
"""What a condition comes to on a host; None: it is not known."""


@attrs.frozen
class Host:
    """A host, as select[...] sees it."""

    node: Node
    resources: frozenset[str]
    """The boolean resources that any host has."""


Condition = Callable[[Host], Verdict]
_DEEPEST = 50
_SECTIONS = ("select", "order", "rusage", "span", "same", "cu", "affinity")
_SECTION = re.compile(r"\s*([A-Za-z]+)\s*\[([^\[\]]*(?:\[[^\[\]]*\][^\[\]]*)*)\]")
_TOKEN = re.compile(r"\s*(&&|\|\||==|!=|<=|>=|[!<>=()]|[\w.:/@%+-]+|\"[^\"]*\"|'[^']*')")
_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


_NUMBERS: Mapping[str, Callable[[Node], float | None]] = {
    "ncpus": lambda node: node.cpus,
    "nprocs": lambda node: node.sockets,
    "ncores": lambda node: node.cores_per_socket,
    "nthreads": lambda node: node.threads_per_core,
    "maxmem": lambda node: node.memory_mb if node.memory_mb > 1 else None,
    "ngpus": lambda node: node.gres.get("gpu", 0),
    "ngpus_physical": lambda node: node.gres.get("gpu", 0),
}

Order = tuple[tuple[str, bool], ...]
"""What hosts are sorted by, first the one that counts most, and whether the least comes first."""
SLOTS = "slots"
"""What order[...] calls the free slots of a host."""


def size_of(node: Node, name: str) -> float:
    """Return how much a host has of what order[...] sorts by; 0: it does not say."""
    return _NUMBERS[name](node) or 0.0


@attrs.frozen(kw_only=True)
class Requirement:
    """RES_REQ of a queue or a job, understood."""

    select: Condition | None = None
    names: tuple[str, ...] = ()
    """What `select` asks for."""
    spans: bool = False
    """Whether it says anything of span: that of a job replaces that of its queue."""
    one_host: bool = False
    """span[hosts=1]."""
    tile: int | None = None
    """span[ptile=N]: slots on each host; None: any number."""
    order: Order = ()
    """order[...], as far as it is known here."""
    orders: bool = False
    """Whether it says anything of order."""
    same: tuple[str, ...] = ()
    """same[...]: resources of which all hosts of a job have one value."""
    memory_mb: int | None = None
    """rusage[mem=...], for a job that reserves none itself."""
    amounts: Mapping[str, float] = attrs.field(factory=dict)
    """rusage[...] of other resources."""
    idle: tuple[str, ...] = ()
    """Parts without an effect here, as they were written."""

    def beside(self, queue: Requirement) -> Requirement:
        """Return what holds for a job that asks for this in a queue: span and order replace the queue's.

        `select` is that of the job alone.
        """
        span = self if self.spans else queue
        return attrs.evolve(
            self,
            one_host=span.one_host,
            tile=span.tile,
            order=self.order if self.orders else queue.order,
            same=tuple(dict.fromkeys((*queue.same, *self.same))),
            memory_mb=queue.memory_mb if self.memory_mb is None else self.memory_mb,
            amounts={**queue.amounts, **self.amounts},
        )


def selected(asked: Requirement, nodes: Iterable[Node]) -> NodeBits:
    """Return the hosts that `select` does not shut out; all bits: it states nothing."""
    if asked.select is None:
        return -1
    nodes = list(nodes)
    known = frozenset(word for node in nodes for word in node.features)
    return bitmap.of([node.index for node in nodes if asked.select(Host(node, known)) is not False])


def requirement(text: str) -> Requirement:
    """Understand RES_REQ.

    :raises WrongValueError: it is none.
    """
    text = text.strip().strip("\"'")
    if "{" in text:
        return Requirement(idle=(text,))
    found: dict[str, str] = {}
    at = 0
    for match in _SECTION.finditer(text):
        if text[at : match.start()].strip():
            break
        name = match[1].lower()
        if name not in _SECTIONS:
            raise WrongValueError(f"got {match[1]}[...]; allowed: {', '.join(_SECTIONS)}")
        found[name] = match[2].strip()
        at = match.end()
    rest = text[at:].strip()
    if rest and found:
        raise WrongValueError(f"got {rest!r}; allowed: NAME[...] of {', '.join(_SECTIONS)}")
    if rest:
        found["select"] = rest
    return _of(found)


def _of(found: Mapping[str, str]) -> Requirement:
    idle = [f"{name}[{found[name]}]" for name in ("cu", "affinity") if found.get(name)]
    span = found.get("span", "").replace(" ", "").lower()
    tile = re.fullmatch(r"ptile=0*([1-9]\d{0,8})", span)
    if span and tile is None and span not in ("hosts=1", "hosts=-1"):
        idle.append(f"span[{found['span']}]")
    order = []
    for word in filter(None, re.split(r"[:\s]+", found.get("order", ""))):
        name = word.lstrip("-")
        if name == SLOTS or name in _NUMBERS:
            order.append((name, word != name))
        else:
            idle.append(f"order[{word}]")
    memory, amounts = None, {}
    for part in filter(str.strip, re.split(r"[,:]", found.get("rusage", ""))):
        match = re.fullmatch(r"\s*mem\s*=\s*(\d{1,15})\s*([KMGT]?)B?\s*", part, re.IGNORECASE)
        other = re.fullmatch(r"\s*(\w+)\s*=\s*(\d{1,15}(?:\.\d{1,9})?)\s*", part)
        if match is not None:
            memory = (
                int(match[1]) * {"": 1024, "K": 1, "M": 1024, "G": 1 << 20, "T": 1 << 30}[match[2].upper()]
                >> 10
            )
        elif other is not None and other[1] not in ("duration", "decay"):
            amounts[other[1]] = float(other[2])
        else:
            idle.append(f"rusage[{part.strip()}]")
    parser = _Parser(found.get("select", ""))
    select = parser.condition() if found.get("select") else None
    names = tuple(dict.fromkeys(parser.names))
    return Requirement(
        select=select,
        names=names,
        spans=bool(span),
        one_host=span == "hosts=1",
        tile=None if tile is None else int(tile[1]),
        order=tuple(order),
        orders="order" in found,
        same=tuple(filter(None, re.split(r"[:\s]+", found.get("same", "")))),
        memory_mb=memory,
        amounts=amounts,
        idle=tuple(idle),
    )


class _Parser:
    """Reads the expression of select[...]: names, comparisons, ``&&``, ``||``, ``!`` and parentheses."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(_tokens(text))
        self._at = 0
        self._depth = 0
        self.names: list[str] = []

    def condition(self) -> Condition:
        """Return the whole expression.

        :raises WrongValueError: it is none.
        """
        found = self._either()
        if self._at < len(self._tokens):
            raise self._wrong()
        return found

    def _wrong(self) -> WrongValueError:
        there = self._tokens[self._at] if self._at < len(self._tokens) else "the end"
        return WrongValueError(
            f"got {there!r:.40} in select[{self._text:.60}]; "
            "allowed: names, comparisons, &&, ||, ! and parentheses"
        )

    def _take(self, *wanted: str) -> str:
        if self._at < len(self._tokens) and self._tokens[self._at] in wanted:
            self._at += 1
            return self._tokens[self._at - 1]
        return ""

    def _either(self) -> Condition:
        parts = [self._both()]
        while self._take("||"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else lambda host: _any(part(host) for part in parts)

    def _both(self) -> Condition:
        parts = [self._one()]
        while self._take("&&"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else lambda host: _not(_any(_not(part(host)) for part in parts))

    def _one(self) -> Condition:
        if self._take("!"):
            inner = self._nested(self._one)
            return lambda host: _not(inner(host))
        if self._take("("):
            whole = self._nested(self._either)
            if not self._take(")"):
                raise self._wrong()
            return whole
        name = self._word()
        if name == "defined" and self._take("("):
            name = self._word()
            if not self._take(")"):
                raise self._wrong()
            self.names.append(name)
            return lambda host: _has(host, name)
        sign = self._take(*_COMPARE)
        if not sign:
            self.names.append(name)
            return lambda host: _has(host, name)
        value = self._word()
        if name == "type" and value in ("any", "local"):
            return lambda host: True  # there are hosts of one type here
        self.names.append(name)
        return lambda host: _compared(host, name, sign, value)

    def _nested(self, read: Callable[[], Condition]) -> Condition:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise WrongValueError(
                f"select[{self._text:.60}]: got more than {_DEEPEST} conditions within one another"
            )
        found = read()
        self._depth -= 1
        return found

    def _word(self) -> str:
        if self._at >= len(self._tokens) or not re.match(r"[\w.:/@%+\"'-]", self._tokens[self._at]):
            raise self._wrong()
        self._at += 1
        return self._tokens[self._at - 1].strip("\"'")


def _tokens(text: str) -> Iterator[str]:
    text, at = text.rstrip(), 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise WrongValueError(f"got {text[at:].strip()!r:.40} in select[{text:.60}]")
        yield match[1]
        at = match.end()


def _any(verdicts: Iterator[Verdict]) -> Verdict:
    found = list(verdicts)
    return True if True in found else None if None in found else False


def _not(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _has(host: Host, name: str) -> Verdict:
    """Say whether a host has a boolean resource; of one that no host has it is not known."""
    return name in host.node.features if name in host.resources else None


def unknown(names: Iterable[str], resources: Collection[str]) -> list[str]:
    """Return the names that say nothing about any host."""
    known = {"hname", *_NUMBERS, *resources, *(word.partition("=")[0] for word in resources)}
    return [name for name in names if name not in known]


def alike_hosts(names: Iterable[str], hosts: Sequence[Collection[str]]) -> tuple[str, list[str]]:
    """Return the features by which the hosts of a job are alike in `names` (same), and the names that say nothing.

    A name counts where every one of the hosts has a value of it. Alternatives are tried in the order of the hosts.

    :param hosts: the words that each host has as features.
    """
    values = [dict(word.split("=", 1) for word in words if "=" in word) for words in hosts]
    counted = [name for name in names if values and all(name in each for each in values)]
    idle = [name for name in names if name not in counted]
    if not counted:
        return "", idle
    kinds = dict.fromkeys("&".join(f"{name}={each[name]}" for name in counted) for each in values)
    return (f"[{'|'.join(kinds)}]" if len(kinds) > 1 else ""), idle


def _compared(host: Host, name: str, sign: str, value: str) -> Verdict:
    node = host.node
    if name == "hname":
        same = value in (node.name, node.name.partition(".")[0])
        return same if sign in ("==", "=") else not same if sign == "!=" else None
    if sign in ("==", "=", "!=") and any(word.startswith(f"{name}=") for word in host.resources):
        return (f"{name}={value}" in node.features) is (sign != "!=")
    count = _NUMBERS.get(name)
    number = None if count is None else count(node)
    if name in host.resources:
        number = float(name in node.features)
    try:
        return None if number is None else _COMPARE[sign](number, float(value))
    except ValueError:
        return None
