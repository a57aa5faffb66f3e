"""Search the settings of a site's own scheduler for better ones: ``makeway tune``.

========  ===================================================================
module    what it owns
========  ===================================================================
command   the command line, and the order of the work
goals     what is wanted, in plain words
log       the jobs of a log: whose they are, and into which days it is cut
facts     what became of each job in a run, and figures of groups of them
sure      between what a figure lies in a week like those of the log
files     candidates as edits of the site's own files
native    what may be changed in makeway's own TOML
search    which candidates are tried
runs      replays of candidates, by the machinery of sweeps
answer    the short list, and which one is recommended
tell      the answer in the terminal, and as data
page      the same for a browser
since     what has changed since the last time
bench     replays and stories that users ask for, each in a process of its own
studio    the page on which they are asked for: ``makeway studio``
========  ===================================================================
"""
