// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/dataset.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/pictures.h"

namespace millrace::testing {

/// A few encoded images, repeated.
class JpegDataset final : public Dataset {
 public:
  std::uint64_t size() const override { return 30; }
  std::unique_ptr<DatasetReader> make_reader() const override {
    return std::make_unique<Reader>(images_);
  }
  std::string name() const override { return "jpegs"; }

 private:
  using Images = std::shared_ptr<const std::vector<Bytes>>;

  class Reader final : public DatasetReader {
   public:
    explicit Reader(Images images) : images_(std::move(images)) {}

    Record read(std::uint64_t index) override {
      label_ = static_cast<std::int64_t>(index);
      fields_ = {{{"image", (*images_)[index % images_->size()]},
                  {"label", std::as_bytes(std::span(&label_, 1))}}};
      return Record(index, fields_);
    }

   private:
    Images images_;
    std::int64_t label_ = 0;
    std::array<RecordField, 2> fields_;
  };

  const Images images_ = std::make_shared<const std::vector<Bytes>>(pictures(4, 40, 33, 7));
};

}  // namespace millrace::testing
