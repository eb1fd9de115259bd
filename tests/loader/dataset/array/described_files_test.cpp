// SPDX-License-Identifier: Apache-2.0
//
// The example descriptions of loader/README.md, verbatim, with generated files.
#include <gmock/gmock.h>
#include <millrace/dataset.h>
#include <millrace/random.h>

#include "loader/dataset/array/npy_files.h"
#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using namespace testing;

/// Returns the block of JSON in the page that contains these words.
std::string description_with(const std::string& words) {
  const std::string page = file_contents(MILLRACE_LOADER_README);
  constexpr std::string_view fence = "```json\n";
  for (std::size_t at = page.find(fence); at != std::string::npos; at = page.find(fence, at + 1)) {
    const std::size_t begin = at + fence.size();
    const std::string block = page.substr(begin, page.find("```", begin) - begin);
    if (block.find(words) != std::string::npos) return block;
  }
  ADD_FAILURE() << "loader/README.md has no description with " << words;
  return "";
}

std::string random_bytes(std::size_t count, std::uint64_t seed) {
  Random random(seed, 0);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// https://www.cs.toronto.edu/~kriz/cifar.html: a label, then 1,024 bytes each of red, green, blue.
TEST(DescribedFiles, Cifar10) {
  const TemporaryFolder folder;
  constexpr std::size_t in_file = 20;
  std::string all;
  for (int file = 1; file <= 5; ++file) {
    std::string bytes = random_bytes(in_file * 3073, static_cast<std::uint64_t>(file));
    for (std::size_t record = 0; record < in_file; ++record)
      bytes[record * 3073] = static_cast<char>((static_cast<std::size_t>(file) + record) % 10);
    write_bytes(folder / ("data_batch_" + std::to_string(file) + ".bin"), bytes);
    all += bytes;
  }
  write_bytes(folder / "cifar10.json", description_with("data_batch_1.bin"));
  const auto dataset = open_dataset(folder / "cifar10.json");
  ASSERT_EQ(dataset->size(), 5 * in_file);
  EXPECT_EQ(dataset->classes().size(), 10U);
  EXPECT_EQ(dataset->classes().at(3), "cat");
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < dataset->size(); ++index) {
    const Record record = reader->read(index);
    const std::size_t at = index * 3073;
    EXPECT_EQ(record.integer("label"), all[at]);
    std::string image = "P6\n32 32\n255\n";
    for (std::size_t pixel = 0; pixel < 1024; ++pixel)
      for (std::size_t colour = 0; colour < 3; ++colour)
        image += all[at + 1 + 1024 * colour + pixel];
    EXPECT_EQ(record.text("image"), image);
  }
}

// http://yann.lecun.com/exdb/mnist: two files of IDX format, with headers of big-endian numbers.
TEST(DescribedFiles, Mnist) {
  const TemporaryFolder folder;
  constexpr std::size_t records = 30;
  const std::string pixels = random_bytes(records * 784, 1);
  std::string labels;
  for (std::size_t record = 0; record < records; ++record)
    labels += static_cast<char>(record * 7 % 10);
  const char sizes[] = {0, 0, 0, records, 0, 0, 0, 28, 0, 0, 0, 28};
  write_bytes(folder / "train-images-idx3-ubyte",
              std::string("\0\0\x08\x03", 4) + std::string(sizes, 12) + pixels);
  write_bytes(folder / "train-labels-idx1-ubyte",
              std::string("\0\0\x08\x01", 4) + std::string(sizes, 4) + labels);
  write_bytes(folder / "mnist.json", description_with("train-images-idx3-ubyte"));
  const auto dataset = open_dataset(folder / "mnist.json");
  ASSERT_EQ(dataset->size(), records);
  const auto reader = dataset->make_reader();
  for (std::uint64_t index = 0; index < records; ++index) {
    const Record record = reader->read(index);
    EXPECT_EQ(record.integer("label"), labels[index]);
    EXPECT_EQ(record.text("image"), "P5\n28 28\n255\n" + pixels.substr(784 * index, 784));
  }
}

TEST(DescribedFiles, TokensAndLists) {
  const TemporaryFolder folder;
  write_npy(folder / "tokens.npy", "<u2", std::vector<std::uint16_t>(3000, 5));
  write_bytes(folder / "tokens.json", description_with("\"stride\""));
  const auto tokens = open_dataset(folder / "tokens.json");
  EXPECT_EQ(tokens->size(), 2U);
  EXPECT_THAT(tokens->field_specs(), ElementsAre(FieldSpec{"tokens", DType::uint16, {1025}}));

  write_npy(folder / "values.npy", "<i4", std::vector<std::int32_t>{1, 2, 3});
  write_npy(folder / "offsets.npy", "<i8", std::vector<std::int64_t>{0, 1, 3});
  write_npy(folder / "clicked.npy", "|u1", std::vector<std::uint8_t>{0, 1});
  write_bytes(folder / "lists.json", description_with("offsets.npy"));
  const auto lists = open_dataset(folder / "lists.json");
  EXPECT_EQ(lists->size(), 2U);
  EXPECT_EQ(lists->make_reader()->read(1).integer("label"), 1);
  EXPECT_TRUE(lists->field_specs().at(0).variable);
  EXPECT_GT(lists->field_specs().at(0).shape[0], 0U);
}

}  // namespace
}  // namespace millrace
