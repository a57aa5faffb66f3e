"""Write systemd units for a daemon: of the system, or of a user."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

from makeway_local_world.default import named

_PLAIN = re.compile(r"[\w@%$+=:,./-]+")
_UNIT = """\
# {path}
# {install}
[Unit]
Description=makeway, who makes way when this machine is full
Documentation=man:systemd.service(5)
{after}
[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
ExecReload={reload}
Restart=on-failure
# Jobs are children of keepers, which outlive the daemon: only the daemon itself is ended.
KillMode=process
# Lets the daemon make a cgroup of its own for each job; jobs lie beside it, so that limits can be turned on (254).
Delegate=yes
DelegateSubgroup=daemon
# What the kernel kills at its memory limit is a job, and the daemon limits processes itself.
OOMPolicy=continue
TasksMax=infinity
LimitNOFILE=65536
{more}
[Install]
WantedBy={target}
"""

_HARDENED = """\
UMask=0077
KeyringMode=private
# What jobs inherit is all that follows: programs that change their user in a job (sudo, ping) have no more than this.
CapabilityBoundingSet=~CAP_SYS_MODULE CAP_SYS_RAWIO CAP_SYS_BOOT CAP_SYS_TIME CAP_SYS_PACCT CAP_SYS_TTY_CONFIG
CapabilityBoundingSet=~CAP_MAC_ADMIN CAP_MAC_OVERRIDE CAP_AUDIT_CONTROL CAP_AUDIT_READ CAP_SYSLOG CAP_BPF CAP_PERFMON
CapabilityBoundingSet=~CAP_WAKE_ALARM CAP_BLOCK_SUSPEND CAP_LEASE CAP_LINUX_IMMUTABLE CAP_NET_ADMIN CAP_IPC_LOCK
RestrictRealtime=yes
"""
"""What jobs do not miss: they see the same files, devices, users and networks as in a shell, and run the same."""


def unit(*, system: bool, config: Path | None, state: Path | None = None) -> str:
    """Return a unit file.

    :param system: for all people of the machine; False: for one user (``systemctl --user``).
    :param config: configuration; None: one for the machine.
    :param state: state directory; None: the usual one.
    """
    words = [program(), "up", "--foreground"]
    words += ["--system"] if system else []
    words += [f"--state={state.absolute()}"] if state is not None else []
    words += [named(config)] if config is not None else []
    environment = ["/usr/bin/env", f"MAKEWAY_STATE={state.absolute()}"] if state is not None else []
    again = [*environment, program(), "reload", *([words[-1]] if config else [])]
    if system:
        path = "/etc/systemd/system/makeway.service"
        install = "systemctl daemon-reload && systemctl enable --now makeway"
        more = "RuntimeDirectory=makeway\nRuntimeDirectoryMode=0755\nRuntimeDirectoryPreserve=yes\n"
        more += "OOMScoreAdjust=-900\n"
        more += _HARDENED
        after, target = "After=local-fs.target remote-fs.target nss-user-lookup.target\n", "multi-user.target"
    else:
        path = "~/.config/systemd/user/makeway.service"
        install = "systemctl --user daemon-reload && systemctl --user enable --now makeway && loginctl enable-linger"
        more, after, target = "", "", "default.target"
    return _UNIT.format(
        path=path,
        install=install,
        command=" ".join(map(_quoted, words)),
        reload=" ".join(map(_quoted, again)),
        after=after,
        more=more,
        target=target,
    )


def _quoted(word: str) -> str:
    """Return a word of a command line as systemd reads it (systemd.service(5), "Command lines")."""
    told = word.replace("%", "%%").replace("$", "$$")
    if _PLAIN.fullmatch(told):
        return told
    told = told.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{told}"'


def program() -> str:
    """Return the path of the program `makeway` that runs now."""
    beside = Path(sys.executable).with_name("makeway")
    if beside.exists():
        return str(beside)
    return shutil.which("makeway") or os.path.abspath(sys.argv[0])
