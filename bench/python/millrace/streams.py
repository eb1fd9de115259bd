# SPDX-License-Identifier: Apache-2.0
"""Streams of a GPU as numbers: 0 is the host, 1 is CUDA's default stream, others are pointers."""

from __future__ import annotations

import sys
from typing import Any

from .library import Error


def number_of(stream: Any) -> int:
    """Returns the number of a stream: an integer, or a stream of PyTorch or CuPy."""
    for attribute in ("cuda_stream", "ptr"):
        pointer = getattr(stream, attribute, None)
        if pointer is not None:
            return int(pointer) or 1  # both call CUDA's default stream 0
    return int(stream)


def current_of_torch(device: int) -> int:
    """Returns PyTorch's current stream of a GPU; 0 if PyTorch has not been imported."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)  # 20 times as fast
    if raw is None or not torch.cuda.is_initialized():
        return int(torch.cuda.current_stream(device).cuda_stream) or 1
    return int(raw(device)) or 1


def wait(waiting: int, stream: int, device: int | None) -> None:
    """Makes stream `waiting` wait for the work that is now enqueued on `stream`."""
    torch = sys.modules.get("torch")
    if torch is None:
        raise Error(
            "invalid_argument",
            f"the batch was taken on stream {stream}, but is used on stream {waiting}: pass "
            "`stream` to Loader, or 0 to take batches when the host can read them",
        )
    streams = [torch.cuda.ExternalStream(pointer, device=device) for pointer in (waiting, stream)]
    streams[0].wait_stream(streams[1])


def device_of(device: Any) -> str:
    """Returns millrace's name of a device. Accepts PyTorch's devices and names, such as "cpu" and
    "cuda", too."""
    name = str(device)
    if name == "cpu":
        return "host"
    if name == "cuda":
        torch = sys.modules.get("torch")
        return f"cuda:{torch.cuda.current_device() if torch else 0}"
    return name
