// SPDX-License-Identifier: Apache-2.0
//
// Caffe2's TensorProtos messages: a tensor with an image or values, and one with a label.
#include "dataset/lmdb/lmdb_schema.h"
#include "dataset/lmdb/pictures.h"
#include "dataset/values/caffe2_tensors.h"
#include "dataset/values/capacity_bytes.h"

namespace millrace {
namespace {

class TensorsParser final : public EntryParser {
 public:
  Status parse(std::string_view, std::span<const std::byte> value,
               std::vector<RecordField>& fields) override {
    kind_.clear();
    if (Status read = tensors_.read(value); !read.is_ok()) return read;
    if (tensors_.tensors().empty()) return Status::bad("it has no tensor");
    add_values(tensors_.tensors()[0], fields);
    if (tensors_.tensors().size() > 1)
      fields.push_back({"label", value_bytes(tensors_.tensors()[1])});
    return Status::ok();
  }

  std::string kind() const override { return kind_; }
  std::size_t held_bytes() const override {
    return tensors_.held_bytes() + capacity_bytes(pnm_, small_);
  }

 private:
  void add_values(const Caffe2Tensor& tensor, std::vector<RecordField>& fields) {
    if (tensor.type == Caffe2Type::string && tensor.strings.size() == 1) {
      const std::string_view image = picture_kind(tensor.strings[0]);
      if (!image.empty()) kind_ = std::string(image) + " images";
      fields.push_back({"image", tensor.strings[0]});
      return;
    }
    kind_ = shape_text(tensor.shape) + " values";
    const std::span<const std::int64_t> shape = tensor.shape;
    RawPixels pixels{.values = small_values(tensor)};
    if (shape.size() == 2 || shape.size() == 3) {
      pixels.height = shape[0];
      pixels.width = shape[1];
      pixels.channels = shape.size() == 3 ? shape[2] : 1;
    }
    if (is_picture(pixels)) {
      make_pnm(pixels, pnm_);
      fields.push_back({"image", pnm_});
      return;
    }
    fields.push_back({"data", pixels.values.empty() ? value_bytes(tensor) : pixels.values});
    fields.push_back({"shape", std::as_bytes(shape)});
  }

  /// Returns a tensor's values if they are unsigned 8-bit integers; empty for other types.
  std::span<const std::byte> small_values(const Caffe2Tensor& tensor) {
    if (tensor.type == Caffe2Type::byte) return tensor.bytes;
    if (tensor.type != Caffe2Type::uint8) return {};
    small_.clear();
    for (const std::int64_t value : tensor.integers)
      small_.push_back(static_cast<std::byte>(value));
    return small_;
  }

  static std::span<const std::byte> value_bytes(const Caffe2Tensor& tensor) {
    switch (tensor.type) {
      case Caffe2Type::float32:
        return std::as_bytes(tensor.floats);
      case Caffe2Type::byte:
        return tensor.bytes;
      case Caffe2Type::string:
        return tensor.strings.empty() ? std::span<const std::byte>() : tensor.strings[0];
      default:
        return std::as_bytes(tensor.integers);
    }
  }

  Caffe2Tensors tensors_;
  std::string kind_;
  std::vector<std::byte> pnm_, small_;
};

class TensorsSchema final : public LmdbSchema {
 public:
  std::unique_ptr<EntryParser> make_parser() const override {
    return std::make_unique<TensorsParser>();
  }
};

}  // namespace

std::unique_ptr<LmdbSchema> caffe2_tensors() { return std::make_unique<TensorsSchema>(); }

}  // namespace millrace
