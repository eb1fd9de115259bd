/* SPDX-License-Identifier: Apache-2.0
 *
 * A program in C11 that uses only libmillrace.so: its own transform squares its own records. It
 * takes batches through DLPack, and measures a step.
 */
#include <dlpack/dlpack.h>
#include <millrace/c_measure.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { records = 100 };

static int32_t numbers[records];
static int ended;

/* A reader needs memory only for the field that a record points to. */
static millrace_status make_field(void* user, void** reader, millrace_error* error) {
  (void)user;
  *reader = malloc(sizeof(millrace_field));
  if (*reader != NULL) return MILLRACE_OK;
  strcpy(error->message, "malloc failed");
  return MILLRACE_NO_MEMORY;
}

static millrace_status read_number(void* reader, uint64_t index, millrace_record* record,
                                   millrace_error* error) {
  millrace_field* const field = reader;
  (void)error;
  field->name = "number";
  field->data = &numbers[index];
  field->bytes = sizeof numbers[index];
  record->fields = field;
  record->n_fields = 1;
  return MILLRACE_OK;
}

static millrace_status square(void* worker, const millrace_record* record, millrace_sample* sample,
                              millrace_error* error) {
  int32_t number;
  int64_t result;
  (void)worker;
  (void)error;
  memcpy(&number, record->fields[0].data, sizeof number);
  result = (int64_t)number * number;
  memcpy(sample->fields[0], &result, sizeof result);
  return MILLRACE_OK;
}

static millrace_status count_step(void* user, millrace_batch* batch, uintptr_t stream,
                                  millrace_error* error) {
  millrace_batch_facts facts;
  millrace_status status;
  (void)stream;
  memset(&facts, 0, sizeof facts);
  facts.struct_bytes = sizeof facts;
  *(uint64_t*)user += 1;
  status = millrace_batch_describe(batch, &facts, error);
  millrace_batch_free(batch);
  return status;
}

static void note_end(void* user) { ++*(int*)user; }

static void check(millrace_status status, const millrace_error* error) {
  if (status == MILLRACE_OK) return;
  fprintf(stderr, "%s: %s\n", millrace_status_name(status), error->message);
  exit(1);
}

static void measure(const millrace_pipeline_setup* setup) {
  const millrace_bench_options options = {sizeof options, 1, 20, 1};
  millrace_workload workload;
  millrace_error error;
  uint64_t steps = 0;
  char* json;
  memset(&workload, 0, sizeof workload);
  workload.struct_bytes = sizeof workload;
  workload.setup = setup;
  workload.user = &steps;
  workload.step = count_step;
  check(millrace_bench(&workload, &options, &json, &error), &error);
  if (steps < 21 || strstr(json, "\"samples_per_second\"") == NULL) {
    fprintf(stderr, "%llu steps: %s\n", (unsigned long long)steps, json);
    exit(1);
  }
  millrace_text_free(json);
}

int main(void) {
  const millrace_field_spec field = {"square", "int64", 0, {0}, 0};
  millrace_dataset_callbacks dataset_callbacks;
  millrace_transform_callbacks transform_callbacks;
  millrace_pipeline_setup setup;
  millrace_error error;
  millrace_dataset* dataset;
  millrace_transform* transform;
  millrace_pipeline* pipeline;
  millrace_batch* batch;
  millrace_status status;
  int64_t sum = 0, expected = 0;
  for (int32_t k = 0; k < records; ++k) {
    numbers[k] = 3 * k;
    expected += (int64_t)numbers[k] * numbers[k];
  }

  memset(&dataset_callbacks, 0, sizeof dataset_callbacks);
  dataset_callbacks.struct_bytes = sizeof dataset_callbacks;
  dataset_callbacks.user = &ended;
  dataset_callbacks.name = "threefold numbers";
  dataset_callbacks.size = records;
  dataset_callbacks.make_reader = make_field;
  dataset_callbacks.free_reader = free;
  dataset_callbacks.read = read_number;
  dataset_callbacks.free_user = note_end;
  check(millrace_dataset_create(&dataset_callbacks, &dataset, &error), &error);

  memset(&transform_callbacks, 0, sizeof transform_callbacks);
  transform_callbacks.struct_bytes = sizeof transform_callbacks;
  transform_callbacks.user = &ended;
  transform_callbacks.fields = &field;
  transform_callbacks.n_fields = 1;
  transform_callbacks.make = square;
  transform_callbacks.free_user = note_end;
  check(millrace_transform_create(&transform_callbacks, &transform, &error), &error);

  memset(&setup, 0, sizeof setup);
  setup.struct_bytes = sizeof setup;
  setup.dataset = dataset;
  setup.transform = transform;
  setup.options =
      "{\"format\": 1, \"options\": {\"workers\": 2, \"batch_size\": 10},"
      " \"run\": {\"epochs\": 1}}";
  check(millrace_pipeline_create(&setup, &pipeline, &error), &error);
  measure(&setup);
  millrace_dataset_free(dataset);
  millrace_transform_free(transform);

  while ((status = millrace_pipeline_next(pipeline, 0, -1, &batch, &error)) == MILLRACE_OK) {
    DLManagedTensor* tensor;
    check(millrace_batch_field(batch, "square", &tensor, &error), &error);
    millrace_batch_free(batch);
    for (int64_t k = 0; k < tensor->dl_tensor.shape[0]; ++k)
      sum += ((const int64_t*)tensor->dl_tensor.data)[k];
    tensor->deleter(tensor);
  }
  if (status != MILLRACE_END) check(status, &error);
  millrace_pipeline_free(pipeline);
  if (sum != expected || ended != 2) {
    fprintf(stderr, "the sum is %lld, not %lld, or there were %d ends, not 2\n", (long long)sum,
            (long long)expected, ended);
    return 1;
  }
  printf("millrace %s: %lld\n", millrace_version(), (long long)sum);
  return 0;
}
