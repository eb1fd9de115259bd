// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_dataset.h"

#include <millrace/detail/tar_members.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "dataset/fingerprint.h"
#include "dataset/joined_dataset.h"
#include "dataset/packed/atomic_file_writer.h"
#include "dataset/stored_dataset.h"
#include "dataset/tar/tar_file.h"
#include "dataset/tar/tar_names.h"
#include "dataset/tar/tar_sample.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

constexpr const char* format_name = "tars";
/// Largest sample. Without a map, a reader holds a whole sample in memory.
constexpr std::uint64_t max_sample_bytes = (std::uint64_t{4} << 30) - 1;
/// Number of samples that determine the fields that all records must have.
constexpr std::uint64_t probed_samples = 16;

/// The dataset of one tar.
class TarDataset final : public StoredDataset {
 public:
  /// `needed`: the fields that the records of the previous tars have. Empty before the first tar
  /// with samples; that tar sets it.
  TarDataset(const fs::path& path, const OpenOptions& options, std::optional<TarFields>& needed)
      : file_(path, options.map, warnings_) {
    if (!needed && size() > 0) needed = look_at_samples();
    needed_ = needed.value_or(TarFields());
    if (options.hints)
      hints_ = StoredHints::open(file_.name(),
                                 {.records = size(), .fingerprint = file_.index().fingerprint},
                                 options.map, warnings_);
  }

  std::uint64_t size() const override { return file_.size(); }
  std::string name() const override { return file_.name(); }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override {
    file_.read_ahead(locate_all(indices, file_));
  }
  std::string key(std::uint64_t index) const override;
  DatasetFacts facts() const override;
  std::optional<StoredRecord> stored_record(std::uint64_t index) const override {
    if (index >= size()) return {};
    return StoredRecord{.file = file_.name(), .bytes = sample_bytes(index)};
  }
  /// Writes the index file beside the tar.
  void save_members() const;

 private:
  class Reader;

  TarFields look_at_samples();
  std::uint64_t sample_bytes(std::uint64_t index) const {
    return file_.index().samples[static_cast<std::size_t>(index)].bytes();
  }

  std::vector<std::string> warnings_;
  TarFile file_;
  TarFields needed_;
  /// Fields of a sound record. Empty if an earlier tar decided `needed_`.
  std::vector<std::string> fields_;
};

class TarDataset::Reader final : public RecordReader {
 public:
  explicit Reader(const TarDataset& dataset)
      : RecordReader(dataset.shared_from_this(), ""), dataset_(dataset), sample_(dataset.needed_) {}

  Status intact() const override {
    return unreadable_.is_ok() ? dataset_.file_.check_intact(bytes_) : unreadable_;
  }
  std::size_t held_bytes() const override { return buffer_.capacity(); }

 private:
  Status make(std::uint64_t index, Record& record) override {
    bytes_ = {};
    if (const std::uint64_t bytes = dataset_.sample_bytes(index); bytes > max_sample_bytes)
      return Status::bad("is " + std::to_string(bytes) +
                         " bytes long with its headers; at most 4 GiB are read");
    bytes_ = dataset_.file_.read(index, buffer_);
    Status status = sample_.read(bytes_);
    record = Record(index, sample_.fields());
    return status;
  }

  const TarDataset& dataset_;
  std::span<const std::byte> bytes_;
  std::vector<std::byte> buffer_;
  TarSample sample_;
};

std::unique_ptr<DatasetReader> TarDataset::make_reader() const {
  return std::make_unique<Reader>(*this);
}

TarFields TarDataset::look_at_samples() {
  std::vector<std::byte> buffer;
  TarFields found;
  const auto any_sample_has = [&](TarFields needed) {
    for (std::uint64_t index = 0; index < std::min(size(), probed_samples); ++index) {
      if (sample_bytes(index) > max_sample_bytes) continue;
      try {
        TarSample sample(needed);
        if (!sample.read(file_.read(index, buffer)).is_ok()) continue;
        fields_.clear();
        for (const RecordField& field : sample.fields()) fields_.emplace_back(field.name);
        return true;
      } catch (const Error&) {
        // Ignored here: reading the record reports this error.
      }
    }
    return false;
  };
  found.image = any_sample_has({.image = true});
  found.label = any_sample_has({.image = found.image, .label = true});
  any_sample_has(found);
  return found;
}

