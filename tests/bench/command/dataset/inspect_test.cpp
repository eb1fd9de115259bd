// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/damaged_files.h"
#include "command/dataset/distribution.h"
#include "measure/text/text.h"
#include "support/run_program.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using namespace testing;
using cli::Bin;
using cli::Distribution;
using Json = nlohmann::json;
using Result = RunningProgram::Result;
using Scans = Encoding::Scans;

Result inspect(const fs::path& dataset, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {MILLRACE_COMMAND, "inspect", dataset.string()});
  return run_program(more);
}

Json inspect_json(const fs::path& dataset, std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--json", "-"});
  const Result result = inspect(dataset, more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

/// Images of many kinds: 6 with 4:2:0 and quality 90, 2 progressive ones with 4:4:4 and quality 75,
/// 1 grey one, and 1 that is not an image.
std::vector<Bytes> mixed_images() {
  std::vector<Bytes> images = images_of(6);
  const Encoding full{
      .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .scans = Scans::progressive, .quality = 75};
  images.push_back(encode(noise(300, 200, 1), full));
  images.push_back(encode(noise(200, 300, 1), full));
  images.push_back(
      encode(noise(64, 48, 1, 1), {.h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .quality = 50}));
  images.push_back(Bytes(30, std::byte{'x'}));
  return images;
}

TEST(Inspect, TellsWhatIsInADataset) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", mixed_images());
  const Result result = inspect(folder / "a.lmdb", {"--json", (folder / "a.json").string()});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, HasSubstr(": 10 records\n"));
  EXPECT_THAT(result.out, HasSubstr("  fields            image, label, path, width, height\n"));
  EXPECT_THAT(
      result.out,
      HasSubstr("  looked at         all 10 records (headers only, no pixels decoded) in "));
  EXPECT_THAT(
      result.out,
      ContainsRegex("\n2 classes +records +share\n  cat +5 +50.0%  #+\n  dog +5 +50.0%  #+\n"));
  EXPECT_THAT(result.out, ContainsRegex("\n  width +40 px +40 px +40 px +300 px +300 px +89 px\n"));
  EXPECT_THAT(
      result.out,
      ContainsRegex(
          "\nchroma subsampling +records +share\n  4:2:0 +6 +66.7%  #+\n  4:4:4 +2 +22.2%  #+\n  "
          "gray +1 +11.1%  #+\n"));
  EXPECT_THAT(
      result.out,
      ContainsRegex(
          "\nscan type +records +share\n  baseline +7 +77.8%  #+\n  progressive +2 +22.2%  #+\n"));
  EXPECT_THAT(result.out, ContainsRegex("\ndecoder +records +share\n"
                                        "  millrace +7 +77.8%  #+\n"
                                        "  millrace \\(progressive\\) +2 +22.2%  #+\n"));
  EXPECT_THAT(
      result.out,
      ContainsRegex("\n1 record cannot be read, or its image cannot:\n +9  dog/9.jpg: not a JPEG"));
  EXPECT_THAT(result.out, Not(HasSubstr("\x1b")));
  std::istringstream lines(
      result.out.substr(result.out.find("2 classes"),
                        result.out.find("1 record cannot") - result.out.find("2 classes")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;

  const Json json = Json::parse(contents_of(folder / "a.json"));
  EXPECT_EQ(json.at("records"), 10);
  EXPECT_EQ(json.at("looked_at"), 10);
  EXPECT_EQ(json.at("images"), 9);
  EXPECT_EQ(json.at("classes")[1], (Json{{"label", 1}, {"name", "dog"}, {"records", 5}}));
  EXPECT_EQ(json.at("chroma"), (Json{{"4:2:0", 6}, {"4:4:4", 2}, {"gray", 1}}));
  EXPECT_EQ(json.at("scan_type"), (Json{{"baseline", 7}, {"progressive", 2}}));
  EXPECT_EQ(json.at("decoder"), (Json{{"millrace", 7}, {"millrace (progressive)", 2}}));
  EXPECT_EQ(json.at("exif_orientation"), (Json{{"none", 9}}));
  EXPECT_EQ(json.at("quality").at("min"), 50);
  EXPECT_EQ(json.at("quality").at("median"), 90);
  EXPECT_EQ(json.at("quality").at("not_known"), 0);
  EXPECT_EQ(json.at("width").at("max"), 300);
  EXPECT_EQ(json.at("files")[0].at("bytes"), fs::file_size(folder / "a.lmdb"));
  EXPECT_EQ(json.at("unread")[0].at("index"), 9);
  std::uint64_t in_histogram = 0;
  for (const Json& bin : json.at("image_bytes").at("histogram"))
    in_histogram += bin.at("records").get<std::uint64_t>();
  EXPECT_EQ(in_histogram, 10u);
}

TEST(Inspect, IsTheSameWithAnyNumberOfWorkers) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", images_of(400));
  const auto without_time = [&](const std::string& workers) {
    Json json = inspect_json(folder / "a.lmdb", {"--workers", workers});
    json.erase("seconds");
    return json;
  };
  const Json one = without_time("1");
  EXPECT_EQ(one.at("images"), 400);
  EXPECT_EQ(without_time("2"), one);
  EXPECT_EQ(without_time("5"), one);
}

TEST(Inspect, SaysWhatASampleIsOf) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", images_of(100));
  const Result result = inspect(folder / "a.lmdb", {"--sample", "10"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              HasSubstr("10 of 100 records, spread evenly; all below is of these (headers only"));
  const Json json = inspect_json(folder / "a.lmdb", {"--sample", "10"});
  EXPECT_EQ(json.at("records"), 100);
  EXPECT_EQ(json.at("looked_at"), 10);
  EXPECT_EQ(json.at("images"), 10);
  // Labels alternate in the dataset, but not in the sample.
  EXPECT_GT(json.at("classes")[0].at("records"), 0);
  EXPECT_GT(json.at("classes")[1].at("records"), 0);
  EXPECT_EQ(inspect_json(folder / "a.lmdb", {"--sample", "1000"}).at("looked_at"), 100);
}

TEST(Inspect, ManyClassesAreShortened) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb");
  std::vector<std::string> classes;
  for (std::int64_t label = 0; label < 40; ++label) {
    classes.push_back("class " + std::to_string(label));
    for (std::int64_t record = 0; record < label; ++record) {
      const RecordField fields[] = {{"label", std::as_bytes(std::span(&label, 1))}};
      writer.append(fields);
    }
  }
  writer.set_classes(classes);
  writer.finish();
  const Result result = inspect(folder / "a.lmdb");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              ContainsRegex("\n40 classes +records +share\n  class 39 +39 +5.0%  #+\n"));
  EXPECT_THAT(result.out, HasSubstr("  ... 30 more between, median 19 ...\n"));
  EXPECT_THAT(result.out,
              ContainsRegex("\n  class 0 +0 +0.0%\n  1 of the classes have no record\n"));
  EXPECT_EQ(inspect_json(folder / "a.lmdb").at("classes").size(), 40u);
}

