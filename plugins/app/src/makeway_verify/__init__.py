"""Hold replays against recordings of a real scheduler: ``makeway verify``.

==========  ===================================================================
module      what it owns
==========  ===================================================================
command     the command line
recordings  finding who reads a recording, replaying it, and asking who judges
verdicts    what came of a comparison, and the score
==========  ===================================================================
"""
