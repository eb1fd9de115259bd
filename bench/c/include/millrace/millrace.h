/* SPDX-License-Identifier: Apache-2.0
 *
 * millrace for C, and for every language that calls C. Link libmillrace.so (pkg-config millrace-c,
 * or millrace::c by find_package). The C++ headers describe all objects in detail; here each object
 * is a handle.
 *
 *     millrace_error error;
 *     millrace_dataset* dataset;
 *     if (millrace_dataset_open("train.lmdb", &dataset, &error) != MILLRACE_OK)
 *       puts(error.message);
 *
 * Errors: every function that can fail returns a status and fills `error` unless `error` is null.
 * After a failure, the results that the function returns through pointers are null or 0. No
 * exception leaves the library. A handle that is null, was freed before, or is of another kind
 * gives MILLRACE_INVALID_ARGUMENT.
 *
 * Handles: the caller owns each handle and frees it with the function of its kind. These functions
 * accept null and ignore a handle that was freed before. A pipeline keeps its dataset, transform
 * and runtime alive. A DLPack tensor keeps its batch alive. So handles may be freed in any order.
 *
 * Threads: all functions may be called by several threads at the same time, even with the same
 * handle. If one thread frees a handle while others are in calls with it, the handle's object lives
 * until these calls return. millrace_pipeline_stop ends a millrace_pipeline_next that waits. A
 * thread in a call must not be cancelled. If callbacks need an interpreter, free the pipeline that
 * calls them before the interpreter ends.
 *
 * Fork: millrace's threads do not run in a child of fork(). The child may make new handles. It may
 * also free the parent's handles; this has no effect.
 *
 * Structs: first set the whole struct to 0. Then set `struct_bytes` to the struct's size. A later
 * library whose struct has more members recognises the caller's version by this size. Structs
 * without this member never change.
 *
 * Tensors have the types of <dlpack/dlpack.h> (Debian: libdlpack-dev). millrace.h does not include
 * that header. Texts are UTF-8 and end with a zero byte.
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

/* Status code. An int32_t, so that codes of later versions and of callbacks are valid values. */
typedef int32_t millrace_status;
enum {
  MILLRACE_OK = 0,
  MILLRACE_END = 1,              /* the run is over: no batch is left */
  MILLRACE_INVALID_ARGUMENT = 2, /* an argument is out of range or contradicts another */
  MILLRACE_NOT_FOUND = 3,        /* a file, field or record does not exist */
  MILLRACE_ALREADY_EXISTS = 4,   /* a file would have been overwritten */
  MILLRACE_IO = 5,               /* the operating system refused to read or write */
  MILLRACE_CORRUPT = 6,          /* a dataset is damaged, truncated or not a dataset */
  MILLRACE_INCOMPLETE = 7,       /* packing of the dataset was interrupted */
  MILLRACE_BAD_RECORD = 8,       /* one record cannot be read or made into a sample */
  MILLRACE_TRANSFORM = 9,        /* a transform failed */
  MILLRACE_DEVICE = 10,          /* a call of the device failed */
  MILLRACE_SLOTS_EXHAUSTED = 11, /* live batches hold every slot, so no further batch can come */
  MILLRACE_TIMEOUT = 12,         /* the timeout of a call has expired */
  MILLRACE_STOPPED = 13,         /* the pipeline was stopped */
  MILLRACE_INTERNAL = 14,        /* a fault of millrace itself */
  MILLRACE_NO_MEMORY = 15,       /* an allocation failed */
  MILLRACE_SLOTS_HELD = 16       /* only in millrace_error: see millrace_pipeline_next */
};

/* Description of an error. The message names file, key and value. Long messages are truncated. */
typedef struct millrace_error {
  millrace_status status;
  char message[1020];
} millrace_error;

typedef struct millrace_dataset millrace_dataset;
typedef struct millrace_transform millrace_transform;
typedef struct millrace_runtime millrace_runtime;
typedef struct millrace_order millrace_order;
typedef struct millrace_batch_transform millrace_batch_transform;
typedef struct millrace_pipeline millrace_pipeline;
typedef struct millrace_batch millrace_batch;

/* Returns the version of the library, such as "0.1.0". */
MILLRACE_C_API const char* millrace_version(void);
/* Returns the name, such as "not_found", or "unknown" for a number that is not a status. */
MILLRACE_C_API const char* millrace_status_name(millrace_status status);
/* Frees a text that a function returned. */
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

