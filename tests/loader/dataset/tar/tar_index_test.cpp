// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_index.h"

#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/detail/tar_members.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "dataset/packed/dataset_lock.h"
#include "support/stored_records.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;

class StoredTarIndex : public ::testing::Test {
 protected:
  StoredTarIndex() {
    write_tar(3);
    EXPECT_EQ(save_tar_members(*open_dataset(tar_)), 1U);
    EXPECT_EQ(tar_members_path(tar_), index_);
  }

  void write_tar(int samples) const {
    TarFile tar;
    for (int sample = 0; sample < samples; ++sample) {
      tar.add(std::to_string(sample) + ".jpg", std::string(700, 'a'));
      tar.add(std::to_string(sample) + ".cls", "1");
    }
    tar.write(tar_);
  }
  std::vector<std::string> warnings() const { return open_dataset(tar_)->facts().warnings; }

  const TemporaryFolder folder_;
  const fs::path tar_ = folder_ / "a.tar";
  const fs::path index_ = folder_ / "a.tar.members";
};

TEST_F(StoredTarIndex, IsTakenInsteadOfReadingAllHeaders) {
  const auto scanned = open_dataset(tar_);
  const auto modified = fs::last_write_time(tar_);
  std::string contents = file_contents(tar_);
  // The second sample's header, which is not read if there is an index.
  constexpr std::size_t second = 512 + 1024 + 512 + 512;
  ASSERT_EQ(contents[second], '1');
  contents[second] = '7';
  write_file(tar_, contents);
  fs::last_write_time(tar_, modified);
  const auto dataset = open_dataset(tar_);
  EXPECT_THAT(dataset->facts().warnings, IsEmpty());
  EXPECT_EQ(dataset->facts().fingerprint, scanned->facts().fingerprint);
  ASSERT_EQ(dataset->size(), 3U);
  EXPECT_EQ(dataset->make_reader()->read(2).integer("label"), 1);
  const Error error = thrown_by([&] { (void)dataset->make_reader()->read(1); });
  EXPECT_EQ(error.code(), ErrorCode::bad_record);
  EXPECT_THAT(error.reason(), HasSubstr("its headers are damaged, or the tar was changed"));
  fs::remove(index_);
  EXPECT_EQ(thrown_by([&] { (void)open_dataset(tar_); }).code(), ErrorCode::corrupt);
}

TEST_F(StoredTarIndex, OfATarThatWasChangedIsNotUsed) {
  EXPECT_THAT(warnings(), IsEmpty());
  const auto modified = fs::last_write_time(tar_);
  fs::last_write_time(tar_, modified + std::chrono::nanoseconds(1));
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("belongs to another tar, or to this one before")));
  write_tar(4);
  fs::last_write_time(tar_, modified);
  EXPECT_THAT(warnings(), ElementsAre(HasSubstr("belongs to another tar")));
  EXPECT_EQ(open_dataset(tar_)->size(), 4U);
  (void)save_tar_members(*open_dataset(tar_));
  EXPECT_THAT(warnings(), IsEmpty());
}

TEST_F(StoredTarIndex, ThatIsDamagedIsNotUsed) {
  const std::string sound = file_contents(index_);
  for (std::size_t at = 0; at < sound.size(); at += 3) {
    std::string flipped = sound;
    flipped[at] ^= 4;
    write_file(index_, flipped);
    EXPECT_THAT(
        warnings(),
        ElementsAre(HasSubstr("is not a tar index, or is damaged; all headers were read instead")))
        << at;
  }
  for (const std::string& other : {sound + "x", sound.substr(0, sound.size() - 8), std::string()}) {
    write_file(index_, other);
    EXPECT_THAT(warnings(), ElementsAre(HasSubstr("is not a tar index, or is damaged")));
    EXPECT_EQ(open_dataset(tar_)->size(), 3U);
  }
}

TEST_F(StoredTarIndex, ReplacesNoOtherFile) {
  write_file(index_, "something else");
  EXPECT_EQ(thrown_by([&] { (void)save_tar_members(*open_dataset(tar_)); }).code(),
            ErrorCode::already_exists);
  EXPECT_EQ(file_contents(index_), "something else");
  fs::remove(index_);
  ASSERT_EQ(mkfifo(index_.c_str(), 0600), 0);  // a reader would wait forever
  EXPECT_EQ(thrown_by([&] { (void)save_tar_members(*open_dataset(tar_)); }).code(),
            ErrorCode::already_exists);
}

TEST_F(StoredTarIndex, HasOneWriterAtATime) {
  const std::string whole = file_contents(index_);
  {
    const FileDescriptor other = create_locked(index_.string() + ".replacement");
    EXPECT_EQ(thrown_by([&] { (void)save_tar_members(*open_dataset(tar_)); }).code(),
              ErrorCode::already_exists);
    EXPECT_EQ(file_contents(index_), whole);
  }
  write_file(index_, "");  // the rest of a failed write
  EXPECT_EQ(save_tar_members(*open_dataset(tar_)), 1U);
  EXPECT_EQ(file_contents(index_), whole);
}

TEST_F(StoredTarIndex, TakesEightBytesASample) {
  EXPECT_EQ(sizeof(SampleBlocks), 8U);
  EXPECT_EQ(file_contents(index_).size(), 64U + 3 * 8 + 8);
}

TEST(TarIndex, OfAnyChecksumLiesInItsTar) {
  TarIndex index{.of = {.bytes = 4096}, .samples = {{0, 3}, {3, 5}}};
  EXPECT_TRUE(unpack_index(packed_index(index)));
  index.samples = {{0, 3}, {2, 5}};
  EXPECT_FALSE(unpack_index(packed_index(index)));
  index.samples = {{0, 3}, {3, 6}};
  EXPECT_FALSE(unpack_index(packed_index(index)));
  index.samples = {{0, 0}};
  EXPECT_FALSE(unpack_index(packed_index(index)));
  index.samples = {{0xFFFFFFFF, 0xFFFFFFFF}};
  EXPECT_FALSE(unpack_index(packed_index(index)));
}

TEST_F(StoredTarIndex, HintsLieBesideIt) {
  const auto dataset = open_dataset(tar_);
  HintsWriter writer(dataset);
  const std::vector<std::byte> hint(5, std::byte{3});
  for (int record = 0; record < 3; ++record) writer.append(hint);
  writer.finish();
  const auto with_hints = open_dataset(tar_);
  EXPECT_THAT(with_hints->facts().warnings, IsEmpty());
  ASSERT_TRUE(with_hints->has_stored_hints());
  std::vector<std::byte> read;
  with_hints->stored_hint(2, read);
  EXPECT_EQ(read, hint);
}

}  // namespace
}  // namespace millrace
