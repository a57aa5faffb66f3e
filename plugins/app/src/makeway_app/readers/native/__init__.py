"""Read makeway's own workloads; see `makeway_app.readers.native.reader`."""

from __future__ import annotations

from makeway_app.readers.native.reader import NativeReader, workload_of_tables
from makeway_app.readers.native.tables import ComponentTable, JobTable, SignalTable

__all__ = ["ComponentTable", "JobTable", "NativeReader", "SignalTable", "workload_of_tables"]
