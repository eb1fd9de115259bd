/* SPDX-License-Identifier: Apache-2.0
 *
 * One-pass datasets for C. Their records are read once from front to back, and their number is
 * known only at the end. <millrace/one_pass_dataset.h> describes order, memory, epochs, resuming
 * and ranks. The rules of <millrace/millrace.h> hold here, too. millrace_dataset_size() fails for
 * such a dataset, and millrace_pipeline_batches_per_epoch() gives 0. In
 * millrace_dataset_describe(), "records" is null, and "can_restart" is false unless the stream can
 * begin again.
 */
#ifndef MILLRACE_C_STREAM_H
#define MILLRACE_C_STREAM_H

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* OnePassOptions of <millrace/one_pass_dataset.h>. */
typedef struct millrace_one_pass_options {
  size_t struct_bytes;     /* sizeof(millrace_one_pass_options) */
  uint64_t window_records; /* records that are shuffled together; 0 = 2048 */
  uint64_t memory_bytes;   /* memory for the records of all windows; 0 = 1 GiB */
} millrace_one_pass_options;

/* A stream that the caller implements. One thread at a time calls the callbacks; `interrupt` may be
 * called at any time. They report failures in the same way as dataset callbacks. `user` may be
 * freed on any thread. */
typedef struct millrace_stream_callbacks {
  size_t struct_bytes; /* sizeof(millrace_stream_callbacks) */
  void* user;          /* passed to the callbacks below */
  const char* name;    /* for messages */
  /* Fills in `record->fields` and `n_fields` of the next record, or sets `*ended` to 1. The fields
   * stay valid until the next call. MILLRACE_BAD_RECORD means that this record alone cannot be
   * read; the next call reads the record after it. May wait for a record. */
  millrace_status (*next)(void* user, millrace_record* record, int32_t* ended,
                          millrace_error* error);
  /* Skips records when a run is resumed. Null = millrace reads them instead. */
  millrace_status (*skip)(void* user, uint64_t count, millrace_error* error);
  /* Begins again at the first record. Null = the stream can be read only once. */
  millrace_status (*restart)(void* user, millrace_error* error);
  /* Makes a waiting call of `next` or `skip` return, with any result. Another thread calls it when
   * the run ends, possibly just before such a call begins. May be null. */
  void (*interrupt)(void* user);
  /* Called once, after the last use of `user`. May be null. */
  void (*free_user)(void* user);
} millrace_stream_callbacks;

/* Makes a dataset from the records of a stream. Copies `callbacks` and its name. If this call
 * fails, `free_user` is not called. Null options = the defaults. */
MILLRACE_C_API millrace_status millrace_dataset_one_pass(const millrace_stream_callbacks* callbacks,
                                                         const millrace_one_pass_options* options,
                                                         millrace_dataset** dataset,
                                                         millrace_error* error);

/* Makes a dataset from tars that are read from front to back, as tar_stream() of
 * <millrace/tar_stream.h> does: a pipe such as "/dev/stdin", a file, a pattern or a list. */
MILLRACE_C_API millrace_status millrace_dataset_tar_stream(const char* path,
                                                           const millrace_one_pass_options* options,
                                                           millrace_dataset** dataset,
                                                           millrace_error* error);

#ifdef __cplusplus
}
#endif
#endif
