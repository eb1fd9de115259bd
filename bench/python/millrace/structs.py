# SPDX-License-Identifier: Apache-2.0
"""The structs and callbacks of the C library's headers, for ctypes."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char, c_char_p, c_double, c_int32, c_size_t, c_uint32
from ctypes import c_uint64, c_uint8, c_void_p

OK, END = 0, 1
INVALID_ARGUMENT, NOT_FOUND, IO, BAD_RECORD, TRANSFORM, TIMEOUT = 2, 3, 5, 8, 9, 12
SLOTS_HELD = 16  # in place of TIMEOUT in an error


class ErrorStruct(ctypes.Structure):
    _fields_ = [("status", c_int32), ("message", c_char * 1020)]


class FieldStruct(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("data", c_void_p), ("bytes", c_size_t)]


class RecordStruct(ctypes.Structure):
    _fields_ = [("index", c_uint64), ("fields", POINTER(FieldStruct)), ("n_fields", c_size_t)]


class SizedStruct(ctypes.Structure):
    """A struct whose first member is its size. The constructor sets this member."""

    def __init__(self, **members: object) -> None:
        super().__init__(**members)
        self.struct_bytes = ctypes.sizeof(self)


class OpenOptionsStruct(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("format", c_char_p),
        ("images", c_char_p),
        ("labels", c_char_p),
        ("no_map", c_int32),
        ("no_checksums", c_int32),
        ("no_hints", c_int32),
        ("reserved", c_int32),
    ]


Prefetch = ctypes.CFUNCTYPE(None, c_void_p, POINTER(c_uint64), c_size_t)
FreeUser = ctypes.CFUNCTYPE(None, c_void_p)
MakeReader = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p), POINTER(ErrorStruct))
Read = ctypes.CFUNCTYPE(
    c_int32, c_void_p, c_uint64, POINTER(RecordStruct), POINTER(ErrorStruct)
)


class DatasetCallbacks(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("user", c_void_p),
        ("name", c_char_p),
        ("size", c_uint64),
        ("make_reader", MakeReader),
        ("free_reader", FreeUser),
        ("read", Read),
        ("prefetch", Prefetch),
        ("free_user", FreeUser),
    ]


NextRecord = ctypes.CFUNCTYPE(
    c_int32, c_void_p, POINTER(RecordStruct), POINTER(c_int32), POINTER(ErrorStruct)
)
Skip = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64, POINTER(ErrorStruct))
Restart = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(ErrorStruct))


class OnePassOptionsStruct(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("window_records", c_uint64),
        ("memory_bytes", c_uint64),
    ]


class StreamCallbacks(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("user", c_void_p),
        ("name", c_char_p),
        ("next", NextRecord),
        ("skip", Skip),
        ("restart", Restart),
        ("interrupt", FreeUser),
        ("free_user", FreeUser),
    ]


class FieldSpecStruct(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_char_p),
        ("rank", c_size_t),
        ("shape", c_size_t * 5),
        ("variable", c_int32),
    ]


class SourceStruct(ctypes.Structure):
    _fields_ = [("records", c_uint64), ("weight", c_double)]


Keep = ctypes.CFUNCTYPE(c_int32, c_void_p, c_uint64)


class MadeField(ctypes.Structure):
    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_char_p),
        ("data", c_void_p),
        ("rank", c_size_t),
        ("shape", c_size_t * 6),
    ]


class MadeBatchStruct(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("indices", POINTER(c_uint64)),
        ("valid", POINTER(c_uint8)),
        ("fields", POINTER(MadeField)),
        ("n_fields", c_size_t),
        ("random", c_void_p),
    ]


RunBatch = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(MadeBatchStruct), POINTER(ErrorStruct))


class BatchTransformCallbacks(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("user", c_void_p),
        ("fields", POINTER(FieldSpecStruct)),
        ("n_fields", c_size_t),
        ("stage", c_char_p),
        ("fingerprint", c_uint64),
        ("run", RunBatch),
        ("free_user", FreeUser),
    ]


class MixStruct(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("classes", c_int32),
        ("on_device", c_int32),
        ("mixup", c_double),
        ("cutmix", c_double),
        ("cutmix_share", c_double),
        ("p", c_double),
    ]


class RawFieldStruct(ctypes.Structure):
    _fields_ = [("spec", FieldSpecStruct), ("fill", c_double)]


class SampleStruct(ctypes.Structure):
    _fields_ = [
        ("fields", POINTER(c_void_p)),
        ("lengths", POINTER(c_size_t)),
        ("random", c_void_p),
    ]


Make = ctypes.CFUNCTYPE(
    c_int32, c_void_p, POINTER(RecordStruct), POINTER(SampleStruct), POINTER(ErrorStruct)
)


class TransformCallbacks(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("user", c_void_p),
        ("fields", POINTER(FieldSpecStruct)),
        ("n_fields", c_size_t),
        ("description", c_char_p),
        ("fingerprint", c_uint64),
        ("make_worker", MakeReader),
        ("free_worker", FreeUser),
        ("make", Make),
        ("free_user", FreeUser),
    ]


class DecodeLimits(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("max_pixels", c_uint64),
        ("max_pixels_per_byte", c_uint64),
        ("max_scan_pixels", c_uint64),
        ("max_decode_bytes", c_uint64),
    ]


class PipelineSetup(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("dataset", c_void_p),
        ("transform", c_void_p),
        ("runtime", c_void_p),
        ("device", c_char_p),
        ("options", c_char_p),
        ("state", c_char_p),
        ("order", c_void_p),
        ("batch_transform", c_void_p),
    ]


class BatchFacts(ctypes.Structure):  # SizedStruct's constructor takes too long here
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("size", c_uint64),
        ("valid", c_uint64),
        ("global_size", c_uint64),
        ("number", c_uint64),
        ("epoch", c_uint64),
        ("slot", c_uint64),
        ("last_in_epoch", c_int32),
        ("reserved", c_int32),
    ]


BATCH_FACTS_BYTES = ctypes.sizeof(BatchFacts)

Step = ctypes.CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, POINTER(ErrorStruct))
Interrupted = ctypes.CFUNCTYPE(c_int32, c_void_p)


class WorkloadStruct(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("setup", POINTER(PipelineSetup)),
        ("stream", c_void_p),
        ("user", c_void_p),
        ("step", Step),
        ("interrupted", Interrupted),
    ]


class BenchOptions(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("warmup", c_uint64),
        ("batches", c_uint64),
        ("duration_seconds", c_double),
    ]


class SettingStruct(ctypes.Structure):
    _fields_ = [
        ("workers", c_uint64),
        ("prefetch", c_uint64),
        ("micro_batches", c_uint64),
        ("batch_size", c_uint64),
    ]


OnRun = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(SettingStruct), POINTER(ErrorStruct))


class TuneOptions(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("max_workers", c_uint32),
        ("tune_batch_size", c_int32),
        ("p99_ms", c_double),
        ("memory_bytes", c_uint64),
        ("budget_seconds", c_double),
        ("on_run", OnRun),
    ]


Open = ctypes.CFUNCTYPE(c_int32, c_void_p, POINTER(c_void_p), POINTER(ErrorStruct))


class DiagnoseOptions(SizedStruct):
    _fields_ = [
        ("struct_bytes", c_size_t),
        ("rounds", c_uint32),
        ("reserved", c_uint32),
        ("batches", c_uint64),
        ("duration_seconds", c_double),
        ("open", Open),
    ]
