// SPDX-License-Identifier: Apache-2.0
//
// Datasets for text recognition. The key num-samples has the number of samples. The images and
// texts have the keys image-000000001 and label-000000001 upwards.
#include <charconv>
#include <optional>
#include <string_view>

#include "dataset/lmdb/foreign_file.h"
#include "dataset/lmdb/lmdb_formats.h"

namespace millrace {
namespace {

constexpr std::string_view count_key = "num-samples";
constexpr std::string_view image_key = "image-", label_key = "label-";

std::string key_of(std::string_view begin, std::uint64_t number) {
  const std::string digits = std::to_string(number);
  constexpr std::size_t width = 9;
  return std::string(begin) + std::string(width - std::min(width, digits.size()), '0') + digits;
}

std::optional<std::uint64_t> number_in(std::span<const std::byte> value) {
  const std::string_view text(reinterpret_cast<const char*>(value.data()), value.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number)
                                                                  : std::nullopt;
}

Status look(const LmdbFile& file, const LmdbTree& main) {
  if (main.flags != 0) return Status::bad("its keys are not text");
  const LmdbCursor cursor(file);
  const auto find = [&](std::string_view key) {
    return cursor.with([&](const LmdbPages& pages) { return pages.find_value(main, key); });
  };
  const auto count = find(count_key);
  if (!count) return Status::bad("it has no key num-samples");
  if (!number_in(*count)) return Status::bad("its num-samples is not a number");
  return find(key_of(image_key, 1)) ? Status::ok() : Status::bad("it has no key image-000000001");
}

/// Keeps the entries whose keys are `begin` and a number from 1 to `count`. Throws if one of them
/// is missing.
void keep(Entries& entries, std::string_view begin, std::uint64_t count) {
  EntryCursor cursor(entries);
  const std::uint64_t first = cursor.first_not_before(key_of(begin, 1));
  const auto expect = [&](std::uint64_t number) {
    const std::uint64_t at = first + number - 1;
    return at < entries.size() && cursor.key(at) == key_of(begin, number);
  };
  if (count > 0 && !expect(count)) {
    // A binary search finds the first missing number: all entries before it are at their expected
    // positions.
    std::uint64_t there = 0, missing = count;
    while (missing - there > 1) {
      const std::uint64_t middle = there + (missing - there) / 2;
      (expect(middle) ? there : missing) = middle;
    }
    throw Error(ErrorCode::corrupt, entries.file().name() + " should have " +
                                        std::to_string(count) +
                                        " samples by its num-samples, but "
                                        "has no key " +
                                        key_of(begin, missing));
  }
  entries.keep(entries.number(first), count);
}

}  // namespace

Status probe_ocr(const std::filesystem::path& path) { return look_at_main(path, look); }

std::shared_ptr<const Dataset> open_ocr(const std::filesystem::path& path,
                                        const OpenOptions& options) {
  ForeignFile file(path, options);
  const LmdbTree main = file.database("");
  const auto count = file.guarded([&] {
    const LmdbCursor cursor(file.file());
    const auto value =
        cursor.with([&](const LmdbPages& pages) { return pages.find_value(main, count_key); });
    return value ? number_in(*value) : std::nullopt;
  });
  if (!count)
    throw Error(ErrorCode::corrupt,
                file.file().name() + " has no number of samples under the key num-samples");
  Entries images = file.entries(main);
  Entries labels = images;
  file.guarded([&] {
    keep(images, image_key, *count);
    keep(labels, label_key, *count);
  });
  auto schema = plain_images();
  LmdbParts parts{.records = std::move(images),
                  .labels = LabelEntries{.entries = std::move(labels),
                                         .values = {},
                                         .own_key_begin = label_key.size(),
                                         .image_key_begin = image_key.size()},
                  .schema = std::move(schema),
                  .key_names = {},
                  .facts = {.format_reason = "it has the keys num-samples and image-000000001",
                            .fields = {"image", "label"}}};
  return file.finish(std::move(parts), "ocr");
}

}  // namespace millrace
