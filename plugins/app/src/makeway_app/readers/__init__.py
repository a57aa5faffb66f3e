"""Find the reader of a file; read configurations and workloads in makeway's own form."""
