"""``makeway submit`` and ``makeway victims``: hand a job in, or ask what it would bring about."""

from __future__ import annotations

import os
import re
import resource
import sys
import time

from makeway_local_world.commands import options, terminal
from makeway_local_world.commands.client import Absent, Daemon, job_route
from makeway_local_world.commands.words import Argument, Command, Failed, Option, Wrong, command, whole
from makeway_local_world.handed import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_NOTHING = "name a script, or a command behind --: makeway submit -- COMMAND"
AGAIN = 5.0
"""Seconds for which a submission is repeated if the daemon goes away meanwhile; its key makes that safe."""
_AHEAD = r"now(?:\+(\d+)(second|minute|hour|day|week)?s?)?"
_UNITS = {None: 1, "second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}


def instant(text: str, now: float) -> float:
    """Return an instant as Unix time.

    :raises ValueError: it is none.
    """
    match = re.fullmatch(_AHEAD, text.strip().lower())
    if match:
        return now + int(match[1] or 0) * _UNITS[match[2]]
    for form in ("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d"):
        try:
            return time.mktime(time.strptime(text, form))
        except (ValueError, OverflowError):
            continue
    for form in ("%H:%M:%S", "%H:%M"):
        try:
            clock = time.strptime(text, form)
        except ValueError:
            continue
        today = time.localtime(now)
        at = time.mktime((*today[:3], clock.tm_hour, clock.tm_min, clock.tm_sec, 0, 0, -1))
        if at >= now:
            return at
        return time.mktime((*today[:2], today[2] + 1, clock.tm_hour, clock.tm_min, clock.tm_sec, 0, 0, -1))
    raise ValueError(f"got {text!r}; allowed: now+2hours, 18:30, 2026-11-24, 2026-11-24T18:30")


EVENTS = ("begin", "end", "fail", "requeue", "suspend", "resume")
"""Of what a user may be told."""


def _events(text: str) -> tuple[str, ...]:
    """Read ``--mail-type``, as sbatch has it.

    :raises ValueError: it names something else.
    """
    names = [each.strip().lower() for each in text.split(",")]
    if names == ["none"]:
        return ()
    wrong = [each for each in names if each not in (*EVENTS, "all")]
    if wrong:
        raise ValueError(f"got {wrong[0].upper()!r}; allowed: {', '.join(EVENTS).upper()}, ALL, NONE")
    return EVENTS if "all" in names else tuple(each for each in EVENTS if each in names)


def _begin(text: str) -> float:
    return instant(text, time.time())


def _names(text: str) -> list[str]:
    return list(dict.fromkeys(part for part in text.split(",") if part))


def _counted(text: str) -> dict[str, int]:
    """Read ``gpu:2,licence:1``, as --gres and --licenses take it; a type (``gpu:a100:2``) belongs to the name."""
    found: dict[str, int] = {}
    for part in text.split(","):
        if not part:
            continue
        name, _, number = part.rpartition(":")
        if not number.isdigit():
            name, number = part, "1"
        if not name:
            raise ValueError(f"got {part!r}; allowed: NAME:NUMBER, as in gpu:2")
        found[name] = found.get(name, 0) + int(number)
    return found


def _attributes(texts: Sequence[str]) -> dict[str, str]:
    """Read ``due=3600``, several times."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ValueError(f"got {text!r}; allowed: NAME=VALUE, as in due=3600")
        found[name] = value
    return found


_LIMITS = {name: getattr(resource, f"RLIMIT_{name}") for name in RESOURCES}


def _limits(text: str) -> dict[str, tuple[int, int]]:
    """Return the limits of this shell by name; only the soft ones, as sbatch does."""
    words = [word for word in text.upper().replace("RLIMIT_", "").split(",") if word]
    if words == ["NONE"]:
        return {}
    for word in words:
        if word != "ALL" and word not in _LIMITS:
            from makeway.errors import nearest

            allowed = ", ".join(("ALL", "NONE", *_LIMITS))
            raise ValueError(f"got {word!r}; allowed: {allowed}{nearest(word, _LIMITS)}")
    names = _LIMITS if "ALL" in words else words
    return {name: (resource.getrlimit(_LIMITS[name])[0], resource.RLIM_INFINITY) for name in names}


WORDS = Argument("words", "[SCRIPT [ARGUMENT]... | -- COMMAND [ARGUMENT]...]", many=True, required=False)
ASKED = (
    WORDS,
    Option("-J", "--job-name", to="name", metavar="NAME", help="Name; else that of the program."),
    Option(
        "-p",
        "--partition",
        to="partitions",
        reads=_names,
        metavar="NAME,...",
        offers="partitions",
        help="Partitions to try; else the default one.",
    ),
    Option("-n", "--ntasks", to="tasks", reads=whole(1), metavar="N", help="Tasks; each has its CPUs."),
    Option("-c", "--cpus-per-task", reads=whole(1), metavar="N", help="CPUs of each task."),
    Option("-N", "--nodes", reads=whole(1), metavar="N", help="Nodes; a machine is one."),
    Option(
        "--mem",
        to="memory_mb",
        reads=options.megabytes,
        metavar="MEMORY",
        help="Memory, as in 4G; a bare number is megabytes.",
    ),
    Option(
        "--mem-per-cpu",
        to="memory_mb_per_cpu",
        reads=options.megabytes,
        metavar="MEMORY",
        help="Memory for each CPU.",
    ),
    Option("-G", "--gpus", reads=whole(0), metavar="N", help="GPUs."),
    Option("--gres", reads=_counted, metavar="NAME:N,...", help="Counted resources, as in gpu:2."),
    Option("-L", "--licenses", reads=_counted, metavar="NAME:N,...", help="Licences."),
    Option(
        "--attribute",
        to="attributes",
        many=True,
        reads=_attributes,
        metavar="NAME=VALUE",
        help="What a policy reads, as in due=3600. Repeatable.",
    ),
    Option("-C", "--constraint", to="features", metavar="EXPRESSION", help="Features of the node."),
    Option("--exclusive", flag=True, help="Share the node with nobody."),
    Option(
        "-t",
        "--time",
        to="time_limit",
        reads=options.length,
        metavar="TIME",
        help="Time limit: 30, 2:00:00, 1-12.",
    ),
    Option(
        "-b",
        "--begin",
        reads=_begin,
        metavar="INSTANT",
        help="Not before: 18:30, now+2hours, 2026-11-24T18:30.",
    ),
    Option(
        "-d",
        "--dependency",
        metavar="afterok:ID,...",
        help="after, afterany, afterok or afternotok others.",
    ),
    Option("-a", "--array", metavar="0-9%2", help="Make a task for each index; %n: so many at a time."),
    Option("-H", "--hold", flag=True, help="Wait until `makeway release`."),
    Option("-A", "--account", metavar="NAME", help="Account that is charged."),
    Option("-q", "--qos", metavar="NAME", help="Service class."),
    Option("--nice", reads=whole(), metavar="N", help="Lowers the priority by so much."),
    Option("--priority", reads=whole(0), metavar="N", help="The priority itself; for operators."),
    Option(
        "--requeue",
        off=("--no-requeue",),
        flag=True,
        help="Whether it may start again from the beginning.",
    ),
    Option(
        "--retries", reads=whole(0, 1000), metavar="N", help="Let it wait again so often after it has failed."
    ),
    Option(
        "--requeue-exit",
        metavar="CODES",
        help="Only after these exit codes, as in 75,99-101; 5 times unless --retries says.",
    ),
    Option(
        "--signal",
        metavar="[B:]NAME[@SECONDS]",
        help="A signal ahead of its end; B: to its first process only.",
    ),
    Option(
        "-D", "--chdir", to="cwd", metavar="DIR", offers="files", help="Working directory; else this one."
    ),
    Option("-i", "--input", metavar="FILE", offers="files", help="Standard input; else /dev/null."),
    Option(
        "-o",
        "--output",
        metavar="PATTERN",
        help="Standard output: %j id, %A array, %a index, %x name, %u user, %I incarnation.",
    ),
    Option("-e", "--error", metavar="PATTERN", help="Standard error; else with the output."),
    Option("--open-mode", choices=("truncate", "append"), help="For outputs; truncate is usual."),
    Option("--export", metavar="ALL|NONE|NAME,NAME=VALUE,...", help="Environment handed over; ALL is usual."),
    Option(
        "--checkpointable",
        off=("--no-checkpointable",),
        flag=True,
        help="Save it with its memory when it has to make way by a checkpoint; needs criu 4.",
    ),
    Option(
        "--checkpoint-every",
        reads=options.length,
        metavar="TIME",
        help="Save it so often, too, should its processes or the machine be lost.",
    ),
    Option(
        "--checkpoint-command",
        to="checkpoint",
        metavar="COMMAND",
        help="Saves the state of the running job.",
    ),
    Option("--notice-command", to="notice", metavar="COMMAND", help="Run before the job is stopped."),
    Option("--on-end", metavar="COMMAND", help="Run when the job has ended."),
    Option(
        "--mail-type",
        reads=_events,
        metavar="EVENT,...",
        help="Mail at BEGIN, END, FAIL, REQUEUE, SUSPEND, RESUME, ALL; other notices come at these, too.",
    ),
    Option("--mail-user", metavar="ADDRESS", help="Where mail goes; else to you on this machine."),
    Option("--webhook", metavar="URL", help="Post JSON there at each event."),
    Option("--desktop", flag=True, help="Show each event on your desktop, by notify-send."),
    Option(
        "--propagate",
        to="limits",
        reads=_limits,
        metavar="ALL|NONE|NAME,...",
        help="Resource limits of this shell that the job gets, as in NOFILE,CORE.",
    ),
    Option(
        "--process-nice",
        reads=whole(-20, 19),
        metavar="N",
        help="Niceness of the processes.",
    ),
)
"""What says what a job is."""
_IN_SCRIPTS = {each.to for each in ASKED if isinstance(each, Option)} | {"waits"}


@command(
    "submit",
    *ASKED,
    Option(
        "-W",
        "--wait",
        to="waits",
        flag=True,
        help="Wait until it has ended; leave with its exit status.",
    ),
    Option("--parsable", flag=True, help="Print the id alone."),
    Option("--wrap", metavar="COMMAND", help="Run this line by /bin/sh."),
    Option(
        "--from-file",
        metavar="FILE",
        offers="files",
        help="Run each line of FILE by /bin/sh, as a task of one array; - is standard input.",
    ),
    Option("--key", metavar="TEXT", help="The same key makes no second job; for programs that repeat."),
    options.JSON,
    mixed=False,
    behind="command",
)
def submit(waits: bool, parsable: bool, key: str | None, as_json: bool, **given: Any) -> int:
    """Hand in a job: a SCRIPT, whose #SBATCH lines count, or a COMMAND behind `--`.

    Options on the command line come before those of the script. Options of sbatch that makeway does not honour are
    named in a warning. A script may also come by standard input: `makeway submit < job.sh`.
    """
    request = asked(submit, given)
    waits = waits or bool(request.pop("waits", False))
    request["key"] = key or os.urandom(16).hex()
    server, answer = hand_in(request)
    if not (as_json and waits):
        _tell(answer, parsable=parsable, as_json=as_json)
    if not waits:
        return 0
    from makeway_local_world.commands.output import ended, exit_status

    found = ended(server, answer["id"])
    if as_json:
        terminal.put({**answer, "ended": found})
    return max(map(exit_status, found))


@command(
    "again",
    options.JOB_OR_LAST,
    Option("--failed", flag=True, help="Of an array only the tasks that failed."),
    Option("--parsable", flag=True, help="Print the id alone."),
    options.JSON,
)
def again(job: str | None, failed: bool, parsable: bool, as_json: bool) -> None:
    """Submit a job again, as another one: the same command, options and directory.

    What its --export names is taken from this shell's environment. It does not wait for the jobs, or for the instant,
    that the first one waited for. Without JOB, the one that you submitted last.
    """
    server = Daemon()
    job = job or options.last_job(server)
    request = server.get(job_route(job, "request"), failed=int(failed))
    if "terminal" in request:
        raise Failed(f"job {job} runs in the foreground; start another one: makeway run")
    request["environment"] = environment(request.get("export", "ALL"), os.environ)
    request["key"] = os.urandom(16).hex()
    _tell(hand_in(request)[1], parsable=parsable, as_json=as_json)


def _tell(answer: Mapping[str, Any], *, parsable: bool, as_json: bool) -> None:
    """Say what a submission came to."""
    if as_json:
        terminal.put(answer)
    elif parsable:
        terminal.say(answer["id"])
    else:
        count = len(answer["jobs"])
        tasks = f" ({count} task{'s' if count > 1 else ''})" if answer["jobs"] != [answer["id"]] else ""
        terminal.say(f"submitted job {answer['id']}{tasks}")


def hand_in(request: Mapping[str, Any]) -> tuple[Daemon, dict[str, Any]]:
    """Submit a request; repeat it if the daemon goes away before it answers."""
    until = time.monotonic() + AGAIN
    server = Daemon()
    while True:
        try:
            return server, server.post("/v1/jobs", request)
        except Absent:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@command("victims", *ASKED, options.JSON, mixed=False, behind="command")
def victims(as_json: bool, **given: Any) -> None:
    """Say which jobs a job would displace now, when it would start, and why; nothing is submitted.

    It takes the options of `makeway submit`; a script or a command is not needed.
    """
    request = asked(victims, given, runs=False)
    request.pop("waits", None)
    answer = Daemon().post("/v1/victims", request)
    if as_json:
        terminal.put(answer)
        return
    terminal.say(*answer["told"])


def asked(command: Command, given: dict[str, Any], *, runs: bool = True) -> dict[str, Any]:
    """Return what a command line, and its script, ask for: the fields of a request that are given.

    :param runs: whether something has to be named that is run.
    """
    found = {
        name: value
        for name, value in given.items()
        if value is not None and value != () and (value is not False or name in ("requeue", "checkpointable"))
    }
    words = found.pop("words", ())
    wrap, file = found.pop("wrap", None), found.pop("from_file", None)
    if sum(map(bool, ("command" in found, words, wrap, file))) > 1:
        raise Wrong("name a script, or a command behind --, or --wrap, or --from-file; one of them")
    if wrap:
        found = {"name": "wrap", **found, "script": f"#!/bin/sh\n{wrap}\n"}
    elif file:
        found = {"name": "lines" if file == "-" else os.path.basename(file), **found}
        found |= _by_lines(file, found.get("array", ""))
    elif words:
        found = _by_script(command, found, words)
    elif "command" not in found and runs:
        if sys.stdin.isatty():
            raise Wrong(_NOTHING)
        found = _by_script(command, found, ("-",))
    found.setdefault("limits", _limits("ALL"))
    _notices(found)
    found["environment"] = environment(found.get("export", "ALL"), os.environ)
    found["cwd"] = os.path.normpath(os.path.join(os.getcwd(), found.get("cwd", ".")))
    umask = os.umask(0o077)
    os.umask(umask)
    return {**found, "umask": umask}


def _notices(found: dict[str, Any]) -> None:
    """Make of the ways in which a user wants to be told one command, which runs with the user's rights.

    :raises Wrong: the address or the URL cannot be one.
    """
    events = found.pop("mail_type", None)
    user, hook, desktop = (found.pop(name, None) for name in ("mail_user", "webhook", "desktop"))
    if user is not None and not re.fullmatch(r"[^\s<>,;]{1,320}", user):
        raise Wrong(f"--mail-user: got {user!r}; allowed: one address")
    if hook is not None and not re.fullmatch(r"https?://\S{1,2000}", hook):
        raise Wrong(f"--webhook: got {hook!r}; allowed: an address that begins with http:// or https://")
    if user is not None and events is None:
        terminal.warn(["--mail-user without --mail-type: no mail is sent"])
    words = ["--mail", user or options.login()] if events else []
    words += ["--webhook", hook] if hook else []
    words += ["--desktop"] if desktop else []
    at = EVENTS if events is None else events
    if words and at:
        import shlex

        found["tell"] = shlex.join([sys.executable, "-I", "-m", "makeway_local_world.telling", *words])
        found["tell_at"] = at


def _by_script(command: Command, found: dict[str, Any], words: Sequence[str]) -> dict[str, Any]:
    """Let the lines of a script set what the command line did not."""
    from makeway_local_world.commands import scripts

    script = scripts.read(words[0])
    if words[0] == "-" and not script.text:
        raise Wrong(_NOTHING)
    told, warnings = scripts.values(script, command, _IN_SCRIPTS)
    terminal.warn(warnings)
    name = "script" if words[0] == "-" else os.path.basename(script.path)
    found = {"name": name, **told, **found, "script": script.text}
    return {**found, "command": tuple(words[1:])} if words[1:] else found


def _by_lines(path: str, array: str) -> dict[str, Any]:
    """Return a script each of whose tasks runs one line of a file, and the array of them.

    :raises Wrong: there is nothing in it, or an array is asked for beside it.
    """
    if array and not re.fullmatch(r"%[0-9]{1,7}", array):
        raise Wrong(f"--array: got {array!r} with --from-file; allowed: %N, so many at a time")
    from makeway_local_world.commands import scripts

    try:
        raw = scripts.contents(path)
    except OSError as error:
        raise Wrong(f"--from-file: {path}: {error.strerror}") from None
    if len(raw) > scripts.LARGEST:
        raise Wrong(f"--from-file: {path}: more than {scripts.LARGEST:,} bytes")
    try:
        lines = [line for line in raw.decode().split("\n") if line.strip()]
    except UnicodeDecodeError:
        raise Wrong(f"--from-file: {path}: it is not UTF-8 text") from None
    lines = [line for line in lines if not line.lstrip().startswith("#")]
    if not lines:
        raise Wrong(f"--from-file: {path}: there is no command in it")
    end = f"end-{os.urandom(8).hex()}"
    head = "#!/bin/sh\n# Each task runs the line of its number.\n"
    head += f'eval "$(sed -n "${{SLURM_ARRAY_TASK_ID}}p" <<\'{end}\'\n'
    text = head + "\n".join((*lines, end, ')"', ""))
    return {"script": text, "array": f"1-{len(lines)}{array}"}


def environment(export: str, ours: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment is handed over, as ``sbatch --export`` says."""
    kept = {
        name: value
        for name, value in ours.items()
        if not name.startswith(("MAKEWAY_JOB", "SLURM_", "SBATCH_"))
    }
    found: dict[str, str] = {}
    for part in export.split(","):
        name, equals, value = part.partition("=")
        if part.upper() == "ALL":
            found.update(kept)
        elif part.upper() == "NONE" or not name:
            continue
        elif equals:
            found[name] = value
        elif name in ours:
            found[name] = ours[name]
    return found