/* A dataset that the caller implements. Several threads call the callbacks at once. Only one thread
 * at a time uses a reader. Readers and `user` may be freed on any thread.
 *
 * A callback that fails writes a message into `error->message`, which is empty before the call. The
 * callback returns MILLRACE_INVALID_ARGUMENT, _NOT_FOUND, _IO, _CORRUPT, _BAD_RECORD, _TRANSFORM or
 * _DEVICE. Any other value except MILLRACE_OK counts as MILLRACE_INTERNAL. */
typedef struct millrace_dataset_callbacks {
  size_t struct_bytes; /* sizeof(millrace_dataset_callbacks) */
  void* user;          /* passed to the callbacks below */
  const char* name;    /* for messages */
  uint64_t size;       /* number of records */
  /* Makes a reader for one thread. The next two callbacks get this reader. If this callback is
   * null, `user` is the reader. */
  millrace_status (*make_reader)(void* user, void** reader, millrace_error* error);
  void (*free_reader)(void* reader); /* called only for readers that were made; may be null */
  /* Fills in `record->fields` and `n_fields`. The fields stay valid until this reader's next call.
   * MILLRACE_BAD_RECORD means that this record alone cannot be read; the pipeline's policy for bad
   * records applies. Any other failure ends the run. */
  millrace_status (*read)(void* reader, uint64_t index, millrace_record* record,
                          millrace_error* error);
  /* Announces records that are read soon. Called on a separate thread. May be null. */
  void (*prefetch)(void* user, const uint64_t* indices, size_t n_indices);
  /* Called once, after the last use of `user`. May be null. */
  void (*free_user)(void* user);
} millrace_dataset_callbacks;

/* Opens a dataset as open_dataset() of <millrace/dataset.h> does. */
MILLRACE_C_API millrace_status millrace_dataset_open(const char* path, millrace_dataset** dataset,
                                                     millrace_error* error);

/* Options for opening a dataset: OpenOptions of <millrace/dataset.h>. All 0 = the defaults. */
typedef struct millrace_open_options {
  size_t struct_bytes; /* sizeof(millrace_open_options) */
  const char* format;  /* name of the format; null = each format probes the path in turn */
  /* Names of the databases with the images and with their labels, for an LMDB file with several
   * named databases. Null = the file has one database. */
  const char* images;
  const char* labels;
  int32_t no_map;       /* 1: files are read with pread() instead of mapped */
  int32_t no_checksums; /* 1: stored checksums are not compared */
  int32_t no_hints;     /* 1: record hints stored beside the files (seek indices) are not used */
  int32_t reserved;
} millrace_open_options;

/* Does the same as millrace_dataset_open(), with options. Null = the defaults. */
MILLRACE_C_API millrace_status millrace_dataset_open_with(const char* path,
                                                          const millrace_open_options* options,
                                                          millrace_dataset** dataset,
                                                          millrace_error* error);
/* Makes a dataset from callbacks. Copies them and the name. If this call fails, `free_user` is not
 * called. */
MILLRACE_C_API millrace_status millrace_dataset_create(const millrace_dataset_callbacks* callbacks,
                                                       millrace_dataset** dataset,
                                                       millrace_error* error);
/* Returns the number of records. */
MILLRACE_C_API millrace_status millrace_dataset_size(const millrace_dataset* dataset,
                                                     uint64_t* size, millrace_error* error);
/* Returns a JSON object with "name", "records" (null for datasets of <millrace/c_stream.h>),
 * "can_restart", "classes", "fields", "files", "fingerprint" (16 hexadecimal digits or null) and
 * "warnings". In names, replaces each byte that is not valid UTF-8 by its code, such as "\xe9". */
MILLRACE_C_API millrace_status millrace_dataset_describe(const millrace_dataset* dataset,
                                                         char** json, millrace_error* error);
MILLRACE_C_API void millrace_dataset_free(millrace_dataset* dataset);

/* ---- Transforms: record -> sample. ---- */

/* A named field of a sample. `dtype` is one of uint8, int8, int16, uint16, int32, uint32, int64,
 * uint64, bool, float16, bfloat16, float32, float64. A shape has up to 5 extents. A field with the
 * name "index" or "valid" replaces millrace's own field. */
