// SPDX-License-Identifier: Apache-2.0
#include "dataset/tar/tar_sample.h"

#include <millrace/detail/json_text.h>
#include <millrace/detail/webdataset_sample.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "dataset/tar/tar_index.h"
#include "dataset/tar/tar_walk.h"

namespace millrace {
namespace {

/// More members than any real sample has.
constexpr std::size_t max_members = 1000;

/// A sample's bytes in memory.
class SampleBytes final : public TarBytes {
 public:
  explicit SampleBytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> read(std::uint64_t offset, std::size_t bytes) override {
    const std::size_t begin = std::min<std::uint64_t>(offset, bytes_.size());
    return bytes_.subspan(begin, std::min(bytes, bytes_.size() - begin));
  }

 private:
  std::span<const std::byte> bytes_;
};

std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

const RecordField* find_field(std::span<const RecordField> fields, std::string_view name) {
  const auto found = std::ranges::find(fields, name, &RecordField::name);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

void TarSample::begin(std::string_view key) {
  fields_.clear();
  names_.clear();
  key_ = key;
  image_extension_.clear();
}

Status TarSample::read(std::span<const std::byte> bytes) {
  begin("");
  SampleBytes sample(bytes);
  TarWalk walk(sample, 0, bytes.size(), false);
  TarMember member;
  std::string_view key;
  std::string extension;
  try {
    while (walk.next(member)) {
      if (!is_of_sample(member, key, extension)) continue;
      if (fields_.empty()) key_ = key;
      if (key != key_)
        return Status::bad("its members are not one sample: the tar was changed, or is damaged");
      const std::span<const std::byte> contents = bytes.subspan(
          static_cast<std::size_t>(member.data), static_cast<std::size_t>(member.bytes));
      if (Status added = add(std::move(extension), contents); !added.is_ok()) return added;
    }
  } catch (const TarDamage& damage) {
    return Status::bad(std::string("its headers are damaged, or the tar was changed: ") +
                       damage.what() + " of the sample");
  }
  return finish();
}

Status TarSample::finish() {
  if (needed_.image && image_extension_.empty())
    return Status::bad("has no image, unlike those before it");
  return needed_.label ? add_label() : Status::ok();
}

Status TarSample::add(std::string extension, std::span<const std::byte> contents) {
  std::string_view name;
  if (fields_.size() == max_members)
    return Status::bad("has more than " + std::to_string(max_members) + " files");
  if (is_image_extension(extension)) {
    if (!image_extension_.empty())
      return Status::bad("has two images, ." + cut(image_extension_) + " and ." + cut(extension));
    image_extension_ = std::move(extension);
    name = "image";
  } else if (extension == "txt") {
    name = "text";
  } else {
    name = names_.emplace_back(std::move(extension));
  }
  if (find_field(fields_, name) != nullptr)
    return Status::bad("has two files for \"" + cut(std::string(name)) + "\"");
  fields_.push_back({name, contents});
  return Status::ok();
}

Status TarSample::add_label() {
  const RecordField* const cls = find_field(fields_, "cls");
  const RecordField* const json = cls == nullptr ? find_field(fields_, "json") : nullptr;
  const RecordField* const text = cls != nullptr ? cls : json;
  if (text == nullptr) return Status::bad("has no label (.cls or .json)");
  if (text->bytes.size() > max_label_text_bytes)
    return Status::bad("its ." + std::string(text->name) + " is " +
                       std::to_string(text->bytes.size()) + " bytes long, too long for a label");
  std::optional<std::int64_t> label = 0;
  if (Status read = cls != nullptr ? read_cls_label(text_of(cls->bytes), *label)
                                   : read_json_label(text_of(json->bytes), label);
      !read.is_ok())
    return read;
  if (!label) return Status::bad("its .json has neither \"label\" nor \"cls\"");
  label_ = *label;
  if (find_field(fields_, "label") != nullptr)
    return Status::bad("has a file .label beside its label");
  const RecordField field{"label", std::as_bytes(std::span(&label_, 1))};
  if (cls != nullptr)
    fields_[static_cast<std::size_t>(cls - fields_.data())] = field;
  else
    fields_.push_back(field);
  return Status::ok();
}

}  // namespace millrace
