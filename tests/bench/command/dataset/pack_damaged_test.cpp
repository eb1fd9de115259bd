// SPDX-License-Identifier: Apache-2.0
//
// Incomplete datasets whose files were damaged, and `pack --resume` on them.
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <millrace/random.h>

#include <iostream>

#include "support/damages.h"
#include "support/packs.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace testing;
using Result = RunningProgram::Result;

/// Damages whole pages, a range of bytes or the file's length, or as `damage` does.
void damage_more(std::string& bytes, const FilePages& pages, Random& random) {
  const std::size_t page_bytes = pages.page_bytes();
  const auto page = [&] {
    return pages.headers()[random.below(random.below(4) == 0 ? 2 : pages.headers().size())];
  };
  const auto any = [&] { return random.below(bytes.size() / page_bytes) * page_bytes; };
  const std::size_t times = 1 + random.below(3);
  switch (random.below(8)) {
    case 0:
      bytes.resize(random.below(bytes.size()));
      break;
    case 1:
      bytes.resize((1 + random.below(bytes.size() / page_bytes - 1)) * page_bytes);
      break;
    case 2:
      for (std::size_t time = 0; time < times; ++time)
        std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(random.below(2) ? any() : page()),
                    page_bytes, '\0');
      break;
    case 3:
      for (std::size_t time = 0; time < times; ++time) {
        const std::size_t one = page(), other = random.below(2) ? page() : any();
        if (one != other) std::swap_ranges(&bytes[one], &bytes[one] + page_bytes, &bytes[other]);
      }
      break;
    case 4:
      for (std::size_t at = page() + random.below(page_bytes), end = at + random.below(600);
           at < std::min(end, bytes.size()); ++at)
        bytes[at] = static_cast<char>(random());
      break;
    default:
      damage(bytes, pages, random);
  }
}

class DamagedResume : public ::testing::Test {
 protected:
  static constexpr std::uint64_t items = 240;

  DamagedResume() {
    for (std::uint64_t item = 0; item < items; ++item) {
      const fs::path image = folder_ / "photos" / std::to_string(item % 5) / std::to_string(item);
      if (item % 20 == 7)
        write_text(image, "no image");
      else
        write_jpeg(image, item % 3 == 0 ? 110 : 20, 20 + static_cast<int>(item % 7));
    }
    EXPECT_EQ(run_program(command(whole_)).exit_code, 0);
    whole_bytes_ = all_bytes(whole_);
    description_ = read_raw(whole_).description;
  }

  std::vector<std::string> command(const fs::path& out) const {
    return {"/usr/bin/timeout", "-s", "KILL",      "60", MILLRACE_COMMAND, "pack",
            folder_ / "photos", out,  "--workers", "2",  "--skip-bad",     "--resume",
            "--commit-bytes",   "5KB"};
  }

  /// The bytes of a pack that ended after `end` items.
  std::string incomplete(std::uint64_t end, std::size_t commit_bytes) const {
    const fs::path path = folder_ / "incomplete.lmdb";
    fs::remove(path);
    {
      DatasetWriter writer(path, {.commit_bytes = commit_bytes,
                                  .source = description_.at("source").get<std::string>()});
      writer.set_classes(description_.at("classes").get<std::vector<std::string>>());
      const auto reader = open_dataset(whole_)->make_reader();
      const nlohmann::json& left_out = description_.at("left_out");
      for (std::uint64_t item = 0, record = 0; item < end; ++item)
        if (const std::uint64_t left = item - record;
            left < left_out.size() && left_out[left][0] == item)
          writer.leave_out(left_out[left][1]);
        else
          writer.append(reader->read(record++).fields());
    }
    return file_contents(path);
  }

  /// Returns whether the pack refused to resume. If not, expects the records of an undisturbed
  /// pack.
  bool refused(const std::string& bytes) const {
    const fs::path path = folder_ / "damaged.lmdb";
    write_file(path, bytes);
    const Result result = run_program(command(path));
    EXPECT_EQ(result.signal, 0);
    if (result.exit_code == 0) {
      const Result verified = millrace_command({"verify", path});
      EXPECT_EQ(verified.exit_code, 0) << verified.out << verified.err;
      if (verified.exit_code == 0) {
        EXPECT_TRUE(all_bytes(path) == whole_bytes_) << "it has other records";
      }
      return false;
    }
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr(path.string()));
    EXPECT_THAT(
        result.err,
        ContainsRegex("page|record|description|cut short|no LMDB|not a dataset|not a millrace"));
    EXPECT_TRUE(file_contents(path) == bytes) << "it was changed: " << result.err;
    return true;
  }

  const TemporaryFolder folder_;
  const fs::path whole_ = folder_ / "whole.lmdb";
  std::vector<std::string> whole_bytes_;
  nlohmann::json description_;
};

// MILLRACE_DAMAGES sets a larger number.
TEST_F(DamagedResume, RefusesOrEndsWithTheRecordsOfAnUndisturbedPack) {
  const std::string many_commits = incomplete(items - 40, 1);
  const std::string few_commits = incomplete(items - 100, 50'000);
  std::uint64_t refusals = 0;
  const std::uint64_t count = damages(60);
  for (std::uint64_t number = 0; number < count; ++number) {
    std::string bytes = number % 3 == 0 ? few_commits : many_commits;
    ASSERT_FALSE(bytes.empty());
    SCOPED_TRACE("damage number " + std::to_string(number));
    Random random(412, number);
    damage_more(bytes, FilePages(bytes), random);
    refusals += refused(bytes) ? 1 : 0;
  }
  std::cout << count << " damages, " << refusals << " refused\n";
  // Checks that damages have an effect, and that some files can still be resumed.
  EXPECT_GT(refusals, count / 3);
  EXPECT_LT(refusals, count);
}

}  // namespace
}  // namespace millrace
