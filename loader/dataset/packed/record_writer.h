// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset_writer.h>

#include <string>
#include <vector>

namespace millrace {

/// What a `DatasetWriter` does, into one file or several. Its docstrings hold.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  virtual void append(std::span<const RecordField> fields) = 0;
  virtual void leave_out(std::string reason) = 0;
  virtual void set_classes(std::vector<std::string> names) = 0;
  virtual void finish() = 0;
  virtual bool complete() const = 0;
  virtual std::uint64_t size() const = 0;
  virtual std::uint64_t committed() const = 0;
  virtual std::uint64_t items() const = 0;
  virtual std::vector<LeftOutItem> left_out() const = 0;
};

}  // namespace millrace
