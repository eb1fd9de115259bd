// SPDX-License-Identifier: Apache-2.0
#include "dataset/files/files_dataset.h"

#include <fcntl.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/image_list.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/detail/webdataset_sample.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"
#include "base/read_ahead.h"
#include "dataset/files/image_folder.h"
#include "dataset/joined_dataset.h"
#include "dataset/stored_dataset.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 30;

/// Returns whether an error concerns the process or the machine and not the file.
bool ends_run(int error) {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS;
}

class FilesDataset final : public StoredDataset {
 public:
  /// `path`: the folder or the list itself. `folder`: the images' paths are relative to it.
  FilesDataset(std::string path, const fs::path& folder, ListedImages images, DatasetFacts facts,
               const OpenOptions& options)
      : path_(std::move(path)),
        folder_(fs::absolute(folder.empty() ? "." : folder).string() + "/"),
        images_(std::move(images)),
        facts_(std::move(facts)) {
    facts_.files = {path_};
    facts_.fields = {"image", "label"};
    facts_.fingerprint = fingerprint();
    if (options.hints)
      hints_ = StoredHints::open(path_, {.records = size(), .fingerprint = *facts_.fingerprint},
                                 options.map, facts_.warnings);
  }

  std::uint64_t size() const override { return images_.paths.size(); }
  std::string name() const override { return path_; }
  std::vector<std::string> classes() const override { return images_.classes; }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;
  std::string key(std::uint64_t index) const override {
    return index < size() ? one_line(images_.paths[index]) : Dataset::key(index);
  }
  DatasetFacts facts() const override { return facts_; }
  std::optional<StoredRecord> stored_record(std::uint64_t index) const override;

 private:
  class Reader;

  std::string file(std::uint64_t index) const { return folder_ + images_.paths[index]; }
  std::uint64_t fingerprint() const;

  std::string path_;
  std::string folder_;
  ListedImages images_;
  DatasetFacts facts_;
};

class FilesDataset::Reader final : public DatasetReader {
 public:
  explicit Reader(std::shared_ptr<const FilesDataset> dataset) : dataset_(std::move(dataset)) {}

  Record read(std::uint64_t index) override {
    check_index(*dataset_, index);
    unreadable_ = Status::ok();
    const std::string file = dataset_->file(index);
    std::size_t bytes = 0;
    if (const Status status = read_file(file, index, bytes); !status.is_ok()) {
      const std::string reason = file + " " + status.reason();
      if (!unreadable_.is_ok()) unreadable_ = Status::bad(reason);
      throw Error(ErrorCode::bad_record, record_name(*dataset_, index) + ": " + reason, "", index,
                  reason);
    }
    label_ = dataset_->images_.label(index);
    fields_ = {RecordField{"image", std::span(buffer_).first(bytes)},
               RecordField{"label", std::as_bytes(std::span(&label_, 1))}};
    return Record(index, fields_);
  }

  Status intact() const override { return unreadable_; }
  std::size_t held_bytes() const override { return buffer_.capacity(); }

 private:
  Status read_file(const std::string& name, std::uint64_t index, std::size_t& bytes);

  std::shared_ptr<const FilesDataset> dataset_;
  std::vector<std::byte> buffer_;
  std::int64_t label_ = 0;
  std::array<RecordField, 2> fields_{};
  /// The system's error for the file that was read last.
  Status unreadable_ = Status::ok();
};

