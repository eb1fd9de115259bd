// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/c_stream.h>

#include <cstring>
#include <filesystem>

#include "bench/c/numbers.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::NumbersRun;

constexpr const char* streamed_in_order =
    R"({"format": 1, "options": {"workers": 2, "batch_size": 4}, "run": {"order": "sequential",
        "epochs": 1}})";

/// A stream of numbers, for callbacks.
struct NumberStream {
  std::int64_t at = 0;
  std::int64_t end = 10;
  std::int64_t fails_at = -1;
  millrace_status failure = MILLRACE_IO;
  std::uint64_t skipped = 0;
  int freed = 0;
  millrace_field field{};
};

millrace_stream_callbacks stream_of(NumberStream& numbers) {
  millrace_stream_callbacks callbacks{};
  callbacks.struct_bytes = sizeof callbacks;
  callbacks.user = &numbers;
  callbacks.name = "numbers";
  callbacks.next = [](void* user, millrace_record* record, std::int32_t* ended,
                      millrace_error* error) -> millrace_status {
    auto& all = *static_cast<NumberStream*>(user);
    if (all.at == all.fails_at) {
      ++all.at;
      return testing::fail(all.failure, "a gap", error);
    }
    *ended = all.at == all.end ? 1 : 0;
    all.field = {"number", &all.at, sizeof all.at};
    // The field must stay valid, so the number that is read lies before the next one.
    static thread_local std::int64_t given;
    given = all.at++;
    all.field.data = &given;
    record->fields = &all.field;
    record->n_fields = 1;
    return MILLRACE_OK;
  };
  callbacks.free_user = [](void* user) { ++static_cast<NumberStream*>(user)->freed; };
  return callbacks;
}

/// A run whose dataset is replaced by a stream.
struct StreamedNumbers : NumbersRun {
  explicit StreamedNumbers(const millrace_stream_callbacks& callbacks,
                           const millrace_one_pass_options* options = nullptr) {
    millrace_dataset_free(dataset);
    EXPECT_EQ(millrace_dataset_one_pass(&callbacks, options, &dataset, &error), MILLRACE_OK)
        << error.message;
    setup.dataset = dataset;
  }
};

TEST(CStream, RunsToItsEnd) {
  NumberStream numbers;
  {
    StreamedNumbers run(stream_of(numbers));
    std::uint64_t size = 7;
    EXPECT_EQ(millrace_dataset_size(run.dataset, &size, &run.error), MILLRACE_INVALID_ARGUMENT);
    EXPECT_THAT(run.error.message, HasSubstr("known only at its end"));
    char* json = nullptr;
    ASSERT_EQ(millrace_dataset_describe(run.dataset, &json, &run.error), MILLRACE_OK);
    EXPECT_THAT(testing::taken(json),
                HasSubstr(R"("name":"numbers","records":null,"can_restart":false)"));
    ASSERT_EQ(run.start(streamed_in_order), MILLRACE_OK) << run.error.message;
    EXPECT_THAT(run.labels_left(), ElementsAre(0, 1, 2, 3, -1, 4, 5, 6, 7, -1, 8, 9, -1));
    ASSERT_EQ(millrace_pipeline_batches_per_epoch(run.pipeline, &size, &run.error), MILLRACE_OK);
    EXPECT_EQ(size, 0U);
  }
  EXPECT_EQ(numbers.freed, 1);
}

TEST(CStream, EndsBeforeItIsRead) {
  for (int time = 0; time < 50; ++time) {
    NumberStream numbers;
    {
      StreamedNumbers run(stream_of(numbers));
      ASSERT_EQ(run.start(streamed_in_order), MILLRACE_OK) << run.error.message;
    }
    EXPECT_EQ(numbers.freed, 1);
  }
}

