/* SPDX-License-Identifier: Apache-2.0
 *
 * Measurements for C: how fast batches arrive, which stage limits the rate, and which settings to
 * use. They run over the caller's own dataset, transform, device and step. <millrace/measure.h>
 * describes them. The rules of <millrace/millrace.h> hold here, too.
 *
 * Threads: one measurement at a time in a process, on any thread. All callbacks of this header run
 * on the calling thread. Nothing else should run meanwhile, since the whole machine is measured.
 */
#ifndef MILLRACE_C_MEASURE_H
#define MILLRACE_C_MEASURE_H

#include <millrace/millrace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A trainer: Workload of <millrace/measure.h>. Both callbacks get `user`, and each of them may be a
 * null pointer. */
typedef struct millrace_workload {
  size_t struct_bytes; /* sizeof(millrace_workload) */
  /* The loader. Its `state`, and the options "epochs" and "last_batch", must be valid but are
   * ignored: the options of a measurement give its length, and all batches are full. */
  const millrace_pipeline_setup* setup;
  /* Stream of the step on a GPU, as in millrace_pipeline_next; 0 = the measurement makes one. */
  uintptr_t stream;
  void* user;
  /* The training step. On a GPU it enqueues its work on `stream` and returns. On the host the step
   * ends when this callback returns. The callback owns `batch` and must free it. Null = no step:
   * batches are taken as fast as they come. A failure ends the measurement, which returns it. The
   * same samples may come again, in a new handle that must be freed, too. millrace_diagnose also
   * calls it with samples of zeros. */
  millrace_status (*step)(void* user, millrace_batch* batch, uintptr_t stream,
                          millrace_error* error);
  /* Called several times per second: before batches, and while the measurement waits for one. If
   * the result is not 0, the measurement ends with MILLRACE_STOPPED. */
  int32_t (*interrupted)(void* user);
} millrace_workload;

/* Options of the functions below. A null pointer in place of a struct means the defaults. The
 * comment of each member begins with its default. A caller that passes a struct must set every
 * member. Durations are in seconds, 0.001 to 86400. */
typedef struct millrace_bench_options {
  size_t struct_bytes;     /* sizeof(millrace_bench_options) */
  uint64_t warmup;         /* 10; batches before the measurement begins */
  uint64_t batches;        /* 0; batches to measure. 0 = as many as fit into the duration */
  double duration_seconds; /* 5 */
} millrace_bench_options;

/* The variables that millrace_tune searches over. */
typedef struct millrace_setting {
  uint64_t workers;
  uint64_t prefetch;
  uint64_t micro_batches;
  uint64_t batch_size;
} millrace_setting;

typedef struct millrace_tune_options {
  size_t struct_bytes;     /* sizeof(millrace_tune_options) */
  uint32_t max_workers;    /* 0; largest number to try, up to 4096. 0 = one per processor of
                            * this rank's share of the host ("local_world") */
  int32_t tune_batch_size; /* 0; 1 = also search the batch size. The next two limits imply 1 */
  double p99_ms;           /* 0; limit for the batch time's 99th percentile. 0 = no limit */
  uint64_t memory_bytes;   /* 0; limit for the memory of slots and scratch. 0 = no limit */
  double budget_seconds;   /* 100; limit for the whole search, at least 0.1 */
  /* Called before each run of a setting, with the workload's `user`. Null = not called. A failure
   * ends the search, which returns it. */
  millrace_status (*on_run)(void* user, const millrace_setting* setting, millrace_error* error);
} millrace_tune_options;

typedef struct millrace_diagnose_options {
  size_t struct_bytes;     /* sizeof(millrace_diagnose_options) */
  uint32_t rounds;         /* 3; at least 2. More rounds find smaller stalls */
  uint32_t reserved;       /* 0 */
  uint64_t batches;        /* 0; batches in a phase of a round. 0 = as many as fit the duration */
  double duration_seconds; /* 2; of a phase of a round */
  /* Opens the dataset again. Called many times, with the workload's `user`. The library frees the
   * handle. The fetch stall is measured only with this callback, and only if nothing else in the
   * process has the dataset open. `dataset` of the setup may then be null. */
  millrace_status (*open)(void* user, millrace_dataset** dataset, millrace_error* error);
} millrace_diagnose_options;

/* Runs the trainer's loop. Returns the JSON object of `millrace bench --json`. Its key
 * "verdict.stage" has the name of the stage that limits the rate. */
MILLRACE_C_API millrace_status millrace_bench(const millrace_workload* workload,
                                              const millrace_bench_options* options, char** json,
                                              millrace_error* error);
/* Finds the smallest setting that is fast enough for the trainer. Returns the JSON object of
 * `millrace tune --json`. Its object "chosen" has the same keys as the object "options" in the JSON
 * of a pipeline's options. Ignores the setup's runtime, and "workers" in the setup's options. */
MILLRACE_C_API millrace_status millrace_tune(const millrace_workload* workload,
                                             const millrace_tune_options* options, char** json,
                                             millrace_error* error);
/* Divides an epoch's time into compute, trainer, copy, preparation and fetch. Needs a step. Returns
 * the JSON object of `millrace diagnose --json`. */
MILLRACE_C_API millrace_status millrace_diagnose(const millrace_workload* workload,
                                                 const millrace_diagnose_options* options,
                                                 char** json, millrace_error* error);

#ifdef __cplusplus
}
#endif

#endif
