/* SPDX-License-Identifier: Apache-2.0
 *
 * millrace for C, and for every language that calls C: link libmillrace.so (pkg-config millrace-c,
 * or millrace::c by find_package). The C++ headers say more of what each part does; here each is a
 * handle.
 *
 *     millrace_error error;
 *     millrace_dataset* dataset;
 *     if (millrace_dataset_open("train.lmdb", &dataset, &error) != MILLRACE_OK)
 *       puts(error.message);
 *
 * Errors: every function that can fail returns a status, and fills `error` where that is not null.
 * What it gives through a pointer is then null or 0. No exception leaves the library. A handle that
 * is null, was freed before, or is of another kind is MILLRACE_INVALID_ARGUMENT.
 *
 * Handles: who is given one frees it by the function of its kind; that takes null, and does nothing
 * with a handle that is no more. A pipeline shares its dataset, transform and runtime, and a DLPack
 * tensor its batch: these may be freed in any order.
 *
 * Threads: all functions may be called from any thread at once, with the same handle too. A handle
 * that one thread frees stays good for the calls that others are in, and its object until they
 * return: millrace_pipeline_stop ends a millrace_pipeline_next. A thread in a call must not be
 * cancelled. Free the pipelines over callbacks before what these need ends, such as an interpreter.
 *
 * Fork: a child of fork() has none of the threads. It may free handles, which does nothing, and
 * make new ones.
 *
 * Texts are UTF-8 and end in 0. Structs with a member `struct_bytes` have their size in it, so that
 * a later library, which may know more members, can tell: set all of a struct to 0 first. The other
 * structs never change.
 *
 * Tensors are those of <dlpack/dlpack.h> (Debian: libdlpack-dev), which is not needed here.
 */
#ifndef MILLRACE_MILLRACE_H
#define MILLRACE_MILLRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MILLRACE_C_API __attribute__((visibility("default")))

struct DLManagedTensor;
struct DLManagedTensorVersioned;

/* An int32_t, so that a status of a later millrace, or of a callback's own, is a value, too. */
typedef int32_t millrace_status;
enum {
  MILLRACE_OK = 0,
  MILLRACE_END = 1,              /* the run is over: there is no further batch */
  MILLRACE_INVALID_ARGUMENT = 2, /* an argument is out of range or contradicts another */
  MILLRACE_NOT_FOUND = 3,        /* a file, field or record does not exist */
  MILLRACE_ALREADY_EXISTS = 4,   /* a file would have been overwritten */
  MILLRACE_IO = 5,               /* the operating system refused to read or write */
  MILLRACE_CORRUPT = 6,          /* a dataset is damaged, cut short or not a dataset */
  MILLRACE_INCOMPLETE = 7,       /* a dataset whose packing was interrupted */
  MILLRACE_BAD_RECORD = 8,       /* one record cannot be read or made into a sample */
  MILLRACE_TRANSFORM = 9,        /* a transform failed */
  MILLRACE_DEVICE = 10,          /* a call of the device failed */
  MILLRACE_SLOTS_EXHAUSTED = 11, /* live batches hold every slot, so no further batch can come */
  MILLRACE_TIMEOUT = 12,         /* the time given to a call has passed */
  MILLRACE_STOPPED = 13,         /* the pipeline was stopped */
  MILLRACE_INTERNAL = 14,        /* a fault of millrace itself */
  MILLRACE_NO_MEMORY = 15        /* memory could not be had */
};

/* What went wrong. The message names file, key and value; one that is too long is cut. */
typedef struct millrace_error {
  millrace_status status;
  char message[1020];
} millrace_error;

typedef struct millrace_dataset millrace_dataset;
typedef struct millrace_transform millrace_transform;
typedef struct millrace_runtime millrace_runtime;
typedef struct millrace_pipeline millrace_pipeline;
typedef struct millrace_batch millrace_batch;

/* "0.1.0" */
MILLRACE_C_API const char* millrace_version(void);
/* "not_found"; "unknown" for what is no status. */
MILLRACE_C_API const char* millrace_status_name(millrace_status status);
/* Frees a text that a function gave. */
MILLRACE_C_API void millrace_text_free(char* text);

/* ---- Datasets: numbered immutable records, each of named byte fields. ---- */

typedef struct millrace_field {
  const char* name;
  const void* data;
  size_t bytes;
} millrace_field;

typedef struct millrace_record {
  uint64_t index;
  const millrace_field* fields;
  size_t n_fields;
} millrace_record;

