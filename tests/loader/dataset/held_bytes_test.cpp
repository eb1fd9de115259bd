// SPDX-License-Identifier: Apache-2.0
//
// Tests of the memory that readers hold between two reads.
#include <gtest/gtest.h>
#include <millrace/concat_dataset.h>
#include <millrace/dataset.h>
#include <millrace/dataset_writer.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/foreign_lmdb.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using testing::TarFile;
using testing::TemporaryFolder;

constexpr std::size_t mebibyte = std::size_t{1} << 20;

/// A dataset of one record. Its readers hold `bytes` of memory once they have read it.
class HeldDataset final : public Dataset, public std::enable_shared_from_this<HeldDataset> {
 public:
  explicit HeldDataset(std::size_t bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return 1; }
  std::string name() const override { return "held"; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    ++made_;
    return std::make_unique<Reader>(shared_from_this());
  }
  /// Number of readers that were made.
  int made() const { return made_; }

 private:
  class Reader final : public DatasetReader {
   public:
    explicit Reader(std::shared_ptr<const HeldDataset> dataset) : dataset_(std::move(dataset)) {}
    Record read(std::uint64_t index) override {
      has_read_ = true;
      return Record(index, fields_);
    }
    std::size_t held_bytes() const override { return has_read_ ? dataset_->bytes_ : 0; }

   private:
    std::shared_ptr<const HeldDataset> dataset_;
    std::vector<RecordField> fields_;
    bool has_read_ = false;
  };

  const std::size_t bytes_;
  mutable int made_ = 0;
};

/// Datasets of one record each, and all of them as one.
struct HeldParts {
  explicit HeldParts(const std::vector<std::size_t>& bytes) {
    for (const std::size_t of_part : bytes) parts.push_back(std::make_shared<HeldDataset>(of_part));
    reader = concat_datasets({parts.begin(), parts.end()})->make_reader();
  }
  void read(const std::vector<std::uint64_t>& indices) const {
    for (const std::uint64_t index : indices) EXPECT_EQ(reader->read(index).index(), index);
  }
  std::vector<int> made() const {
    std::vector<int> numbers;
    for (const auto& part : parts) numbers.push_back(part->made());
    return numbers;
  }

  std::vector<std::shared_ptr<const HeldDataset>> parts;
  std::unique_ptr<DatasetReader> reader;
};

TEST(HeldBytes, AJoinedReaderClosesReadersThatWereNotUsedForLongest) {
  const HeldParts held({6 * mebibyte, 6 * mebibyte, 6 * mebibyte, 0, 1});
  held.read({0, 1, 0, 3, 4});
  EXPECT_EQ(held.reader->held_bytes(), 12 * mebibyte + 1);
  held.read({2});
  EXPECT_EQ(held.reader->held_bytes(), 18 * mebibyte + 1) << "the last record comes on top";
  held.read({0, 3, 4, 2});
  EXPECT_EQ(held.made(), (std::vector<int>{1, 1, 1, 1, 1}));
  EXPECT_EQ(held.reader->held_bytes(), 12 * mebibyte + 1) << "part 1 was used least recently";
  held.read({1});
  held.read({4});
  EXPECT_EQ(held.reader->held_bytes(), 12 * mebibyte + 1) << "now part 0 was";
  EXPECT_TRUE(held.reader->intact().is_ok());
  held.read({0});
  EXPECT_EQ(held.made(), (std::vector<int>{2, 2, 1, 1, 1}));
}

TEST(HeldBytes, AReaderThatIsUsedAgainStaysHoweverMuchItHolds) {
  const HeldParts held({40 * mebibyte, 30 * mebibyte});
  held.read({0, 0, 0});
  EXPECT_EQ(held.made(), (std::vector<int>{1, 0}));
  held.read({1});
  EXPECT_EQ(held.reader->held_bytes(), 30 * mebibyte);
  held.read({0});
  EXPECT_EQ(held.made(), (std::vector<int>{2, 1}));
}

TEST(HeldBytes, OfManyPartsAndOfJoinedParts) {
  const std::vector<std::size_t> sizes(200, mebibyte);
  const HeldParts held(sizes);
  const auto all = concat_datasets({held.parts.begin(), held.parts.end()});
  const auto nested = concat_datasets({all, all, all})->make_reader();
  std::size_t most = 0;
  for (std::uint64_t step = 0; step < 600; ++step) {
    EXPECT_EQ(held.reader->read(step * 77 % 200).index(), step * 77 % 200);
    EXPECT_EQ(nested->read(step * 77 % 600).index(), step * 77 % 600);
    most = std::max({most, held.reader->held_bytes(), nested->held_bytes()});
  }
  EXPECT_EQ(most, 17 * mebibyte);
}

