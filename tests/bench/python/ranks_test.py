# SPDX-License-Identifier: Apache-2.0
"""Ranks of launchers and of torch.distributed, and streams of a GPU, on stand-ins for PyTorch."""

import os
import sys
import types
import unittest
from unittest import mock

import millrace
from millrace import streams
from support import labels, loader


def torch_distributed(rank, world):
    return types.SimpleNamespace(
        is_available=lambda: True,
        is_initialized=lambda: world > 0,
        get_rank=lambda: rank,
        get_world_size=lambda: world,
    )


def modules(**those):
    dotted = {name.replace("_", "."): module for name, module in those.items()}
    return mock.patch.dict(sys.modules, dotted)


class RanksTest(unittest.TestCase):
    def setUp(self):
        launchers = ("RANK", "WORLD_SIZE", "LOCAL_", "OMPI_", "PMI_", "SLURM_", "MPI_")
        left = {name: value for name, value in os.environ.items() if not name.startswith(launchers)}
        cleared = mock.patch.dict(os.environ, left, clear=True)
        cleared.start()
        self.addCleanup(cleared.stop)

    def test_one_process_without_a_launcher(self):
        ranks = millrace.ranks()
        self.assertEqual((ranks["rank"], ranks["world"], ranks["source"]), (0, 1, ""))

    def test_reads_torchrun(self):
        os.environ |= {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        self.assertEqual(millrace.ranks()["source"], "torchrun (RANK, WORLD_SIZE)")
        train = loader(batch_size=2)
        self.assertEqual(train.ranks, {"rank": 1, "world": 2, "local_rank": 1, "local_world": 2})
        self.assertEqual([labels(batch) for batch in train][:2], [[2, 3], [6, 7]])
        alone = loader(rank=0, world_size=1)
        self.assertEqual(labels(next(alone)), [0, 1, 2, 3])

    def test_reads_slurm(self):
        os.environ |= {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1",
                       "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_NODEID": "1"}
        ranks = millrace.ranks()
        self.assertEqual([*ranks.values()][:4], [3, 4, 1, 2])

    def test_refuses_contradictions(self):
        os.environ |= {"RANK": "2", "WORLD_SIZE": "2"}
        with self.assertRaisesRegex(millrace.Error, "RANK"):
            loader()

    def test_asks_torch_distributed_first(self):
        os.environ |= {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
        with modules(torch_distributed=torch_distributed(1, 2)):
            ranks = millrace.ranks()
            self.assertEqual(ranks["source"], "torch.distributed")
            self.assertEqual([*ranks.values()][:4], [1, 2, 1, 2])
        with modules(torch_distributed=torch_distributed(4, 5)):
            self.assertEqual([*millrace.ranks().values()][:4], [4, 5, 0, 1])
        with modules(torch_distributed=torch_distributed(0, 0)):
            self.assertEqual([*millrace.ranks().values()][:4], [1, 2, 1, 2])


class FakeStream:
    """A stream of PyTorch that notes what it waits for."""

    waits: list = []

    def __init__(self, pointer, device=None):
        self.cuda_stream = pointer

    def wait_stream(self, other):
        self.waits.append((self.cuda_stream, other.cuda_stream))


def torch_on(stream, initialized=True):
    cuda = types.SimpleNamespace(
        is_initialized=lambda: initialized,
        current_stream=lambda device: FakeStream(stream),
        current_device=lambda: 3,
        ExternalStream=FakeStream,
    )
    raw = types.SimpleNamespace(_cuda_getCurrentRawStream=lambda device: stream)
    return types.SimpleNamespace(cuda=cuda, _C=raw)


class StreamsTest(unittest.TestCase):
    def test_takes_the_current_stream_of_torch(self):
        for initialized in (False, True):
            with modules(torch=torch_on(0, initialized)):
                self.assertEqual(streams.current_of_torch(0), 1)  # CUDA's default stream
            with modules(torch=torch_on(640, initialized)):
                self.assertEqual(streams.current_of_torch(0), 640)
        with modules(torch=None):
            self.assertEqual(streams.current_of_torch(0), 0)

    def test_takes_streams_of_libraries(self):
        self.assertEqual(streams.number_of(FakeStream(640)), 640)
        self.assertEqual(streams.number_of(FakeStream(0)), 1)
        self.assertEqual(streams.number_of(types.SimpleNamespace(ptr=64)), 64)
        self.assertEqual(streams.number_of(0), 0)

    def test_waits_for_another_stream(self):
        with modules(torch=torch_on(0)):
            streams.wait(640, 1, 0)
        self.assertEqual(FakeStream.waits, [(640, 1)])
        with modules(torch=None), self.assertRaisesRegex(millrace.Error, "pass `stream`"):
            streams.wait(640, 1, 0)

    def test_names_devices(self):
        self.assertEqual(streams.device_of("cpu"), "host")
        self.assertEqual(streams.device_of("cuda:2"), "cuda:2")
        with modules(torch=torch_on(0)):
            self.assertEqual(streams.device_of("cuda"), "cuda:3")
        with modules(torch=None):
            self.assertEqual(streams.device_of("cuda"), "cuda:0")

    def test_a_missing_gpu_is_an_error(self):
        with self.assertRaises(millrace.Error) as raised:
            loader(device="cuda:99")
        self.assertEqual(raised.exception.code, "device")


if __name__ == "__main__":
    unittest.main()
