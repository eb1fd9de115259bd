// SPDX-License-Identifier: Apache-2.0
#include <millrace/error.h>
#include <millrace/tar_stream.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "dataset/tar/sequential_bytes.h"
#include "dataset/tar/tar_file.h"
#include "dataset/tar/tar_index.h"
#include "dataset/tar/tar_names.h"
#include "dataset/tar/tar_sample.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

/// End of a tar whose length is unknown, so far away that no sum of offsets overflows.
constexpr std::uint64_t unknown_end = std::numeric_limits<std::int64_t>::max();

std::vector<std::string> tar_names_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) && is_tar_pattern(path)) return expand_tar_pattern(path);
  if (fs::is_regular_file(path, ignored) && !TarFile::probe(path).is_ok() && is_tar_list(path))
    return read_tar_list(path);
  return {path.string()};
}

/// A tar that is read from front to back, member by member.
class StreamedTar {
 public:
  StreamedTar(const std::string& name, const Interrupter& interrupter)
      : name_(name), bytes_(name, interrupter), walk_(bytes_, 0, unknown_end, true) {
    const std::span<const std::byte> begin = bytes_.read(0, tar_block_bytes);
    const bool is_empty_tar =
        std::ranges::all_of(begin, [](std::byte byte) { return byte == std::byte{0}; });
    const Status found = TarFile::probe_begin(begin);
    if (begin.empty()) refuse("it is empty");
    if (!found.is_ok() && !is_empty_tar) refuse(found.reason());
    advance();
  }

  bool has_member() const { return has_member_; }
  const std::string& key() const { return key_; }
  std::uint64_t bytes() const { return member_.bytes; }
  /// Returns the current member's extension and moves to the next member. If `contents` is not
  /// null, reads the member's bytes into it.
  std::string take(std::vector<std::byte>* contents) {
    if (contents != nullptr) {
      contents->resize(static_cast<std::size_t>(member_.bytes));
      if (bytes_.read_into(member_.data, *contents) < contents->size())
        refuse("it ends within \"" + member_.path + "\": it was cut short");
    }
    std::string extension = std::move(extension_);
    advance();
    return extension;
  }

 private:
  /// Moves to the next member that belongs to a sample.
  void advance() {
    try {
      std::string_view key;
      do has_member_ = walk_.next(member_);
      while (has_member_ && !is_of_sample(member_, key, extension_));
      key_ = key;
    } catch (const TarDamage& damage) {
      refuse(damage.what());
    }
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::corrupt, name_ + " cannot be read as a tar: " + why, "", {}, why);
  }

  const std::string name_;
  SequentialBytes bytes_;
  TarWalk walk_;
  TarMember member_;
  bool has_member_ = false;
  std::string key_;
  std::string extension_;
};

class TarStream final : public RecordStream {
 public:
  TarStream(const fs::path& path, const TarStreamOptions& options)
      : name_(path.string()), options_(options), tars_(tar_names_of(path)) {
    for (const std::string& tar : tars_) {
      std::error_code ignored;
      if (!fs::exists(tar, ignored))
        throw Error(ErrorCode::not_found,
                    tar + " does not exist; name a tar, a pattern of tars or a pipe");
      only_files_ = only_files_ && fs::is_regular_file(tar, ignored);
    }
  }

  bool next(StreamRecord& record) override;
  void skip(std::uint64_t count) override;
  bool can_restart() const override { return only_files_; }
  void restart() override {
    tar_.reset();
    next_tar_ = 0;
  }
  void interrupt() noexcept override {
    // Reading files needs no interrupt, and the next run may read them again.
    if (!only_files_) interrupter_.interrupt();
  }
  std::string name() const override { return name_; }

 private:
  /// Opens the next tars until one has a sample. Returns false after the last tar.
  bool has_sample();
  void decide_fields();
  Status parse(TarFields needed);

  const std::string name_;
  const TarStreamOptions options_;
  const std::vector<std::string> tars_;
  bool only_files_ = true;
  Interrupter interrupter_;
  std::size_t next_tar_ = 0;
  std::unique_ptr<StreamedTar> tar_;
  /// The fields that records must have; nullopt before the first good sample.
  std::optional<TarFields> needed_;
  /// The current sample.
  struct File {
    std::string extension;
    std::vector<std::byte> contents;
  };
  std::string key_;
  std::vector<File> files_;
  std::optional<TarSample> sample_;
};

bool TarStream::has_sample() {
  while (!tar_ || !tar_->has_member()) {
    if (next_tar_ == tars_.size()) return false;
    tar_.reset();  // closes the previous file first
    tar_ = std::make_unique<StreamedTar>(tars_[next_tar_++], interrupter_);
  }
  return true;
}

bool TarStream::next(StreamRecord& record) {
  if (!has_sample()) return false;
  key_ = tar_->key();
  record.key = key_;
  files_.clear();
  std::uint64_t bytes = 0;
  while (tar_->has_member() && tar_->key() == key_) {
    bytes += tar_->bytes();
    File file;
    file.extension = tar_->take(bytes <= options_.max_record_bytes ? &file.contents : nullptr);
    if (bytes <= options_.max_record_bytes)
      files_.push_back(std::move(file));
    else
      files_.clear();
  }
  if (bytes > options_.max_record_bytes)
    throw Error(ErrorCode::bad_record, "its files are " + std::to_string(bytes) +
                                           " bytes long, more than " +
                                           std::to_string(options_.max_record_bytes) +
                                           "; set TarStreamOptions::max_record_bytes higher");
  if (!needed_) decide_fields();
  if (const Status status = parse(needed_.value_or(TarFields())); !status.is_ok())
    throw Error(ErrorCode::bad_record, status.reason());
  for (const RecordField& field : sample_->fields())
    record.fields.push_back({std::string(field.name), {field.bytes.begin(), field.bytes.end()}});
  return true;
}

/// Skips samples. Once the first samples have determined the fields, reads only the headers.
void TarStream::skip(std::uint64_t count) {
  for (; count > 0 && !run_ended() && has_sample(); --count) {
    if (!needed_) {
      RecordStream::skip(1);
      continue;
    }
    key_ = tar_->key();
    while (tar_->has_member() && tar_->key() == key_) tar_->take(nullptr);
  }
  RecordStream::skip(count);  // throws unless it is 0
}

void TarStream::decide_fields() {
  for (const TarFields fields : {TarFields{true, true}, TarFields{true, false},
                                 TarFields{false, true}, TarFields{false, false}})
    if (parse(fields).is_ok()) {
      needed_ = fields;
      return;
    }
}

Status TarStream::parse(TarFields needed) {
  sample_.emplace(needed);
  sample_->begin(key_);
  for (const File& file : files_)
    if (Status added = sample_->add(file.extension, file.contents); !added.is_ok()) return added;
  return sample_->finish();
}

}  // namespace

std::shared_ptr<RecordStream> tar_stream(const fs::path& path, const TarStreamOptions& options) {
  return std::make_shared<TarStream>(path, options);
}

}  // namespace millrace
