// SPDX-License-Identifier: Apache-2.0
//
// Caffe's Datum messages: an encoded image, pixels of 8 bits or floats, and a label.
#include <array>

#include "dataset/lmdb/lmdb_schema.h"
#include "dataset/lmdb/pictures.h"
#include "dataset/values/caffe_datum.h"
#include "dataset/values/capacity_bytes.h"

namespace millrace {
namespace {

class DatumParser final : public EntryParser {
 public:
  Status parse(std::string_view, std::span<const std::byte> value,
               std::vector<RecordField>& fields) override {
    if (Status read = datum_.read(value); !read.is_ok()) return read;
    shape_ = {datum_.channels, datum_.height, datum_.width};
    const RawPixels pixels{.values = datum_.data,
                           .height = datum_.height,
                           .width = datum_.width,
                           .channels = datum_.channels,
                           .is_planar = true};
    if (datum_.encoded) {
      fields.push_back({"image", datum_.data});
    } else if (is_picture(pixels)) {
      make_pnm(pixels, pnm_);
      fields.push_back({"image", pnm_});
    } else {
      fields.push_back(
          {"data", datum_.floats.empty() ? datum_.data : std::as_bytes(std::span(datum_.floats))});
      fields.push_back({"shape", std::as_bytes(std::span(shape_))});
    }
    // Protobuf leaves out a label of 0, its default.
    label_ = datum_.label.value_or(0);
    fields.push_back({"label", std::as_bytes(std::span(&label_, 1))});
    return Status::ok();
  }

  std::string kind() const override {
    if (!datum_.encoded)
      return shape_text(shape_) + (datum_.floats.empty() ? " raw values of 8 bits" : " floats");
    const std::string_view image = picture_kind(datum_.data);
    return image.empty() ? "" : std::string(image) + " images";
  }
  std::size_t held_bytes() const override { return capacity_bytes(datum_.floats, pnm_); }

 private:
  CaffeDatum datum_;
  std::array<std::int64_t, 3> shape_{};
  std::int64_t label_ = 0;
  std::vector<std::byte> pnm_;
};

class DatumSchema final : public LmdbSchema {
 public:
  std::unique_ptr<EntryParser> make_parser() const override {
    return std::make_unique<DatumParser>();
  }
};

}  // namespace

std::unique_ptr<LmdbSchema> caffe_datum() { return std::make_unique<DatumSchema>(); }

}  // namespace millrace