TEST(Inspect, ShowsARecord) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", mixed_images());
  const Result result = inspect(folder / "a.lmdb", {"--record", "7"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const Bytes image = mixed_images()[7];
  EXPECT_THAT(result.out, ContainsRegex("key +dog/7.jpg\n +label +1 \\(dog\\)\n"));
  EXPECT_THAT(result.out, ContainsRegex("checksum +[0-9a-f]+, matches\n"));
  EXPECT_THAT(result.out, ContainsRegex("image +" + std::to_string(image.size()) + " bytes\n"));
  EXPECT_THAT(result.out, ContainsRegex("path +9 bytes +\"dog/7.jpg\"\n +width +8 bytes +40\n"));
  EXPECT_THAT(result.out, HasSubstr("200 x 300 pixels"));
  EXPECT_THAT(result.out, ContainsRegex("chroma +4:4:4\n +scan type +progressive\n +quality +75 "));
  const Json json = inspect_json(folder / "a.lmdb", {"--record", "7"});
  EXPECT_EQ(json.at("key"), "dog/7.jpg");
  EXPECT_EQ(json.at("label"), 1);
  EXPECT_EQ(json.at("fault"), Json());
  EXPECT_EQ(json.at("fields")[0], (Json{{"name", "image"}, {"bytes", image.size()}}));
  EXPECT_EQ(json.at("image").at("height"), 300);
  EXPECT_EQ(json.at("image").at("quality"), 75);

  EXPECT_THAT(inspect(folder / "a.lmdb", {"--record", "9"}).out,
              ContainsRegex("unknown +not a JPEG"));
  const Result beyond = inspect(folder / "a.lmdb", {"--record", "10"});
  EXPECT_EQ(beyond.exit_code, 1);
  EXPECT_THAT(beyond.err, HasSubstr("has 10 records"));
}

TEST(Inspect, ExtractsARecordsImage) {
  const TemporaryFolder folder;
  const std::vector<Bytes> images = images_of(3);
  write_images(folder / "a.lmdb", images);
  const auto text = [](const Bytes& bytes) {
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  const std::string out = (folder / "out.jpg").string();
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--record", "1", "--out", out}).exit_code, 0);
  EXPECT_EQ(contents_of(out), text(images[1]));
  const Result refused = inspect(folder / "a.lmdb", {"--record", "2", "--out", out});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_THAT(refused.err, HasSubstr(out + " exists; --force replaces it"));
  EXPECT_EQ(contents_of(out), text(images[1]));
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--record", "2", "--out", out, "--force"}).exit_code, 0);
  EXPECT_EQ(contents_of(out), text(images[2]));
  const Result to_stdout = inspect(folder / "a.lmdb", {"--record", "0", "--out", "-"});
  EXPECT_EQ(to_stdout.out, text(images[0]));
  const Result nowhere =
      inspect(folder / "a.lmdb", {"--record", "0", "--out", (folder / "no" / "a.jpg").string()});
  EXPECT_EQ(nowhere.exit_code, 1);
  EXPECT_THAT(nowhere.err, HasSubstr("No such file or directory"));
}

TEST(Inspect, ShowsARecordWhoseChecksumDoesNotMatch) {
  const TemporaryFolder folder;
  const std::vector<Bytes> images = images_of(3);
  write_images(folder / "a.lmdb", images);
  std::string contents = contents_of(folder / "a.lmdb");
  contents[place_of(contents, images[1]) + images[1].size() - 9] ^= 1;
  write_contents(folder / "b.lmdb", contents);
  const Result result =
      inspect(folder / "b.lmdb", {"--record", "1", "--out", (folder / "bad.jpg").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("DOES NOT MATCH"));
  EXPECT_THAT(result.err, AllOf(HasSubstr((folder / "b.lmdb").string()), HasSubstr("dog/1.jpg"),
                                HasSubstr("checksum")));
  EXPECT_EQ(fs::file_size(folder / "bad.jpg"), images[1].size());
  EXPECT_EQ(inspect(folder / "b.lmdb", {"--record", "0"}).exit_code, 0);
}

TEST(Inspect, WrongUseIsUsage) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", images_of(1));
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--out", "x"}).exit_code, 2);
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--record", "0", "--force"}).exit_code, 2);
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--record", "0", "--sample", "3"}).exit_code, 2);
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--record", "0", "--out", "-", "--json", "-"}).exit_code,
            2);
  EXPECT_EQ(inspect(folder / "a.lmdb", {"--sample", "0"}).exit_code, 2);
  const Result help = run_program({MILLRACE_COMMAND, "inspect", "--help"});
  EXPECT_THAT(help.out, AllOf(HasSubstr("Examples:"), HasSubstr("it decodes no pixels")));
}

TEST(Distribution, SummarizesAndBins) {
  Distribution numbers;
  EXPECT_TRUE(numbers.empty());
  EXPECT_THAT(cli::bins_of(numbers), IsEmpty());
  for (std::uint64_t number = 1; number <= 100; ++number) numbers.add(number);
  const cli::Summary summary = cli::summarize(numbers);
  EXPECT_EQ(summary.count, 100u);
  EXPECT_EQ(summary.min, 1u);
  EXPECT_EQ(summary.p5, 5u);
  EXPECT_EQ(summary.median, 50u);
  EXPECT_EQ(summary.p95, 95u);
  EXPECT_EQ(summary.max, 100u);
  EXPECT_DOUBLE_EQ(summary.mean, 50.5);

  Distribution same;
  for (int n = 0; n < 7; ++n) same.add(224);
  const std::vector<Bin> one = cli::bins_of(same);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].count, 7u);
}

