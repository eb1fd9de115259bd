// SPDX-License-Identifier: Apache-2.0
//
// Tests of tars that are read from front to back, from files and pipes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/tar_stream.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "loader/pipeline/stream/fake_stream.h"
#include "support/small_run.h"
#include "support/tars.h"
#include "support/temporary_folder.h"
#include "support/waiting.h"

namespace millrace {
namespace {

using testing::error_of;
using testing::FunctionTransform;
using ::testing::HasSubstr;
using testing::TarFile;
using testing::TemporaryFolder;

/// A record, or the reason why it is bad.
struct Outcome {
  std::string bad{};
  std::map<std::string, std::string> fields{};
  friend bool operator==(const Outcome&, const Outcome&) = default;
  friend void PrintTo(const Outcome& one, std::ostream* out) {
    *out << "bad: " << one.bad << ", label " << one.fields.contains("label");
  }
};

Outcome outcome_of(const std::function<void(Outcome&)>& read) {
  Outcome outcome;
  try {
    read(outcome);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    // A joined dataset puts the tar's name before the reason.
    outcome.bad = error.reason().substr(error.reason().rfind(".tar: ") + 1);
    if (outcome.bad.starts_with("tar: ")) outcome.bad = outcome.bad.substr(5);
  }
  return outcome;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<Outcome> streamed(RecordStream& stream) {
  std::vector<Outcome> outcomes;
  for (bool goes_on = true; goes_on;) {
    Outcome outcome = outcome_of([&](Outcome& into) {
      StreamRecord record;
      goes_on = stream.next(record);
      for (const StreamRecord::Field& field : record.fields)
        into.fields[field.name] = text_of(field.bytes);
    });
    if (goes_on) outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

std::vector<Outcome> opened(const std::filesystem::path& path) {
  const auto dataset = open_dataset(path);
  const auto reader = dataset->make_reader();
  std::vector<Outcome> outcomes;
  for (std::uint64_t index = 0; index < dataset->size(); ++index)
    outcomes.push_back(outcome_of([&](Outcome& into) {
      const Record record = reader->read(index);
      for (const RecordField& field : record.fields())
        into.fields[std::string(field.name)] = text_of(field.bytes);
    }));
  return outcomes;
}

/// A tar whose samples are of several kinds, some of them bad.
TarFile mixed_tar(int first) {
  TarFile tar;
  tar.add("photos/", "", '5');
  for (int number = first; number < first + 30; ++number) {
    const std::string key = "photos/" + std::to_string(number);
    if (number % 7 == 3) tar.add("photos/._" + std::to_string(number) + ".jpg", "hidden");
    tar.add(key + ".jpg", std::string(static_cast<std::size_t>(number * 37 % 2000), 'j'));
    if (number % 5 == 2)
      tar.add(key + ".json", "{\"label\": " + std::to_string(number) + "}");
    else if (number % 11 != 9)
      tar.add(key + ".cls", number % 13 == 6 ? "six" : std::to_string(number));
    if (number % 4 == 1) tar.add(key + ".seg.png", "mask");
    if (number % 6 == 1) tar.add(key + ".txt", "a line");
  }
  return tar;
}

TEST(TarStream, GivesTheRecordsOfOpenDataset) {
  const TemporaryFolder folder;
  mixed_tar(0).write(folder / "a-0.tar");
  mixed_tar(30).write(folder / "a-1.tar");
  const std::vector<Outcome> expected = opened(folder / "a-*.tar");
  ASSERT_EQ(expected.size(), 60U);
  EXPECT_GT(std::ranges::count_if(expected, [](const Outcome& one) { return one.bad != ""; }), 4);

  const auto stream = tar_stream(folder / "a-*.tar");
  EXPECT_TRUE(stream->can_restart());
  EXPECT_EQ(streamed(*stream), expected);
  for (const int skipped : {1, 29, 30, 45, 60}) {
    stream->restart();
    stream->skip(static_cast<std::uint64_t>(skipped));
    EXPECT_EQ(streamed(*stream), std::vector<Outcome>(expected.begin() + skipped, expected.end()));
  }
  const auto fresh = tar_stream(folder / "a-*.tar");
  fresh->skip(33);
  EXPECT_EQ(streamed(*fresh), std::vector<Outcome>(expected.begin() + 33, expected.end()));
  stream->restart();
  EXPECT_THAT(error_of([&] { stream->skip(62); }).what(),
              HasSubstr("the stream ends with 2 records still to skip"));
}

TEST(TarStream, CountsTheRecordsThatAreStillToSkip) {
  const TemporaryFolder folder;
  TarFile().write(folder / "empty.tar");
  TarFile bad;
  for (const char* name : {"a.jpg", "a.jpg.jpg", "b.cls"}) bad.add(name, "");
  bad.write(folder / "bad.tar");
  const auto left = [&](const char* name, std::uint64_t count) {
    const auto stream = tar_stream(folder / name);
    return std::string(error_of([&] { stream->skip(count); }).what());
  };
  // No record has decided the fields.
  EXPECT_THAT(left("empty.tar", 10), HasSubstr("empty.tar: the stream ends with 10 records"));
  mixed_tar(0).write(folder / "mixed.tar");
  EXPECT_THAT(left("mixed.tar", 35), HasSubstr("ends with 5 records still to skip"));
}

/// A FIFO, with a thread that writes into it.
class Fifo {
 public:
  explicit Fifo(const std::filesystem::path& path) : path_(path) {
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error("mkfifo failed");
  }
  /// Writes in pieces of `piece` bytes.
  void write(const std::string& bytes, std::size_t piece) {
    writer_ = std::jthread([this, bytes, piece] {
      std::ofstream fifo(path_, std::ios::binary);  // waits for a reader
      for (std::size_t at = 0; at < bytes.size(); at += piece)
        fifo << bytes.substr(at, piece) << std::flush;
    });
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::jthread writer_;
};

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TarStream, ReadsPipes) {
  const TemporaryFolder folder;
  mixed_tar(0).write(folder / "a.tar");
  const std::vector<Outcome> expected = opened(folder / "a.tar");
  for (const std::size_t piece : {100U, 1000U, 1U << 20}) {
    Fifo fifo(folder / ("pipe" + std::to_string(piece)));
    const auto stream = tar_stream(fifo.path());
    EXPECT_FALSE(stream->can_restart());
    fifo.write(bytes_of(folder / "a.tar"), piece);
    EXPECT_EQ(streamed(*stream), expected) << piece;
  }
}

/// A run over tars that counts the bytes of its images.
struct TarRun {
  explicit TarRun(const std::filesystem::path& path, const TarStreamOptions& limits = {})
      : dataset(one_pass_dataset(tar_stream(path, limits), {.window_records = 8})) {
    options.batch_size = 4;
    options.epochs = 1;
    options.bad_records = BadRecords::mark;
  }
  Pipeline pipeline() const {
    const SampleSpec spec({{"bytes", DType::int64, {}, false}, {"label", DType::int64, {}, false}});
    return Pipeline(dataset,
                    std::make_shared<FunctionTransform>(
                        spec,
                        [](const Record& record, Random&, Sample& sample) {
                          sample["bytes"].as<std::int64_t>()[0] =
                              static_cast<std::int64_t>(record["image"].size());
                          sample["label"].as<std::int64_t>()[0] = record.integer("label");
                          return Status::ok();
                        }),
                    std::make_shared<HostDevice>(), options);
  }
  std::shared_ptr<const Dataset> dataset;
  PipelineOptions options;
};

TEST(TarStream, FeedsAPipeline) {
  const TemporaryFolder folder;
  mixed_tar(0).write(folder / "a.tar");
  Fifo fifo(folder / "pipe");
  fifo.write(bytes_of(folder / "a.tar"), 700);
  Pipeline pipeline = TarRun(fifo.path()).pipeline();
  std::size_t samples = 0;
  while (const Batch batch = pipeline.next())
    for (std::size_t sample = 0; sample < batch.size(); ++sample, ++samples) {
      const auto record = static_cast<std::int64_t>(batch.indices()[sample]);
      if (batch.valid()[sample] == 0) continue;
      EXPECT_EQ(batch["label"].as<std::int64_t>()[sample], record);
      EXPECT_EQ(batch["bytes"].as<std::int64_t>()[sample], record * 37 % 2000);
    }
  EXPECT_EQ(samples, 30U);
  const Report report = pipeline.report();
  ASSERT_FALSE(report.bad_record_list.empty());
  EXPECT_THAT(report.bad_record_list[0].key, HasSubstr("photos/"));
}

TEST(TarStream, ReadsStandardInput) {
  const TemporaryFolder folder;
  mixed_tar(0).write(folder / "a.tar");
  const std::string bytes = bytes_of(folder / "a.tar");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const int before = ::dup(STDIN_FILENO);
  ASSERT_EQ(::dup2(ends[0], STDIN_FILENO), STDIN_FILENO);
  ::close(ends[0]);
  std::jthread writer([&] {
    EXPECT_EQ(::write(ends[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    ::close(ends[1]);
  });
  TarRun run(folder / "a.tar");
  auto photographs = millrace::one_pass_dataset(millrace::tar_stream("/dev/stdin"));
  run.dataset = photographs;
  std::size_t samples = 0;
  {
    Pipeline pipeline = run.pipeline();
    while (const Batch batch = pipeline.next()) samples += batch.size();
  }
  before >= 0 ? ::dup2(before, STDIN_FILENO) : ::close(STDIN_FILENO);
  if (before >= 0) ::close(before);
  EXPECT_EQ(samples, 30U);
}

TEST(TarStream, StopsWhileItWaitsForAPipe) {
  const TemporaryFolder folder;
  mixed_tar(0).write(folder / "a.tar");
  for (const bool has_writer : {false, true}) {
    Fifo fifo(folder / (has_writer ? "silent" : "unused"));
    TarRun run(fifo.path());
    run.options.debug.stop_timeout = testing::patience;
    std::ofstream writer;
    std::jthread opening([&] {
      if (has_writer) writer.open(fifo.path(), std::ios::binary);
    });
    Pipeline pipeline = run.pipeline();
    if (has_writer) {
      opening.join();
      writer << bytes_of(folder / "a.tar").substr(0, 5000) << std::flush;
    }
    EXPECT_EQ(
        error_of([&] { (void)pipeline.next({.timeout = std::chrono::milliseconds(20)}); }).code(),
        ErrorCode::timeout);
    pipeline.stop();  // throws if the read does not end
  }
}

TEST(TarStream, DamageEndsTheRun) {
  const TemporaryFolder folder;
  const TarFile tar = mixed_tar(0);
  const auto error_at = [&](const std::string& bytes) {
    std::ofstream(folder / "b.tar", std::ios::binary) << bytes;
    Pipeline pipeline = TarRun(folder / "b.tar").pipeline();
    const Error error = error_of([&] {
      while (pipeline.next()) continue;
    });
    EXPECT_EQ(error.code(), ErrorCode::corrupt);
    EXPECT_THAT(error.what(), HasSubstr((folder / "b.tar").string() + ": record "));
    return std::string(error.what());
  };
  tar.write(folder / "a.tar");
  const std::string whole = bytes_of(folder / "a.tar");
  EXPECT_THAT(error_at(whole.substr(0, tar.size())), HasSubstr("without a tar's end mark"));
  EXPECT_THAT(error_at(whole.substr(0, tar.size() / 2 / 512 * 512 + 100)),
              HasSubstr("it was cut short"));
  std::string damaged = whole;
  damaged[512] ^= 1;
  EXPECT_THAT(error_at(damaged), HasSubstr("the header at byte 512 is missing or damaged"));
  EXPECT_THAT(error_at("\x1f\x8b" + whole), HasSubstr("compressed with gzip"));
  EXPECT_THAT(error_at("hello"), HasSubstr("it has no tar header"));
  EXPECT_THAT(error_at(""), HasSubstr("it is empty"));
}

TEST(TarStream, PipeThatEndsEarlyEndsTheRun) {
  const TemporaryFolder folder;
  mixed_tar(0).write(folder / "a.tar");
  Fifo fifo(folder / "pipe");
  fifo.write(bytes_of(folder / "a.tar").substr(0, 9000), 700);
  Pipeline pipeline = TarRun(fifo.path()).pipeline();
  const Error error = error_of([&] {
    while (pipeline.next()) continue;
  });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("it was cut short"));
}

TEST(TarStream, TarWithoutSamplesIsAnEmptyStream) {
  const TemporaryFolder folder;
  TarFile().write(folder / "none.tar");
  Pipeline pipeline = TarRun(folder / "none.tar").pipeline();
  EXPECT_THAT(error_of([&] { (void)pipeline.next(); }).what(), HasSubstr("the stream is empty"));
}

TEST(TarStream, SampleThatIsTooLargeIsBad) {
  const TemporaryFolder folder;
  TarFile tar;
  for (int number = 0; number < 6; ++number) {
    tar.add(std::to_string(number) + ".jpg", std::string(number == 2 ? 5000 : 90, 'j'));
    tar.add(std::to_string(number) + ".cls", "1");
  }
  tar.write(folder / "a.tar");
  Pipeline pipeline = TarRun(folder / "a.tar", {.max_record_bytes = 1000}).pipeline();
  while (pipeline.next()) continue;
  const Report report = pipeline.report();
  ASSERT_EQ(report.bad_records, 1U);
  EXPECT_EQ(report.bad_record_list[0].index, 2U);
  EXPECT_THAT(report.bad_record_list[0].reason,
              HasSubstr("its files are 5001 bytes long, more than 1000"));
}

TEST(TarStream, MissingFileIsNotFound) {
  const TemporaryFolder folder;
  const Error error = error_of([&] { tar_stream(folder / "no.pipe"); });
  EXPECT_EQ(error.code(), ErrorCode::not_found);
  EXPECT_THAT(error.what(), HasSubstr("no.pipe does not exist"));
  EXPECT_EQ(error_of([&] { tar_stream(folder / "no-*.tar"); }).code(), ErrorCode::not_found);
}

}  // namespace
}  // namespace millrace
