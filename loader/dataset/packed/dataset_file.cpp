// SPDX-License-Identifier: Apache-2.0
#include "dataset/packed/dataset_file.h"

#include <millrace/error.h>
#include <sys/mman.h>

#include <utility>

namespace millrace {

DatasetRoot read_dataset_root(const LmdbPages& pages, const LmdbTree& main,
                              const std::string& name) {
  if (main.entries == 0)
    throw Error(ErrorCode::corrupt,
                name + " is not a dataset: it is an LMDB file with nothing in it");
  try {
    const auto meta = pages.find_tree(main, meta_database);
    const auto records = pages.find_tree(main, records_database);
    const bool have_both = main.flags == 0 && meta && records && meta->flags == 0 &&
                           records->flags == lmdb::integer_keys;
    const auto value = have_both ? pages.find_value(*meta, description_key) : std::nullopt;
    if (!value)
      throw Error(
          ErrorCode::corrupt,
          name + " is an LMDB file, but not a millrace dataset; make one with `millrace pack`");

    DatasetRoot root{
        parse_description({reinterpret_cast<const char*>(value->data()), value->size()}, name),
        *records};
    if (root.description.records != records->entries)
      throw Error(ErrorCode::corrupt, name + " says it has " +
                                          std::to_string(root.description.records) +
                                          " records, but " + std::to_string(records->entries) +
                                          " are there: it is damaged; pack it again");
    return root;
  } catch (const LmdbDamage& damage) {
    throw Error(ErrorCode::corrupt,
                name + " has damaged pages (" + damage.what() + "); copy or pack it again");
  }
}

Status DatasetFile::probe(const std::filesystem::path& path) {
  Status found = LmdbFile::probe(path);
  if (!found.is_ok()) return found;
  try {
    const auto file = LmdbFile::open(path, false);
    const LmdbTree& main = file->meta().main;
    const bool has_both = LmdbCursor(*file).with([&](const LmdbPages& pages) {
      return main.flags == 0 && pages.find_tree(main, meta_database) &&
             pages.find_tree(main, records_database);
    });
    // An LMDB file without entries may have been left by an interrupted writer.
    if (!has_both && main.entries > 0)
      return Status::bad("it is an LMDB file, but not a millrace dataset");
  } catch (const LmdbDamage&) {
    // Ignored here: opening the file reports this error.
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
  }
  return found;
}

std::shared_ptr<const DatasetFile> DatasetFile::open(const std::filesystem::path& path,
                                                     bool mapped) {
  std::shared_ptr<const DatasetFile> opened(new DatasetFile(LmdbFile::open(path, mapped)));
  // An incomplete file is not shared, since it may have more records when it is opened again.
  if (!opened->description().complete) return opened;
  std::shared_ptr<const LmdbFile> shared = LmdbFile::share(opened->file_);
  if (shared == opened->file_) return opened;
  return std::shared_ptr<const DatasetFile>(new DatasetFile(std::move(shared)));
}

DatasetFile::DatasetFile(std::shared_ptr<const LmdbFile> file) : file_(std::move(file)) {
  try {
    root_ = LmdbCursor(*file_).with([&](const LmdbPages& pages) {
      return read_dataset_root(pages, file_->meta().main, file_->name());
    });
  } catch (const Error&) {
    file_->check_not_lost({0, file_->bytes()});
    throw;
  }
}

void DatasetFile::check() const {
  const auto refuse = [&](const std::string& what) {
    file_->check_not_lost({0, file_->bytes()});
    throw Error(ErrorCode::corrupt, file_->name() + " is damaged, so nothing is added to it: " +
                                        what + "; copy or pack it again");
  };
  // The check reads nearly in file order, while all other reads are in random order.
  const std::span<const std::byte> file = file_->map();
  if (file.empty())
    throw Error(ErrorCode::io,
                file_->name() +
                    " cannot be mapped, so nothing is added to it; copy it to another "
                    "file system");
  madvise(const_cast<std::byte*>(file.data()), file.size(), MADV_SEQUENTIAL);
  try {
    const LmdbPages pages(file, file_->meta().page_bytes);
    pages.check();
    LmdbLeafRange place;
    std::vector<RecordField> fields;
    std::uint64_t fingerprint = 0;
    for (std::uint64_t index = 0; index < root_.description.records; ++index) {
      const std::span<const std::byte> value = pages.find_record(root_.records, index, place);
      Status status = check_checksum(value);
      if (status.is_ok()) status = parse_record(value, root_.description.fields, fields);
      if (!status.is_ok()) refuse("record " + std::to_string(index) + ": " + status.reason());
      fingerprint = fingerprint_with(fingerprint, *stored_checksum(value));
    }
    if (fingerprint != root_.description.fingerprint)
      refuse("its records are not those that were written, or not in their order");
  } catch (const LmdbDamage& damage) {
    refuse(damage.what());
  }
  file_->check_not_lost({0, file.size()});
}

std::span<const std::byte> DatasetCursor::find(std::uint64_t index) {
  return cursor_.with(
      [&](const LmdbPages& pages) { return pages.find_record(root_.records, index, place_); });
}

FileRange DatasetCursor::locate(std::uint64_t index) {
  return cursor_.with(
      [&](const LmdbPages& pages) { return pages.locate_record(root_.records, index, place_); });
}

Status DatasetCursor::check_intact(std::span<const std::byte> value) const {
  Status kept = cursor_.check_intact(value);
  if (!kept.is_ok() || value.empty() || file_.whole()) return kept;
  // If the file was shortened, the rest of its last page reads as zeros without a fault.
  if (check_checksum(value).is_ok()) return kept;
  return Status::bad(file_.unreadable(cursor_.offset_of(value), shorter_or_damaged).reason());
}

}  // namespace millrace
