// SPDX-License-Identifier: Apache-2.0
//
// Values that Python's own writers wrote must be read as Python's own readers read them.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

#include "dataset/values/caffe2_tensors.h"
#include "dataset/values/caffe_datum.h"
#include "dataset/values/msgpack.h"
#include "dataset/values/pickle.h"
#include "loader/dataset/values/rendered.h"
#include "support/run_program.h"

namespace millrace {
namespace {

using ::testing::AnyOf;
using testing::bytes_of;
using ::testing::HasSubstr;
using testing::rendered;

struct Written {
  std::string bytes;
  std::string expected;
};

std::string piece(const std::string& all, std::size_t& at) {
  std::uint32_t size = 0;
  std::memcpy(&size, all.substr(at, sizeof size).data(), sizeof size);
  at += sizeof size + size;
  return all.substr(at - size, size);
}

class PythonWritten : public ::testing::Test {
 protected:
  /// Skips the test if the writer is missing.
  void write(const char* kind, int count) {
    const testing::TemporaryFolder folder;
    const std::string path = (folder / "values").string();
    const auto python = testing::run_program(
        {"/usr/bin/python3", MILLRACE_WRITE_VALUES, kind, path, std::to_string(count)});
    if (python.exit_code == 77) GTEST_SKIP() << python.out;
    ASSERT_EQ(python.exit_code, 0) << python.err;
    std::ifstream file(path, std::ios::binary);
    const std::string all{std::istreambuf_iterator<char>(file), {}};
    for (std::size_t at = 0; at < all.size();) {
      Written& one = written_.emplace_back();
      one.bytes = piece(all, at);
      one.expected = piece(all, at);
    }
    ASSERT_GT(std::ssize(written_), count / 2);
  }

  void expect_all(const std::function<Status(std::span<const std::byte>, Values&)>& read) {
    Values values;
    for (const Written& one : written_) {
      const Status status = read(bytes_of(one.bytes), values);
      if (one.expected.starts_with('!')) {
        ASSERT_THAT(status.reason(), HasSubstr(one.expected.substr(1)));
      } else {
        ASSERT_TRUE(status.is_ok()) << status.reason() << " in " << one.bytes.substr(0, 500);
        ASSERT_EQ(rendered(values), one.expected);
      }
    }
  }

  std::vector<Written> written_;
  PickleReader pickle_;
};

TEST_F(PythonWritten, PicklesOfAllProtocols) {
  write("pickle", 1000);
  expect_all([&](auto input, Values& values) { return pickle_.read(input, values); });
}

TEST_F(PythonWritten, StringsOfPython2) {
  write("python2", 200);
  expect_all([&](auto input, Values& values) { return pickle_.read(input, values); });
}

TEST_F(PythonWritten, Msgpack) {
  write("msgpack", 1000);
  expect_all(read_msgpack);
}

std::string rendered(const CaffeDatum& datum) {
  std::string text = datum.encoded ? "(T" : "(F";
  for (const std::int64_t size : {datum.channels, datum.height, datum.width})
    text += rendered(size);
  text += rendered(datum.data) + "[";
  for (const float value : datum.floats) text += rendered(double{value});
  return text + "]" + (datum.label ? rendered(std::int64_t{*datum.label}) : "N") + ")";
}

std::string rendered(const Caffe2Tensor& tensor) {
  std::string text = "(" + rendered(static_cast<std::int64_t>(tensor.type)) + "[";
  for (const std::int64_t size : tensor.shape) text += rendered(size);
  if (tensor.type == Caffe2Type::byte) return text + "]" + rendered(tensor.bytes) + ")";
  text += "][";
  for (const float value : tensor.floats) text += rendered(double{value});
  for (const std::int64_t value : tensor.integers) text += rendered(value);
  for (const std::span<const std::byte> value : tensor.strings) text += rendered(value);
  return text + "])";
}

TEST_F(PythonWritten, DatumsOfCaffe) {
  write("datum", 500);
  CaffeDatum datum;
  for (const Written& one : written_) {
    ASSERT_EQ(datum.read(bytes_of(one.bytes)).reason(), "");
    ASSERT_EQ(rendered(datum), one.expected);
  }
}

TEST_F(PythonWritten, TensorsOfCaffe2) {
  write("tensors", 500);
  Caffe2Tensors record;
  for (const Written& one : written_) {
    ASSERT_EQ(record.read(bytes_of(one.bytes)).reason(), "");
    std::string text = "[";
    for (const Caffe2Tensor& tensor : record.tensors()) text += rendered(tensor);
    ASSERT_EQ(text + "]", one.expected);
  }
}

/// A damaged pickle that is accepted must have the value that Python reads. Python may refuse it
/// for reasons such as a short frame or an unhashable key.
TEST_F(PythonWritten, DamagedPicklesAreReadAlikeOrRefused) {
  write("mutated", 10000);
  Values values;
  // The reasons to refuse a pickle that Python accepts: useless memo numbers, frames that end too
  // late, bytes behind the end, integers of any size, sets and the like.
  const auto stricter = AnyOf(HasSubstr("PUT at"), HasSubstr("FRAME at"), HasSubstr("STOP at"),
                              HasSubstr("64 bits"), HasSubstr("finds no"), HasSubstr("never done"));
  int taken = 0, more = 0;
  for (const Written& one : written_) {
    const Status status = pickle_.read(bytes_of(one.bytes), values);
    if (!status.is_ok()) {
      if (one.expected != "!") {
        ASSERT_THAT(status.reason(), stricter);
      }
      continue;
    }
    ++taken;
    if (one.expected == "!") {
      ++more;
    } else {
      ASSERT_EQ(rendered(values), one.expected) << testing::hexadecimal(one.bytes);
    }
  }
  EXPECT_GT(taken, 1000);
  EXPECT_LT(more, taken / 50);
}

}  // namespace
}  // namespace millrace
