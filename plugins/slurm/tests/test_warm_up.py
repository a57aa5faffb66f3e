"""Usage at the start from earlier rows of sacct, by hand (slurm-priority-and-limits 2)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from makeway.config import Config
from makeway.errors import ConfigError
from makeway.settings import structure
from makeway_slurm.accounts.warm_up import warmed
from makeway_testing.command_line import Run

MULTIFACTOR = "priority/multifactor"
ZERO = 1714521600.0
"""2024-05-01T00:00:00, second 0 of the rows below."""
HEADER = "JobID|User|Account|Partition|QOS|Submit|Start|End|State|AllocTRES\n"


def site(half_life: float = 300.0, **more: Any) -> Config:
    """Return two accounts; recalculations come every minute."""
    associations = [
        {"Account": "root"},
        {"Account": "physics", "Share": "1"},
        {"Account": "physics", "User": "ada"},
        {"Account": "biology"},
        {"Account": "biology", "User": "eve"},
    ]
    return structure(
        {
            "cluster": {"attributes": {"associations": associations}},
            "node": [{"name": "n[1-4]", "cpus": 4}],
            "partition": [{"name": "main", "default": True, **more}],
            "qos": [
                {"name": "normal"},
                {"name": "double", "attributes": {"UsageFactor": "2"}},
                {"name": "kept", "flags": ["NoDecay"]},
            ],
            "policy": {
                "priority": MULTIFACTOR,
                "settings": {MULTIFACTOR: {"decay_half_life": half_life, "calc_period": 60.0}},
            },
        },
        Config,
        "test",
    )


def stamp(second: int) -> str:
    """Return an instant as sacct prints it."""
    return f"2024-05-01T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def log(path: Path, *rows: tuple[Any, ...]) -> Path:
    """Write rows of user, account, qos, start, end, AllocTRES."""
    lines = [
        f"{at}|{user}|{account}|main|{qos}|{stamp(start)}|{stamp(start)}|{stamp(end)}|COMPLETED|{tres}\n"
        for at, (user, account, qos, start, end, tres) in enumerate(rows, 1)
    ]
    path.write_text(HEADER + "".join(lines))
    return path


def used(config: Config) -> dict[str, float]:
    """Return what each association and QOS had used."""
    found = {
        "/".join(filter(None, (each["Account"], each.get("User")))): float(each["RawUsage"])
        for each in config.cluster.attributes["associations"]
    }
    return found | {f"qos {each.name}": float(str(each.attributes["RawUsage"])) for each in config.qos}


FOUR = "billing=4,cpu=4,mem=400M,node=1"


@pytest.mark.parametrize(
    ("end", "at", "expected"),
    [(1000, 55, 193.72), (1000, 115, 377.53), (1000, 175, 537.52), (200, 235, 550.03)],
)
def test_p6_decay(tmp_path: Path, end: int, at: int, expected: float) -> None:
    """4 CPUs from second 0 on: the sums of 2.2, at the recalculations 55, 115, 175, 235."""
    path = log(tmp_path / "old.sacct", ("ada", "physics", "normal", 0, end, FOUR))
    found = used(warmed(site(), [path], ZERO + at)[0])
    for name in ("physics/ada", "physics", "root", "qos normal"):
        assert found[name] == pytest.approx(expected, abs=0.006), name
    assert found["biology/eve"] == found["biology"] == 0.0


def test_a_job_within_one_period(tmp_path: Path) -> None:
    """Charged at its end, it decays with the whole period: 10 s of one CPU, the replay begins at the next minute."""
    path = log(tmp_path / "old.sacct", ("ada", "physics", "normal", 20, 30, "cpu=1"))
    d = 1 - 0.693 / 300
    assert used(warmed(site(), [path], ZERO + 60)[0])["physics"] == pytest.approx(10 * d**10 * d**60)


def test_p7_factors_and_weights(tmp_path: Path) -> None:
    """UsageFactor 2 doubles; without decay 4 CPUs for 100 s are 400, and a NoDecay QOS keeps all with it."""
    rows = [("ada", "physics", "double", 0, 100, FOUR), ("eve", "biology", "kept", 0, 100, FOUR)]
    path = log(tmp_path / "old.sacct", *rows)
    plain = used(warmed(site(0.0), [path], ZERO + 600)[0])
    assert (plain["physics"], plain["biology"], plain["root"]) == (800.0, 400.0, 1200.0)
    decayed = used(warmed(site(300.0), [path], ZERO + 600)[0])
    assert decayed["qos kept"] == 400.0
    assert decayed["qos double"] < 800.0 / 3
    weighed = site(0.0, attributes={"TRESBillingWeights": "CPU=1.0,Mem=2.0G"})
    path = log(tmp_path / "new.sacct", ("ada", "physics", "normal", 0, 100, "cpu=1,mem=1G"))
    assert used(warmed(weighed, [path], ZERO + 600)[0])["physics"] == 300.0


def test_minutes_of_tres_and_wall_time(tmp_path: Path) -> None:
    """Limits on used minutes go by them: 4 CPUs for 10 minutes are 40, wall time 10."""
    path = log(tmp_path / "old.sacct", ("ada", "physics", "normal", 0, 600, FOUR))
    config = warmed(site(0.0), [path], ZERO + 6000)[0]
    table = next(each for each in config.cluster.attributes["associations"] if each.get("User") == "ada")
    assert float(table["GrpWallRaw"]) == 10.0
    assert dict(word.split("=") for word in table["GrpTRESRaw"].split(","))["cpu"] == "40"


def test_it_counts_like_a_replay(tmp_path: Path) -> None:
    """Rows of many lengths come to what the sums of section 2.2 make of them, step by step."""
    rows = [(3 * at % 240, 3 * at % 240 + 7 * at + 1) for at in range(40)]
    path = log(tmp_path / "old.sacct", *(("ada", "physics", "normal", *row, "cpu=1") for row in rows))
    at, period, d = 900, 60, 1 - 0.693 / 300
    usage, last = 0.0, 0
    for second in range(1, at + 1):
        for start, end in rows:
            if end == second and end % period:
                length = end - max(start, last)
                usage += length * d**length
        if second % period == 0:
            usage *= d ** (second - last)
            for start, end in rows:
                length = min(second, end) - max(start, last)
                if start < second and (end >= second) and length > 0:
                    usage += length * d**length
            last = second
    assert used(warmed(site(), [path], ZERO + at)[0])["physics"] == pytest.approx(usage, rel=1e-9)


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    """Strangers, rows without AllocTRES, and how much of the usage lies before the first row."""
    path = log(
        tmp_path / "old.sacct",
        ("ada", "physics", "normal", 0, 300, "cpu=1"),
        ("bob", "nowhere", "normal", 0, 300, "cpu=1"),
        ("ada", "physics", "normal", 0, 300, ""),
    )
    notes = warmed(site(), [path], ZERO + 600)[1]
    assert "--warm-up: 1 row: nobody that accounting knows; not charged" in notes
    assert "--warm-up: 1 row: neither AllocTRES nor NCPUS; not charged" in notes
    assert any("2.0 half lives: up to 25% of the usage may be missing" in text for text in notes)


def test_nothing_to_charge(tmp_path: Path) -> None:
    """Rows of later days, no accounts, no clock: one clear error each."""
    path = log(tmp_path / "old.sacct", ("ada", "physics", "normal", 5000, 5300, "cpu=1"))
    with pytest.raises(ConfigError, match=r"no job of .* started before the replay begins"):
        warmed(site(), [path], ZERO)
    with pytest.raises(ConfigError, match="does not say at what time it begins"):
        warmed(site(), [path], None)
    bare: Mapping[str, Any] = {
        "node": [{"name": "n1", "cpus": 1}],
        "partition": [{"name": "p", "default": True}],
    }
    with pytest.raises(ConfigError, match="nobody is known who could be charged"):
        warmed(structure(bare, Config, "test"), [path], ZERO + 9000)


REPORT = """\
--------------------------------------------------------------------------------
Cluster/Account/User Utilization 2024-05-01T00:00:00 - 2024-05-01T00:59:59 (3600 secs)
Usage reported in TRES Seconds
--------------------------------------------------------------------------------
Cluster|Account|Login|Proper Name|TRES Name|Used
trial|root|||cpu|7200
trial|root|||billing|10800
trial|physics|||cpu|7200
trial|physics|ada|Ada|cpu|7200
trial|physics|ada|Ada|billing|10800
"""
"""An hour in which Ada used two CPUs, at three for each second; the layout is that of sreport 22.05."""
PER_CPU = """\
Cluster/Account/User Utilization 2024-05-01T01:00:00 - 2024-05-01T01:59:59 (3600 secs)
Usage reported in CPU Minutes
Cluster|Account|Login|Proper Name|Used|Energy
trial|biology|eve|Eve|60|0
"""


def test_sums_of_sreport(tmp_path: Path) -> None:
    """Two reports in one file: usage that does not decay is what the rows of users say, by hand; QOS have none."""
    path = tmp_path / "old.sreport"
    path.write_text(REPORT + PER_CPU)
    config, notes = warmed(site(0.0, attributes={"TRESBillingWeights": "CPU=2"}), [path], ZERO + 7200)
    found = used(config)
    assert found["physics/ada"] == found["physics"] == 10800.0
    assert found["biology/eve"] == 7200.0  # an hour of one CPU, at two for each second
    assert found["root"] == 18000.0
    assert found["qos normal"] == 0.0
    assert "--warm-up: 2 rows: sums of sreport say nothing of QOS, wall time and UsageFactor" in notes
    plain = used(warmed(site(0.0), [path], ZERO + 7200)[0])
    assert plain["physics"] == 7200.0  # without weights a CPU counts one


def test_a_sum_decays_like_a_job_of_that_time(tmp_path: Path) -> None:
    """Two CPUs all through the hour of the report, as rows of sacct say it."""
    sums, rows = tmp_path / "old.sreport", tmp_path / "old.sacct"
    sums.write_text(REPORT)
    log(rows, ("ada", "physics", "normal", 0, 3600, "cpu=2"))
    found = [used(warmed(site(), [path], ZERO + 3900)[0])["physics"] for path in (sums, rows)]
    assert found[0] == pytest.approx(found[1], rel=1e-9)
    assert found[0] > 0.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("TRES Seconds", "Percentage of Total", r"old.sreport:3: .*expected seconds, minutes or hours"),
        ("|Login|", "|Name|", r"old.sreport:5: no column Login"),
        ("|cpu|7200\n", "|cpu|many\n", r"old.sreport:6: Used: got 'many'; expected a number"),
        ("|cpu|7200\n", "|7200\n", r"old.sreport:6: 5 values below 6 columns"),
        ("Utilization 2024-05-01T00:00:00", "Utilization May", r"old.sreport:2: .*expected a time"),
    ],
)
def test_reports_that_cannot_be_read(tmp_path: Path, old: str, new: str, message: str) -> None:
    """Each is one error with its line."""
    path = tmp_path / "old.sreport"
    path.write_text(REPORT.replace(old, new))
    with pytest.raises(ConfigError, match=message):
        warmed(site(), [path], ZERO + 7200)


def test_sums_beside_rows_would_charge_twice(tmp_path: Path) -> None:
    """One kind of file at a time."""
    sums = tmp_path / "old.sreport"
    sums.write_text(REPORT)
    rows = log(tmp_path / "old.sacct", ("ada", "physics", "normal", 0, 3600, "cpu=2"))
    with pytest.raises(ConfigError, match="jobs would be charged twice; give one kind"):
        warmed(site(), [rows, sums], ZERO + 7200)


def exports(tmp_path: Path, half_life: str = "7-0") -> tuple[Path, ...]:
    """Write a site's exports: Ada had used an hour of four CPUs, Eve nothing; return what is replayed with what."""
    (tmp_path / "slurm.conf").write_text(
        "ClusterName=c\nSlurmctldHost=h\nPriorityType=priority/multifactor\nPriorityWeightFairshare=1000\n"
        f"PriorityDecayHalfLife={half_life}\nNodeName=n[1-4] CPUs=4\n"
        "PartitionName=main Nodes=n[1-4] Default=YES MaxTime=60\n"
    )
    (tmp_path / "tree.txt").write_text(
        "Cluster|Account|User|Partition|Share|ParentName|QOS|Def QOS\nc|root||||||\nc|physics|||1|root||\n"
        "c|physics|ada||1||normal|\nc|physics|eve||1||normal|\n"
    )
    old = log(tmp_path / "old.sacct", ("ada", "physics", "normal", 0, 3600, "cpu=4"))
    rows = (
        ("ada", "physics", "normal", 7200, 7300, "cpu=16"),
        ("eve", "physics", "normal", 7200, 7300, "cpu=16"),
    )
    new = log(tmp_path / "new.sacct", *rows)
    new.write_text(
        new.read_text().replace("|AllocTRES", "|AllocTRES|NCPUS").replace("|cpu=16\n", "|cpu=16|16\n")
    )
    return tmp_path / "slurm.conf", new, tmp_path / "tree.txt", old


