// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/npy_header.h"

#include <gmock/gmock.h>
#include <millrace/random.h>

#include "loader/dataset/array/npy_files.h"
#include "support/stored_records.h"

namespace millrace {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace testing;

NpyHeader parsed(const std::string& file) {
  return parse_npy_header(std::as_bytes(std::span(file)));
}

/// Returns the error for a file with such a dictionary.
std::string problem_of(const std::string& dictionary, char major = 1) {
  const Error error = thrown_by([&] { (void)parsed(npy_header(dictionary, major)); });
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  return error.what();
}

constexpr const char* sound = "{'descr': '<i4', 'fortran_order': False, 'shape': (3, 5), }";

TEST(NpyHeader, IsReadInEachVersion) {
  for (const char major : {'\1', '\2', '\3'}) {
    const NpyHeader header = parsed(npy_header(sound, major));
    EXPECT_EQ(header.dtype, DType::int32);
    EXPECT_THAT(header.extents, ElementsAre(3, 5));
    EXPECT_EQ(header.data_offset, npy_header(sound, major).size());
  }
}

TEST(NpyHeader, IsReadHoweverItsWriterSpacesAndOrdersIt) {
  EXPECT_THAT(parsed(npy_header(R"({"shape":(7,),"fortran_order":False,"descr":"|u1"})")).extents,
              ElementsAre(7));
  EXPECT_THAT(parsed(npy_header("  { 'fortran_order' : False ,\n 'descr' : '<f2' , "
                                "'shape' : ( 2L , 3L )\n}"))
                  .extents,
              ElementsAre(2, 3));
  EXPECT_THAT(parsed(npy_header("{'descr': '>i1', 'fortran_order': False, 'shape': ()}")).extents,
              IsEmpty());
}

TEST(NpyHeader, ADtypeWithoutOrderIsLittleEndian) {
  for (const char* descr : {"i4", "|i4", "=i4"})
    EXPECT_EQ(parsed(npy_header("{'descr': '" + std::string(descr) +
                                "', 'fortran_order': False, 'shape': (3,)}"))
                  .dtype,
              DType::int32)
        << descr;
}

TEST(NpyHeader, WhatIsNotReadIsNamed) {
  const auto with_dtype = [](const std::string& descr) {
    return problem_of("{'descr': " + descr + ", 'fortran_order': False, 'shape': (3,), }");
  };
  EXPECT_THAT(with_dtype("'>f8'"), HasSubstr("big-endian numbers (dtype \">f8\")"));
  EXPECT_THAT(with_dtype("'|O'"), HasSubstr("Python objects"));
  EXPECT_THAT(with_dtype("[('x', '<i4')]"), HasSubstr("structured"));
  EXPECT_THAT(with_dtype("('<i4', (2,))"), HasSubstr("structured"));
  EXPECT_THAT(with_dtype("'<c16'"), HasSubstr("dtype \"<c16\"; there are bool, int8"));
  EXPECT_THAT(with_dtype("'<f16'"), HasSubstr("dtype \"<f16\""));
  EXPECT_THAT(with_dtype("''"), HasSubstr("dtype \"\""));
  EXPECT_THAT(problem_of("{'descr': '<i4', 'fortran_order': True, 'shape': (3, 5), }"),
              HasSubstr("numpy.ascontiguousarray"));
  EXPECT_THAT(problem_of(sound, '\4'), HasSubstr("version 4.0 of the .npy format"));
}

TEST(NpyHeader, DamagedOnesAreNamed) {
  for (const auto& [dictionary, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "no \"{\""},
           {"{", "no text where"},
           {"{'descr': '<i4'", "no \"}\""},
           {"{'descr': '<i4}", "a text has no end"},
           {"{'descr'}", "no \":\""},
           {"{'fortran_order': False, 'shape': (3,), }", "no \"descr\""},
           {"{'descr': '<i4', 'shape': (3,), }", "no \"fortran_order\""},
           {"{'descr': '<i4', 'fortran_order': False, }", "no \"shape\""},
           {"{'descr': '<i4', 'descr': '<i4', 'fortran_order': False, 'shape': (3,)}", "once each"},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (3,), 'more': 3}", "\"more\""},
           {"{'descr': '<i4', 'fortran_order': Falsch, 'shape': (3,)}", "neither True nor False"},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': 3}", "no \"(\""},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (3)}", "not a tuple"},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (-3,)}", "not a tuple of counts"},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (3, 4}", "no \")\""},
           {"{'descr': '<i4', 'fortran_order': False, 'shape': (99999999999999999999,)}", "2^64"},
           {std::string(sound) + "x", "follows"}})
    EXPECT_THAT(problem_of(dictionary), HasSubstr(words)) << dictionary;
  std::string many = "{'descr': '<i4', 'fortran_order': False, 'shape': (";
  for (int n = 0; n < 64; ++n) many += "1,";
  EXPECT_EQ(parsed(npy_header(many + ")}")).extents.size(), 64U);
  EXPECT_THAT(problem_of(many + "1,)}"), HasSubstr("more than 64 extents"));
}

TEST(NpyHeader, ALongOneIsRefusedBeforeItIsRead) {
  std::string file = npy_header(sound, '\2');
  file[8] = file[9] = file[10] = '\xff';
  EXPECT_THAT(thrown_by([&] { (void)parsed(file); }).what(), HasSubstr("at most 65524 are read"));
}

TEST(NpyHeader, CutShortItIsAnError) {
  const std::string file = npy_header(sound);
  for (std::size_t length = 0; length < file.size(); ++length)
    EXPECT_EQ(thrown_by([&] { (void)parsed(file.substr(0, length)); }).code(), ErrorCode::corrupt)
        << length;
  EXPECT_NO_THROW((void)parsed(file));
}

TEST(NpyHeader, DamageEndsInAnErrorOrInAnotherHeader) {
  Random random(3, 0);
  int read = 0;
  for (int damage = 0; damage < 20000; ++damage) {
    std::string file = npy_header(sound, static_cast<char>(1 + random.below(3)));
    for (std::uint64_t times = 1 + random.below(3); times > 0; --times)
      file[random.below(file.size())] = static_cast<char>(random());
    try {
      const NpyHeader header = parsed(file);
      EXPECT_LE(header.data_offset, file.size());
      ++read;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::corrupt);
    }
  }
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace millrace
