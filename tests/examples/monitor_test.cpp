// SPDX-License-Identifier: Apache-2.0
//
// The exporters of reports. Their files are parsed here by the formats' rules.
#include <gmock/gmock.h>
#include <millrace/report.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <locale>
#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "prometheus_file.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"
#include "tensorboard_file.h"

namespace millrace {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Pair;
using namespace testing;

std::string contents_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

Report report_of(std::uint64_t samples) {
  Report report;
  report.pipeline = "a \"b\"\\\nc";
  report.seconds = 2;
  report.batches = samples / 4;
  report.samples = samples;
  report.bad_records = 1;
  report.copied_bytes = std::uint64_t{1} << 53U;
  report.stall.total_ms = 500;
  report.ready_batches = 1.5;
  report.stages = {{.name = "read", .busy_seconds = 0.25, .occupancy = 0.125},
                   {.name = "decode", .busy_seconds = 1, .occupancy = 0.5}};
  return report;
}

using Values = std::map<std::string, double>;

/// Returns values by name and labels. Lines that break the rules are failures.
Values prometheus_values(const std::string& text) {
  const std::string label = R"re([a-zA-Z_]\w*="(?:[^"\\\n]|\\["\\n])*")re";
  const std::regex sample(R"re(([a-zA-Z_:][\w:]*)\{()re" + label + "(?:," + label +
                          R"re()*)\} ([-+.\de]+))re");
  const std::regex type("# TYPE ([a-zA-Z_:][\\w:]*) (counter|gauge)");
  EXPECT_TRUE(text.ends_with('\n'));
  Values values;
  std::map<std::string, std::string> types;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (std::regex_match(line, parts, type)) {
      EXPECT_TRUE(types.emplace(parts[1], parts[2]).second) << "two types: " << line;
    } else if (std::regex_match(line, parts, sample)) {
      const std::string name = parts[1];
      EXPECT_TRUE(types.contains(name)) << "no type before " << line;
      EXPECT_EQ(name.ends_with("_total"), types[name] == "counter") << line;
      EXPECT_TRUE(values.emplace(name + '{' + parts[2].str() + '}', std::stod(parts[3])).second)
          << "twice: " << line;
    } else {
      ADD_FAILURE() << "not a line of the format: " << line;
    }
  }
  return values;
}

TEST(PrometheusFile, HoldsTotalsAndTheLastValues) {
  const TemporaryFolder folder;
  PrometheusFile file(folder / "millrace.prom");
  file(report_of(8));
  Report second = report_of(12);
  second.ready_batches = 0.1;
  file(second);
  const std::string of = R"({pipeline="a \"b\"\\\nc")";
  EXPECT_THAT(
      prometheus_values(contents_of(folder / "millrace.prom")),
      IsSupersetOf(Values{{"millrace_batches_total" + of + "}", 5},
                          {"millrace_samples_total" + of + "}", 20},
                          {"millrace_bad_records_total" + of + "}", 2},
                          {"millrace_copied_bytes_total" + of + "}", 18014398509481984.},
                          {"millrace_stall_seconds_total" + of + "}", 1},
                          {"millrace_ahead_seconds_total" + of + "}", 0},
                          {"millrace_stage_busy_seconds_total" + of + ",stage=\"read\"}", 0.5},
                          {"millrace_stage_busy_seconds_total" + of + ",stage=\"decode\"}", 2},
                          {"millrace_ready_batches" + of + "}", 0.1}}));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    left.push_back(entry.path().filename().string());
  EXPECT_THAT(left, ElementsAre("millrace.prom"));
}

TEST(PrometheusFile, IgnoresTheLocaleOfTheProgram) {
  struct Grouped : std::numpunct<char> {
    char do_thousands_sep() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const TemporaryFolder folder;
  PrometheusFile file(folder / "millrace.prom");
  const std::locale before = std::locale::global(std::locale(std::locale(), new Grouped));
  file(report_of(4000));
  std::locale::global(before);
  EXPECT_THAT(contents_of(folder / "millrace.prom"), HasSubstr("} 4000\n"));
}

TEST(PrometheusFile, NamesAFileThatCannotBeWritten) {
  const TemporaryFolder folder;
  PrometheusFile file(folder / "missing" / "millrace.prom");
  try {
    file(report_of(8));
    ADD_FAILURE() << "the error is missing";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(), HasSubstr("missing/millrace.prom"));
  }
}

TEST(TensorBoardFile, Crc32cOfItsStandard) {
  // RFC 3720, B.4.
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

/// A reader of bytes from the front.
struct Bytes {
  std::string_view left;

  std::string_view take(std::size_t count) {
    if (count > left.size()) throw std::runtime_error("the bytes end too early");
    const std::string_view taken = left.substr(0, count);
    left.remove_prefix(count);
    return taken;
  }
  template <typename Value>
  Value fixed() {
    static_assert(std::endian::native == std::endian::little);
    Value value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(take(1)[0]);
      value |= std::uint64_t{byte & 127U} << shift;
      if (byte < 128) return value;
    }
  }
  std::string_view text() { return take(varint()); }
};