TEST(Distribution, BinsAreFewRoundAndHoldEverything) {
  for (const auto& [low, high] :
       std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 0},
                                                            {0, 1},
                                                            {0, 9},
                                                            {3, 17},
                                                            {224, 256},
                                                            {1, 1'000'000},
                                                            {97, 1378},
                                                            {2100, 724'000},
                                                            {0, 90'000'000},
                                                            {999, 1001}}) {
    Distribution numbers;
    numbers.add(low);
    numbers.add(high);
    for (std::uint64_t n = 0; n <= 200; ++n) numbers.add(low + (high - low) * n / 200);
    const std::vector<Bin> bins = cli::bins_of(numbers);
    EXPECT_LE(bins.size(), 10u) << low << " " << high;
    EXPECT_GE(bins.size(), high - low >= 9 ? 4u : 1u) << low << " " << high;
    std::uint64_t counted = 0;
    for (std::size_t n = 0; n < bins.size(); ++n) {
      EXPECT_LT(bins[n].begin, bins[n].end);
      if (n > 0) {
        EXPECT_EQ(bins[n].begin, bins[n - 1].end);
      }
      counted += bins[n].count;
    }
    EXPECT_EQ(counted, 203u);
  }
}

TEST(Distribution, ChartsHaveAlignedBars) {
  EXPECT_EQ(cli::chart("kinds", {{"many", 96}, {"one", 1}, {"none", 0}}, 97),
            "kinds                          records   share\n"
            "  many                              96   99.0%  ################################\n"
            "  one                                1    1.0%  #\n"
            "  none                               0    0.0%\n");
}

