// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>
#include <millrace/options_file.h>
#include <millrace/sampler.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

#include "support/fake_dataset.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::TemporaryFolder;

class OptionsFile : public ::testing::Test {
 protected:
  static SavedOptions some_options() {
    SavedOptions options;
    options.pipeline.batch_size = 128;
    options.pipeline.slots.prefetch = 3;
    options.pipeline.slots.micro_batches = 4;
    options.workers = 7;
    options.why = "7 workers feed it: \"idle\" 0.1% ± 0.0%";
    options.tuned_for = {.dataset = "some/train.lmdb",
                         .records = 1281167,
                         .recipe = R"({"output":[224,224],"ops":[{"op":"center_crop"}]})",
                         .step_ms = 33.25};
    options.machine = identify_machine();
    return options;
  }

  LoadedOptions load(const std::string& text) const {
    std::ofstream(path_) << text;
    return load_options(path_);
  }

  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// Returns the error's text when a file with this text is read.
  std::string complaint(const std::string& json,
                        ErrorCode code = ErrorCode::invalid_argument) const {
    try {
      load(json);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << json;
      EXPECT_THAT(error.what(), HasSubstr(path_.string())) << json;
      return error.what();
    }
    ADD_FAILURE() << "accepted: " << json;
    return {};
  }
  std::string complaint_on_options(const std::string& members) const {
    return complaint(R"({"format": 1, "options": {)" + members + "}}");
  }

  const TemporaryFolder folder_;
  const fs::path path_ = folder_ / "options.json";
};

TEST_F(OptionsFile, WhatIsWrittenIsReadBack) {
  const SavedOptions saved = some_options();
  save_options(path_, saved);
  const LoadedOptions loaded = load_options(path_);
  EXPECT_EQ(loaded.pipeline.batch_size, 128u);
  EXPECT_EQ(loaded.pipeline.slots.prefetch, 3u);
  EXPECT_EQ(loaded.pipeline.slots.micro_batches, 4u);
  EXPECT_EQ(loaded.workers, 7u);
  EXPECT_EQ(loaded.why, saved.why);
  EXPECT_EQ(loaded.tuned_for, saved.tuned_for);
  EXPECT_EQ(loaded.machine, saved.machine);
  EXPECT_THAT(loaded.machine_differences, IsEmpty());

  const std::string first = text();
  save_options(path_, loaded);
  EXPECT_EQ(text(), first);
}

TEST_F(OptionsFile, WhatIsLeftOutHasItsDefault) {
  const LoadedOptions loaded = load(R"({"format": 1, "options": {"prefetch": 2}})");
  const PipelineOptions defaults;
  EXPECT_EQ(loaded.pipeline.slots.prefetch, 2u);
  EXPECT_EQ(loaded.pipeline.batch_size, defaults.batch_size);
  EXPECT_EQ(loaded.pipeline.slots.micro_batches, defaults.slots.micro_batches);
  EXPECT_EQ(loaded.workers, 0u);
  EXPECT_EQ(loaded.why, "");
  EXPECT_EQ(loaded.tuned_for, TunedFor{});
  EXPECT_THAT(loaded.machine_differences, IsEmpty());

  // It is written back unchanged.
  save_options(path_, loaded);
  EXPECT_EQ(load_options(path_).tuned_for, TunedFor{});
}