std::string TarDataset::key(std::uint64_t index) const {
  if (index >= size() || sample_bytes(index) > max_sample_bytes) return Dataset::key(index);
  try {
    std::vector<std::byte> buffer;
    TarSample sample({});
    const std::span<const std::byte> bytes = file_.read(index, buffer);
    // The result is ignored, since even a bad record may have a key.
    (void)sample.read(bytes).is_ok();
    if (!sample.key().empty() && file_.check_intact(bytes).is_ok()) return one_line(sample.key());
  } catch (const Error&) {
    // Falls back to the record's number.
  }
  return Dataset::key(index);
}

DatasetFacts TarDataset::facts() const {
  return {.format = format_name,
          .format_reason = "it begins with a tar header",
          .files = {file_.name()},
          .fields = fields_,
          .fingerprint = file_.index().fingerprint,
          .warnings = warnings_};
}

void TarDataset::save_members() const {
  const auto may_replace = [](const fs::path& path) {
    std::error_code none;  // ignored: the path may not be a regular file
    return is_tar_index(path) || fs::file_size(path, none) == 0;
  };
  AtomicFileWriter index_writer(tar_members_path(file_.name()), may_replace, "a tar index");
  index_writer.write(packed_index(file_.index()));
  index_writer.replace();
}

/// The tars that a path stands for, and the reason why it stands for them.
struct NamedTars {
  std::vector<std::string> tars{};
  std::string reason{};
};

NamedTars tars_of(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored) && is_tar_pattern(path)) {
    NamedTars named{.tars = expand_tar_pattern(path)};
    named.reason = "it is a pattern of " + std::to_string(named.tars.size()) + " tars";
    return named;
  }
  if (TarFile::probe(path).is_ok() || !is_tar_list(path))
    return {.tars = {path.string()}, .reason = "it begins with a tar header"};
  NamedTars named{.tars = read_tar_list(path)};
  named.reason = "it lists " + std::to_string(named.tars.size()) + " tars";
  return named;
}

}  // namespace

std::size_t save_tar_members(const Dataset& dataset) {
  if (const auto* tar = dynamic_cast<const TarDataset*>(&dataset)) {
    tar->save_members();
    return 1;
  }
  std::size_t saved = 0;
  for (const auto& part : dataset.parts()) saved += save_tar_members(*part);
  return saved;
}

Status probe_tar_pattern(const fs::path& path) {
  return is_tar_pattern(path) ? Status::ok() : Status::bad("it is not a pattern of tars");
}

Status probe_tars(const fs::path& path) {
  Status tar = TarFile::probe(path);
  std::error_code ignored;
  if (tar.is_ok() || !fs::is_regular_file(path, ignored) || !is_tar_list(path)) return tar;
  return Status::ok();
}

std::shared_ptr<const Dataset> open_tars(const fs::path& path, const OpenOptions& options) {
  NamedTars named = tars_of(path);
  std::vector<std::shared_ptr<const Dataset>> tars;
  std::optional<TarFields> needed;
  std::uint64_t records = 0;
  JoinedDescription joined{
      .name = path.string(),
      .facts = {.format = format_name, .format_reason = std::move(named.reason), .fingerprint = 0}};
  for (const std::string& name : named.tars) {
    const auto tar = std::make_shared<TarDataset>(name, options, needed);
    const DatasetFacts facts = tar->facts();
    if (joined.facts.fields.empty()) joined.facts.fields = facts.fields;
    joined.facts.fingerprint =
        fingerprint_of_both(*joined.facts.fingerprint, *facts.fingerprint, tar->size());
    records += tar->size();
    tars.push_back(tar);
  }
  if (records == 0)
    throw Error(ErrorCode::corrupt, path.string() +
                                        " has no samples: files in its tars would be named "
                                        "KEY.EXTENSION");
  if (tars.size() == 1) return tars.front();
  return join_datasets(std::move(tars), std::move(joined));
}

}  // namespace millrace
