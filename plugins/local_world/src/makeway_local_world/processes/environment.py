"""The environment of a job: what its user handed over, what every login has, and where the job is.

The daemon's own environment never reaches a job.
"""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping, Sequence

from makeway.model import Allocation, Cluster, Job
from makeway_local_world.submission import Submission

JOB, DAEMON = "MAKEWAY_JOB", "MAKEWAY_DAEMON"
"""The marks by which processes are found again whose keeper was killed."""
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def mark_of(job_id: str, incarnation: int) -> str:
    """Return the value of MAKEWAY_JOB."""
    return f"{job_id}.{incarnation}"


def environment_of(
    submission: Submission,
    job: Job,
    incarnation: int,
    allocation: Allocation | None,
    cluster: Cluster,
    daemon: str,
    gpus: Sequence[str] | None,
) -> dict[str, str]:
    """Return the whole environment of an incarnation.

    :param gpus: UUIDs of its GPUs; None: this machine has none.
    """
    found = _login(submission)
    found.update(submission.environment)
    cpus = _cpus(job, allocation)
    found.update(_as_sbatch(submission, job, allocation, cluster, cpus))
    found.update(
        {
            JOB: mark_of(job.id, incarnation),
            DAEMON: daemon,
            "MAKEWAY_JOB_ID": job.id,
            "MAKEWAY_INCARNATION": str(incarnation),
            "MAKEWAY_PARTITION": job.partition.name,
            "MAKEWAY_CPUS": str(cpus),
            "MAKEWAY_BEGUN_WITH": f"{job.begun_with:g}",
        }
    )
    threads = job.spec.cpus_per_task if (job.spec.tasks or 1) > 1 else cpus
    for name in _THREADS:
        found.setdefault(name, str(threads))
    if gpus is not None:
        listed = ",".join(gpus)
        found.update(
            {
                "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                "CUDA_VISIBLE_DEVICES": listed,
                "ROCR_VISIBLE_DEVICES": listed,
                "MAKEWAY_GPUS": listed,
                "SLURM_GPUS": str(len(gpus)),
            }
        )
    return found


def _login(submission: Submission) -> dict[str, str]:
    found = {"USER": submission.user, "LOGNAME": submission.user, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    try:
        entry = pwd.getpwuid(submission.uid)
    except KeyError:
        return {**found, "HOME": "/", "SHELL": "/bin/sh"}
    return {**found, "HOME": entry.pw_dir, "SHELL": entry.pw_shell or "/bin/sh"}


def _cpus(job: Job, allocation: Allocation | None) -> int:
    if allocation is not None and allocation.cpus is not None:
        return sum(allocation.cpus)
    return job.spec.cpus


def _as_sbatch(
    submission: Submission, job: Job, allocation: Allocation | None, cluster: Cluster, cpus: int
) -> Mapping[str, str]:
    """Return what scripts written for sbatch look for."""
    spec = job.spec
    nodes = [cluster.nodes[at].name for at in allocation.node_indices] if allocation is not None else []
    names = ",".join(nodes)
    tasks = spec.tasks or 1
    found = {
        "SLURM_CLUSTER_NAME": cluster.name,
        "SLURM_JOB_ID": job.id,
        "SLURM_JOBID": job.id,
        "SLURM_JOB_NAME": spec.name or "job",
        "SLURM_JOB_USER": submission.user,
        "SLURM_JOB_UID": str(submission.uid),
        "SLURM_JOB_GID": str(submission.gid),
        "SLURM_JOB_PARTITION": job.partition.name,
        "SLURM_JOB_NODELIST": names,
        "SLURM_NODELIST": names,
        "SLURM_JOB_NUM_NODES": str(len(nodes)),
        "SLURM_NNODES": str(len(nodes)),
        "SLURM_NTASKS": str(tasks),
        "SLURM_TASKS_PER_NODE": str(tasks) if len(nodes) < 2 else f"1(x{len(nodes)})",
        "SLURM_CPUS_PER_TASK": str(spec.cpus_per_task),
        "SLURM_CPUS_ON_NODE": str(cpus if len(nodes) < 2 else cpus // len(nodes)),
        "SLURM_JOB_CPUS_PER_NODE": str(cpus if len(nodes) < 2 else cpus // len(nodes)),
        "SLURM_SUBMIT_DIR": submission.cwd,
        "SLURM_SUBMIT_HOST": socket.gethostname(),
        "SLURM_RESTART_COUNT": str(job.restarts),
        "SLURMD_NODENAME": nodes[0] if nodes else "",
        "SLURM_NODEID": "0",
        "SLURM_PROCID": "0",
        "SLURM_LOCALID": "0",
    }
    if spec.account is not None:
        found["SLURM_JOB_ACCOUNT"] = spec.account
    if job.qos is not None:
        found["SLURM_JOB_QOS"] = job.qos.name
    if spec.memory_mb_per_node is not None:
        found["SLURM_MEM_PER_NODE"] = str(spec.memory_mb_per_node)
    if spec.memory_mb_per_cpu is not None:
        found["SLURM_MEM_PER_CPU"] = str(spec.memory_mb_per_cpu)
    if spec.array_id is not None:
        found["SLURM_ARRAY_JOB_ID"] = spec.array_id
        found["SLURM_ARRAY_TASK_ID"] = str(spec.array_task)
    return found


def of_this_user(job: Job) -> Submission:
    """Return what to run for a job of a workload that names a command, or only how long it works; as this user.

    :raises LookupError: it says neither.
    """
    spec = job.spec
    command = spec.command
    if not command:
        if spec.run_time is None:
            raise LookupError(f"job {job.id} names no command")
        command = ("sleep", f"{max(0.0, spec.run_time - job.begun_with):g}")
    uid = os.geteuid()
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    return Submission(
        job_id=job.id,
        user=user,
        uid=uid,
        gid=os.getegid(),
        groups=tuple(os.getgroups()),
        command=command,
        cwd="/",
        output="/dev/null",
    )


__all__ = ["DAEMON", "JOB", "environment_of", "mark_of", "of_this_user"]
