"""Read a site's own files: lsb.queues, and lsb.params, lsb.hosts, lsb.users, lsb.resources, lsb.applications and
lsf.conf where they lie beside it (lsf 9)."""
