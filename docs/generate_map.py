"""Draw docs/_static/map.svg: the rooms of the house, floor by floor, as their imports have it.

Run ``python docs/generate_map.py`` after modules came, went or import others; a test keeps the picture current.

Floors are the layers of tests/layers.toml. A room is a package, or the single modules of a floor; of a package with
rooms inside, what uses those stands above them. A line goes from a room to one that it imports; those that climb are
only for annotations, and dashed. Distributions stand on the roof.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import attrs

ROOT = Path(__file__).parents[1]
PICTURE = Path(__file__).with_name("_static") / "map.svg"
HOUSE = [
    ROOT / "core/src/makeway",
    *(ROOT / "plugins/app/src" / each for each in ("makeway_engine", "makeway_app")),
]
"""The packages that every replay needs: the contract, the engine, the command."""
RULES: Mapping[str, Any] = tomllib.loads((ROOT / "tests/layers.toml").read_text(encoding="utf-8"))
FLOORS: Sequence[str] = [layer["name"] for layer in RULES["layer"]]
MEANINGS = {
    "people": "what people call and read (makeway)",
    "worlds": "where jobs run, what is read",
    "engine": "who decides, in order (makeway_engine)",
    "records": "who is asked, what is written down",
    "config": "what a site wrote down",
    "contract": "all that plugins import",
}
GOLDEN = 0.618
SINGLE = "modules"
"""Name of the room of a floor's modules that are in no package."""
WIDTH, MARGIN, ROOM, GAP, FLOOR = 1180, 20, 26, 12, 74
"""Pixels: of the picture, beside it, a room's height, between rooms, between the lines of rooms."""


@attrs.frozen
class Room:
    """One box of the picture."""

    floor: int
    name: str
    modules: tuple[str, ...]


