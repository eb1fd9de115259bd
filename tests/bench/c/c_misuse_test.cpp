// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <millrace/error.h>

#include <array>
#include <limits>
#include <span>
#include <string>

#include "bench/c/numbers.h"
#include "c/device.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Numbers;
using testing::numbers_dataset;
using testing::numbers_transform;
using testing::NumbersRun;
using testing::taken;

constexpr const char* small = R"({"format": 1, "options": {"batch_size": 4},
                                  "run": {"order": "sequential", "epochs": 1}})";

/// Takes a batch from a run that fails, and returns the error message. The status must be
/// `expected`.
std::string failure_of(NumbersRun& run, millrace_status expected) {
  EXPECT_EQ(run.start(small), MILLRACE_OK) << run.error.message;
  millrace_batch* batch = nullptr;
  EXPECT_EQ(run.next(batch), expected) << run.error.message;
  EXPECT_EQ(batch, nullptr);
  EXPECT_EQ(run.error.status, expected);
  return run.error.message;
}

TEST(CMisuse, NullFreedAndForeignHandlesAreSaidToBe) {
  NumbersRun run;
  millrace_error& error = run.error;
  std::uint64_t size = 7;
  EXPECT_EQ(millrace_dataset_size(nullptr, &size, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the dataset is null");
  EXPECT_EQ(size, 0u);

  EXPECT_EQ(millrace_dataset_size(run.dataset, &size, &error), MILLRACE_OK);
  EXPECT_EQ(size, 64u);
  EXPECT_STREQ(error.message, "");
  millrace_dataset_free(run.dataset);
  EXPECT_EQ(millrace_dataset_size(run.dataset, &size, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("the dataset is not a handle, or was freed"));
  millrace_dataset_free(run.dataset);

  auto* const transform_as_dataset = reinterpret_cast<millrace_dataset*>(run.transform);
  EXPECT_EQ(millrace_dataset_size(transform_as_dataset, &size, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the dataset is the handle of a transform");
  millrace_dataset_free(transform_as_dataset);  // no effect

  auto* const made_up = reinterpret_cast<millrace_batch*>(&run);
  EXPECT_EQ(millrace_batch_record_stream(made_up, 0, &error), MILLRACE_INVALID_ARGUMENT);
  millrace_batch_free(made_up);

  EXPECT_EQ(run.start(small), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(run.pipeline, nullptr);
}

TEST(CMisuse, NullArgumentsAreNamed) {
  NumbersRun run;
  millrace_error& error = run.error;
  EXPECT_EQ(millrace_dataset_open("x.lmdb", nullptr, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the argument dataset is null");
  EXPECT_EQ(millrace_dataset_open(nullptr, &run.dataset, nullptr), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(run.dataset, nullptr);
  EXPECT_EQ(millrace_pipeline_create(nullptr, &run.pipeline, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the argument setup is null");
  run.setup.dataset = nullptr;
  EXPECT_EQ(run.start(small), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the argument setup->dataset is null");
  EXPECT_EQ(millrace_pipeline_next(nullptr, 0, -1, nullptr, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(millrace_batch_field(nullptr, "label", nullptr, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(millrace_runtime_free_unused_caches(nullptr, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the argument runtime is null");
  EXPECT_EQ(millrace_random_bits(nullptr), 0u);
  EXPECT_EQ(millrace_random_uniform(nullptr), 0.0);
  millrace_text_free(nullptr);
  millrace_pipeline_free(nullptr);
  millrace_batch_free(nullptr);
  millrace_runtime_free(nullptr);
  EXPECT_STREQ(millrace_status_name(MILLRACE_NOT_FOUND), "not_found");
  EXPECT_STREQ(millrace_status_name(99), "unknown");
}

TEST(CMisuse, SizesOfStructsAreLookedAt) {
  Numbers numbers;
  millrace_error error{};
  millrace_dataset* dataset = nullptr;
  auto callbacks = numbers_dataset(numbers);
  callbacks.struct_bytes = 0;
  EXPECT_EQ(millrace_dataset_create(&callbacks, &dataset, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("callbacks->struct_bytes is 0, must be the size"));
  // Callbacks of a later version: members that this version does not know must not be set.
  struct Later {
    millrace_dataset_callbacks known;
    void* unknown;
  } later{numbers_dataset(numbers), nullptr};
  later.known.struct_bytes = sizeof later;
  EXPECT_EQ(millrace_dataset_create(&later.known, &dataset, &error), MILLRACE_OK) << error.message;
  millrace_dataset_free(dataset);
  EXPECT_EQ(numbers.freed, 1);
  later.unknown = &later;
  EXPECT_EQ(millrace_dataset_create(&later.known, &dataset, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(error.message, HasSubstr("members are set that this millrace"));
  EXPECT_EQ(dataset, nullptr);
  EXPECT_EQ(numbers.freed, 1);
}

TEST(CMisuse, WhatIsNotJsonOrNoOptionIsNamed) {
  NumbersRun run;
  const auto refused = [&](const char* options, const char* part) {
    EXPECT_EQ(run.start(options), MILLRACE_INVALID_ARGUMENT) << options;
    EXPECT_THAT(run.error.message, HasSubstr(part));
    EXPECT_EQ(run.pipeline, nullptr);
  };
  refused("{", "options: is not valid JSON");
  refused("", "options: is not valid JSON");
  refused("[]", "must hold an object");
  refused("{}", "\"format\" is missing");
  refused(R"({"format": 1, "options": {"batches": 3}})", "unknown key \"options.batches\"");
  refused(R"({"format": 1, "options": {}, "run": {"seed": -1}})", "\"run.seed\" is -1");
  refused(R"({"format": 1, "options": {"batch_size": 0}})", "\"options.batch_size\" is 0");
  run.setup.device = "cuda:x";
  refused(small, "the device is \"cuda:x\", must be \"host\" or \"cuda:N\"");
  run.setup.device = nullptr;
  run.setup.state = "7";
  refused(small, "state: is not a state of millrace");
  millrace_transform* transform = nullptr;
  EXPECT_EQ(millrace_transform_images(R"({"ops": [{"op": "turn"}]})", &transform, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, AllOf(HasSubstr("recipe"), HasSubstr("turn")));
  EXPECT_EQ(millrace_transform_images("resnt", &transform, &run.error), MILLRACE_NOT_FOUND);
  EXPECT_THAT(run.error.message, HasSubstr("\"resnt\"; there are train, eval, resnet"));
  millrace_dataset* dataset = nullptr;
  EXPECT_EQ(millrace_dataset_open("/no/such.lmdb", &dataset, &run.error), MILLRACE_NOT_FOUND);
  EXPECT_THAT(run.error.message, HasSubstr("/no/such.lmdb"));
}

// The value 2 stands for the per-thread default stream, which is another stream on each thread.
TEST(CMisuse, TheThreadsDefaultStreamIsRefused) {
  const DeviceId gpu{DeviceId::Kind::cuda, 0};
  EXPECT_THAT([&] { (void)c::stream_of(gpu, 2); },
              ::testing::ThrowsMessage<Error>(
                  ::testing::AnyOf(HasSubstr("another stream on each thread"),
                                   HasSubstr("this libmillrace was built without CUDA"))));
}

TEST(CMisuse, CallsOfABatchAreChecked) {
  NumbersRun run;
  ASSERT_EQ(run.start(small), MILLRACE_OK) << run.error.message;
  millrace_batch* batch = nullptr;
  EXPECT_EQ(millrace_pipeline_next(run.pipeline, 2, -1, &batch, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_THAT(run.error.message, HasSubstr("the stream is 2, but the batches are on the host"));
  EXPECT_EQ(millrace_pipeline_next(run.pipeline, 0, std::numeric_limits<double>::quiet_NaN(),
                                   &batch, &run.error),
            MILLRACE_INVALID_ARGUMENT);
  ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
  DLManagedTensor* tensor = nullptr;
  EXPECT_EQ(millrace_batch_field(batch, "image", &tensor, &run.error), MILLRACE_NOT_FOUND);
  EXPECT_THAT(run.error.message, HasSubstr("label"));
  EXPECT_EQ(tensor, nullptr);
  EXPECT_EQ(millrace_batch_capsule(batch, "label", 0, &run.error), nullptr);
  EXPECT_STREQ(run.error.message, "this process has no Python interpreter");
  millrace_batch_free(batch);
  EXPECT_EQ(millrace_batch_field(batch, "label", &tensor, &run.error), MILLRACE_INVALID_ARGUMENT);
}

TEST(CMisuse, RawFieldsAreComparedWithTheDataset) {
  const testing::TemporaryFolder folder;
  const std::string path = folder / "set.lmdb";
  DatasetWriter writer(path, {.field_specs = {{"number", DType::int16, {2}}}});
  const std::array<std::int16_t, 2> numbers{3, 4};
  const RecordField fields[] = {{"number", std::as_bytes(std::span(numbers))},
                                {"more", std::as_bytes(std::span(numbers))}};
  writer.append(fields);
  writer.finish();
  millrace_error error{};
  millrace_dataset* dataset = nullptr;
  ASSERT_EQ(millrace_dataset_open(path.c_str(), &dataset, &error), MILLRACE_OK) << error.message;
  millrace_transform* raw = nullptr;
  std::array<millrace_raw_field, 2> given{
      {{{"more", "uint16", 1, {2}, 0}, 0}, {{"nubmer", "int16", 1, {2}, 0}, 0}}};
  EXPECT_EQ(millrace_transform_raw(dataset, given.data(), 2, &raw, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(error.message, "fields[1].spec.name is \"nubmer\", but the fields of " + path +
                               " are \"number\", \"more\"");
  given[1].spec = {"number", "uint16", 1, {2}, 0};
  EXPECT_EQ(millrace_transform_raw(dataset, given.data(), 2, &raw, &error),
            MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(error.message, "fields[1].spec.dtype is \"uint16\", but the field \"number\" of " +
                               path + " is int16");
  EXPECT_EQ(raw, nullptr);
  given[1].spec.dtype = "int16";
  EXPECT_EQ(millrace_transform_raw(dataset, given.data(), 2, &raw, &error), MILLRACE_OK)
      << error.message;
  millrace_transform_free(raw);
  millrace_dataset_free(dataset);
}

TEST(CMisuse, FieldsOfATransformAreChecked) {
  Numbers numbers;
  millrace_error error{};
  millrace_transform* transform = nullptr;
  const auto refused = [&](millrace_field_spec field, const char* part) {
    auto callbacks = numbers_transform(numbers);
    callbacks.fields = &field;
    callbacks.n_fields = 1;
    EXPECT_EQ(millrace_transform_create(&callbacks, &transform, &error), MILLRACE_INVALID_ARGUMENT);
    EXPECT_THAT(error.message, HasSubstr(part));
  };
  refused({nullptr, "int64", 0, {}, 0}, "callbacks->fields[0].name is null");
  refused({"a", "int65", 0, {}, 0}, "callbacks->fields[0].dtype is \"int65\"");
  refused({"a", "int64", 6, {}, 0}, "callbacks->fields[0].rank is 6, must be 0 to 5");
  refused({"a", "uint8", 2, {std::size_t{1} << 32U, std::size_t{1} << 32U}, 0}, "more than");
  refused({"a", "int64", 1, {(std::size_t{1} << 61U) + 1}, 0}, "more than");
  refused({"a", "int64", 1, {0}, 0}, "a");
  refused({"a", "int64", 0, {}, 1}, "a");
  auto callbacks = numbers_transform(numbers);
  callbacks.n_fields = 0;
  EXPECT_EQ(millrace_transform_create(&callbacks, &transform, &error), MILLRACE_INVALID_ARGUMENT);
  callbacks = numbers_transform(numbers);
  callbacks.make = nullptr;
  EXPECT_EQ(millrace_transform_create(&callbacks, &transform, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_EQ(numbers.freed, 0);
}

TEST(CCallbacks, AFailedReadEndsTheRunWithItsMessage) {
  NumbersRun run;
  run.numbers.read_status = MILLRACE_IO;
  run.numbers.message = "the tape is torn";
  EXPECT_THAT(failure_of(run, MILLRACE_IO),
              AllOf(HasSubstr("numbers: record "), HasSubstr("the tape is torn")));
}

TEST(CCallbacks, AFailureWithoutMessageIsToldByItsStatus) {
  NumbersRun run;
  run.numbers.make_status = 99;
  EXPECT_THAT(failure_of(run, MILLRACE_INTERNAL),
              HasSubstr("the callback returned 99 (unknown) and no message"));
}

TEST(CCallbacks, ABadRecordFollowsThePolicy) {
  for (const bool read : {true, false}) {
    NumbersRun run;
    run.numbers.bad_record = 2;
    (read ? run.numbers.read_status : run.numbers.make_status) = MILLRACE_BAD_RECORD;
    run.numbers.message = "odd";
    ASSERT_EQ(run.start(R"({"format": 1, "options": {"batch_size": 4},
                            "run": {"order": "sequential", "bad_records": "mark"}})"),
              MILLRACE_OK)
        << run.error.message;
    millrace_batch* batch = nullptr;
    ASSERT_EQ(run.next(batch), MILLRACE_OK) << run.error.message;
    EXPECT_THAT(testing::elements<std::uint8_t>(*run.field(batch, "valid")),
                ::testing::ElementsAre(1, 1, 0, 1));
    millrace_batch_free(batch);
    char* json = nullptr;
    EXPECT_EQ(millrace_pipeline_report(run.pipeline, 0, &json, nullptr), MILLRACE_OK);
    EXPECT_THAT(taken(json), HasSubstr("odd"));
  }
}

TEST(CCallbacks, ALengthBeyondTheFieldEndsTheRun) {
  NumbersRun run;
  run.numbers.length_beyond = 4;
  EXPECT_THAT(failure_of(run, MILLRACE_INVALID_ARGUMENT), HasSubstr("list"));
}

TEST(CCallbacks, AReaderThatCannotBeMadeEndsTheRun) {
  NumbersRun run;
  auto callbacks = numbers_dataset(run.numbers);
  callbacks.make_reader = [](void* /*user*/, void** /*reader*/, millrace_error* error) {
    return testing::fail(MILLRACE_IO, "too many readers", error);
  };
  millrace_dataset* dataset = nullptr;
  ASSERT_EQ(millrace_dataset_create(&callbacks, &dataset, nullptr), MILLRACE_OK);
  run.setup.dataset = dataset;
  EXPECT_THAT(failure_of(run, MILLRACE_IO), HasSubstr("too many readers"));
  millrace_dataset_free(dataset);
}

TEST(CCallbacks, CannotSayWhatOnlyAPipelineCan) {
  for (const millrace_status status :
       {MILLRACE_END, MILLRACE_TIMEOUT, MILLRACE_SLOTS_EXHAUSTED, MILLRACE_STOPPED}) {
    NumbersRun run;
    run.numbers.read_status = status;
    EXPECT_THAT(failure_of(run, MILLRACE_INTERNAL), HasSubstr(millrace_status_name(status)));
  }
  // Without a reader there is not yet a record that could be bad.
  NumbersRun run;
  auto callbacks = numbers_dataset(run.numbers);
  callbacks.make_reader = [](void* /*user*/, void** /*reader*/,
                             millrace_error* /*error*/) -> millrace_status {
    return MILLRACE_BAD_RECORD;
  };
  millrace_dataset* dataset = nullptr;
  ASSERT_EQ(millrace_dataset_create(&callbacks, &dataset, nullptr), MILLRACE_OK);
  run.setup.dataset = dataset;
  EXPECT_THAT(failure_of(run, MILLRACE_INTERNAL), HasSubstr("bad_record"));
  millrace_dataset_free(dataset);
}

TEST(CCallbacks, FieldsWithoutDataEndTheRun) {
  NumbersRun run;
  auto callbacks = numbers_dataset(run.numbers);
  callbacks.make_reader = nullptr;
  callbacks.free_reader = nullptr;
  callbacks.read = [](void* /*user*/, std::uint64_t /*index*/, millrace_record* record,
                      millrace_error* /*error*/) -> millrace_status {
    record->n_fields = 1;
    return MILLRACE_OK;
  };
  millrace_dataset* dataset = nullptr;
  ASSERT_EQ(millrace_dataset_create(&callbacks, &dataset, nullptr), MILLRACE_OK);
  run.setup.dataset = dataset;
  EXPECT_THAT(failure_of(run, MILLRACE_INVALID_ARGUMENT), HasSubstr("n_fields, but no fields"));
  millrace_dataset_free(dataset);
}

TEST(CCallbacks, ALongMessageIsCutBetweenCharacters) {
  Numbers numbers;
  auto callbacks = numbers_dataset(numbers);
  std::string name;
  while (name.size() < 3000) name += "\u00e9";
  callbacks.name = name.c_str();
  callbacks.read = nullptr;
  millrace_dataset* dataset = nullptr;
  millrace_error error{};
  EXPECT_EQ(millrace_dataset_create(&callbacks, &dataset, &error), MILLRACE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the argument callbacks->read is null");
  EXPECT_EQ(millrace_dataset_open(name.c_str(), &dataset, &error), MILLRACE_IO);
  const std::string message = error.message;
  EXPECT_GE(message.size(), sizeof error.message - 3);
  const auto first = message.find("\u00e9");
  ASSERT_NE(first, std::string::npos);
  EXPECT_EQ((message.size() - first) % 2, 0u) << message;
}

}  // namespace
}  // namespace millrace
