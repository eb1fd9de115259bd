// SPDX-License-Identifier: Apache-2.0
//
// Encoded images under any keys. If the keys are paths, the folders are the classes.
#include <algorithm>
#include <cstdint>

#include "dataset/lmdb/entries.h"
#include "dataset/lmdb/keys.h"
#include "dataset/lmdb/lmdb_schema.h"
#include "dataset/lmdb/pictures.h"

namespace millrace {
namespace {

/// Classes that follow from the keys: the first folder below those that all keys share.
struct KeyClasses {
  /// Folder that contains all keys, with its last "/"; may be empty.
  std::string root_folder;
  /// Names of the classes, ascending; empty unless keys are paths.
  std::vector<std::string> names;

  /// Returns the class folder of a key; empty if the key is not in a folder.
  std::string_view folder(std::string_view key) const {
    if (!key.starts_with(root_folder)) return {};
    key.remove_prefix(root_folder.size());
    const std::size_t end = key.find('/');
    return end == key.npos ? std::string_view() : key.substr(0, end);
  }
  /// Returns the label of a key; -1 if it has none.
  std::int64_t label(std::string_view key) const {
    const std::string_view name = folder(key);
    const auto found = std::ranges::lower_bound(names, name);
    return name.empty() || found == names.end() || *found != name ? -1 : found - names.begin();
  }
};

bool is_path(std::string_view key) {
  const std::size_t slash = key.find('/', 1);
  return slash != key.npos && slash + 1 < key.size() && key.find('\0') >= key.size() - 1;
}

/// Returns the folder that contains all keys from `first` to `last`. The next folder in a key is
/// its class. If neither key has a further folder, all keys are of one class: the last common
/// folder is then this class, and the result is the folder above it.
std::string common_folders(std::string_view first, std::string_view last) {
  const auto differ = std::ranges::mismatch(first, last).in1;
  std::string_view common = first.substr(0, static_cast<std::size_t>(differ - first.begin()));
  const auto cut_to_folder = [&] { common = common.substr(0, common.rfind('/') + 1); };
  cut_to_folder();
  const auto has_folder = [&](std::string_view key) {
    return key.find('/', common.size()) != key.npos;
  };
  if (!common.empty() && !has_folder(first) && !has_folder(last)) {
    common.remove_suffix(1);
    cut_to_folder();
  }
  return std::string(common);
}

KeyClasses classes_of(const Entries& entries) {
  const std::uint16_t flags = entries.tree().flags;
  if (entries.size() == 0 || (flags & (lmdb::integer_keys | lmdb::reversed_keys)) != 0) return {};
  EntryCursor cursor(entries);
  const std::uint64_t last = entries.size() - 1;
  constexpr std::uint64_t sampled_keys = 16;
  for (std::uint64_t n = 0; n < sampled_keys; ++n)
    if (!is_path(cursor.key(last / (sampled_keys - 1) * n))) return {};
  const std::string first_key(cursor.key(0));
  const std::string last_key(cursor.key(last));
  KeyClasses classes{.root_folder = common_folders(first_key, last_key), .names = {}};
  for (std::uint64_t n = 0; n <= last;) {
    const std::string name(classes.folder(cursor.key(n)));
    ++n;
    if (name.empty()) continue;
    classes.names.push_back(name);
    // Moves to the first key after the folder. Its keys are adjacent, and "0" is the character
    // after "/".
    n = cursor.first_not_before(classes.root_folder + name + '0', n);
  }
  std::ranges::sort(classes.names);
  return classes;
}

class ImageParser final : public EntryParser {
 public:
  explicit ImageParser(const KeyClasses& classes) : classes_(classes) {}

  Status parse(std::string_view key, std::span<const std::byte> value,
               std::vector<RecordField>& fields) override {
    image_ = value;
    fields.push_back({"image", value});
    if (classes_.names.empty()) return Status::ok();
    label_ = classes_.label(key);
    fields.push_back({"label", std::as_bytes(std::span(&label_, 1))});
    return Status::ok();
  }

  std::string kind() const override {
    const std::string_view image = picture_kind(image_);
    return image.empty() ? "" : std::string(image) + " images";
  }

 private:
  const KeyClasses& classes_;
  std::span<const std::byte> image_;
  std::int64_t label_ = 0;
};

class ImagesSchema final : public LmdbSchema {
 public:
  void look_at_keys(const Entries& entries) override { classes_ = classes_of(entries); }
  std::vector<std::string> classes() const override { return classes_.names; }
  std::unique_ptr<EntryParser> make_parser() const override {
    return std::make_unique<ImageParser>(classes_);
  }

 private:
  KeyClasses classes_;
};

}  // namespace

std::unique_ptr<LmdbSchema> plain_images() { return std::make_unique<ImagesSchema>(); }

}  // namespace millrace