TEST_F(OptionsFile, RunSaysWhatElseIsToBeRun) {
  const PipelineOptions options = load(R"({"format": 1, "options": {"batch_size": 8}, "run": {
      "name": "eval", "seed": 18446744073709551615, "epochs": 3, "order": "sequential",
      "last_batch": "pad", "bad_records": "mark", "index_bytes": 0, "cache_bytes": 99,
      "device_slots": 3, "read_ahead": 0, "nodes": "all", "rank": 1, "world": 4, "local_rank": 1,
      "local_world": 2, "global_batch_size": 30, "resume_anyway": true, "stop_timeout_ms": 250,
      "epoch_break": true,
      "conversion": {"dtype": "float16", "layout": "nhwc", "mean": [0.5, 0.25, 0.125],
                     "std": [2, 4, 8]}}})")
                                      .pipeline;
  EXPECT_EQ(options.batch_size, 8u);
  EXPECT_EQ(options.name, "eval");
  EXPECT_EQ(options.seed, UINT64_MAX);
  EXPECT_EQ(options.epochs, 3u);
  EXPECT_EQ(Sampler(options.order, 9, 1).hash(), Sampler(Order::sequential(), 9, 1).hash());
  EXPECT_EQ(options.last_batch, LastBatch::pad);
  EXPECT_EQ(options.bad_records, BadRecords::mark);
  EXPECT_EQ(options.index_bytes, std::optional<std::size_t>(0));
  EXPECT_EQ(options.cache_bytes, 99u);
  EXPECT_EQ(options.slots.device_slots, 3u);
  EXPECT_EQ(options.slots.read_ahead, 0u);
  EXPECT_EQ(options.slots.nodes, Nodes::all);
  EXPECT_TRUE(options.slots.epoch_break);
  EXPECT_EQ(options.ranks.this_process.rank, 1u);
  EXPECT_EQ(options.ranks.this_process.world, 4u);
  EXPECT_EQ(options.ranks.this_process.local_rank, 1u);
  EXPECT_EQ(options.ranks.this_process.local_world, 2u);
  EXPECT_EQ(options.ranks.global_batch_size, 30u);
  EXPECT_TRUE(options.resume.anyway);
  EXPECT_EQ(options.debug.stop_timeout, std::chrono::milliseconds(250));
  ASSERT_TRUE(options.conversion);
  EXPECT_EQ(options.conversion->dtype, DType::float16);
  EXPECT_EQ(options.conversion->layout, ImageLayout::nhwc);
  EXPECT_THAT(options.conversion->mean, ElementsAre(0.5F, 0.25F, 0.125F, 0));
  EXPECT_THAT(options.conversion->std, ElementsAre(2, 4, 8, 1));
  EXPECT_EQ(options.conversion->mean_values, 3U);
  EXPECT_EQ(options.conversion->std_values, 3U);
}

TEST_F(OptionsFile, RunLeavesWhatItDoesNotSay) {
  const PipelineOptions said =
      options_from_json(R"({"format": 1, "options": {}, "run": {"order": "blocks",
                            "block_records": 5, "window_blocks": 2}})")
          .pipeline;
  const PipelineOptions defaults;
  EXPECT_EQ(said.seed, defaults.seed);
  EXPECT_EQ(said.name, defaults.name);
  EXPECT_EQ(said.last_batch, defaults.last_batch);
  EXPECT_EQ(said.index_bytes, defaults.index_bytes);
  EXPECT_EQ(said.debug.stop_timeout, defaults.debug.stop_timeout);
  EXPECT_FALSE(said.conversion);
  EXPECT_EQ(Sampler(said.order, 99, 1).hash(), Sampler(Order::blocks({5, 2}), 99, 1).hash());
  EXPECT_NE(Sampler(said.order, 99, 1).hash(), Sampler(Order::blocks(), 99, 1).hash());
}

TEST_F(OptionsFile, RunCountsTheValuesOfAConversion) {
  const PipelineOptions said =
      options_from_json(R"({"format": 1, "options": {}, "run": {"conversion": {"mean": [0.5]}}})")
          .pipeline;
  ASSERT_TRUE(said.conversion);
  EXPECT_EQ(said.conversion->mean_values, 1U);
  EXPECT_EQ(said.conversion->std_values, 0U) << "the default is for any number of channels";
}

TEST_F(OptionsFile, RunBucketsByAField) {
  const auto dataset = std::make_shared<testing::MemoryDataset>(9);
  const auto hash = [&](const std::string& members) {
    const PipelineOptions said =
        options_from_json(R"({"format": 1, "options": {}, "run": {"order": "bucketed",
                              "length_field": "label", "group_records": 4)" +
                          members + "}}")
            .pipeline;
    return Sampler(said.order.measured(*dataset), 9, 1).hash();
  };
  const std::vector<std::uint32_t> lengths(9, 8);
  EXPECT_EQ(hash(""), Sampler(Order::bucketed(lengths, {.group_records = 4}), 9, 1).hash());
  EXPECT_EQ(hash(R"(, "window_records": 64)"),
            Sampler(Order::bucketed(lengths, {64, 4}), 9, 1).hash());
}

