// SPDX-License-Identifier: Apache-2.0
//
// Made-up runs, each with the verdict that a person would give.
#include <gmock/gmock.h>

#include <optional>
#include <ostream>

#include "loader/report/made_up_report.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using testing::MadeUpReport;

struct Row {
  const char* name;
  MadeUpReport run;
  std::optional<double> device_idle;
  Bound bound;
  const char* stage;
  /// In the verdict's text or its advice.
  const char* phrase;
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

const Row rows[] = {
    // Workers that are busy while the trainer waits.
    {"decode", {}, {}, Bound::transform, "decode", "decode bounds the run: the 2 workers are busy"},
    {"decode_on_a_gpu", {}, 0.4, Bound::transform, "decode", "idle 40.0% of the time"},
    {"decode_a_little", {.trainer = 0.9, .stall = 0.03}, 0.03, Bound::transform, "decode", "3.0%"},
    {"augment",
     {.transform = {{"decode", 0.3}, {"augment", 0.7}}},
     {},
     Bound::transform,
     "augment",
     "63.0% of it in augment"},
    {"custom_transform",
     {.read = 0.02, .transform = {{"tokenize", 1}}, .copies = false},
     {},
     Bound::transform,
     "tokenize",
     "tokenize bounds the run"},
    {"cold_disk", {.read = 0.8}, {}, Bound::storage, "read", "faster storage"},
    {"cold_disk_on_a_gpu", {.read = 0.9, .stall = 0.6}, 0.5, Bound::storage, "read", "50.0%"},
    {"read_and_decode_alike", {.read = 0.45}, {}, Bound::transform, "decode", "49.5% of it"},
    {"two_pools",
     {.utilization = 0.96, .stall = 0.3, .workers = 16, .cores = 16},
     {},
     Bound::transform,
     "decode",
     "the 16 workers are busy 96.0%"},
    {"decode_then_copy", {.copy = 0.9}, {}, Bound::transform, "decode", "where copy binds"},
    {"most_workers_paused",
     {.workers = 8, .active_workers = 2},
     {},
     Bound::transform,
     "decode",
     "6.0 of the 8 workers are paused"},
    {"start_and_decode", {.stall = 0.6, .start_seconds = 2}, {}, Bound::transform, "decode", ""},
    // Processors.
    {"too_many_workers",
     {.delay = 0.6, .workers = 4, .cores = 1},
     {},
     Bound::cores,
     "cores",
     "more processors"},
    {"other_programs",
     {.utilization = 0.95, .delay = 0.5, .cores = 2},
     {},
     Bound::cores,
     "cores",
     "Other work"},
    // The device's streams.
    {"copy",
     {.utilization = 0.3, .copy = 0.97, .stall = 0.5},
     {},
     Bound::copy,
     "copy",
     "busy 97.0% of the time, at 2.1 GB/s"},
    {"copy_behind_a_trainer_that_is_ahead",
     {.utilization = 0.3, .copy = 0.97, .stall = 0, .ahead = 0.7},
     0.45,
     Bound::copy,
     "copy",
     "97.0%"},
    {"copy_rather_than_workers",
     {.utilization = 0.9, .copy = 0.96},
     0.4,
     Bound::copy,
     "copy",
     "96.0%"},
    {"copies_not_under_steps",
     {.utilization = 0.3, .copy = 0.3, .trainer = 0.4, .stall = 0, .ahead = 0.6},
     0.3,
     Bound::copy,
     "copy",
     "device_slots"},
    {"upload",
     {.utilization = 0.1, .copy = 0.15, .stall = 0.7, .ready_batches = 3.6},
     {},
     Bound::copy,
     "upload",
     "3.6 made batches wait"},
    {"convert",
     {.utilization = 0.3, .convert = 0.96, .stall = 0, .ahead = 0.5},
     0.3,
     Bound::convert,
     "convert",
     "96.0%"},
    {"convert_on_the_host",
     {.utilization = 0.3, .convert = 0.95, .stall = 0.6},
     {},
     Bound::convert,
     "convert",
     "95.0%"},
    // Nobody is busy, and still the trainer waits.
    {"small_prefetch",
     {.utilization = 0.5, .trainer = 0.7, .stall = 0.3, .copies = false},
     {},
     Bound::prefetch,
     "prefetch",
     "waits 30.0% of the time while the 2 workers are busy only 50.0%"},
    {"small_prefetch_on_a_gpu",
     {.utilization = 0.4, .copy = 0.5, .stall = 0.3},
     0.3,
     Bound::prefetch,
     "prefetch",
     "larger prefetch"},
    {"cores_lacking_but_workers_idle",
     {.utilization = 0.3, .delay = 0.4, .ready_batches = 0.4},
     {},
     Bound::prefetch,
     "prefetch",
     "30.0%"},
    {"slow_samples",
     {.utilization = 0.3, .ready_batches = 2.9, .slowest_sample_ms = 900, .longest_stall_ms = 850},
     {},
     Bound::prefetch,
     "prefetch",
     "decode takes up to 900 ms for a sample"},
    // Nothing is lost.
    {"host_trainer_of_10_ms",
     {.utilization = 0.147, .trainer = 0.956, .stall = 0.044, .delay = 0.3, .copies = false},
     {},
     Bound::trainer,
     "trainer",
     "the trainer's own work bounds the run"},
    {"host_trainer_on_the_workers_cores",
     {.utilization = 0.95,
      .trainer = 0.956,
      .stall = 0.04,
      .delay = 0.5,
      .cores = 2,
      .ready_batches = 2.4,
      .copies = false},
     {},
     Bound::trainer,
     "trainer",
     "95.6% of the time between its calls"},
    {"host_trainer_with_busy_copies",
     {.utilization = 0.3, .copy = 0.9, .trainer = 0.98, .stall = 0.005},
     {},
     Bound::trainer,
     "trainer",
     "98.0%"},
    {"workers_just_fast_enough",
     {.trainer = 0.99, .stall = 0.005},
     {},
     Bound::trainer,
     "trainer",
     "stall 0.5% of the time"},
    {"paused_workers_and_a_host_trainer",
     {.utilization = 0.9, .trainer = 0.97, .stall = 0.01, .workers = 8, .active_workers = 1.2},
     {},
     Bound::trainer,
     "trainer",
     "97.0%"},
    {"trainers_thread_on_a_gpu",
     {.utilization = 0.3, .trainer = 0.97, .stall = 0.001},
     0.5,
     Bound::trainer,
     "trainer",
     "Shorten or overlap"},
    {"trainers_thread_on_a_gpu_and_few_stalls",
     {.trainer = 0.9, .stall = 0.06},
     0.5,
     Bound::trainer,
     "trainer",
     "90.0%"},
    {"step", {.utilization = 0.4, .stall = 0, .ahead = 0.5}, 0.004, Bound::step, "step", "0.4%"},
    {"step_that_nobody_sees",
     {.utilization = 0.4, .stall = 0, .ahead = 0.6},
     {},
     Bound::step,
     "step",
     "ahead of the device 60.0% of the time"},
    {"step_with_stalls_that_cost_nothing", {.delay = 0.6}, 0.01, Bound::step, "step", "1.0%"},
    // Starts and ends.
    {"start_alone",
     {.utilization = 0.3,
      .trainer = 0.72,
      .stall = 0.27,
      .seconds = 0.4,
      .batches = 20,
      .start_seconds = 0.1,
      .copies = false},
     {},
     Bound::trainer,
     "trainer",
     "96.0% of the time between its calls"},
    {"three_batches",
     {.trainer = 0.09,
      .stall = 0.905,
      .seconds = 0.1,
      .batches = 3,
      .start_seconds = 0.0905,
      .copies = false},
     {},
     Bound::trainer,
     "trainer",
     "stall 0.0% of the time"},
    {"one_batch", {.batches = 1, .start_seconds = 4}, {}, Bound::trainer, "trainer", "too few"},
    {"no_batch", {.stall = 0, .batches = 0}, 1.0, Bound::trainer, "trainer", "too few"},
};

class VerdictTable : public ::testing::TestWithParam<Row> {};

TEST_P(VerdictTable, SaysWhatAPersonWould) {
  const Row& row = GetParam();
  const Verdict verdict = judge(row.run.report(), row.device_idle);
  EXPECT_EQ(verdict.bound, row.bound) << verdict.text;
  EXPECT_EQ(verdict.stage, row.stage) << verdict.text;
  EXPECT_THAT(verdict.text + "\n" + verdict.advice, HasSubstr(row.phrase));
  EXPECT_THAT(verdict.text, HasSubstr("bounds the run"));
  EXPECT_FALSE(verdict.advice.empty());
}

INSTANTIATE_TEST_SUITE_P(, VerdictTable, ::testing::ValuesIn(rows),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace millrace