Status FilesDataset::Reader::read_file(const std::string& name, std::uint64_t index,
                                       std::size_t& bytes) {
  const auto refused = [&](int error) {
    if (ends_run(error))
      throw Error(ErrorCode::io, name + " cannot be read: " + errno_text(error), "", index);
    Status status = Status::bad("cannot be read: " + errno_text(error));
    if (!names_no_file(error)) unreadable_ = status;
    return status;
  };
  const FileDescriptor file =
      FileDescriptor::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (!file) return refused(errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return refused(errno);
  if (!S_ISREG(status.st_mode)) return Status::bad("is not a regular file");
  const auto length = static_cast<std::size_t>(status.st_size);
  if (length == 0) return Status::bad("is empty");
  if (length > max_file_bytes)
    return Status::bad("is " + std::to_string(length) + " bytes long; at most 1 GiB is read");
  // Reads one byte more than the length, to detect a file that has grown.
  if (buffer_.size() <= length) buffer_.resize(length + 1);
  for (bytes = 0; bytes <= length;) {
    const ssize_t read = ::read(file.get(), buffer_.data() + bytes, length + 1 - bytes);
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return refused(errno);
    if (read == 0) break;
    bytes += static_cast<std::size_t>(read);
  }
  if (bytes != length) unreadable_ = Status::bad("was changed while it was read");
  return unreadable_;
}

std::unique_ptr<DatasetReader> FilesDataset::make_reader() const {
  return std::make_unique<Reader>(std::static_pointer_cast<const FilesDataset>(shared_from_this()));
}

void FilesDataset::prefetch(std::span<const std::uint64_t> indices) const {
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    const std::string name = file(index);
    const FileDescriptor opened =
        FileDescriptor::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status {};
    // Ignored here: reading the record reports this error.
    if (!opened || ::fstat(opened.get(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    const auto bytes =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), max_file_bytes);
    read_ahead({{0, static_cast<std::size_t>(bytes)}}, nullptr, opened.get());
  }
}

std::optional<StoredRecord> FilesDataset::stored_record(std::uint64_t index) const {
  if (index >= size()) return {};
  std::string name = file(index);
  struct stat status {};
  if (::stat(name.c_str(), &status) != 0) return {};
  return StoredRecord{.file = std::move(name), .bytes = static_cast<std::uint64_t>(status.st_size)};
}

std::uint64_t FilesDataset::fingerprint() const {
  std::uint64_t fingerprint = 0;
  for (std::uint64_t index = 0; index < size(); ++index) {
    const std::string path = images_.paths[index];
    const auto label = static_cast<std::uint64_t>(images_.label(index));
    fingerprint =
        fingerprint_with(fingerprint, XXH3_64bits_withSeed(path.data(), path.size(), label));
  }
  return fingerprint;
}

}  // namespace

Status probe_image_folder(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return Status::bad("it is not a folder");
  if (fs::exists(path / "data.mdb", ignored))
    return Status::bad("it is a folder with a data.mdb, as LMDB makes it");
  return may_be_image_folder(path) ? Status::ok()
                                   : Status::bad("it is a folder without folders or images in it");
}

std::shared_ptr<const Dataset> open_image_folder(const fs::path& path, const OpenOptions& options) {
  ListedImages images = list_image_folder(path);
  const std::string reason =
      images.classes.empty()
          ? "it is a folder of images without class folders"
          : "it is a folder of " + std::to_string(images.classes.size()) + " class folders";
  DatasetFacts facts{.format = "image folder", .format_reason = reason};
  facts.warnings = std::move(images.warnings);
  return std::make_shared<FilesDataset>(path.string(), path, std::move(images), std::move(facts),
                                        options);
}

Status probe_image_list(const fs::path& path) {
  std::error_code ignored;
  Status no_list = Status::bad("its first line is not path,label");
  if (!fs::is_regular_file(path, ignored)) return Status::bad("it is not a regular file");
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  const std::string begin = read_text(file, std::size_t{2} * PATH_MAX);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io, path.string() + " cannot be read: " + errno_text(errno));
  std::string_view line = begin;
  line.remove_prefix(std::min(line.find_first_not_of("\r\n"), line.size()));
  line = line.substr(0, line.find_first_of("\r\n"));
  const std::size_t comma = line.rfind(',');
  if (comma == line.npos || comma == 0 || line.find('\0') != line.npos) return no_list;
  return parse_label(line.substr(comma + 1)) ? Status::ok() : no_list;
}

std::shared_ptr<const Dataset> open_image_list(const fs::path& path, const OpenOptions& options) {
  ListedImages images;
  read_image_list(path, [&](std::string_view file, std::int64_t label) {
    images.paths.add(file);
    images.labels.push_back(label);
  });
  if (images.labels.empty()) throw Error(ErrorCode::corrupt, path.string() + " lists no image");
  images.paths.shrink();
  images.labels.shrink_to_fit();
  return std::make_shared<FilesDataset>(
      path.string(), path.parent_path(), std::move(images),
      DatasetFacts{.format = "image list", .format_reason = "its first line is path,label"},
      options);
}

}  // namespace millrace