struct Event {
  double wall_time = 0;
  std::uint64_t step = 0;
  std::string file_version;
  std::map<std::string, float> scalars;
};

std::pair<std::string, float> scalar_of(Bytes value) {
  std::pair<std::string, float> scalar;
  while (!value.left.empty()) {
    switch (value.varint()) {
      case 1U << 3U | 2U:
        scalar.first = value.text();
        break;
      case 2U << 3U | 5U:
        scalar.second = value.fixed<float>();
        break;
      default:
        throw std::runtime_error("unknown key in a value");
    }
  }
  return scalar;
}

Event event_of(Bytes bytes) {
  Event event;
  while (!bytes.left.empty()) {
    switch (bytes.varint()) {
      case 1U << 3U | 1U:
        event.wall_time = bytes.fixed<double>();
        break;
      case 2U << 3U:
        event.step = bytes.varint();
        break;
      case 3U << 3U | 2U:
        event.file_version = bytes.text();
        break;
      case 5U << 3U | 2U:
        for (Bytes summary{bytes.text()}; !summary.left.empty();) {
          if (summary.varint() != (1U << 3U | 2U)) throw std::runtime_error("unknown key");
          event.scalars.insert(scalar_of({summary.text()}));
        }
        break;
      default:
        throw std::runtime_error("unknown key in an event");
    }
  }
  return event;
}

std::vector<Event> events_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry);
  if (files.size() != 1) throw std::runtime_error("the folder has not one file");
  EXPECT_THAT(files[0].filename().string(), HasSubstr("tfevents"));
  const std::string content = contents_of(files[0]);
  // A checksum is masked so that a checksum of bytes with checksums is a good one, too.
  const auto check = [](std::string_view of, std::uint32_t masked) {
    const std::uint32_t rotated = masked - 0xA282EAD8U;
    EXPECT_EQ((rotated >> 17U) | (rotated << 15U), crc32c(of));
  };
  std::vector<Event> events;
  for (Bytes bytes{content}; !bytes.left.empty();) {
    const std::string_view start = bytes.left;
    const auto length = bytes.fixed<std::uint64_t>();
    check(start.substr(0, 8), bytes.fixed<std::uint32_t>());
    const std::string_view record = bytes.take(length);
    check(record, bytes.fixed<std::uint32_t>());
    events.push_back(event_of({record}));
  }
  return events;
}

TEST(TensorBoardFile, HoldsAnEventForEachReport) {
  const TemporaryFolder folder;
  TensorBoardFile file(folder / "runs");
  file(report_of(300));
  file(report_of(4));
  const std::vector<Event> events = events_of(folder / "runs");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.7e9);
  EXPECT_LT(events[2].wall_time - events[0].wall_time, 3600);
  EXPECT_EQ(events[1].step, 300U);
  EXPECT_EQ(events[2].step, 304U);
  EXPECT_THAT(events[1].scalars,
              IsSupersetOf(std::map<std::string, float>{{"millrace/samples_per_second", 150.F},
                                                        {"millrace/stall_share", 0.25F},
                                                        {"millrace/ready_batches", 1.5F},
                                                        {"millrace/bad_records", 1.F},
                                                        {"millrace/occupancy/read", 0.125F},
                                                        {"millrace/occupancy/decode", 0.5F}}));
  EXPECT_THAT(events[2].scalars, Contains(Pair("millrace/samples_per_second", 2.F)));
}

TEST(Monitor, WritesBothFiles) {
  const TemporaryFolder folder;
  const auto result =
      run_program({MILLRACE_MONITOR, MILLRACE_TRAIN_DATASET, "--prometheus",
                   (folder / "m.prom").string(), "--tensorboard", (folder / "runs").string(),
                   "--every", "3", "--epochs", "2", "--batch-size", "10", "--size", "32"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  // 100 pictures, so 20 batches.
  const auto values = prometheus_values(contents_of(folder / "m.prom"));
  EXPECT_THAT(values, Contains(Pair("millrace_samples_total{pipeline=\"millrace\"}", 200)));
  EXPECT_THAT(values, Contains(Pair("millrace_bad_records_total{pipeline=\"millrace\"}", 0)));
  const std::vector<Event> events = events_of(folder / "runs");
  ASSERT_EQ(events.size(), 8U) << "the file's version, 6 reports of 3 batches, the last of 2";
  EXPECT_EQ(events.back().step, 200U);
  EXPECT_GT(events[1].scalars.at("millrace/samples_per_second"), 0);
}

TEST(Monitor, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file").close();
  EXPECT_THAT(run_program({MILLRACE_MONITOR, MILLRACE_TRAIN_DATASET, "--size", "4294967328"}).err,
              HasSubstr("--size must be from 1 to 65535"));
  EXPECT_THAT(run_program({MILLRACE_MONITOR, MILLRACE_TRAIN_DATASET, "--size", "32",
                           "--tensorboard", (folder / "file" / "runs").string()})
                  .err,
              HasSubstr("file/runs"));
}

}  // namespace
}  // namespace millrace
