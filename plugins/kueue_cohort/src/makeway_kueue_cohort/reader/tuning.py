"""Say which settings of Kueue's manifests a search may change, and write them into their text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import yaml

from makeway.foreign import Knob, Source, knob

_WORDS: Mapping[str, tuple[str, ...]] = {
    "withinClusterQueue": ("Never", "LowerPriority", "LowerOrNewerEqualPriority"),
    "reclaimWithinCohort": ("Never", "LowerPriority", "Any"),
}
"""Key of a ClusterQueue's preemption -> what it may say; the first one is the default."""
_BORROW = ("Never", "LowerPriority")
_COHORT = ("cohort", "cohortName")


def knobs(source: Source) -> Sequence[Knob]:
    """Return what may be changed: the preemption of each ClusterQueue that stands as a document of its own.

    :raises ConfigError: the file cannot be read.
    """
    return [*_knobs(source.text, source.name)]


def _knobs(text: str, file: str) -> Iterator[Knob]:
    for name, spec in _queues(text).items():
        stanza = _get(spec, "preemption")
        if spec.flow_style or (stanza is not None and (stanza.flow_style or not stanza.value)):
            continue
        for key, words in _WORDS.items():
            at = _scalar(stanza, key)
            now = "" if at is None else str(at.value)
            about = f"ClusterQueue {name} {key}"
            yield knob(about, file, now, words, written, default=words[0], queue=name, key=key)
        borrow = None if stanza is None else _get(stanza, "borrowWithinCohort")
        if any(_scalar(spec, each) is not None for each in _COHORT) and not (borrow and borrow.flow_style):
            policy = _scalar(borrow, "policy")
            now = "" if policy is None else str(policy.value)
            about = f"ClusterQueue {name} borrowWithinCohort.policy"
            inside, key = "borrowWithinCohort", "policy"
            yield knob(
                about, file, now, _BORROW, written, default=_BORROW[0], queue=name, key=key, inside=inside
            )


def written(text: str, value: str, queue: str, key: str, inside: str = "") -> str:
    """Return manifests with a word in a queue's preemption.

    :param inside: key of a table within the preemption that holds `key`; empty: it holds it itself.
    """
    spec = _queues(text).get(queue)
    if spec is None:
        return text
    outer = _get(spec, "preemption")
    stanza = outer if outer is None or not inside else _get(outer, inside)
    at = _scalar(stanza, key)
    if at is not None:
        return text[: at.start_mark.index] + value + text[at.end_mark.index :]
    if outer is None:
        indent = " " * spec.start_mark.column
        lines = _nested(("preemption", *([inside] if inside else [])), f"{key}: {value}")
        return _inserted(text, spec.end_mark, "".join(f"{indent}{line}\n" for line in lines))
    lines = [f"{key}: {value}"] if stanza is not None else _nested((inside,), f"{key}: {value}")
    start = (stanza or outer).start_mark
    indent = " " * start.column
    return (
        f"{text[: start.index]}{''.join(f'{line}{chr(10)}{indent}' for line in lines)}{text[start.index :]}"
    )


def _nested(keys: Sequence[str], last: str) -> list[str]:
    """Return the lines of tables within one another."""
    return [*(f"{'  ' * at}{key}:" for at, key in enumerate(keys)), f"{'  ' * len(keys)}{last}"]


def _inserted(text: str, mark: yaml.Mark, lines: str) -> str:
    """Return a text with whole lines before the one at which a table has ended."""
    at = mark.index if mark.column == 0 else text.rfind("\n", 0, mark.index) + 1
    before = text[:at]
    return f"{before}{'' if not before or before.endswith(chr(10)) else chr(10)}{lines}{text[at:]}"


def _queues(text: str) -> dict[str, yaml.MappingNode]:
    """Return the spec of each ClusterQueue."""
    found: dict[str, yaml.MappingNode] = {}
    for node in yaml.compose_all(text, Loader=yaml.SafeLoader):
        if not isinstance(node, yaml.MappingNode):
            continue
        kind = _scalar(node, "kind")
        name = _scalar(_get(node, "metadata"), "name")
        spec = _get(node, "spec")
        if kind is not None and kind.value == "ClusterQueue" and name is not None and spec is not None:
            found[str(name.value)] = spec
    return found


def _get(table: yaml.MappingNode, key: str) -> yaml.MappingNode | None:
    return next(
        (value for at, value in table.value if at.value == key and isinstance(value, yaml.MappingNode)), None
    )


def _scalar(table: yaml.MappingNode | None, key: str) -> yaml.ScalarNode | None:
    if table is None:
        return None
    return next(
        (value for at, value in table.value if at.value == key and isinstance(value, yaml.ScalarNode)), None
    )