typedef struct millrace_field_spec {
  const char* name;
  const char* dtype;
  size_t rank;
  size_t shape[5];
  /* 1: the length varies, and shape[0] is its maximum. Batches then also have a field NAME.length
   * (uint32). */
  int32_t variable;
} millrace_field_spec;

/* Random numbers of one sample or batch. They depend only on the seed and its position. */
typedef struct millrace_random millrace_random;

/* A sample to be made. Valid during one call. */
typedef struct millrace_sample {
  /* Memory of each field, in the order of the transform's fields. Every byte must be written. */
  void* const* fields;
  /* Length of each variable field in this sample, at most shape[0]; 0 unless it is set. */
  size_t* lengths;
  millrace_random* random;
} millrace_sample;

/* A transform that the caller implements. Several threads call the callbacks at once. Only one
 * thread at a time uses a worker. Callbacks report failures as dataset callbacks do. */
typedef struct millrace_transform_callbacks {
  size_t struct_bytes; /* sizeof(millrace_transform_callbacks) */
  void* user;
  const millrace_field_spec* fields;
  size_t n_fields;
  const char* description; /* for the report; may be null */
  /* Fingerprint of everything that determines the samples; part of the state. 0 = none. */
  uint64_t fingerprint;
  /* Makes a worker for one thread. The next two callbacks get this worker. If this callback is
   * null, `user` is the worker. */
  millrace_status (*make_worker)(void* user, void** worker, millrace_error* error);
  void (*free_worker)(void* worker); /* called only for workers that were made; may be null */
  /* Makes a sample. MILLRACE_BAD_RECORD means that the record cannot be made into a sample; the
   * pipeline's policy for bad records applies. Any other failure ends the run. */
  millrace_status (*make)(void* worker, const millrace_record* record, millrace_sample* sample,
                          millrace_error* error);
  /* Called once, after the last use of `user`. May be null. */
  void (*free_user)(void* user);
} millrace_transform_callbacks;

/* Makes a transform as image_transform() of <millrace/image_transform.h> does. `recipe` is the name
 * of a preset ("train" or "eval", for example) or a recipe in JSON. `millrace recipe` prints such
 * recipes. "images" in a recipe makes pairs: further encoded images of each record. */
MILLRACE_C_API millrace_status millrace_transform_images(const char* recipe,
                                                         millrace_transform** transform,
                                                         millrace_error* error);

/* Limits for decoding an image: DecodeLimits of <millrace/decode_budget.h>. 0 = the default. */
typedef struct millrace_decode_limits {
  size_t struct_bytes; /* sizeof(millrace_decode_limits) */
  uint64_t max_pixels;
  uint64_t max_pixels_per_byte;
  uint64_t max_scan_pixels;
  uint64_t max_decode_bytes; /* all workers together */
} millrace_decode_limits;

/* Does the same as millrace_transform_images(), with limits. Null = the defaults. */
MILLRACE_C_API millrace_status millrace_transform_images_with(const char* recipe,
                                                              const millrace_decode_limits* limits,
                                                              millrace_transform** transform,
                                                              millrace_error* error);
/* Returns a recipe as the JSON of Recipe::to_json() of <millrace/recipe.h>. `size` is the width and
 * height that a preset makes; 0 = the preset's own size. For a recipe in JSON, `size` must be 0. */
MILLRACE_C_API millrace_status millrace_recipe_json(const char* recipe, uint32_t size, char** json,
                                                    millrace_error* error);
/* RawField of <millrace/raw_transform.h>. `fill` pads a field of variable length to shape[0]. */
typedef struct millrace_raw_field {
  millrace_field_spec spec;
  double fill;
} millrace_raw_field;
/* Makes a transform that copies fields of records as raw_transform() does. `n_fields` 0 = all
 * fields that `dataset` describes. Otherwise `dataset` may be null; if it describes fields, the
 * given fields must be among them, with the same dtypes. */
MILLRACE_C_API millrace_status millrace_transform_raw(const millrace_dataset* dataset,
                                                      const millrace_raw_field* fields,
                                                      size_t n_fields,
                                                      millrace_transform** transform,
                                                      millrace_error* error);
/* Makes a transform from callbacks. Copies `callbacks` and everything that it points to. If this
 * call fails, `free_user` is not called. */
