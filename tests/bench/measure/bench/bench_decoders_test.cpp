// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/jpeg_samples.h"
#include "support/pictures.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ContainsRegex;
using namespace testing;
using Json = nlohmann::json;

Json bench_of_pictures(const std::vector<Bytes>& pictures) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "pictures.lmdb";
  write_pictures(path, pictures);
  const auto result = run_program({MILLRACE_COMMAND, "bench", path.string(), "--batches", "9",
                                   "--batch-size", "2", "--warmup", "0", "--json", "-"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

std::string decoders_warning(const Json& json) {
  for (const Json& warning : json.at("warnings"))
    if (warning.get<std::string>().starts_with("decoders of other libraries")) return warning;
  return "";
}

TEST(BenchDecoders, AWarningNamesOthersThatTakeMostOfTheTime) {
  const Json json =
      bench_of_pictures(std::vector<Bytes>(2, encode(noise(60, 60, 1), {.arithmetic = true})));
  EXPECT_THAT(decoders_warning(json),
              ContainsRegex("made ([0-9]+) of [0-9]+ samples and took 100% of their time, "
                            "libjpeg-turbo .arithmetic coding. most"));
  ASSERT_EQ(json.at("way_seconds").size(), 1U);
  EXPECT_GT(json.at("way_seconds").at("libjpeg-turbo (arithmetic coding)"), 0);
}

TEST(BenchDecoders, ThereIsNoWarningWhereMillracesDecoderTakesAll) {
  const Encoding progressive{.scans = Encoding::Scans::progressive};
  const Json json =
      bench_of_pictures({encode(noise(60, 60, 1), {}), encode(noise(60, 60, 1), progressive)});
  EXPECT_EQ(decoders_warning(json), "");
  EXPECT_EQ(json.at("way_seconds").size(), 2U);
  EXPECT_GT(json.at("way_seconds").at("millrace (progressive)"), 0);
}

TEST(BenchDecoders, TheCeilingOfOtherImagesThanJpegsIsRefusedBeforeTheRun) {
  const TemporaryFolder folder;
  const std::string png = folder / "a.png";
  const std::string jpeg = folder / "a.jpg";
  const std::string set = folder / "pictures.lmdb";
  const Bytes encoded = encode(noise(40, 30, 1), {});
  std::ofstream(jpeg, std::ios::binary)
      .write(reinterpret_cast<const char*>(encoded.data()),
             static_cast<std::streamsize>(encoded.size()));
  ASSERT_EQ(run_program({MILLRACE_COMMAND, "decode", jpeg, "--png", png}).exit_code, 0);
  write_pictures(set, std::vector<Bytes>{encoded, read_file(png)});
  const auto refused = run_program({MILLRACE_COMMAND, "bench", set, "--ceiling", "--batches", "1",
                                    "--batch-size", "1", "--warmup", "0"});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_EQ(refused.out, "");
  EXPECT_EQ(refused.err, "millrace: --ceiling: record 1 of " + set +
                             " is a PNG image; the ceiling T is the rate of libjpeg-turbo, so of "
                             "JPEGs alone\n");
}

}  // namespace
}  // namespace millrace