/// A record of 1 MiB in each format that has readers with memory of their own.
std::vector<std::filesystem::path> stored_records(const TemporaryFolder& folder) {
  const std::string image = "\xFF\xD8\xFF" + std::string(mebibyte - 3, 'j');
  const std::span<const std::byte> bytes = std::as_bytes(std::span(image));
  DatasetWriter packed(folder / "packed.lmdb");
  packed.append(std::vector<RecordField>{{"image", bytes}});
  packed.finish();
  testing::write_pairs(folder / "foreign.lmdb", {{"a", image}});
  TarFile tar;
  tar.add("a.jpg", image);
  tar.write(folder / "a.tar");
  std::filesystem::create_directories(folder / "images" / "cat");
  std::ofstream(folder / "images" / "cat" / "a.jpg", std::ios::binary) << image;
  // The header of a .npy file, version 1.0, has 128 bytes in all.
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1048576), }";
  header.resize(117, ' ');
  std::ofstream(folder / "a.npy", std::ios::binary)
      << std::string("\x93NUMPY\x01\x00\x76\x00", 10) << header << '\n'
      << image;
  return {folder / "packed.lmdb", folder / "foreign.lmdb", folder / "a.tar", folder / "images",
          folder / "a.npy"};
}

TEST(HeldBytes, OfStoredRecordsThatAreNotMapped) {
  const TemporaryFolder folder;
  for (const std::filesystem::path& path : stored_records(folder)) {
    SCOPED_TRACE(path.filename());
    const auto mapped = open_dataset(path)->make_reader();
    (void)mapped->read(0);
    if (path.filename() != "images") {
      EXPECT_EQ(mapped->held_bytes(), 0U);
    }
    const auto part = open_dataset(path, {.map = false});
    const auto reader = part->make_reader();
    EXPECT_EQ(reader->held_bytes(), 0U);
    (void)reader->read(0);
    EXPECT_GE(reader->held_bytes(), mebibyte);
    EXPECT_LE(reader->held_bytes(), 2 * mebibyte);

    const auto joined =
        concat_datasets(std::vector<std::shared_ptr<const Dataset>>(30, part))->make_reader();
    for (std::uint64_t index = 0; index < 30; ++index)
      EXPECT_FALSE(joined->read(index).fields().empty());
    EXPECT_GE(joined->held_bytes(), 14 * mebibyte);
    EXPECT_LE(joined->held_bytes(), 18 * mebibyte);
  }
}

/// Returns a number as protobuf's varint.
std::string varint(std::uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes += static_cast<char>(number | 0x80);
  return bytes += static_cast<char>(number);
}

/// Returns a field of protobuf: a number, or bytes.
std::string field(int number, std::uint64_t value) {
  return static_cast<char>(number << 3) + varint(value);
}
std::string field(int number, const std::string& bytes) {
  return static_cast<char>(number << 3 | 2) + varint(bytes.size()) + bytes;
}

/// Returns a length of MessagePack in 4 bytes, behind the byte of its type.
std::string msgpack_length(unsigned char type, std::size_t length) {
  std::string bytes(1, static_cast<char>(type));
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(length >> shift);
  return bytes;
}

// A parser makes fields in memory of its own if the entry does not have them as they are.
TEST(HeldBytes, OfOtherProgramsRecordsThatAreParsed) {
  const TemporaryFolder folder;
  const std::string pixels(mebibyte, 'p');
  const std::string tensor = field(1, 512) + field(1, 512) + field(2, 1) + field(3, pixels);
  const std::string image = "\xFF\xD8\xFF";
  const std::string numbers = msgpack_length(0xDD, mebibyte / 8) + std::string(mebibyte / 8, 7);
  const std::vector<std::pair<const char*, std::string>> entries = {
      {"caffe-datum", field(1, 1) + field(2, 1024) + field(3, 1024) + field(4, pixels)},
      {"caffe2-tensors", field(1, tensor)},
      {"tuples", '\x92' + msgpack_length(0xC6, image.size()) + image + numbers}};
  for (const auto& [format, value] : entries) {
    SCOPED_TRACE(format);
    const std::filesystem::path path = folder / (std::string(format) + ".lmdb");
    testing::write_pairs(path, {{"a", value}});
    const auto reader = open_dataset(path, {.format = format})->make_reader();
    EXPECT_LT(reader->held_bytes(), mebibyte / 1024);
    std::size_t bytes = 0;
    for (const RecordField& one : reader->read(0).fields()) bytes += one.bytes.size();
    EXPECT_GE(bytes, mebibyte);
    EXPECT_GE(reader->held_bytes(), mebibyte);
  }
}

}  // namespace
}  // namespace millrace
