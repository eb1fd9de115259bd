// SPDX-License-Identifier: Apache-2.0
//
// Datasets whose images are stored as coefficients: how they are made, checked and used, and the
// way back.
#include <gmock/gmock.h>
#include <millrace/dataset_writer.h>
#include <millrace/image_decoder.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/packs.h"
#include "support/temporary_folder.h"
#include "support/waiting.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

class Coefficients : public ::testing::Test {
 protected:
  Coefficients() {
    const auto write = [&](const char* name, const Encoding& encoding, int width) {
      write_bytes(folder_ / "photos" / name,
                  encode(noise(width, 90, static_cast<unsigned>(width)), encoding));
    };
    write("a/baseline.jpg", {}, 120);
    write("a/progressive.jpg", {.scans = Encoding::Scans::progressive}, 121);
    write("b/restarts.jpg", {.restart_rows = 1}, 122);
    write("b/arithmetic.jpg", {.arithmetic = true}, 123);
    write("b/full.jpg", {.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}}, 124);
    EXPECT_EQ(pack(folder_ / "photos", jpegs_).exit_code, 0);
  }

  static RunningProgram::Result recode(const fs::path& from, const fs::path& to,
                                       std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"recode", from.string(), to.string()});
    return millrace_command(more);
  }
  /// Kinds of a dataset's images.
  static std::vector<ImageKind> kinds(const fs::path& path) {
    const auto dataset = open_dataset(path);
    const auto reader = dataset->make_reader();
    std::vector<ImageKind> all;
    for (std::uint64_t index = 0; index < dataset->size(); ++index)
      all.push_back(image_kind(reader->read(index)["image"]));
    return all;
  }
  std::string digest(const fs::path& dataset) const {
    const auto result = millrace_command({"bench", dataset.string(), "--size", "64", "--batch-size",
                                          "4", "--batches", "5", "--workers", "2", "--seed", "3",
                                          "--digest", "--json", "-"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("digest");
  }

  const TemporaryFolder folder_;
  const fs::path jpegs_ = folder_ / "jpegs.lmdb";
  const fs::path stored_ = folder_ / "stored.lmdb";
};

TEST_F(Coefficients, PackStoresThemAndSaysWhatStays) {
  const auto packed = pack(folder_ / "photos", stored_, {"--store", "coefficients"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_THAT(packed.out,
              AllOf(HasSubstr("packed 5 records"), HasSubstr("stored as coefficients: 4 images ("),
                    HasSubstr("stays as JPEG: 1 image: its pixels need libjpeg-turbo (arithmetic "
                              "coding)"),
                    Not(HasSubstr("indexed"))));
  EXPECT_EQ(kinds(stored_),
            (std::vector{ImageKind::coefficients, ImageKind::coefficients, ImageKind::jpeg,
                         ImageKind::coefficients, ImageKind::coefficients}));
  EXPECT_EQ(contents(stored_), contents(jpegs_));
}

TEST_F(Coefficients, RecodeIsThePackOfTheFilesAndLeadsBack) {
  EXPECT_EQ(
      pack(folder_ / "photos", folder_ / "packed.lmdb", {"--store", "coefficients"}).exit_code, 0);
  const auto recoded = recode(jpegs_, stored_);
  EXPECT_EQ(recoded.exit_code, 0) << recoded.err;
  EXPECT_THAT(recoded.out, HasSubstr("recoded 5 records"));
  EXPECT_EQ(all_bytes(stored_), all_bytes(folder_ / "packed.lmdb"));
  const fs::path again = folder_ / "again.lmdb";
  const auto restored = recode(stored_, again, {"--store", "jpeg"});
  EXPECT_EQ(restored.exit_code, 0) << restored.err;
  EXPECT_EQ(all_bytes(again), all_bytes(jpegs_));
  // Another recode leaves the coefficients, and a plain pack copies them.
  EXPECT_EQ(recode(stored_, folder_ / "twice.lmdb").exit_code, 0);
  EXPECT_EQ(all_bytes(folder_ / "twice.lmdb"), all_bytes(stored_));
  EXPECT_EQ(pack(stored_, folder_ / "copy.lmdb").exit_code, 0);
  EXPECT_EQ(all_bytes(folder_ / "copy.lmdb"), all_bytes(stored_));
}

TEST_F(Coefficients, IndexSaysThatTheyNeedNone) {
  EXPECT_EQ(recode(jpegs_, stored_).exit_code, 0);
  const auto indexed = millrace_command({"index", stored_.string()});
  EXPECT_EQ(indexed.exit_code, 0) << indexed.err;
  EXPECT_THAT(indexed.out,
              AllOf(HasSubstr("0 of 5 images"),
                    HasSubstr("; 4 without, since coefficients need no index; 1 without, since "
                              "their decoder does not use one\n")));
}

TEST_F(Coefficients, BatchesAreThoseOfTheJpegs) {
  EXPECT_EQ(recode(jpegs_, stored_).exit_code, 0);
  EXPECT_EQ(digest(stored_), digest(jpegs_));
}

TEST_F(Coefficients, InspectCountsBothFormsAndWritesTheFile) {
  EXPECT_EQ(recode(jpegs_, stored_).exit_code, 0);
  const auto inspected = millrace_command({"inspect", stored_.string(), "--json", "-"});
  const auto json = nlohmann::json::parse(inspected.out);
  EXPECT_EQ(json.at("decoder").at("millrace (coefficients)"), 4);
  EXPECT_EQ(json.at("decoder").at("libjpeg-turbo (arithmetic coding)"), 1);
  EXPECT_EQ(json.at("scan_type").at("coefficients, progressive"), 1);
  EXPECT_EQ(json.at("scan_type").at("coefficients, baseline"), 3);
  for (const auto& [record, name] :
       {std::pair{"0", "a/baseline.jpg"}, {"1", "a/progressive.jpg"}, {"2", "b/arithmetic.jpg"}}) {
    const auto written =
        millrace_command({"inspect", stored_.string(), "--record", record, "--out", "-"});
    EXPECT_EQ(written.exit_code, 0) << written.err;
    const Bytes file = read_file(folder_ / "photos" / name);
    EXPECT_EQ(written.out, std::string(reinterpret_cast<const char*>(file.data()), file.size()));
  }
}

TEST_F(Coefficients, VerifyRestoresTheFiles) {
  EXPECT_EQ(recode(jpegs_, stored_).exit_code, 0);
  const auto verified = millrace_command({"verify", stored_.string()});
  EXPECT_EQ(verified.exit_code, 0) << verified.out;
  EXPECT_THAT(verified.out, AllOf(HasSubstr("5 images decoded"), Not(HasSubstr("restored"))));
  const auto deep = millrace_command({"verify", stored_.string(), "--deep"});
  EXPECT_EQ(deep.exit_code, 0) << deep.out;
  EXPECT_THAT(deep.out, HasSubstr("4 JPEG files restored"));
}

TEST_F(Coefficients, ADamagedRecordIsABadRecord) {
  EXPECT_EQ(recode(jpegs_, stored_).exit_code, 0);
  Bytes record;
  {
    const auto dataset = open_dataset(stored_);
    const auto reader = dataset->make_reader();
    const Record first = reader->read(0);
    record.assign(first["image"].begin(), first["image"].end());
  }
  // In its rows, so that the tiles show it; the dataset's checksum is that of the damaged bytes.
  record[record.size() / 2] ^= std::byte{0x10};
  const std::int64_t label = 0;
  const fs::path damaged = folder_ / "damaged.lmdb";
  {
    DatasetWriter writer(damaged);
    writer.append(std::array{RecordField{"image", record},
                             RecordField{"label", std::as_bytes(std::span(&label, 1))}});
    writer.finish();
  }
  const auto verified = millrace_command({"verify", damaged.string()});
  EXPECT_EQ(verified.exit_code, 1);
  EXPECT_THAT(verified.out, HasSubstr("its checksum is wrong; pack the dataset again"));
  const auto restored = recode(damaged, folder_ / "again.lmdb", {"--store", "jpeg"});
  EXPECT_EQ(restored.exit_code, 1);
  EXPECT_THAT(restored.err, HasSubstr("its checksum is wrong"));
}

TEST_F(Coefficients, AnInterruptedRecodeIsResumed) {
  for (int image = 0; image < 200; ++image)
    write_bytes(folder_ / "many" / (std::to_string(1000 + image) + ".jpg"),
                encode(noise(160, 120, static_cast<unsigned>(image) % 5), {.quality = 95}));
  const fs::path many = folder_ / "many.lmdb";
  EXPECT_EQ(pack(folder_ / "many", many).exit_code, 0);
  EXPECT_EQ(recode(many, folder_ / "whole.lmdb").exit_code, 0);
  {
    RunningProgram running({MILLRACE_COMMAND, "recode", many.string(), stored_.string(),
                            "--commit-bytes", "100KB", "--workers", "1"});
    const auto has_begun = [this] {
      std::error_code missing;
      const std::uintmax_t bytes = fs::file_size(stored_, missing);
      return !missing && bytes > 500'000;
    };
    EXPECT_TRUE(eventually(has_begun, 3 * patience));
    running.send(SIGKILL);
  }
  EXPECT_NE(recode(many, stored_, {"--resume", "--store", "jpeg"}).exit_code, 0);
  const auto resumed = recode(many, stored_, {"--resume"});
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(all_bytes(stored_), all_bytes(folder_ / "whole.lmdb"));
}

}  // namespace
}  // namespace millrace