TEST_F(OptionsFile, WhatRunSaysWronglyIsNamed) {
  const auto on_run = [&](const std::string& members) {
    return complaint(R"({"format": 1, "options": {}, "run": {)" + members + "}}");
  };
  EXPECT_THAT(on_run(R"("sead": 1)"), HasSubstr("unknown key \"run.sead\""));
  EXPECT_THAT(on_run(R"("seed": 1.5)"), HasSubstr("\"run.seed\" is 1.5"));
  EXPECT_THAT(on_run(R"("order": "random")"),
              HasSubstr("\"run.order\" is \"random\", must be one of \"shuffled\", "
                        "\"sequential\", \"blocks\", \"bucketed\""));
  EXPECT_THAT(on_run(R"("order": "sequential", "window_blocks": 3)"),
              HasSubstr("\"run.window_blocks\" is set, but \"run.order\" is not \"blocks\""));
  EXPECT_THAT(on_run(R"("length_field": "text")"),
              HasSubstr("\"run.length_field\" is set, but \"run.order\" is not \"bucketed\""));
  EXPECT_THAT(on_run(R"("order": "bucketed", "length_field": "text")"),
              HasSubstr("\"run.group_records\" is missing, but \"run.order\" is \"bucketed\""));
  EXPECT_THAT(on_run(R"("order": "bucketed", "group_records": 8)"),
              HasSubstr("\"run.length_field\" is missing"));
  EXPECT_THAT(on_run(R"("order": "bucketed", "length_field": "", "group_records": 8)"),
              HasSubstr("\"run.length_field\" is empty"));
  EXPECT_THAT(on_run(R"("order": "bucketed", "length_field": "text", "group_records": 8,
                        "window_records": 7)"),
              HasSubstr("\"run.group_records\" is 8"));
  EXPECT_THAT(on_run(R"("bad_records": 3)"), HasSubstr("\"run.bad_records\" is 3"));
  EXPECT_THAT(on_run(R"("conversion": {"dtype": "int8"})"),
              HasSubstr("\"run.conversion.dtype\" is \"int8\""));
  for (const char* mean : {"[]", "[1, 2, 3, 4, 5]", "[\"a\"]", "[1e99]", "0.5"})
    EXPECT_THAT(on_run(R"("conversion": {"mean": )" + std::string(mean) + "}"),
                HasSubstr("must be a list of 1 to 4 numbers"));
  EXPECT_THAT(on_run(R"("resume_anyway": 1)"), HasSubstr("must be true or false"));
  EXPECT_THAT(on_run(R"("world": 2)"), HasSubstr("\"run.rank\" is missing"));
  EXPECT_THAT(on_run(R"("world": 2, "rank": 2)"), HasSubstr("\"run.rank\" is 2"));
}

TEST_F(OptionsFile, SaysHowTheMachineDiffers) {
  SavedOptions saved = some_options();
  saved.machine.cpu = "Abacus 3000";
  saved.machine.cores += 6;
  saved.machine.numa_nodes += 1;
  saved.machine.memory_bytes *= 2;
  save_options(path_, saved);
  const LoadedOptions loaded = load_options(path_);
  EXPECT_THAT(loaded.machine_differences,
              ElementsAre(HasSubstr("processor was Abacus 3000, here it is"),
                          HasSubstr("usable cores was " + std::to_string(saved.machine.cores)),
                          HasSubstr("NUMA nodes was " + std::to_string(saved.machine.numa_nodes)),
                          HasSubstr("memory was")));
  EXPECT_EQ(loaded.pipeline.batch_size, 128u);
}

TEST_F(OptionsFile, ALittleMoreMemoryIsNoDifference) {
  MachineIdentity there{.cpu = "x", .cores = 4, .numa_nodes = 1, .memory_bytes = 16'000'000'000};
  MachineIdentity here = there;
  here.memory_bytes = 16'100'000'000;
  EXPECT_THAT(machine_differences(there, here), IsEmpty());
  here.memory_bytes = 17'000'000'000;
  EXPECT_THAT(machine_differences(there, here), ElementsAre(HasSubstr("14.9 GiB")));
}

TEST_F(OptionsFile, OnlyWhatTheFileSaysOfTheMachineIsCompared) {
  const LoadedOptions loaded = load(R"({"format": 1, "options": {}, "machine": {"cores": 4096}})");
  EXPECT_THAT(loaded.machine_differences, ElementsAre(HasSubstr("usable cores was 4096")));
}

TEST_F(OptionsFile, KnowsThisMachine) {
  const MachineIdentity machine = identify_machine();
  EXPECT_NE(machine.cpu, "");
  EXPECT_EQ(machine.cores, read_topology().usable_cpus);
  EXPECT_GE(machine.numa_nodes, 1u);
  EXPECT_GT(machine.memory_bytes, std::uint64_t{1} << 26U);
}

TEST_F(OptionsFile, UnknownKeysAreNamed) {
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "extra": 1})"),
              HasSubstr("unknown key \"extra\""));
  EXPECT_THAT(complaint_on_options(R"("prefetc": 2)"),
              HasSubstr("unknown key \"options.prefetc\""));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "machine": {"cpus": 2}})"),
              HasSubstr("\"machine.cpus\""));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "tuned_for": {"set": 2}})"),
              HasSubstr("\"tuned_for.set\""));
}

