"""Programs on GPUs: when cuda-checkpoint is called around criu, and what follows when it fails.

No GPU is needed, and none is tried: a stand-in for cuda-checkpoint speaks to the program as the driver does, and
fails where the driver would.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from makeway_checkpointable import cuda, obstacles
from makeway_checkpointable.command import checkpointable

HELP = "--get-state --pid <pid>\n--action lock | checkpoint | restore | unlock --pid <pid> [--timeout <ms>]\n"
TOOL = """#!/usr/bin/python3 -I
import os, pathlib, signal, sys, time
words = sys.argv[1:]
if words == ["--help"]:
    print("--get-state --pid <pid>  --action lock | checkpoint | restore | unlock")
    raise SystemExit
here = pathlib.Path(__file__).parent
pid = int(words[words.index("--pid") + 1])
what = "get-state" if words[0] == "--get-state" else words[1]
with open(here / "calls", "a") as calls:
    calls.write(f"{what}\\n")
if (here / f"fails-{what}").exists():
    (here / f"fails-{what}").unlink()
    sys.exit(f'Could not {what} on process ID {pid}: "operation not supported"')
question, answer = here / f"gpu.{pid}.question", here / f"gpu.{pid}.answer"
answer.unlink(missing_ok=True)
question.write_text(what)
os.kill(pid, signal.SIGUSR1)
for _ in range(3000):
    if answer.exists() and answer.read_text().endswith("\\n"):
        break
    time.sleep(0.01)
else:
    sys.exit("the process does not answer")
status, said = answer.read_text().split()
print(said)
raise SystemExit(int(status))
"""
"""Keeps nothing itself: as with the driver, the state is the process's, and goes and comes back with its memory."""
USES = """
import os, pathlib, signal
NEXT = {("running", "lock"): "locked", ("locked", "checkpoint"): "checkpointed",
        ("checkpointed", "restore"): "locked", ("locked", "unlock"): "running"}
state, gpu = "running", os.open("/dev/nvidia0", os.O_RDWR)
def told(*_):
    global state, gpu
    place = pathlib.Path(f"gpu.{os.getpid()}.question")
    what = place.read_text()
    status = 0 if what == "get-state" or (state, what) in NEXT else 1
    state = NEXT.get((state, what), state)
    if what == "checkpoint" and not status:
        os.close(gpu)
    if what == "restore" and not status:
        gpu = os.open("/dev/nvidia0", os.O_RDWR)
    place.with_suffix(".answer").write_text(f"{status} {state}\\n")
signal.signal(signal.SIGUSR1, told)
"""
DEVICES = """
mkdir -p dev
mount -t tmpfs none dev
for each in null zero urandom; do touch dev/$each; mount --bind /dev/$each dev/$each; done
mkdir dev/pts
mount --rbind /dev/pts dev/pts
touch dev/nvidia0
mount --rbind dev /dev
exec "$@"
"""
WITHIN = ("unshare", "--user", "--map-current-user", "--keep-caps", "--mount", "sh", "-ec", DEVICES, "sh")
"""A /dev with a plain file for a GPU, in namespaces of the program's own."""


@pytest.fixture
def gpu(place: Any) -> Any:
    """Return a place with a stand-in for a GPU and for cuda-checkpoint."""
    probe = subprocess.run(
        [*WITHIN, "true"],
        cwd=place.directory,
        check=False,
        capture_output=True,
        user=place.directory.stat().st_uid,
    )
    if probe.returncode != 0:
        pytest.skip(f"no /dev of its own: {probe.stderr.decode()}")
    tool = place.directory / "cuda-checkpoint"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    place.environ["MAKEWAY_CUDA_CHECKPOINT"] = str(tool)
    return place


def calls(place: Any) -> list[str]:
    """Return what the stand-in was asked, since it was asked last by this."""
    path: Path = place.directory / "calls"
    found = path.read_text().split() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def begun(place: Any, command: Sequence[str], **given: Any) -> Any:
    before = len(place.printed())
    started = place.start(*command, within=WITHIN, **given)
    place.until("more output", lambda: len(place.printed()) > before + 10)
    return started