def modules(packages: Sequence[Path] = HOUSE) -> dict[str, Path]:
    """Return the modules of packages by name, those of the house unless told otherwise."""
    found = {}
    for package in packages:
        for path in sorted(package.rglob("*.py")):
            parts = path.relative_to(package.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def floor_of(module: str) -> int:
    """Return the place of a module's layer; plugins within the core stand on the roof."""
    listed = [
        (len(entry), at, entry) for at, layer in enumerate(RULES["layer"]) for entry in layer["modules"]
    ]
    listed += [(len(entry), -1, entry) for entry in RULES["plugins"]["modules"]]
    return max((length, at) for length, at, entry in listed if _is_in(module, entry))[1]


def _is_in(module: str, entry: str) -> bool:
    return f"{module}.".startswith(entry[:-1]) if entry.endswith(".*") else module == entry


def imports(known: Mapping[str, Path]) -> Iterator[tuple[str, str, bool]]:
    """Yield who imports whom, and whether for annotations only."""
    for module, path in known.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        types = {
            id(each)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            for each in ast.walk(node)
        }
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                target = name if name in known else name.rpartition(".")[0]
                if target in known and target != module:
                    yield module, target, id(node) in types


def rooms(known: Mapping[str, Path], uses: Mapping[str, set[str]]) -> list[Room]:
    """Return the rooms, from the roof down, each floor in the order of its names."""
    inside: dict[tuple[int, str], list[str]] = {}
    for module in known:
        inside.setdefault((floor_of(module), _room_of(module, known)), []).append(module)
    found = []
    for (floor, name), listed in sorted(inside.items()):
        smaller = {
            each
            for (where, other), more in inside.items()
            if other.startswith(f"{name}.") or (name == SINGLE and where == floor and other != name)
            for each in more
        }
        above = [module for module in listed if smaller and _reached(module, uses) & smaller]
        below = [module for module in listed if module not in above]
        if above and below:
            found += [
                Room(floor, f"{name} (above)", tuple(above)),
                Room(floor, f"{name} (below)", tuple(below)),
            ]
        else:
            found.append(Room(floor, name, tuple(listed)))
    return found


def _room_of(module: str, known: Mapping[str, Path]) -> str:
    parts = module.split(".")[1:]
    if module == "makeway_engine" or (known[module].name == "__init__.py" and parts):
        parts = [*parts, ""]
    packages = ["engine"] if module.startswith("makeway_engine") else []
    packages += parts[:-1]
    return ".".join(packages[: 2 if packages[:1] == ["engine"] else 1]) or SINGLE


def _reached(module: str, uses: Mapping[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    ahead = [module]
    while ahead:
        for each in uses.get(ahead.pop(), set()) - seen:
            seen.add(each)
            ahead.append(each)
    return seen


def lines_of(listed: Sequence[Room], uses: Mapping[str, set[str]]) -> list[list[Room]]:
    """Return the rooms line by line: floors from the roof down, and within one, users above what they use."""
    lines = []
    for floor in range(-1, len(FLOORS)):
        left = [room for room in listed if room.floor == floor]
        while left:
            used = {
                id(other)
                for room in left
                for other in left
                if other is not room and any(uses[module] & set(other.modules) for module in room.modules)
            }
            top = [room for room in left if id(room) not in used] or left
            lines.append(top)
            left = [room for room in left if room not in top]
    return lines


def distributions() -> list[str]:
    """Return the distributions that stand on the core, by name."""
    settings = [ROOT / "testing/pyproject.toml", *sorted(ROOT.glob("plugins/*/pyproject.toml"))]
    names = [tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"] for path in settings]
    return sorted(name.removeprefix("makeway-") for name in names if name != "makeway")


def render() -> str:
    """Return the picture."""
    known = modules()
    found = list(imports(known))
    uses: dict[str, set[str]] = {module: set() for module in known}
    for one, other, types in found:
        if not types:
            uses[one].add(other)
    lines = lines_of(rooms(known, uses), uses)
    places: dict[str, tuple[float, float, float]] = {}
    body, y = [], 60.0
    names = distributions()
    body += _roof(names, y)
    y += FLOOR * (1 + 0.5 * ((len(names) - 1) // 7))
    told: set[int] = set()
    for line in lines:
        floor = line[0].floor
        if floor not in told:
            told.add(floor)
            title = FLOORS[floor] if floor >= 0 else "plugins of the core"
            body.append(
                _text(MARGIN, y - 8, f"{title}: {MEANINGS.get(title, 'see nothing of one another')}", "floor")
            )
        wide = (WIDTH - 2 * MARGIN - GAP * (len(line) - 1)) / len(line)
        for at, room in enumerate(line):
            x = MARGIN + at * (wide + GAP)
            for module in room.modules:
                places[module] = (x, y, wide)
            label = _label(room)
            body.append(f'<rect x="{x:.0f}" y="{y:.0f}" width="{wide:.0f}" height="{ROOM}" rx="4"/>')
            body.append(_text(x + wide / 2, y + 17, label, "room"))
        y += FLOOR
    arrows = _arrows(found, places)
    height = y - FLOOR + ROOM + MARGIN
    return "\n".join([*_head(height), *arrows, *body, "</svg>"]) + "\n"


def _label(room: Room) -> str:
    """Name a room: single modules by their names."""
    if room.name.startswith(SINGLE):
        return " \N{MIDDLE DOT} ".join(module.partition(".")[2] or module for module in room.modules)
    return room.name


def _roof(names: Sequence[str], y: float) -> Iterator[str]:
    said = "distributions: each sees the contract; libraries and worlds see more (tests/layers.toml)"
    yield _text(MARGIN, y - 8, said, "floor")
    for start in range(0, len(names), 7):
        few = names[start : start + 7]
        wide = (WIDTH - 2 * MARGIN - GAP * 6) / 7
        for at, name in enumerate(few):
            x, top = MARGIN + at * (wide + GAP), y + FLOOR * 0.5 * (start // 7)
            yield f'<rect class="far" x="{x:.0f}" y="{top:.0f}" width="{wide:.0f}" height="{ROOM}" rx="4"/>'
            yield _text(x + wide / 2, top + 17, name, "room")


def _arrows(
    found: Sequence[tuple[str, str, bool]], places: Mapping[str, tuple[float, float, float]]
) -> Iterator[str]:
    joined = {
        (places[one], places[other], types and places[one][1] >= places[other][1])
        for one, other, types in found
        if places[one] != places[other]
    }
    for at, (one, other, climbs) in enumerate(sorted(joined)):
        left, right = max(one[0], other[0]), min(one[0] + one[2], other[0] + other[2])
        share = (at + 1) * GOLDEN % 1  # so that neighbours in the list stand far apart
        if left < right:
            begin_x = end_x = left + 8 + (right - left - 16) * share
        else:
            begin_x, end_x = one[0] + one[2] * share, other[0] + other[2] * share
        begin, end = (one[1], other[1] + ROOM) if climbs else (one[1] + ROOM, other[1])
        style = ' stroke-dasharray="3 4"' if climbs else ""
        yield f'<path d="M {begin_x:.0f} {begin:.0f} L {end_x:.0f} {end:.0f}"{style}/>'
        tip = end + 6 if climbs else end - 6
        points = f"{end_x - 4:.0f},{tip:.0f} {end_x + 4:.0f},{tip:.0f} {end_x:.0f},{end:.0f}"
        yield f'<polygon points="{points}"/>'


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.0f}" y="{y:.0f}">{escape(text)}</text>'


def _head(height: float) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img" '
        'aria-label="The rooms of makeway, floor by floor; lines go down to what a room imports">'
    )
    yield (
        "<style>text{font:12px sans-serif;fill:#222}.room{text-anchor:middle}.floor{font-weight:bold;font-size:13px}"
        "rect{fill:#eef3fa;stroke:#4a6fa5}.far{fill:#f7f1e3;stroke:#a5864a}path{fill:none;stroke:#8a93a8;stroke-width:1.4}polygon{fill:#5b667e}"
        "</style>"
    )
    yield f'<rect x="0" y="0" width="{WIDTH}" height="{height:.0f}" style="fill:#fff;stroke:none"/>'
    yield _text(MARGIN, 24, "The house: an arrow goes from a room to one that it imports", "floor")


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(render(), encoding="utf-8")


if __name__ == "__main__":
    main()
