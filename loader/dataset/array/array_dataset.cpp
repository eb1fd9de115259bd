// SPDX-License-Identifier: Apache-2.0
#include "dataset/array/array_dataset.h"

#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "dataset/array/array_description.h"
#include "dataset/array/npy_header.h"
#include "dataset/joined_dataset.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;

class ArrayDataset final : public Dataset, public std::enable_shared_from_this<ArrayDataset> {
 public:
  ArrayDataset(std::string name, ArrayDescription description, DatasetFacts facts)
      : name_(std::move(name)), description_(std::move(description)), facts_(std::move(facts)) {
    facts_.files = description_.files;
    facts_.warnings = description_.warnings;
    for (const ArrayField& field : fields()) facts_.fields.push_back(field.spec().name);
  }

  std::uint64_t size() const override { return fields().front().records(); }
  std::string name() const override { return name_; }
  std::vector<std::string> classes() const override { return description_.classes; }
  DatasetFacts facts() const override { return facts_; }
  std::vector<FieldSpec> field_specs() const override {
    std::vector<FieldSpec> specs;
    for (const ArrayField& field : fields()) specs.push_back(field.spec());
    return specs;
  }
  std::unique_ptr<DatasetReader> make_reader() const override;
  void prefetch(std::span<const std::uint64_t> indices) const override;

 private:
  class Reader;

  const std::vector<ArrayField>& fields() const { return description_.fields; }

  std::string name_;
  ArrayDescription description_;
  DatasetFacts facts_;
};

class ArrayDataset::Reader final : public DatasetReader {
 public:
  explicit Reader(std::shared_ptr<const ArrayDataset> dataset)
      : dataset_(std::move(dataset)), buffers_(dataset_->fields().size()) {
    for (const ArrayField& field : dataset_->fields()) fields_.push_back({field.spec().name, {}});
  }

  Record read(std::uint64_t index) override {
    check_index(*dataset_, index);
    ranges_.clear();
    if (!unreadable_.is_ok()) unreadable_ = Status::ok();
    for (std::size_t number = 0; number < fields_.size(); ++number) try {
        fields_[number].bytes = dataset_->fields()[number].read(index, buffers_[number], ranges_);
      } catch (const Error& error) {
        const std::string reason =
            "field \"" + cut(std::string(fields_[number].name)) + "\": " + error.reason();
        if (error.code() == ErrorCode::io) unreadable_ = Status::bad(reason);
        throw Error(ErrorCode::bad_record,
                    record_name(*dataset_, index, reason) + " cannot be read: " + reason, "", index,
                    reason);
      }
    return Record(index, fields_);
  }

  Status intact() const override {
    if (!unreadable_.is_ok()) return unreadable_;
    for (const auto& [file, range] : ranges_)
      if (Status kept = file->check_intact(range); !kept.is_ok()) return kept;
    return Status::ok();
  }
  std::size_t held_bytes() const override {
    std::size_t bytes = 0;
    for (const ArrayField::Buffers& of_field : buffers_)
      bytes += of_field.offsets.capacity() + of_field.stored.capacity() + of_field.made.capacity();
    return bytes;
  }

 private:
  std::shared_ptr<const ArrayDataset> dataset_;
  std::vector<ArrayField::Buffers> buffers_;
  std::vector<RecordField> fields_;
  /// The byte ranges that the last record was read from.
  std::vector<ReadRange> ranges_;
  Status unreadable_ = Status::ok();
};

std::unique_ptr<DatasetReader> ArrayDataset::make_reader() const {
  return std::make_unique<Reader>(shared_from_this());
}

void ArrayDataset::prefetch(std::span<const std::uint64_t> indices) const {
  std::map<const ArrayFile*, std::vector<FileRange>> of_files;
  std::vector<std::byte> buffer;
  std::vector<ReadRange> ignored;
  for (const std::uint64_t index : indices) {
    if (index >= size()) continue;
    for (const ArrayField& field : fields()) try {
        const auto [file, range] = field.locate(index, buffer, ignored);
        of_files[file].push_back(range);
      } catch (const Error&) {
        // Ignored here: reading the record reports this error.
      }
  }
  for (auto& [file, ranges] : of_files) file->read_ahead(std::move(ranges));
}

/// Returns the first bytes of the file at `path`; empty unless it is a regular file.
std::string first_bytes_of(const fs::path& path, std::size_t bytes) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  auto file = open_stream<std::ifstream>(path, std::ios::binary);
  std::string text = read_text(file, bytes);
  if (!file.is_open() || file.bad())
    throw Error(ErrorCode::io, path.string() +
                                   (file.is_open() ? " cannot be read: " : " cannot be opened: ") +
                                   errno_text(errno));
  return text;
}

}  // namespace

Status probe_npy(const fs::path& path) {
  const std::string beginning = first_bytes_of(path, 8);
  return is_npy(std::as_bytes(std::span(beginning))) ? Status::ok()
                                                     : Status::bad("it has no .npy header");
}

std::shared_ptr<const Dataset> open_npy(const fs::path& path, const OpenOptions& options) {
  ArrayDescription description;
  std::shared_ptr<const ArrayFile> file = ArrayFile::open(path, options.map);
  description.files.push_back(file->name());
  description.warnings = file->warnings();
  const std::string stem = path.stem().string();
  description.fields.emplace_back(stem, npy_array(std::move(file)));
  return std::make_shared<ArrayDataset>(
      path.string(), std::move(description),
      DatasetFacts{.format = "npy file", .format_reason = "it has a .npy header"});
}

Status probe_arrays(const fs::path& path) {
  // Checks the beginning first, because most files are not descriptions and need not be read as a
  // whole.
  const std::string beginning = first_bytes_of(path, 4096);
  const std::size_t first = beginning.find_first_not_of(" \t\r\n");
  if (first == std::string::npos || beginning[first] != '{')
    return Status::bad("it does not begin with \"{\"");
  return is_array_description(first_bytes_of(path, max_json_bytes))
             ? Status::ok()
             : Status::bad("it is not a JSON text with \"format\": \"arrays\"");
}

std::shared_ptr<const Dataset> open_arrays(const fs::path& path, const OpenOptions& options) {
  const std::string text = first_bytes_of(path, max_json_bytes);
  return std::make_shared<ArrayDataset>(
      path.string(), read_array_description(text, path, options.map),
      DatasetFacts{.format = "arrays",
                   .format_reason = "it is a JSON text with \"format\": \"arrays\""});
}

}  // namespace millrace
