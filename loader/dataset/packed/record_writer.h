// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset_writer.h>
#include <millrace/error.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file_descriptor.h"

namespace millrace {

/// The final path of a dataset that replaces another one, and the lock of the old one.
struct ReplacedDataset {
  std::filesystem::path path;
  FileDescriptor lock;
};

/// Interface behind `DatasetWriter`, which documents the functions: a writer of one file or of
/// several.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  /// The file being written: the dataset's, or the index of its shards.
  const std::filesystem::path& path() const { return path_; }
  /// Tells a finished writer that its file was moved.
  void moved_to(std::filesystem::path path) { path_ = std::move(path); }

  std::optional<ReplacedDataset> replaced;

  virtual void append(std::span<const RecordField> fields) = 0;
  virtual void leave_out(std::string reason) = 0;
  virtual void set_classes(std::vector<std::string> names) = 0;
  virtual void finish() = 0;
  virtual bool complete() const = 0;
  virtual std::uint64_t size() const = 0;
  virtual std::uint64_t committed() const = 0;
  virtual std::uint64_t items() const = 0;
  virtual std::vector<LeftOutItem> left_out() const = 0;

 protected:
  RecordWriter(std::filesystem::path path, WriterOptions options)
      : path_(std::move(path)), options_(std::move(options)) {}

  /// Throws the error that stopped this writer, or an error if the dataset is finished.
  void check_open() const {
    if (failure_) throw *failure_;
    if (complete())
      throw Error(ErrorCode::invalid_argument,
                  path_.string() + " is finished; nothing can be added");
  }
  /// Stores an error, which every later call throws again, and throws it.
  [[noreturn]] void fail(const std::string& message) {
    failure_ = Error(ErrorCode::io, message);
    throw *failure_;
  }

  std::filesystem::path path_;
  WriterOptions options_;
  FileDescriptor lock_;
  std::optional<Error> failure_;
};

}  // namespace millrace
