# SPDX-License-Identifier: Apache-2.0
"""Exceptions of Python code that callbacks report, and their texts in millrace's errors."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

from . import structs

ROOM = structs.ErrorStruct.message.size - 1  # bytes
# Characters of a text that identify it in a truncated message.
ENOUGH = 32


class Failure(NamedTuple):
    exception: BaseException
    text: str  # written into the callback's error


class Failures(deque[Failure]):
    """The latest failures of a callback's owner. Older ones have ended earlier runs."""

    def __init__(self) -> None:
        super().__init__(maxlen=64)


def text_of(failed: BaseException) -> str:
    """Returns the exception's text, or the name of its type if `str` fails."""
    try:
        return str(failed)
    except BaseException:
        return type(failed).__name__


def write(error: Any, text: str) -> str:
    """Writes a text into a callback's error. Returns the text as written: zero characters are
    escaped, and a long text is truncated after a whole character."""
    data = text.replace("\0", "\\0").encode(errors="replace")[:ROOM]
    error.contents.message = data = data.decode(errors="ignore").encode()
    return data.decode()


def cause_of(message: str, failures: Sequence[Failure]) -> BaseException | None:
    """Returns the exception whose text is the end of an error's message. The message may be
    truncated. If several exceptions match equally, returns the latest."""

    def length(failure: Failure) -> int:
        if message.endswith(failure.text):
            return len(failure.text)
        begin = message.find(failure.text[:ENOUGH])
        cut = begin >= 0 and failure.text.startswith(message[begin:])
        return len(message) - begin if cut else 0

    best = max(reversed(failures), key=length, default=None)
    return None if best is None or length(best) == 0 else best.exception
