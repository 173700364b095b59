"""Fixtures: a cache that is empty and has its default limit before each test."""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.path.insert(0, str(Path(__file__).resolve().parent))

import cvc  # noqa: E402

# A shell lets what it starts in the background ignore Ctrl-C, and so would the programs that the
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_DEFAULT_LIMIT = cvc.get_cache_limit_inbytes()


@pytest.fixture(autouse=True)
def empty_cache():
    """No entry of an earlier test is left, and the limit is the default one."""
    if cvc.cache_stats().live_handles:
        gc.collect()  # an exception that was caught may keep frames in a cycle
    cvc.set_cache_limit_inbytes(_DEFAULT_LIMIT)
    cvc.clear_cache()
    yield


@pytest.fixture
def default_limit() -> int:
    return _DEFAULT_LIMIT