TEST_F(OptionsFile, WrongTypesAreNamedWithTheValue) {
  EXPECT_THAT(complaint_on_options(R"("workers": "two")"),
              HasSubstr("\"options.workers\" is \"two\", must be an integer in 0..4096"));
  EXPECT_THAT(complaint_on_options(R"("prefetch": 2.5)"), HasSubstr("\"options.prefetch\" is 2.5"));
  EXPECT_THAT(complaint_on_options(R"("prefetch": null)"),
              HasSubstr("\"options.prefetch\" is null"));
  EXPECT_THAT(complaint(R"({"format": 1, "options": [1]})"),
              HasSubstr("\"options\" is [1], must be an object"));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "why": 3})"),
              HasSubstr("\"why\" is 3, must be a string"));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "machine": {"cpu": 3}})"),
              HasSubstr("\"machine.cpu\" is 3"));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "tuned_for": {"recipe": "train"}})"),
              HasSubstr("\"tuned_for.recipe\" is \"train\""));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "tuned_for": {"step_ms": -1}})"),
              HasSubstr("\"tuned_for.step_ms\" is -1"));
}

TEST_F(OptionsFile, ValuesOutOfRangeAreNamed) {
  EXPECT_THAT(complaint_on_options(R"("batch_size": 0)"),
              HasSubstr("\"options.batch_size\" is 0, must be an integer in 1..1048576"));
  EXPECT_THAT(complaint_on_options(R"("workers": 5000)"), HasSubstr("\"options.workers\" is 5000"));
  EXPECT_THAT(complaint_on_options(R"("prefetch": -1)"), HasSubstr("\"options.prefetch\" is -1"));
  EXPECT_THAT(complaint_on_options(R"("prefetch": 99999999999999999999999)"),
              HasSubstr("\"options.prefetch\" is 9.99"));
  EXPECT_THAT(complaint_on_options(R"("batch_size": 4, "micro_batches": 8)"),
              HasSubstr("\"options.micro_batches\" is 8, more than \"options.batch_size\", 4"));
  EXPECT_THAT(complaint(R"({"format": 1, "options": {}, "machine": {"cores": 0}})"),
              HasSubstr("\"machine.cores\" is 0"));
}

TEST_F(OptionsFile, NewerAndForeignFilesAreRefused) {
  EXPECT_THAT(complaint(R"({"format": 2, "options": {}, "of the future": 1})"),
              HasSubstr("\"format\" is 2, newer than 1"));
  EXPECT_THAT(complaint(R"({"format": 0, "options": {}})"), HasSubstr("\"format\" is 0"));
  EXPECT_THAT(complaint(R"({"format": "1", "options": {}})"), HasSubstr("\"format\" is \"1\""));
  EXPECT_THAT(complaint(R"({"options": {}})"), HasSubstr("\"format\" is missing"));
  EXPECT_THAT(complaint(R"({"format": 1})"), HasSubstr("\"options\" is missing"));
  EXPECT_THAT(complaint("[]"), HasSubstr("must hold an object"));
  EXPECT_THAT(complaint("{\"format\": 1,"), HasSubstr("is not valid JSON"));
  EXPECT_THAT(complaint(""), HasSubstr("is not valid JSON"));
  EXPECT_THAT(complaint(std::string(100'000, '[')), HasSubstr("is not valid JSON"));
  EXPECT_THAT(complaint("{\"format\": 1, \"options\": {}, \"why\": \"\xff\"}"),
              HasSubstr("is not valid JSON"));
}

TEST_F(OptionsFile, FilesThatCannotBeReadOrWrittenAreNamed) {
  try {
    load_options(folder_ / "missing.json");
    FAIL() << "read a file that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("missing.json"));
  }
  EXPECT_THROW(load_options(folder_.path()), Error);
  try {
    save_options(folder_ / "nowhere" / "options.json", some_options());
    FAIL() << "wrote into a folder that does not exist";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::io);
    EXPECT_THAT(error.what(), HasSubstr("nowhere/options.json"));
  }
}

TEST_F(OptionsFile, WhatCouldNotBeReadBackIsNotWritten) {
  const auto refused = [&](auto change) {
    SavedOptions options = some_options();
    change(options);
    EXPECT_THROW(save_options(path_, options), Error);
    EXPECT_FALSE(fs::exists(path_));
  };
  refused([](SavedOptions& options) { options.pipeline.slots.prefetch = 0; });
  refused([](SavedOptions& options) { options.workers = 100'000; });
  refused([](SavedOptions& options) { options.pipeline.slots.micro_batches = 129; });
  refused([](SavedOptions& options) { options.tuned_for.recipe = "train"; });
  refused([](SavedOptions& options) {
    options.tuned_for.step_ms = std::numeric_limits<double>::quiet_NaN();
  });
}

}  // namespace
}  // namespace millrace