def fails(place: Any, what: str) -> None:
    (place.directory / f"fails-{what}").touch()


OFF, BACK = ["lock", "checkpoint"], ["get-state", "restore", "unlock"]


def test_a_program_leaves_its_gpu_before_it_is_saved_and_comes_back_to_it(gpu: Any) -> None:
    command = gpu.counts(3, USES)
    first = begun(gpu, command)
    assert gpu.leaves(first) == 143
    assert calls(gpu) == OFF
    second = begun(gpu, command, every=1.0)
    gpu.until("a save", lambda: "it stood still" in gpu.said())
    gpu.until("its return", lambda: (gpu.directory / "calls").read_text().split()[-1] == "unlock")
    counted = len(gpu.printed())
    gpu.until("more", lambda: len(gpu.printed()) > counted + 10)
    asked = calls(gpu)
    assert asked[: len(BACK)] == BACK
    assert asked[len(BACK) : len(BACK + OFF + BACK)] == OFF + BACK
    second.kill()
    second.wait()
    (gpu.directory / "finish").touch()
    assert gpu.start(*command, within=WITHIN).wait(60) == 3
    assert gpu.counted()


@pytest.mark.parametrize("what", ["lock", "checkpoint"])
def test_a_gpu_that_cannot_be_left_is_named_and_the_program_runs_on_on_it(gpu: Any, what: str) -> None:
    command = gpu.counts(3, USES)
    first = begun(gpu, command)
    fails(gpu, what)
    first.send_signal(signal.SIGTERM)
    gpu.until("the reason", lambda: "it runs on" in gpu.said())
    assert f"it cannot be saved: cuda-checkpoint --action {what}: Could not {what} on process" in gpu.said()
    undone = {"lock": ["lock", "get-state"], "checkpoint": ["lock", "checkpoint", "get-state", "unlock"]}
    assert calls(gpu) == undone[what]
    assert not list(gpu.images.glob("making"))
    assert gpu.leaves(first) == 143  # what went wrong once may go well the next time
    (gpu.directory / "finish").touch()
    assert gpu.start(*command, within=WITHIN).wait(60) == 3
    assert gpu.counted()


def test_a_program_that_criu_cannot_save_comes_back_to_its_gpu(gpu: Any) -> None:
    failing = gpu.directory / "criu"
    failing.write_text(f'#!/bin/sh\n[ "$1" = dump ] && exit 1\nexec {gpu.environ["MAKEWAY_CRIU"]} "$@"\n')
    failing.chmod(0o755)
    command = gpu.counts(3, USES)
    first = begun(gpu, command, given_criu=str(failing))
    first.send_signal(signal.SIGTERM)
    gpu.until("the reason", lambda: "it runs on" in gpu.said())
    assert calls(gpu) == OFF + BACK
    (gpu.directory / "finish").touch()
    assert first.wait(60) == 3
    assert gpu.counted()


@pytest.mark.parametrize("what", ["get-state", "restore", "unlock"])
def test_a_program_that_does_not_come_back_to_its_gpu_is_ended_and_goes_on_from_its_image(
    gpu: Any, what: str
) -> None:
    command = gpu.counts(3, USES)
    fails(gpu, what)
    first = begun(gpu, command, every=1.0)
    assert first.wait(60) == 137
    assert "it does not come back to its GPU: cuda-checkpoint" in gpu.said()
    assert f"Could not {what} on process" in gpu.said()
    (gpu.directory / "finish").touch()
    assert gpu.start(*command, within=WITHIN).wait(60) == 3
    assert "it goes on after" in gpu.said()
    assert gpu.counted()


def test_an_image_that_does_not_get_its_gpu_again_is_kept_and_the_program_begins_anew(gpu: Any) -> None:
    command = gpu.counts(3, USES)
    first = begun(gpu, command)
    assert gpu.leaves(first) == 143
    fails(gpu, "restore")
    second = gpu.start(*command, within=WITHIN)
    gpu.until("its second start", lambda: gpu.said().count("it begins") == 2)
    (gpu.directory / "finish").touch()
    assert second.wait(60) == 3
    assert "image.1 cannot be used: cuda-checkpoint --action restore: Could not restore" in gpu.said()
    assert f"it is kept as {gpu.images}/refused, and the program begins anew" in gpu.said()
    assert gpu.counted()


