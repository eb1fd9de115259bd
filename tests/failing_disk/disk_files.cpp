// SPDX-License-Identifier: Apache-2.0
#include "failing_disk/disk_files.h"

#include <fstream>
#include <stdexcept>
#include <string>

#include "support/stored_records.h"
#include "support/temporary_folder.h"

namespace millrace::testing {
namespace {

/// Page of a file that contains the middle of a record's image.
std::uint64_t middle_page(const std::string& bytes, std::uint64_t record) {
  const std::vector<std::byte> image = stored_bytes(record);
  const std::size_t at =
      bytes.find(std::string(reinterpret_cast<const char*>(image.data()), image.size()));
  if (image.empty() || at == std::string::npos) throw std::runtime_error("a record is not there");
  return (at + image.size() / 2) / DiskFiles::page_bytes;
}

std::set<std::uint64_t> bad_records_of(const std::filesystem::path& dataset) {
  std::set<std::uint64_t> bad;
  const auto reader = open_dataset(dataset)->make_reader();
  for (std::uint64_t record = 0; record < DiskFiles::records; ++record) try {
      (void)reader->read(record);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::bad_record) throw;
      bad.insert(record);
    }
  return bad;
}

}  // namespace

void write_disk_files(const std::filesystem::path& folder) {
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  DiskFiles files{folder};
  write_dataset(files.dataset(), DiskFiles::records);
  std::string bytes = file_contents(files.dataset());
  for (std::uint64_t record = 0; record < DiskFiles::records; ++record)
    if (record == 30 || (record % 10 == 7 && stored_bytes(record).size() > 3 * files.page_bytes))
      files.lost_pages.insert(middle_page(bytes, record));
  for (const std::uint64_t page : files.lost_pages)
    bytes.replace(page * files.page_bytes, files.page_bytes, files.page_bytes, '\0');
  const TemporaryFolder copy;
  write_file(copy / "a.lmdb", bytes);
  files.bad_records = bad_records_of(copy / "a.lmdb");
  if (files.lost_pages.size() < 3 || files.bad_records.size() <= files.lost_pages.size())
    throw std::runtime_error("too little would be lost");

  std::string own;
  for (std::size_t page = 0; page < files.own_pages; ++page)
    own += std::string(files.page_bytes, static_cast<char>('a' + page));
  write_file(files.own(), own);
  std::ofstream lost(folder / "lost_pages");
  for (const std::uint64_t page : files.lost_pages) lost << "a.lmdb " << page << '\n';
  lost << "own " << files.own_lost_page << '\n';
  std::ofstream bad(folder / "bad_records");
  for (const std::uint64_t record : files.bad_records) bad << record << '\n';
}

DiskFiles DiskFiles::read(const std::filesystem::path& folder) {
  DiskFiles files{folder};
  std::ifstream lost(folder / "lost_pages");
  std::string name;
  for (std::uint64_t page = 0; lost >> name >> page;)
    if (name == files.dataset().filename()) files.lost_pages.insert(page);
  std::ifstream bad(folder / "bad_records");
  for (std::uint64_t record = 0; bad >> record;) files.bad_records.insert(record);
  return files;
}

}  // namespace millrace::testing