/* A dataset of the caller's. Callbacks are called by several threads at once, each reader by one at
 * a time; what is freed may be freed by any. A callback that fails says why in `error->message`,
 * which is empty before, and returns MILLRACE_INVALID_ARGUMENT, _NOT_FOUND, _IO, _CORRUPT,
 * _BAD_RECORD, _TRANSFORM or _DEVICE; all others count as MILLRACE_INTERNAL. */
typedef struct millrace_dataset_callbacks {
  size_t struct_bytes; /* sizeof(millrace_dataset_callbacks) */
  void* user;          /* given to the callbacks below */
  const char* name;    /* for messages */
  uint64_t size;       /* how many records there are */
  /* A reader for one thread: what the next two are given. Null = `user` itself is. */
  millrace_status (*make_reader)(void* user, void** reader, millrace_error* error);
  void (*free_reader)(void* reader); /* of a made reader alone; may be null */
  /* Fills in `record->fields` and `n_fields`, which stay valid until this reader's next call.
   * MILLRACE_BAD_RECORD: this record alone cannot be read, and the pipeline's policy for bad
   * records applies. Any other failure ends the run. */
  millrace_status (*read)(void* reader, uint64_t index, millrace_record* record,
                          millrace_error* error);
  /* A hint, on a thread of its own, that these records are read soon. May be null. */
  void (*prefetch)(void* user, const uint64_t* indices, size_t n_indices);
  /* Called once when nothing uses `user` any more. May be null. */
  void (*free_user)(void* user);
} millrace_dataset_callbacks;

/* What open_dataset() of <millrace/dataset.h> opens. */
MILLRACE_C_API millrace_status millrace_dataset_open(const char* path, millrace_dataset** dataset,
                                                     millrace_error* error);

/* How to open a dataset: OpenOptions of <millrace/dataset.h>. All 0 = the defaults. */
typedef struct millrace_open_options {
  size_t struct_bytes; /* sizeof(millrace_open_options) */
  const char* format;  /* the name of its format; null = each is asked in turn */
  /* Of an LMDB file with several named databases: the one with the images, and the one with their
   * labels. Null = the file has one database. */
  const char* images;
  const char* labels;
  int32_t no_map;       /* 1: files are read call by call, and not mapped */
  int32_t no_checksums; /* 1: stored checksums are not compared */
  int32_t no_notes;     /* 1: notes beside the files are not used */
  int32_t reserved;
} millrace_open_options;

/* The same with options; null = the defaults. */
MILLRACE_C_API millrace_status millrace_dataset_open_with(const char* path,
                                                          const millrace_open_options* options,
                                                          millrace_dataset** dataset,
                                                          millrace_error* error);
/* Copies `callbacks` and its name. After a failure `free_user` was not called. */
MILLRACE_C_API millrace_status millrace_dataset_create(const millrace_dataset_callbacks* callbacks,
                                                       millrace_dataset** dataset,
                                                       millrace_error* error);
/* How many records there are. */
MILLRACE_C_API millrace_status millrace_dataset_size(const millrace_dataset* dataset,
                                                     uint64_t* size, millrace_error* error);
/* A JSON object: "name", "records", "classes", "fields", "files", "fingerprint" (16 hexadecimal
 * digits or null), "warnings". A byte of a name that is not UTF-8 is written as \xe9. */
MILLRACE_C_API millrace_status millrace_dataset_describe(const millrace_dataset* dataset,
                                                         char** json, millrace_error* error);
MILLRACE_C_API void millrace_dataset_free(millrace_dataset* dataset);

/* ---- Transforms: record -> sample. ---- */

/* A named field of a sample: uint8, int8, int16, uint16, int32, uint32, int64, uint64, bool,
 * float16, bfloat16, float32 or float64, of a shape with up to 5 extents. One that is called
 * "index" or "valid" stands in the place of millrace's own. */
typedef struct millrace_field_spec {
  const char* name;
  const char* dtype;
  size_t rank;
  size_t shape[5];
  /* 1: shape[0] is the most; batches then have a field NAME.length (uint32), too. */
  int32_t variable;
} millrace_field_spec;

/* The random numbers of one sample, which depend on seed and position alone. */
typedef struct millrace_random millrace_random;

/* A sample that is to be made, valid for one call. */
typedef struct millrace_sample {
  /* Where each field goes, in the order of the transform's fields. Every byte must be written. */
  void* const* fields;
  /* For each field, of a variable one: its length here, at most shape[0]; 0 if it is not set. */
  size_t* lengths;
  millrace_random* random;
} millrace_sample;

/* A transform of the caller's. Callbacks are called by several threads at once, each worker by
 * one. They fail as those of datasets do. */
