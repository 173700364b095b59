"""Keeps Python's memory alive while native work may use it, past frames and the interpreter's end.

Two kinds of memory are lent to libcvc: that of wraps, until libcvc calls a release function, and
that of copies, until the tensor at their other end has no work left. Each is noted before the
native call that lends it and struck out once it is known to be back, so that an exception may come
in between at any place: what Ctrl-C leaves behind stays noted, and is looked at again later.
"""

from __future__ import annotations

import ctypes
import weakref
from collections import deque
from collections.abc import Sequence
from ctypes import c_int, c_void_p
from typing import Any, TypeVar

from ._abi import STATUS
from ._lib import lib, raw
from ._resource import Resource

_Item = TypeVar("_Item")


def _beyond_the_end(notes: set[_Item]) -> set[_Item]:
    """A set that the interpreter does not free at its end, nor what it holds.

    Work that is queued at exit goes on reading and writing until the process is gone. It is not
    waited for, since it may never end, so its memory must outlive the interpreter. An additional
    reference from here on needs no exit handler, whose turn might come too early.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(notes))
    return notes


# --- the memory of wraps -------------------------------------------------------------------------


class Keeper:
    """Holds the owner of wrapped memory until libcvc says that nothing touches it any more.

    libcvc says so by calling a release function once, on any thread. That function must not need
    Python: the call may come from a thread that Python does not know, or after the interpreter is
    gone. So it is libc's `sem_post` on a semaphore of this wrap, and the owner is dropped when
    Python next looks: when the wrap itself is released, and at later wraps, syncs and clears.
    """

    __slots__ = ("owner", "semaphore")

    def __init__(self, owner: Any) -> None:
        drop_released(at_most=8)
        self.owner = owner
        try:
            self.semaphore = _idle_semaphores.pop()
        except IndexError:
            # From libc and never freed, since libcvc may still hold it when Python is gone.
            self.semaphore = _calloc(1, _SEMAPHORE_BYTES)
            if not self.semaphore:
                raise MemoryError("no memory for a semaphore") from None
            _sem_init(self.semaphore, 0, 0)
        _lent.add(self)

    def discard(self) -> None:
        """Give the semaphore back after a wrap that failed and so will never be released."""
        self._drop()

    def wrap_ends(self) -> None:
        """The wrap is about to be released: from now on the looks include it, this one first."""
        _ended.appendleft(self)

    def drop_if_released(self) -> bool:
        """Drop the owner if libcvc has let go of it. Only who took this out of `_ended` may ask."""
        if _sem_trywait(self.semaphore) != 0:
            return False
        self._drop()
        return True

    def _drop(self) -> None:
        self.owner = None
        _lent.discard(self)
        _idle_semaphores.append(self.semaphore)


_libc = ctypes.CDLL(None)
_calloc, _sem_init = _libc.calloc, _libc.sem_init
_calloc.restype, _calloc.argtypes = c_void_p, (ctypes.c_size_t, ctypes.c_size_t)
_sem_init.argtypes = (c_void_p, c_int, ctypes.c_uint)
_sem_trywait = _libc.sem_trywait
_sem_trywait.argtypes = (c_void_p,)
_SEMAPHORE_BYTES = 64  # sem_t is 32 on 64-bit Linux

RELEASE = ctypes.cast(_libc.sem_post, c_void_p).value
"""The release function to hand to libcvc, with a Keeper's semaphore as its context."""

_idle_semaphores: list[int] = []
_lent: set[Keeper] = _beyond_the_end(set())
# Of the lent ones those whose wrap is released, in the order in which they are looked at.
_ended: deque[Keeper] = deque()


def drop_released(at_most: int | None = None) -> None:
    """Drop what was lent and has come back since the last look.

    Args:
        at_most: how many wraps to look at, the longest not looked at first; None means all, and
            interrupted copies too.
    """
    count = len(_ended)
    for _ in range(count if at_most is None else min(count, at_most)):
        try:
            keeper = _ended.popleft()
        except IndexError:  # another thread looks too
            break
        if not keeper.drop_if_released():
            _ended.append(keeper)
    if at_most is None:
        drop_passed_copies()


# --- the memory of copies ------------------------------------------------------------------------


class TensorReference(Resource, noun="tensor"):
    """A tensor's handle with a reference of its own."""

    __slots__ = ()

    def __init__(self, handle: int | None) -> None:
        """Take over a reference."""
        self._handle = handle

    @classmethod
    def to(cls, handle: int) -> TensorReference:
        """One more reference to a tensor."""
        lib.cvc_tensor_retain(handle)
        return cls(handle)


class Copies:
    """Copies between host memory and tensors, noted from here until `passed`.

    Whoever makes them holds this object meanwhile. Once that is gone without `passed`, by Ctrl-C or
    an error, the memory and the tensors are kept until the tensors have no work left. The tensors
    are asked, and not the stream, which may be another library's and gone by then.
    """

    __slots__ = ("_note", "__weakref__")

    def __init__(self, memory: Any, tensors: Sequence[Resource]) -> None:
        """`tensors` are ones that nobody else can close."""
        drop_passed_copies()
        self._note = _Note(weakref.ref(self), memory, tensors)
        _copying.add(self._note)

    def passed(self) -> None:
        """The copies are known to be done."""
        _copying.discard(self._note)

    def failed(self) -> None:
        """A call failed: forget the copies, unless those before it still run."""
        if not self._note.is_pending():
            self.passed()


class _Note:
    """What copies use, apart from the `Copies` itself, so that its end shows."""

    __slots__ = ("maker", "memory", "tensors")

    def __init__(
        self, maker: weakref.ref[Copies], memory: Any, tensors: Sequence[Resource]
    ) -> None:
        self.maker, self.memory, self.tensors = maker, memory, tensors

    def is_pending(self) -> bool:
        """Whether work of any of the tensors still runs. Does not wait."""
        return any(
            raw.cvc_tensor_synchronize(tensor._handle, 0) in _STILL_USED for tensor in self.tensors
        )


# Any other error of a tensor's work is the end of that work.
_STILL_USED = (STATUS["NOT_READY"], STATUS["CAPTURING"])

_copying: set[_Note] = _beyond_the_end(set())


def drop_passed_copies() -> None:
    """Drop the memory of interrupted copies that are done by now."""
    if not _copying:
        return
    for note in _copying.copy():
        if note.maker() is None and not note.is_pending():
            _copying.discard(note)
