"""Show what replays came to on one page: which jobs made way, when, for which, and what it cost.

``command`` is ``makeway report``, ``page`` writes the file, ``collect`` turns a record into columns of numbers,
``columns`` packs them. What runs in the browser lies in ``static``; ``vendor`` holds uPlot, for line charts.
``measures`` adds up, while a replay runs, what papers on GPU clusters report; ``gpus`` and ``fragments`` help it.
"""