typedef struct millrace_transform_callbacks {
  size_t struct_bytes; /* sizeof(millrace_transform_callbacks) */
  void* user;
  const millrace_field_spec* fields;
  size_t n_fields;
  const char* description; /* for the report; may be null */
  /* Of what decides what is made of a record: it goes into the state. 0 = none. */
  uint64_t fingerprint;
  /* A worker for one thread: what the next two are given. Null = `user` itself is. */
  millrace_status (*make_worker)(void* user, void** worker, millrace_error* error);
  void (*free_worker)(void* worker); /* of a made worker alone; may be null */
  /* MILLRACE_BAD_RECORD: no sample can be made of this record. Any other failure ends the run. */
  millrace_status (*make)(void* worker, const millrace_record* record, millrace_sample* sample,
                          millrace_error* error);
  /* Called once when nothing uses `user` any more. May be null. */
  void (*free_user)(void* user);
} millrace_transform_callbacks;

/* image_transform() of <millrace/image_transform.h>. `recipe` is a recipe as JSON, as `millrace
 * recipe` prints it, or the name of a preset, such as "train" or "eval". */
MILLRACE_C_API millrace_status millrace_transform_images(const char* recipe,
                                                         millrace_transform** transform,
                                                         millrace_error* error);

/* What an image may cost: DecodeLimits of <millrace/decode_budget.h>. 0 = the default. */
typedef struct millrace_decode_limits {
  size_t struct_bytes; /* sizeof(millrace_decode_limits) */
  uint64_t max_pixels;
  uint64_t max_pixels_per_byte;
  uint64_t max_scan_pixels;
  uint64_t max_decode_bytes; /* for all workers together */
} millrace_decode_limits;

/* The same with limits; null = the defaults. */
MILLRACE_C_API millrace_status millrace_transform_images_with(const char* recipe,
                                                              const millrace_decode_limits* limits,
                                                              millrace_transform** transform,
                                                              millrace_error* error);
/* Copies `callbacks` and what it points to. After a failure `free_user` was not called. */
MILLRACE_C_API millrace_status
millrace_transform_create(const millrace_transform_callbacks* callbacks,
                          millrace_transform** transform, millrace_error* error);
/* The fields of its samples: a JSON list of objects with "name", "dtype", "shape", "variable". An
 * image transform names the label as an int64; a pipeline leaves it out where the dataset has none,
 * and makes it uint8 of varying length where it is text. Its batches tell their own fields. */
MILLRACE_C_API millrace_status millrace_transform_fields(const millrace_transform* transform,
                                                         char** json, millrace_error* error);
MILLRACE_C_API void millrace_transform_free(millrace_transform* transform);

/* 64 random bits; 0 for null. */
MILLRACE_C_API uint64_t millrace_random_bits(millrace_random* random);
/* Uniform in [0, 1), a multiple of 2^-53; 0 for null. */
MILLRACE_C_API double millrace_random_uniform(millrace_random* random);

/* ---- Pipelines. ---- */

/* Workers that several pipelines share. `options` as below, of which it takes "workers", and of
 * "run" "local_rank" and "local_world"; null = the defaults. */
MILLRACE_C_API millrace_status millrace_runtime_create(const char* options,
                                                       millrace_runtime** runtime,
                                                       millrace_error* error);
MILLRACE_C_API void millrace_runtime_free(millrace_runtime* runtime);

typedef struct millrace_pipeline_setup {
  size_t struct_bytes; /* sizeof(millrace_pipeline_setup) */
  millrace_dataset* dataset;
  millrace_transform* transform;
  millrace_runtime* runtime; /* null = workers of its own, as many as `options` say */
  const char* device;        /* "host" or "cuda:N"; null = "host" */
  /* JSON, as `millrace tune --out` writes it; load_options() of <millrace/options_file.h> has all
   * keys: {"format": 1, "options": {"workers": 2, "batch_size": 64},
   *        "run": {"seed": 7, "epochs": 90}}. Null = the defaults. */
  const char* options;
  const char* state; /* where to go on: what the functions below gave; null = at the beginning */
} millrace_pipeline_setup;

MILLRACE_C_API millrace_status millrace_pipeline_create(const millrace_pipeline_setup* setup,
                                                        millrace_pipeline** pipeline,
                                                        millrace_error* error);