TEST(CStream, RestartsForEachEpochAndSkips) {
  NumberStream numbers;
  millrace_stream_callbacks callbacks = stream_of(numbers);
  callbacks.restart = [](void* user, millrace_error*) -> millrace_status {
    static_cast<NumberStream*>(user)->at = 0;
    return MILLRACE_OK;
  };
  callbacks.skip = [](void* user, std::uint64_t count, millrace_error*) -> millrace_status {
    auto& all = *static_cast<NumberStream*>(user);
    all.skipped += count;
    all.at += static_cast<std::int64_t>(count);
    return MILLRACE_OK;
  };
  millrace_one_pass_options options{};
  options.struct_bytes = sizeof options;
  options.window_records = 2;
  constexpr const char* twice =
      R"({"format": 1, "options": {"workers": 2, "batch_size": 4}, "run": {"order": "sequential",
          "epochs": 2}})";
  std::string state;
  {
    StreamedNumbers run(callbacks, &options);
    ASSERT_EQ(run.start(twice), MILLRACE_OK) << run.error.message;
    millrace_batch* batch = nullptr;
    ASSERT_EQ(run.next(batch), MILLRACE_OK);
    char* json = nullptr;
    ASSERT_EQ(millrace_batch_state(batch, &json, &run.error), MILLRACE_OK);
    state = testing::taken(json);
    millrace_batch_free(batch);
    EXPECT_EQ(run.labels_left().size(), 21U);
  }
  numbers.at = 0;
  StreamedNumbers resumed(callbacks, &options);
  resumed.setup.state = state.c_str();
  ASSERT_EQ(resumed.start(twice), MILLRACE_OK) << resumed.error.message;
  EXPECT_THAT(resumed.labels_left(),
              ElementsAre(4, 5, 6, 7, -1, 8, 9, -1, 0, 1, 2, 3, -1, 4, 5, 6, 7, -1, 8, 9, -1));
  EXPECT_EQ(numbers.skipped, 4U);
}

TEST(CStream, FailuresEndTheRunOrAreBadRecords) {
  NumberStream numbers;
  numbers.fails_at = 5;
  {
    StreamedNumbers run(stream_of(numbers));
    ASSERT_EQ(run.start(streamed_in_order), MILLRACE_OK) << run.error.message;
    millrace_batch* batch = nullptr;
    while (run.next(batch) == MILLRACE_OK) millrace_batch_free(batch);
    EXPECT_EQ(run.error.status, MILLRACE_IO);
    EXPECT_STREQ(run.error.message, "numbers: record 5 of epoch 0 cannot be read: a gap");
  }
  numbers = {};
  numbers.fails_at = 5;
  numbers.failure = MILLRACE_BAD_RECORD;
  StreamedNumbers run(stream_of(numbers));
  ASSERT_EQ(run.start(R"({"format": 1, "options": {"workers": 2, "batch_size": 4},
      "run": {"order": "sequential", "epochs": 1, "bad_records": "mark"}})"),
            MILLRACE_OK)
      << run.error.message;
  EXPECT_THAT(run.labels_left(), ElementsAre(0, 1, 2, 3, -1, 4, 0, 6, 7, -1, 8, 9, -1));
}

TEST(CStream, ReadsTars) {
  const testing::TemporaryFolder folder;
  testing::TarFile tar;
  for (int number = 0; number < 5; ++number)
    tar.add(std::to_string(number) + ".number", std::string(8, static_cast<char>(number)));
  tar.write(folder / "numbers.tar");
  NumbersRun run;
  millrace_dataset_free(run.dataset);
  ASSERT_EQ(millrace_dataset_tar_stream((folder / "numbers.tar").c_str(), nullptr, &run.dataset,
                                        &run.error),
            MILLRACE_OK)
      << run.error.message;
  run.setup.dataset = run.dataset;
  ASSERT_EQ(run.start(streamed_in_order), MILLRACE_OK) << run.error.message;
  constexpr std::int64_t one = 0x0101010101010101;
  EXPECT_THAT(run.labels_left(), ElementsAre(0, one, 2 * one, 3 * one, -1, 4 * one, -1));
}

TEST(CStream, RefusesWrongArguments) {
  NumberStream numbers;
  millrace_stream_callbacks callbacks = stream_of(numbers);
  millrace_dataset* dataset = nullptr;
  millrace_error error{};
  callbacks.next = nullptr;
  EXPECT_EQ(millrace_dataset_one_pass(&callbacks, nullptr, &dataset, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("callbacks->next is null"));
  EXPECT_EQ(millrace_dataset_one_pass(nullptr, nullptr, &dataset, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(millrace_dataset_tar_stream("no.tar", nullptr, &dataset, &error), MILLRACE_NOT_FOUND);
  EXPECT_EQ(millrace_dataset_tar_stream(nullptr, nullptr, &dataset, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(numbers.freed, 0);
}

}  // namespace
}  // namespace millrace
