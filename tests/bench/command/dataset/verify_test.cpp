// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "bench/damaged_files.h"
#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

Result millrace_command(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), MILLRACE_COMMAND);
  return run_program(arguments);
}

Result verify(const fs::path& dataset, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"verify", dataset.string()});
  return millrace_command(std::move(more));
}

/// Indices of the bad records in the command's JSON.
std::vector<std::uint64_t> bad_in(const Json& json) {
  std::vector<std::uint64_t> bad;
  for (const Json& record : json.at("bad")) bad.push_back(record.at("index"));
  return bad;
}

TEST(Verify, ASoundDatasetIsSound) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", images_of(70));
  const Result result = verify(folder / "a.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out,
              StartsWith((folder / "a.lmdb").string() + ": all 70 records are sound ("));
  EXPECT_THAT(result.out,
              HasSubstr(" read, checksums compared, 70 images decoded, fingerprint matches; "));

  const Json json = Json::parse(verify(folder / "a.lmdb", {"--json", "-"}).out);
  EXPECT_EQ(json.at("sound"), true);
  EXPECT_EQ(json.at("records"), 70);
  EXPECT_EQ(json.at("checked"), 70);
  EXPECT_EQ(json.at("images_decoded"), 70);
  EXPECT_EQ(json.at("fingerprint"), json.at("fingerprint_found"));
  EXPECT_EQ(json.at("bad"), Json::array());
}

TEST(Verify, ListsBadImagesInOrderWithKeyAndReason) {
  const TemporaryFolder folder;
  std::vector<Bytes> images = images_of(50);
  images[3].resize(images[3].size() / 2);
  images[17] = {std::byte{'G'}, std::byte{'I'}, std::byte{'F'},
                std::byte{'8'}, std::byte{'9'}, std::byte{'a'}};
  images[30].clear();
  // A byte within the entropy-coded data.
  std::ranges::fill(std::span(images[44]).last(images[44].size() / 3), std::byte{0xff});
  write_images(folder / "a.lmdb", images, true);

  const Result result = verify(folder / "a.lmdb", {"--json", (folder / "bad.json").string()});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(
      result.out,
      ContainsRegex("^bad records:\n"
                    " +3  dog/3.jpg: Premature end of JPEG file\n"
                    " +17  dog/17.jpg: a GIF image; only JPEG, PNG, WebP and PNM are supported\n"
                    " +30  cat/30.jpg: empty \\(0 bytes\\)\n"
                    " +44  cat/44.jpg: [^\n]+\n"
                    " +49  dog/49.jpg: its fields say 7 x 7 pixels, its image has 40 x 40\n"
                    "[^\n]+: 5 of 50 records are bad \\("));
  const Json json = Json::parse(contents_of(folder / "bad.json"));
  EXPECT_EQ(json.at("sound"), false);
  EXPECT_EQ(json.at("bad_records"), 5);
  EXPECT_EQ(bad_in(json), (std::vector<std::uint64_t>{3, 17, 30, 44, 49}));
  EXPECT_EQ(json.at("bad")[0].at("key"), "dog/3.jpg");
  EXPECT_EQ(json.at("bad")[0].at("reason"), "Premature end of JPEG file");

  // Their bytes are as written: only decoding finds the errors.
  const Result quick = verify(folder / "a.lmdb", {"--quick"});
  EXPECT_EQ(quick.exit_code, 0);
  EXPECT_THAT(quick.out, HasSubstr("nothing decoded (--quick), fingerprint matches"));
}

TEST(Verify, SaysHowManyMoreThereAre) {
  const TemporaryFolder folder;
  std::vector<Bytes> images = images_of(60);
  for (std::size_t index = 0; index < 40; ++index) images[index].resize(100);
  write_images(folder / "a.lmdb", images);
  const auto lines = [](const Result& result) { return std::ranges::count(result.out, '\n'); };
  const Result usual = verify(folder / "a.lmdb", {"--json", (folder / "bad.json").string()});
  EXPECT_EQ(lines(usual), 1 + 20 + 1 + 1);
  EXPECT_THAT(usual.out, HasSubstr("  ... and 20 more; --json FILE lists all"));
  EXPECT_EQ(bad_in(Json::parse(contents_of(folder / "bad.json"))).size(), 40u);
  EXPECT_THAT(verify(folder / "a.lmdb", {"--limit", "3"}).out, HasSubstr("  ... and 37 more"));
  EXPECT_THAT(verify(folder / "a.lmdb", {"--limit", "40"}).out, Not(HasSubstr("more")));
}