MILLRACE_C_API millrace_status
millrace_transform_create(const millrace_transform_callbacks* callbacks,
                          millrace_transform** transform, millrace_error* error);
/* Returns the fields of the samples: a JSON list of objects with "name", "dtype", "shape",
 * "variable". For an image transform, the list gives the label's dtype as int64. A pipeline leaves
 * the label out if the dataset has no labels. If labels are texts, the pipeline makes the label
 * uint8 of variable length. millrace_batch_fields() returns the names of a batch's fields. */
MILLRACE_C_API millrace_status millrace_transform_fields(const millrace_transform* transform,
                                                         char** json, millrace_error* error);
MILLRACE_C_API void millrace_transform_free(millrace_transform* transform);

/* `bits` returns 64 random bits. `uniform` returns a multiple of 2^-53 in [0, 1). Null gives 0. */
MILLRACE_C_API uint64_t millrace_random_bits(millrace_random* random);
MILLRACE_C_API double millrace_random_uniform(millrace_random* random);

/* ---- Pipelines. ---- */

/* Makes workers that pipelines share. `options` is as in millrace_pipeline_setup. Only "workers"
 * and, in "run", "local_rank" and "local_world" are used. Null = the defaults. */
MILLRACE_C_API millrace_status millrace_runtime_create(const char* options,
                                                       millrace_runtime** runtime,
                                                       millrace_error* error);
/* Frees hints and caches that no pipeline uses. Without this call, later pipelines can use them. */
MILLRACE_C_API millrace_status millrace_runtime_free_unused_caches(millrace_runtime* runtime,
                                                                   millrace_error* error);
MILLRACE_C_API void millrace_runtime_free(millrace_runtime* runtime);

/* Returns Ranks::from_environment() of <millrace/ranks.h>, a JSON object: "rank", "world",
 * "local_rank", "local_world", "source", "warnings". */
MILLRACE_C_API millrace_status millrace_ranks_json(char** json, millrace_error* error);

typedef struct millrace_pipeline_setup {
  size_t struct_bytes; /* sizeof(millrace_pipeline_setup) */
  millrace_dataset* dataset;
  millrace_transform* transform;
  millrace_runtime* runtime; /* null = the pipeline makes its own workers, as set by `options` */
  const char* device;        /* "host" or "cuda:N"; null = "host" */
  /* JSON in the format that `millrace tune --out` writes. Null = the defaults. load_options() of
   * <millrace/options_file.h> lists all keys. */
  const char* options;
  const char* state; /* result of a state function below, to resume there; null = the beginning */
  millrace_order* order; /* of <millrace/c_order.h>; null = the order of `options` */
  millrace_batch_transform* batch_transform; /* <millrace/c_batch_transform.h>; may be null */
} millrace_pipeline_setup;

MILLRACE_C_API millrace_status millrace_pipeline_create(const millrace_pipeline_setup* setup,
                                                        millrace_pipeline** pipeline,
                                                        millrace_error* error);
/* Returns the next batch, or MILLRACE_END.
 *
 * `stream` 0 means that the batch is for use on the host; the call returns when the data can be
 * read. On a GPU, `stream` is a cudaStream_t as an integer. The stream waits for the data; the
 * calling thread does not wait for the GPU. The stream must outlive the batch and its tensors. 0
 * never means CUDA's default stream. For that stream pass 1, even if a library (PyTorch) calls it
 * 0. The value 2, the per-thread default stream, is refused: it is a different stream on each
 * thread, but any thread may free a batch.
 *
 * `timeout_seconds` limits the wait. With a negative value the wait has no limit, and the call
 * returns MILLRACE_SLOTS_EXHAUSTED if live batches hold every slot. If they hold every slot when a
 * timeout expires, the result is MILLRACE_TIMEOUT and `error->status` is MILLRACE_SLOTS_HELD.
 *
 * The run continues after MILLRACE_TIMEOUT, MILLRACE_SLOTS_EXHAUSTED, an invalid argument of this
 * call, or a lack of memory for the new handle. Any other failure ends the run. */
MILLRACE_C_API millrace_status millrace_pipeline_next(millrace_pipeline* pipeline, uintptr_t stream,
                                                      double timeout_seconds,
                                                      millrace_batch** batch,
                                                      millrace_error* error);
MILLRACE_C_API millrace_status millrace_pipeline_batches_per_epoch(
    const millrace_pipeline* pipeline, uint64_t* batches, millrace_error* error);
