// SPDX-License-Identifier: Apache-2.0
#include "dataset/record_notes.h"

#include <gmock/gmock.h>

#include <thread>
#include <vector>

namespace millrace {
namespace {

using Note = std::vector<std::byte>;

Note note_of(const RecordNotes& notes, std::uint64_t record) {
  Note note{std::byte{99}};
  notes.read(record, note);
  return note;
}

TEST(RecordNotes, GivesWhatWasKeptLast) {
  RecordNotes notes;
  notes.allow(1000);
  EXPECT_EQ(note_of(notes, 5), Note());
  const Note first(10, std::byte{1});
  const Note second(20, std::byte{2});
  notes.keep(5, first);
  notes.keep(5 + 64, second);
  EXPECT_EQ(note_of(notes, 5), first);
  EXPECT_EQ(note_of(notes, 5 + 64), second);
  notes.keep(5, second);
  EXPECT_EQ(note_of(notes, 5), second);
  notes.keep(5, first);
  EXPECT_EQ(note_of(notes, 5), first);
}

TEST(RecordNotes, KeepsNoMoreThanItMay) {
  RecordNotes notes;
  const Note note(400, std::byte{1});
  notes.keep(0, note);
  EXPECT_EQ(notes.bytes(), 0U) << "nothing was allowed yet";
  notes.allow(1000);
  for (std::uint64_t record = 0; record < 100; ++record) notes.keep(record, note);
  EXPECT_GT(notes.bytes(), 800U);
  EXPECT_LE(notes.bytes(), 1000U);
  EXPECT_EQ(note_of(notes, 0), note);
  EXPECT_EQ(note_of(notes, 1), note);
  EXPECT_EQ(note_of(notes, 2), Note());
  notes.keep(0, Note(500, std::byte{2}));
  EXPECT_EQ(note_of(notes, 0), note) << "one that does not fit leaves the one before";
  notes.keep(0, Note(10, std::byte{3}));
  notes.keep(1, Note(500, std::byte{4}));
  EXPECT_EQ(note_of(notes, 1).size(), 500U) << "room that was given back";
  notes.allow(10);
  EXPECT_LE(notes.bytes(), 1000U);
  notes.allow(2000);
  notes.keep(2, note);
  EXPECT_EQ(note_of(notes, 2), note) << "more was allowed";
}

TEST(RecordNotes, IsForManyThreads) {
  RecordNotes notes;
  notes.allow(200'000);
  {
    std::vector<std::jthread> threads;
    for (unsigned thread = 0; thread < 4; ++thread)
      threads.emplace_back([&, thread] {
        for (std::uint64_t n = 0; n < 20'000; ++n) {
          const std::uint64_t record = n * 7 % 1000;
          if ((n + thread) % 3 == 0)
            notes.keep(record, Note(1 + (n + thread) % 300, static_cast<std::byte>(record)));
          for (const std::byte byte : note_of(notes, record))
            ASSERT_EQ(byte, static_cast<std::byte>(record));
        }
      });
  }
  EXPECT_LE(notes.bytes(), 200'000U);
  EXPECT_GT(notes.bytes(), 100'000U);
}

}  // namespace
}  // namespace millrace