def test_at_the_command_line(run: Run, tmp_path: Path) -> None:
    """The shares at the start show what the earlier log makes of them."""
    conf, new, tree, old = exports(tmp_path)
    given = ("replay", conf, new, "--accounting", tree)
    done = run(*given, "--warm-up", old, "--sshare-at", "0")
    assert done.status == 0, done.err
    ada = next(line for line in done.out.splitlines() if " ada " in line or "|ada|" in line)
    d = 1 - 0.693 / (7 * 86400)
    # within 0.1 %: what the steps of five minutes make of a decay that goes on
    expected = 4 * math.fsum(d ** (7200 - second) for second in range(3600))
    raw = [int(word) for word in ada.replace("|", " ").split() if word.isdigit()]
    assert any(abs(each - expected) < 0.001 * expected for each in raw), ada
    unknown = "no file says what everybody had used"
    assert (unknown in run(*given).err, unknown in done.err) == (True, False)
    assert "half lives: up to" in done.err


def test_explain_begins_with_what_was_used(run: Run, tmp_path: Path) -> None:
    """Ada, who had used something, stands behind Eve only if the earlier log is told."""
    conf, new, tree, old = exports(tmp_path)
    given = ("explain", conf, new, "--accounting", tree, "--job", "1")
    plain, warm = run(*given), run(*given, "--warm-up", old)
    assert plain.status == warm.status == 0, plain.err + warm.err
    assert "half lives: up to" in warm.err
    assert "why it waited: it did not" in plain.out
    assert "333 = fair share 333" in warm.out  # the last of three users, root among them


def test_a_sweep_begins_with_what_was_used(run: Run, tmp_path: Path) -> None:
    """Each run starts with its own decay of it, and another log of the time before is another sweep."""
    conf, new, tree, old = exports(tmp_path)
    key = 'policy.settings."priority/multifactor".decay_half_life'
    given = ("sweep", conf, new, "--accounting", tree, "--vary", f"{key}=3600.0,604800.0", "--workers", "1")
    plain = run(*given, "-o", tmp_path / "out")
    warm = run(*given, "-o", tmp_path / "out", "--warm-up", old)
    again = run(*given, "-o", tmp_path / "out", "--warm-up", old)
    assert plain.status == warm.status == again.status == 0, plain.err + warm.err
    assert "already" not in warm.err
    assert "half lives: up to" in warm.err
    assert "2 of 2 runs are in" in again.err
