"""Do the same for several runs side by side, one process each.

The processes are forked, so that they have what was read already; they end with what started them, and leave
interrupts to it.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import gc
import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from makeway import collector
from makeway.errors import ConfigError, Problem

T = TypeVar("T")

_call: Callable[[int], Any] | None = None


def cores() -> int:
    """Return how many processes may run at once."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _begin(alive: Connection, other: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    other.close()
    threading.Thread(target=_end_with, args=(alive,), daemon=True).start()


def _end_with(alive: Connection) -> None:
    with contextlib.suppress(EOFError, OSError):
        alive.recv_bytes()
    os._exit(1)


def _work(at: int) -> Any:
    assert _call is not None
    try:
        return _call(at)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            raise RuntimeError(f"{type(error).__name__}: {error}") from None
        raise


@contextlib.contextmanager
def side_by_side(
    call: Callable[[int], T], count: int, workers: int, source: str
) -> Iterator[Iterator[tuple[int, T]]]:
    """Call `call` with 0, 1, ... in processes of their own; yield each number with its answer, as they come.

    :param workers: how many processes at once; 0: all is done here, one after the other, when an answer is asked for.
    :param source: what to blame where a process is killed.
    :raises ConfigError: a process was killed.
    """
    global _call
    if not workers or not count or "fork" not in multiprocessing.get_all_start_methods():
        yield ((at, call(at)) for at in range(count))
        return
    context = multiprocessing.get_context("fork")
    alive, held = context.Pipe(duplex=False)
    gc.collect()
    collector.freeze()  # the collector's marks would have each process copy all pages
    _call = call
    pool = concurrent.futures.ProcessPoolExecutor(
        min(workers, count), mp_context=context, initializer=_begin, initargs=(alive, held)
    )
    try:
        futures = {pool.submit(_work, at): at for at in range(count)}

        def answers() -> Iterator[tuple[int, T]]:
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()

        yield answers()
    except BrokenProcessPool:
        text = "a process was killed, perhaps for want of memory; what is done is kept"
        raise ConfigError(source, [Problem("", text)]) from None
    except BaseException:
        held.close()  # ends the processes, whatever they do
        raise
    finally:
        _call = None
        pool.shutdown(cancel_futures=True)
        held.close()
        alive.close()
        collector.unfreeze()