TEST(Verify, FindsEveryFlippedBitWithAnyNumberOfWorkers) {
  const TemporaryFolder folder;
  const std::vector<Bytes> images = images_of(120);
  write_images(folder / "a.lmdb", images);
  std::string contents = contents_of(folder / "a.lmdb");
  std::set<std::uint64_t> spoiled;
  Random random(11, 0);
  while (spoiled.size() < 30) {
    const std::uint64_t index = random.below(images.size());
    if (!spoiled.insert(index).second) continue;
    // The checksum, the number of fields and their five lengths precede the image.
    constexpr std::size_t header = 8 + 4 + 5 * 4;
    const std::size_t at =
        place_of(contents, images[index]) - header + random.below(header + images[index].size());
    contents[at] ^= static_cast<char>(1 << random.below(8));
  }
  write_contents(folder / "b.lmdb", contents);
  std::string first_out;
  for (const std::string workers : {"1", "2", "5"}) {
    for (const bool quick : {false, true}) {
      std::vector<std::string> arguments = {"--workers", workers, "--json",
                                            (folder / "bad.json").string()};
      if (quick) arguments.emplace_back("--quick");
      const Result result = verify(folder / "b.lmdb", arguments);
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_EQ(bad_in(Json::parse(contents_of(folder / "bad.json"))),
                std::vector<std::uint64_t>(spoiled.begin(), spoiled.end()));
      const std::string listed = result.out.substr(0, result.out.find(" records are bad"));
      if (first_out.empty()) first_out = listed;
      EXPECT_EQ(listed, first_out);
    }
  }
  EXPECT_THAT(first_out, HasSubstr("its bytes do not match its checksum"));
}

