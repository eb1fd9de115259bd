// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/error.h>

#include <set>
#include <string>

namespace millrace {
namespace {

TEST(Error, CarriesCodeMessageStageAndRecord) {
  const Error error(ErrorCode::corrupt, "train.lmdb: page 3 is damaged", "read", 17);
  EXPECT_EQ(error.code(), ErrorCode::corrupt);
  EXPECT_STREQ(error.what(), "train.lmdb: page 3 is damaged");
  EXPECT_EQ(error.stage(), "read");
  EXPECT_EQ(error.record(), 17U);
}

TEST(Error, HasNoStageAndNoRecordByDefault) {
  const Error error(ErrorCode::io, "disk full");
  EXPECT_TRUE(error.stage().empty());
  EXPECT_FALSE(error.record().has_value());
}

TEST(Error, HasItsReasonApart) {
  const Error plain(ErrorCode::io, "disk full");
  EXPECT_EQ(plain.reason(), "disk full");
  const Error error(ErrorCode::bad_record, "record 3 (a.jpg) of a.lmdb cannot be read: it is short",
                    "read", 3, "it is short");
  EXPECT_STREQ(error.what(), "record 3 (a.jpg) of a.lmdb cannot be read: it is short");
  EXPECT_EQ(error.reason(), "it is short");
}

TEST(Error, IsToldAgainByWhoKnowsWhere) {
  const Error inner(ErrorCode::bad_record, "record 3 of b.lmdb: it is short", "read", 3,
                    "it is short");
  const Error outer = inner.with_context("record 13 of both: ", inner.stage(), 13);
  EXPECT_EQ(outer.code(), ErrorCode::bad_record);
  EXPECT_STREQ(outer.what(), "record 13 of both: record 3 of b.lmdb: it is short");
  EXPECT_EQ(outer.reason(), "it is short");
  EXPECT_EQ(outer.stage(), "read");
  EXPECT_EQ(outer.record(), 13U);
  const Error nowhere = inner.with_context("in all: ");
  EXPECT_TRUE(nowhere.stage().empty());
  EXPECT_FALSE(nowhere.record().has_value());
}

TEST(Error, IsCaughtAsARuntimeError) {
  try {
    throw Error(ErrorCode::timeout, "too late");
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "too late");
  }
}

TEST(Error, CodesHaveTheirOwnNames) {
  EXPECT_STREQ(to_string(ErrorCode::invalid_argument), "invalid_argument");
  EXPECT_STREQ(to_string(ErrorCode::slots_exhausted), "slots_exhausted");
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code)
    names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::internal) + 1);
}

TEST(Status, IsOkOrBadWithAReason) {
  EXPECT_TRUE(Status::ok().is_ok());
  EXPECT_EQ(Status::ok().reason(), "");
  const Status bad = Status::bad("no JPEG header");
  EXPECT_FALSE(bad.is_ok());
  EXPECT_EQ(bad.reason(), "no JPEG header");
}

TEST(Status, IsBadWithoutAReasonToo) {
  EXPECT_FALSE(Status::bad("").is_ok());
  EXPECT_FALSE(Status::bad("").reason().empty());
}

}  // namespace
}  // namespace millrace