/* Returns the number of batches of the whole run; UINT64_MAX if it never ends or is unknown. */
MILLRACE_C_API millrace_status millrace_pipeline_total_batches(const millrace_pipeline* pipeline,
                                                               uint64_t* batches,
                                                               millrace_error* error);
/* Returns the state after the last batch handed out, to resume from: one line of JSON. */
MILLRACE_C_API millrace_status millrace_pipeline_state(const millrace_pipeline* pipeline,
                                                       char** json, millrace_error* error);
/* Returns a report on the time since the start, or since the last call whose `restart` was not 0.
 * It is a JSON object, which to_json() of <millrace/report.h> describes. */
MILLRACE_C_API millrace_status millrace_pipeline_report(millrace_pipeline* pipeline,
                                                        int32_t restart, char** json,
                                                        millrace_error* error);
/* Ends the run: a waiting millrace_pipeline_next returns MILLRACE_STOPPED. If a stage hangs for
 * longer than "stop_timeout_ms", returns MILLRACE_TIMEOUT. The message then names the stage. */
MILLRACE_C_API millrace_status millrace_pipeline_stop(millrace_pipeline* pipeline,
                                                      millrace_error* error);
/* Stops the run if it is not stopped yet, and frees the handle. Waits at most "stop_timeout_ms" for
 * a stage that hangs. */
MILLRACE_C_API void millrace_pipeline_free(millrace_pipeline* pipeline);

/* ---- Batches. ---- */

typedef struct millrace_batch_facts {
  size_t struct_bytes;  /* sizeof(millrace_batch_facts), set by the caller */
  uint64_t size;        /* samples */
  uint64_t valid;       /* samples that are neither padding nor marked bad records */
  uint64_t global_size; /* samples over all ranks */
  uint64_t number;      /* number of the batch in the run, from 0 */
  uint64_t epoch;       /* from 0 */
  uint64_t slot;        /* slot of the batch; a slot's addresses never change */
  int32_t last_in_epoch;
  int32_t reserved;
} millrace_batch_facts;

MILLRACE_C_API millrace_status millrace_batch_describe(const millrace_batch* batch,
                                                       millrace_batch_facts* facts,
                                                       millrace_error* error);
/* Returns the field `name` of all samples. millrace_batch_fields() lists the names. "index"
 * (uint64) has the index of each sample's record. "valid" (uint8) is 1 for valid samples. The
 * caller owns the tensor and must call its deleter once. The tensor keeps the batch alive.
 * <millrace/dlpack.h> has the rules for streams. */
MILLRACE_C_API millrace_status millrace_batch_field(const millrace_batch* batch, const char* name,
                                                    struct DLManagedTensor** tensor,
                                                    millrace_error* error);
/* Returns the same field as a DLPack 1.0 tensor, flagged as read-only if `read_only` is not 0. */
MILLRACE_C_API millrace_status
millrace_batch_field_versioned(const millrace_batch* batch, const char* name, int32_t read_only,
                               struct DLManagedTensorVersioned** tensor, millrace_error* error);
/* Returns the same field as a new Python capsule, of a DLPack 1.0 tensor if `versioned` is not 0.
 * After an error returns null and sets Python's exception. The caller must hold the GIL. */
MILLRACE_C_API void* millrace_batch_capsule(const millrace_batch* batch, const char* name,
                                            int32_t versioned, millrace_error* error);
/* Returns the names of the batch's fields, in order, as a JSON list of texts. */
MILLRACE_C_API millrace_status millrace_batch_fields(const millrace_batch* batch, char** json,
                                                     millrace_error* error);
/* Returns the state after this batch. A new pipeline can resume from it. */
MILLRACE_C_API millrace_status millrace_batch_state(const millrace_batch* batch, char** json,
                                                    millrace_error* error);
/* Also keeps the slot until `stream` (not 0) ends the work enqueued before the batch is freed. */
MILLRACE_C_API millrace_status millrace_batch_record_stream(const millrace_batch* batch,
                                                            uintptr_t stream,
                                                            millrace_error* error);
/* Frees the batch. Its slot is reused only after all of its tensors are freed, too. */
MILLRACE_C_API void millrace_batch_free(millrace_batch* batch);

#ifdef __cplusplus
}
#endif

#endif