TEST(Text, IsPrintable) {
  EXPECT_EQ(cli::printable("caf\xc3\xa9/a b.jpg"), "caf\xc3\xa9/a b.jpg");
  EXPECT_EQ(cli::printable("a\x1b[31m\n\x7f"), "a\\x1b[31m\\x0a\\x7f");
  EXPECT_EQ(cli::printable("\xff\xc3(\xe2\x82"), "\\xff\\xc3(\\xe2\\x82");
  EXPECT_EQ(cli::printable("\xc2\x9b\xc0\x80\xed\xa0\x80"), "\\xc2\\x9b\\xc0\\x80\\xed\\xa0\\x80");
  EXPECT_EQ(cli::bytes_text(0), "0 B");
  EXPECT_EQ(cli::bytes_text(999), "999 B");
  EXPECT_EQ(cli::bytes_text(1000), "1.0 kB");
  EXPECT_EQ(cli::bytes_text(99'949), "99.9 kB");
  EXPECT_EQ(cli::bytes_text(999'600), "1.0 MB");
  EXPECT_EQ(cli::bytes_text(123'456'789), "123 MB");
  EXPECT_EQ(cli::count_text(1, "record"), "1 record");
  EXPECT_EQ(cli::count_text(0, "class"), "0 classes");
}

}  // namespace
}  // namespace millrace