// Two records of equal length whose keys point to the same one: each is sound by itself.
TEST(Verify, FindsARecordThatStandsInForAnother) {
  const TemporaryFolder folder;
  Bytes image(9000, std::byte{1});
  std::vector<Bytes> images(8, image);
  for (std::size_t index = 0; index < images.size(); ++index)
    images[index][5] = static_cast<std::byte>(index);
  write_images(folder / "a.lmdb", images);
  std::string contents = contents_of(folder / "a.lmdb");
  ASSERT_EQ(verify(folder / "a.lmdb", {"--quick"}).exit_code, 0);

  const std::vector<std::size_t> values = pages_with(contents, 4);
  ASSERT_EQ(values.size(), images.size());
  const std::string from = contents.substr(values[2], 8);
  const std::string to = contents.substr(values[5], 8);
  std::size_t changed = 0;
  for (const std::size_t leaf : pages_with(contents, 2)) {
    const std::size_t at = contents.find(from, leaf + 16);
    if (at == std::string::npos || at > leaf + 4096) continue;
    contents.replace(at, 8, to);
    ++changed;
  }
  ASSERT_GT(changed, 0u);
  write_contents(folder / "b.lmdb", contents);
  const Result result = verify(folder / "b.lmdb", {"--quick"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out,
              HasSubstr("it is the same record as 5; one of them replaces another record"));
  EXPECT_THAT(result.out, HasSubstr("fingerprint differs"));
  EXPECT_THAT(result.out, HasSubstr("2 of 8 records are bad"));
}

TEST(Verify, SaysWhereThereIsNothingToDecode) {
  const TemporaryFolder folder;
  DatasetWriter writer(folder / "a.lmdb");
  const std::string text = "a sentence";
  const RecordField fields[] = {{"text", std::as_bytes(std::span(text))}};
  writer.append(fields);
  writer.finish();
  const Result result = verify(folder / "a.lmdb");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_THAT(result.out, HasSubstr("its 1 record is sound"));
  EXPECT_THAT(result.out, HasSubstr("no field \"image\" to decode"));

  DatasetWriter(folder / "empty.lmdb").finish();
  EXPECT_THAT(verify(folder / "empty.lmdb").out, HasSubstr("all 0 records are sound"));
}

/// A damaged file that every command must refuse, and their common message.
struct Damaged {
  std::string name;
  std::string said;
};

/// Makes such files in the folder of the sound dataset `sound`.
std::vector<Damaged> make_damaged(const TemporaryFolder& folder, const std::string& sound) {
  const auto write = [&](const std::string& name, std::string contents, auto change) {
    change(contents);
    write_contents(folder / name, contents);
  };
  write("first_meta", sound, [](std::string& contents) { contents[17] ^= 0x10; });
  write("both_metas", sound,
        [](std::string& contents) { contents[128] ^= 0x40, contents[4096 + 128] ^= 0x40; });
  write("half", sound, [](std::string& contents) { contents.resize(contents.size() / 2); });
  write("one_page", sound, [](std::string& contents) { contents.resize(4096); });
  write("few_bytes", sound, [](std::string& contents) { contents.resize(100); });
  write("a_byte_short", sound, [](std::string& contents) { contents.pop_back(); });
  write("empty", "", [](std::string&) {});
  write("text", std::string(5000, 'x'), [](std::string&) {});
  write("leaf", sound, [](std::string& contents) {
    for (const std::size_t page : pages_with(contents, 2)) contents[page + 10] ^= 0x08;
  });
  write_foreign_lmdb(folder / "foreign.lmdb");
  fs::create_directory(folder / "foreign_folder");
  write_foreign_lmdb(folder / "foreign_folder" / "data.mdb");
  fs::create_directory(folder / "directory");
  return {{"first_meta", "is not a dataset"},
          {"both_metas", "damaged"},
          {"half", "cut short"},
          {"one_page", "cut short"},
          {"few_bytes", "not an LMDB file"},
          {"a_byte_short", "cut short"},
          {"empty", "is empty"},
          {"text", "not an LMDB file"},
          {"leaf", "damaged"},
          {"foreign.lmdb", "not a millrace dataset"},
          {"foreign_folder", "data.mdb"},
          {"directory", "is a folder"},
          {"missing", "does not exist"}};
}

TEST(DamagedFiles, EachCommandSaysWhatIsWrongWithWhich) {
  const TemporaryFolder folder;
  write_images(folder / "sound.lmdb", images_of(10));
  for (const Damaged& damaged : make_damaged(folder, contents_of(folder / "sound.lmdb"))) {
    const std::string path = (folder / damaged.name).string();
    const std::vector<std::vector<std::string>> commands = {{"verify", path},
                                                            {"inspect", path},
                                                            {"bench", path},
                                                            {"tune", path},
                                                            {"diagnose", path, "--step-ms", "1"}};
    for (const std::vector<std::string>& command : commands) {
      const Result result = millrace_command(command);
      EXPECT_EQ(result.exit_code, 1) << command[0] << " " << damaged.name;
      EXPECT_THAT(result.err,
                  AllOf(StartsWith("millrace: "), HasSubstr(path), HasSubstr(damaged.said)))
          << command[0];
      EXPECT_EQ(result.out, "");
    }
  }
}

TEST(DamagedFiles, PackingOntoThemIsRefusedOrReplacesThem) {
  const TemporaryFolder folder;
  write_images(folder / "sound.lmdb", images_of(10));
  fs::create_directory(folder / "photos");
  const Bytes image = images_of(1)[0];
  write_contents(folder / "photos" / "a.jpg",
                 {reinterpret_cast<const char*>(image.data()), image.size()});
  const std::string photos = (folder / "photos").string();
  for (const Damaged& damaged : make_damaged(folder, contents_of(folder / "sound.lmdb"))) {
    const std::string path = (folder / damaged.name).string();
    const bool is_folder = fs::is_directory(path);
    if (damaged.name != "missing") {
      const Result refused = millrace_command({"pack", photos, path});
      EXPECT_EQ(refused.exit_code, 1) << damaged.name;
      const std::string said =
          is_folder ? " is a folder"
          : damaged.name == "empty"
              ? " is there, incomplete; --resume goes on with it, --force replaces it"
              : " exists; --force replaces it";
      EXPECT_THAT(refused.err, HasSubstr(path + said));
    }
    const Result packed = millrace_command({"pack", photos, path, "--force"});
    EXPECT_EQ(packed.exit_code, is_folder ? 1 : 0) << packed.err;
    if (!is_folder) {
      EXPECT_EQ(verify(path).exit_code, 0) << damaged.name;
    }
  }
}

/// Runs a command as an unprivileged user.
std::vector<std::string> unprivileged(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), MILLRACE_COMMAND);
  if (geteuid() == 0)
    arguments.insert(arguments.begin(),
                     {"/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  return arguments;
}

TEST(DamagedFiles, AFileThatMayNotBeReadIsNamed) {
  if (geteuid() == 0 && !fs::exists("/usr/bin/setpriv"))
    GTEST_SKIP() << "root may read everything, and there is no setpriv";
  if (run_program(unprivileged({"--version"})).exit_code != 0)
    GTEST_SKIP() << "another user cannot run " << MILLRACE_COMMAND;
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", images_of(3));
  fs::permissions(folder.path(), fs::perms{0755});
  fs::permissions(folder / "a.lmdb", fs::perms::none);
  for (const std::string command : {"verify", "inspect", "bench"}) {
    const Result result = run_program(unprivileged({command, (folder / "a.lmdb").string()}));
    EXPECT_EQ(result.exit_code, 1) << command;
    EXPECT_THAT(result.err,
                HasSubstr((folder / "a.lmdb").string() + " cannot be opened: Permission denied"));
  }
}

TEST(DamagedFiles, DamagedPagesOfRecordsAreFoundByVerify) {
  const TemporaryFolder folder;
  write_images(folder / "a.lmdb", images_of(400));
  const std::string sound = contents_of(folder / "a.lmdb");
  for (const std::uint16_t kind : std::to_array<std::uint16_t>({1, 2, 4})) {
    const std::vector<std::size_t> pages = pages_with(sound, kind);
    if (kind != 4) {
      ASSERT_FALSE(pages.empty());
    }
    for (const std::size_t page :
         {pages.empty() ? 0 : pages.front(), pages.empty() ? 0 : pages[pages.size() / 2]}) {
      if (page == 0) continue;
      std::string contents = sound;
      contents[page + 13] ^= 0x40;
      write_contents(folder / "b.lmdb", contents);
      const Result verified = verify(folder / "b.lmdb");
      // Free pages, left by earlier commits, are not checked.
      EXPECT_THAT(verified.exit_code, ::testing::AnyOf(0, 1));
      EXPECT_THAT(verified.out + verified.err, HasSubstr((folder / "b.lmdb").string()));
      if (kind == 1) {
        EXPECT_EQ(verified.exit_code, 1);
        const Result benched = millrace_command({"bench", (folder / "b.lmdb").string(), "--batches",
                                                 "2", "--warmup", "0", "--size", "16"});
        EXPECT_EQ(benched.exit_code, 1);
        EXPECT_THAT(benched.err, HasSubstr((folder / "b.lmdb").string()));
        const Result inspected = millrace_command({"inspect", (folder / "b.lmdb").string()});
        EXPECT_EQ(inspected.exit_code, 0);
        EXPECT_THAT(inspected.out, HasSubstr("cannot be read, or its image cannot"));
      }
    }
  }
}

TEST(Verify, HelpHasExamplesAndWrongUseIsUsage) {
  const Result help = millrace_command({"verify", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out,
              AllOf(HasSubstr("Examples:"), HasSubstr("--quick"), HasSubstr("fingerprint")));
  EXPECT_EQ(millrace_command({"verify"}).exit_code, 2);
  EXPECT_EQ(millrace_command({"verify", "a", "--limit", "-1"}).exit_code, 2);
}

}  // namespace
}  // namespace millrace
