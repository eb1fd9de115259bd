/* SPDX-License-Identifier: Apache-2.0
 *
 * Batch transforms for C, for `batch_transform` of millrace_pipeline_setup: they change a whole
 * batch on a worker, after its samples are made and before it is copied.
 * <millrace/batch_transform.h> describes them. The rules of <millrace/millrace.h> hold here, too.
 */
#ifndef MILLRACE_C_BATCH_TRANSFORM_H
#define MILLRACE_C_BATCH_TRANSFORM_H

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A field of all samples of a batch: [samples, ...]. */
typedef struct millrace_made_field {
  const char* name;
  const char* dtype; /* as in millrace_field_spec */
  void* data;        /* may be read and changed */
  size_t rank;
  size_t shape[6];
} millrace_made_field;

/* A batch to be changed. Valid during one call. */
typedef struct millrace_made_batch {
  size_t size;                       /* samples, at least one */
  const uint64_t* indices;           /* record index of each sample */
  const uint8_t* valid;              /* 0 for samples that are marked as not valid */
  const millrace_made_field* fields; /* the samples' fields and the added fields */
  size_t n_fields;
  millrace_random* random; /* random numbers of this batch */
} millrace_made_batch;

/* A batch transform that the caller implements. Several threads call `run` at once. The callback
 * `run` reports failures as dataset callbacks do. A failure ends the pipeline's run. */
typedef struct millrace_batch_transform_callbacks {
  size_t struct_bytes; /* sizeof(millrace_batch_transform_callbacks) */
  void* user;
  /* The fields that are added to those of the samples. They are zero when `run` is called. */
  const millrace_field_spec* fields;
  size_t n_fields;
  const char* stage; /* name of the stage in reports; null = "batch" */
  /* Fingerprint of everything that determines the result; part of the state. 0 = none. */
  uint64_t fingerprint;
  millrace_status (*run)(void* user, const millrace_made_batch* batch, millrace_error* error);
  /* Called once, after the last use of `user`. May be null. */
  void (*free_user)(void* user);
} millrace_batch_transform_callbacks;

/* Makes a batch transform from callbacks. Copies `callbacks` and everything that it points to. If
 * this call fails, `free_user` is not called. */
MILLRACE_C_API millrace_status
millrace_batch_transform_create(const millrace_batch_transform_callbacks* callbacks,
                                millrace_batch_transform** transform, millrace_error* error);

/* Mix of <millrace/mix.h>. That header has the defaults of C++; here every member must be set. A
 * recipe can have the same parameters as its "mix". */
typedef struct millrace_mix {
  size_t struct_bytes; /* sizeof(millrace_mix) */
  int32_t classes;
  int32_t on_device; /* 1: MixOn::device */
  double mixup;
  double cutmix;
  double cutmix_share;
  double p;
} millrace_mix;

/* Makes mixup and CutMix for any samples with "image" and "label", as mix_transform() does. */
MILLRACE_C_API millrace_status millrace_batch_transform_mix(const millrace_mix* mix,
                                                            millrace_batch_transform** transform,
                                                            millrace_error* error);
MILLRACE_C_API void millrace_batch_transform_free(millrace_batch_transform* transform);

#ifdef __cplusplus
}
#endif

#endif
