"""Show what replays came to on one page: who made way, when, for whom, and what it cost.

``command`` is ``makeway report``, ``page`` writes the file, ``collect`` turns a record into columns of numbers,
``columns`` packs them. What runs in the browser lies in ``static``; ``vendor`` holds uPlot, for line charts.
"""
