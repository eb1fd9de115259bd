// SPDX-License-Identifier: Apache-2.0
#include "dataset/open/format.h"

#include <gmock/gmock.h>

#include "support/fake_dataset.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace testing;

/// A format for files that begin with the letter.
template <char letter>
Status probe(const std::filesystem::path& path) {
  return file_contents(path).starts_with(letter)
             ? Status::ok()
             : Status::bad(std::string("there is no ") + letter);
}

template <std::uint64_t records>
std::shared_ptr<const Dataset> open_made_up(const std::filesystem::path&,
                                            const OpenOptions& options) {
  if (!options.verify_checksums) throw Error(ErrorCode::incomplete, "the opener's own");
  return std::make_shared<MemoryDataset>(records);
}

constexpr Format formats[] = {{"letter a", probe<'a'>, open_made_up<1>},
                              {"letter b", probe<'b'>, open_made_up<2>},
                              {"another a", probe<'a'>, open_made_up<3>}};

TEST(Format, TheFirstThatTakesAFileOpensIt) {
  const TemporaryFolder folder;
  write_file(folder / "a", "abc");
  write_file(folder / "b", "bcd");
  EXPECT_EQ(open_by_format(formats, folder / "a", {})->size(), 1U);
  EXPECT_EQ(open_by_format(formats, folder / "b", {})->size(), 2U);
}

TEST(Format, ANamedOneOpensWhatItsProbeWouldNotTake) {
  const TemporaryFolder folder;
  write_file(folder / "b", "bcd");
  EXPECT_EQ(open_by_format(formats, folder / "b", {.format = "another a"})->size(), 3U);
  const Error error =
      thrown_by([&] { (void)open_by_format(formats, folder / "b", {.format = "letter c"}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_STREQ(error.what(),
               "there is no format \"letter c\"; there are: letter a, letter b, another a");
}

TEST(Format, APatternIsAName) {
  const Format with_pattern[] = {
      {"letter a", probe<'a'>, open_made_up<1>},
      {"pattern", probe<'p'>, open_made_up<2>, false, [](const std::filesystem::path& name) {
         return name.extension() == ".*" ? Status::ok() : Status::bad("it has no star");
       }}};
  const TemporaryFolder folder;
  EXPECT_EQ(open_by_format(with_pattern, folder / "a.*", {})->size(), 2U);
  EXPECT_EQ(thrown_by([&] { (void)open_by_format(with_pattern, folder / "a.b", {}); }).code(),
            ErrorCode::not_found);
  write_file(folder / "a.*", "abc");
  EXPECT_EQ(open_by_format(with_pattern, folder / "a.*", {})->size(), 1U);
}

TEST(Format, AnUnknownFilesErrorSaysWhatEachSaid) {
  const TemporaryFolder folder;
  write_file(folder / "c", "cde");
  const Error error = thrown_by([&] { (void)open_by_format(formats, folder / "c", {}); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_EQ(error.reason(),
            "letter a: there is no a; letter b: there is no b; another a: there is no a");
  EXPECT_THAT(error.what(), AllOf(HasSubstr((folder / "c").string() + " is not a dataset"),
                                  HasSubstr(error.reason()), HasSubstr("millrace pack")));
}

TEST(Format, WhatSeveralSayInARowIsSaidOnce) {
  constexpr Format alike[] = {{"letter a", probe<'a'>, open_made_up<1>},
                              {"another a", probe<'a'>, open_made_up<3>},
                              {"letter b", probe<'b'>, open_made_up<2>}};
  const TemporaryFolder folder;
  write_file(folder / "c", "cde");
  EXPECT_EQ(thrown_by([&] { (void)open_by_format(alike, folder / "c", {}); }).reason(),
            "letter a, another a: there is no a; letter b: there is no b");
}

TEST(Format, AFileThatIsTakenHasTheErrorOfItsFormatAlone) {
  const TemporaryFolder folder;
  write_file(folder / "a", "abc");
  const Error error =
      thrown_by([&] { (void)open_by_format(formats, folder / "a", {.verify_checksums = false}); });
  EXPECT_EQ(error.code(), ErrorCode::incomplete);
  EXPECT_STREQ(error.what(), "the opener's own");
}

TEST(Format, DatabasesAreForThoseThatHaveSome) {
  constexpr Format both[] = {{"letter a", probe<'a'>, open_made_up<1>},
                             {"letter b", probe<'b'>, open_made_up<2>, true}};
  const TemporaryFolder folder;
  write_file(folder / "a", "abc");
  write_file(folder / "b", "bcd");
  EXPECT_EQ(open_by_format(both, folder / "b", {.images = "i"})->size(), 2U);
  for (const OpenOptions& options : {OpenOptions{.images = "i"}, OpenOptions{.labels = "l"}}) {
    const Error error = thrown_by([&] { (void)open_by_format(both, folder / "a", options); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), AllOf(HasSubstr((folder / "a").string()), HasSubstr("\"letter a\"")));
  }
}

TEST(Format, NobodyIsAskedWhereThereIsNothing) {
  static bool asked;
  asked = false;
  constexpr Format asking[] = {{"all",
                                [](const std::filesystem::path&) {
                                  asked = true;
                                  return Status::ok();
                                },
                                open_made_up<1>}};
  const TemporaryFolder folder;
  std::filesystem::create_symlink(folder / "nowhere", folder / "link");
  for (const char* name : {"missing", "link", "missing/below"}) {
    const Error error = thrown_by([&] { (void)open_by_format(asking, folder / name, {}); });
    EXPECT_EQ(error.code(), ErrorCode::not_found) << name;
    EXPECT_THAT(error.what(), HasSubstr((folder / name).string() + " does not exist"));
  }
  EXPECT_FALSE(asked);
}

TEST(OpenDataset, SaysOfAnUnknownFileWhatEachFormatSaid) {
  const TemporaryFolder folder;
  write_file(folder / "text", std::string(5000, 'x'));
  const auto reason = [](const std::filesystem::path& path) {
    return thrown_by([&] { (void)open_dataset(path); }).reason();
  };
  const auto has_all = [](auto... parts) { return AllOf(HasSubstr(parts)...); };
  EXPECT_THAT(reason(folder / "text"),
              has_all("npy file: it has no .npy header; ",
                      "arrays, list of shards: it does not begin with \"{\"; ",
                      "packed file, databases, ocr, images, ", "tuples: it is not an LMDB file",
                      "tars: it has no tar header", "image folder: it is not a folder",
                      "image list: its first line is not path,label"));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THAT(reason(folder / "empty"),
              has_all("tuples: it is a folder without a file data.mdb",
                      "image folder: it is a folder without folders or images in it"));
}

}  // namespace
}  // namespace millrace