def test_without_cuda_checkpoint_a_gpu_is_named_and_the_program_runs_on(gpu: Any) -> None:
    gpu.environ["MAKEWAY_CUDA_CHECKPOINT"] = str(gpu.directory / "none")
    command = gpu.counts(3, USES)
    first = begun(gpu, command)
    first.send_signal(signal.SIGTERM)
    gpu.until("the reason", lambda: "it runs on" in gpu.said())
    assert "uses a GPU (/dev/nvidia0): cuda-checkpoint: " in gpu.said()
    (gpu.directory / "finish").touch()
    assert first.wait(60) == 3


def tool(folder: Path, text: str = HELP) -> str:
    """Write a program that prints something; return its path."""
    path = folder / "cuda-checkpoint"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    path.chmod(0o755)
    return str(path)


def test_a_cuda_checkpoint_is_found(tmp_path: Path) -> None:
    path, driver = tool(tmp_path), tmp_path / "version"
    driver.write_text("570.86.10\n")
    for given, environ in (
        (path, {"PATH": "/bin"}),
        (None, {"PATH": "/bin", cuda.VARIABLE: path}),
        (None, {"PATH": f"{tmp_path}:/bin"}),
    ):
        assert cuda.find(given, environ, driver) == cuda.Cuda(path)


@pytest.mark.parametrize(
    ("help_", "version", "why"),
    [
        (
            "",
            "570.86.10",
            "cuda-checkpoint is not installed; https://github.com/NVIDIA/cuda-checkpoint has it",
        ),
        (HELP, "565.57.01", "NVIDIA's driver is version 565.57.01; 570 or newer is needed"),
        ("--toggle --pid <pid>", "570.86.10", "is too old, it has no --action; "),
    ],
)
def test_a_cuda_checkpoint_that_is_no_use_says_why(
    tmp_path: Path, help_: str, version: str, why: str
) -> None:
    (tmp_path / "version").write_text(version)
    if help_:
        tool(tmp_path, help_)
    found = cuda.find(None, {"PATH": f"{tmp_path}:/bin"}, tmp_path / "version")
    assert found.path == ""
    assert why in found.why


def test_a_cuda_checkpoint_that_is_named_has_to_be_there(tmp_path: Path) -> None:
    words = ["--dir", str(tmp_path / "x"), "--cuda-checkpoint", str(tmp_path / "none"), "--", "true"]
    assert CliRunner().invoke(checkpointable, words).exit_code == 2
    assert not (tmp_path / "x").exists()


def test_a_job_with_some_of_the_gpus_would_come_back_to_those_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cuda, "models", lambda: ["A40", "A40"])
    assert cuda.shared(1).startswith("it has 1 of 2 GPUs, and would go on on the same ones")
    assert cuda.shared(2) == ""
    assert cuda.shared(0) == ""
    assert [cuda.visible({"CUDA_VISIBLE_DEVICES": each}) for each in ("", "0", "0,1")] == [0, 1, 2]


def test_the_kinds_of_gpus_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, model in (("0000:41:00.0", "NVIDIA A40"), ("0000:01:00.0", "NVIDIA L4")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "information").write_text(f"Model: \t\t {model}\nIRQ:   \t\t 120\n")
    monkeypatch.setattr(cuda, "_GPUS", tmp_path)
    assert cuda.models() == ["NVIDIA L4", "NVIDIA A40"]


def test_a_gpu_that_can_be_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "7/fd").mkdir(parents=True)
    (tmp_path / "7/fd/3").symlink_to("/dev/nvidia0")
    (tmp_path / "8/fd").mkdir(parents=True)
    assert obstacles.of_processes([7, 8], tmp_path) is None
    assert cuda.users([7, 8, 9], tmp_path) == [7]
