"""Be a daemon: what ``makeway up`` starts in the background."""

from makeway_local_world.commands.up import daemon

daemon(prog_name="makeway-daemon")
