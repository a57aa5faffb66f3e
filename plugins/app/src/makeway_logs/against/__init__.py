"""Hold a replay against what its log says happened (``makeway replay --against-log``).

========= =======================================================================
module    what it owns
========= =======================================================================
rows      what is kept of each job: its wait, priority and reason, twice
figures   waits of groups of jobs, the moving average and how far it is off
telling   the tables and sentences for people
========= =======================================================================
"""

from __future__ import annotations

from makeway_logs.against.rows import AgainstLog

__all__ = ["AgainstLog"]