/* The next batch, or MILLRACE_END. `stream` 0: for use on the host, and the call returns when the
 * data can be read. On a GPU, a cudaStream_t as an integer: the stream is made to wait for the
 * data. It must outlive the batch and its tensors. 0 is never CUDA's default stream; who has 0 for
 * that, as PyTorch does, passes 1. 2, the thread's default stream, is refused: it is another stream
 * on each thread, and batches may be freed on any of them. Waits at most `timeout_seconds`, and
 * below 0 as long as the data takes, but not for slots that live batches hold
 * (MILLRACE_SLOTS_EXHAUSTED). After MILLRACE_INVALID_ARGUMENT for an argument, and after
 * MILLRACE_TIMEOUT and MILLRACE_SLOTS_EXHAUSTED, the run goes on; every other failure ends it, and
 * comes again. */
MILLRACE_C_API millrace_status millrace_pipeline_next(millrace_pipeline* pipeline, uintptr_t stream,
                                                      double timeout_seconds,
                                                      millrace_batch** batch,
                                                      millrace_error* error);
MILLRACE_C_API millrace_status millrace_pipeline_batches_per_epoch(
    const millrace_pipeline* pipeline, uint64_t* batches, millrace_error* error);
/* How many batches the run has from its beginning; UINT64_MAX if it never ends. */
MILLRACE_C_API millrace_status millrace_pipeline_total_batches(const millrace_pipeline* pipeline,
                                                               uint64_t* batches,
                                                               millrace_error* error);
/* Where a new pipeline would go on after the last batch handed out: JSON, one line. */
MILLRACE_C_API millrace_status millrace_pipeline_state(const millrace_pipeline* pipeline,
                                                       char** json, millrace_error* error);
/* What happened since the start or the last `restart`, as a JSON object whose keys are the members
 * of `Report` in <millrace/report.h>. With `restart` not 0 the report begins anew. */
MILLRACE_C_API millrace_status millrace_pipeline_report(millrace_pipeline* pipeline,
                                                        int32_t restart, char** json,
                                                        millrace_error* error);
/* Ends the run: who waits in millrace_pipeline_next gets MILLRACE_STOPPED. MILLRACE_TIMEOUT says
 * what hangs after "stop_timeout_ms". */
MILLRACE_C_API millrace_status millrace_pipeline_stop(millrace_pipeline* pipeline,
                                                      millrace_error* error);
/* Stops the run if nobody has; what hangs is waited for no longer than "stop_timeout_ms". */
MILLRACE_C_API void millrace_pipeline_free(millrace_pipeline* pipeline);

/* ---- Batches. ---- */

typedef struct millrace_batch_facts {
  size_t struct_bytes;  /* sizeof(millrace_batch_facts), set by the caller */
  uint64_t size;        /* samples */
  uint64_t valid;       /* samples that are neither padding nor marked bad records */
  uint64_t global_size; /* samples over all ranks */
  uint64_t number;      /* of the batch in the run, from 0 */
  uint64_t epoch;       /* from 0 */
  uint64_t slot;        /* where it lies; a slot's addresses never change */
  int32_t last_in_epoch;
  int32_t reserved;
} millrace_batch_facts;

MILLRACE_C_API millrace_status millrace_batch_describe(const millrace_batch* batch,
                                                       millrace_batch_facts* facts,
                                                       millrace_error* error);
/* A field of all samples: one of the transform's, "index" (uint64, the record of each) or "valid"
 * (uint8). The caller owns the tensor, which holds the batch: whoever takes it calls its deleter
 * once. See <millrace/dlpack.h> for streams. */
MILLRACE_C_API millrace_status millrace_batch_field(const millrace_batch* batch, const char* name,
                                                    struct DLManagedTensor** tensor,
                                                    millrace_error* error);
/* The same in the form of DLPack 1.0; with `read_only` not 0 its consumer is asked not to write. */
MILLRACE_C_API millrace_status
millrace_batch_field_versioned(const millrace_batch* batch, const char* name, int32_t read_only,
                               struct DLManagedTensorVersioned** tensor, millrace_error* error);
/* The names of its fields, in order: a JSON list of texts. */
MILLRACE_C_API millrace_status millrace_batch_fields(const millrace_batch* batch, char** json,
                                                     millrace_error* error);
/* Where a pipeline goes on that has had this batch. */
MILLRACE_C_API millrace_status millrace_batch_state(const millrace_batch* batch, char** json,
                                                    millrace_error* error);
/* The batch is used on this stream (as for millrace_pipeline_next) of its GPU, too. */
MILLRACE_C_API millrace_status millrace_batch_record_stream(const millrace_batch* batch,
                                                            uintptr_t stream,
                                                            millrace_error* error);
/* Lets it go: its slot is used again once its tensors have gone, too. */
MILLRACE_C_API void millrace_batch_free(millrace_batch* batch);

#ifdef __cplusplus
}
#endif

#endif
