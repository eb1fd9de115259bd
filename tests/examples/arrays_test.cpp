// SPDX-License-Identifier: Apache-2.0
//
// The examples on arrays, with made-up ones: their losses must fall, and no image library may be
// loaded.
#include <gmock/gmock.h>
#include <millrace/random.h>

#include <string>

#include "loader/dataset/array/npy_files.h"
#include "support/run_program.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;

double loss_of(const std::string& text, const std::string& before) {
  const std::size_t at = text.find(before);
  if (at == std::string::npos) {
    ADD_FAILURE() << "there is no \"" << before << "\" in\n" << text;
    return 0;
  }
  return std::stod(text.substr(at + before.size()));
}

/// Writes a stream in which each of 16 tokens is followed by one of two.
void write_tokens(const TemporaryFolder& folder) {
  Random random(5, 0);
  std::vector<std::uint16_t> tokens{0};
  while (tokens.size() < 6000)
    tokens.push_back(static_cast<std::uint16_t>((tokens.back() * 3U + 1U + random.below(2)) % 16U));
  write_npy(folder / "tokens.npy", "<u2", tokens);
  write_bytes(folder / "tokens.json", R"({"format": "arrays", "fields": {"tokens":
      {"npy": "tokens.npy", "window": {"length": 33, "stride": 32}}}})");
}

/// Writes lists of up to 12 of 40 features; an even feature indicates label 1.
void write_lists(const TemporaryFolder& folder) {
  Random random(6, 0);
  std::vector<std::int32_t> features;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::uint8_t> labels;
  while (labels.size() < 500) {
    int even = 0;
    for (std::uint64_t more = random.below(13); more > 0; --more) {
      features.push_back(static_cast<std::int32_t>(random.below(40)));
      even += features.back() % 2 == 0 ? 1 : -1;
    }
    offsets.push_back(static_cast<std::int64_t>(features.size()));
    labels.push_back(even > 0 ? 1 : 0);
  }
  write_npy(folder / "features.npy", "<i4", features);
  write_npy(folder / "offsets.npy", "<i8", offsets);
  write_npy(folder / "label.npy", "|u1", labels);
  write_bytes(folder / "lists.json", R"({"format": "arrays", "fields": {"features":
      {"npy": "features.npy", "offsets": "offsets.npy"},
      "label": {"npy": "label.npy", "as": "int64"}}})");
}

TEST(Tokens, TheLossFallsToWhatTheStreamHas) {
  const TemporaryFolder folder;
  write_tokens(folder);
  const auto result = run_program(
      {MILLRACE_TOKENS, (folder / "tokens.json").string(), "--vocabulary", "16", "--rate", "0.1"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(loss_of(result.out, "epoch 0: loss "), 2.773) << "log(16) is no model at all";
  // The loss of one choice out of two is log(2).
  EXPECT_NEAR(loss_of(result.out, "epoch 4: loss "), 0.693, 0.06) << result.out;
  EXPECT_LT(loss_of(result.out, "epoch 4: loss "), 0.8 * loss_of(result.out, "epoch 0: loss "));
  EXPECT_THAT(result.out, HasSubstr(" bounds the run"));
}

TEST(Tokens, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  write_tokens(folder);
  const std::string dataset = (folder / "tokens.json").string();
  EXPECT_THAT(run_program({MILLRACE_TOKENS, dataset, "--vocabulary", "8"}).err,
              HasSubstr("is not below --vocabulary 8"));
  EXPECT_THAT(run_program({MILLRACE_TOKENS, (folder / "tokens.npy").string()}).err,
              HasSubstr("has no windows in its field \"tokens\""));
}

TEST(Sparse, TheLossFalls) {
  const TemporaryFolder folder;
  write_lists(folder);
  const auto result = run_program(
      {MILLRACE_SPARSE, (folder / "lists.json").string(), "--features", "40", "--longest", "12"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(loss_of(result.out, "epoch 4: loss "), 0.6 * loss_of(result.out, "epoch 0: loss "))
      << result.out;
  EXPECT_GT(loss_of(result.out.substr(result.out.find("epoch 4")), "accuracy "), 85);
}

TEST(Sparse, SaysWhatIsWrong) {
  const TemporaryFolder folder;
  write_lists(folder);
  EXPECT_THAT(
      run_program({MILLRACE_SPARSE, (folder / "lists.json").string(), "--features", "8"}).err,
      HasSubstr("is not in 0 .. --features 8 - 1"));
}

#ifdef MILLRACE_LDD
TEST(ArrayExamples, NeedNoImageLibrary) {
  for (const char* program : {MILLRACE_TOKENS, MILLRACE_SPARSE}) {
    const auto result = run_program({MILLRACE_LDD, program});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    for (const char* library : {"jpeg", "png", "webp", "spng"})
      EXPECT_THAT(result.out, Not(HasSubstr(library)));
  }
}
#endif

}  // namespace
}  // namespace millrace
