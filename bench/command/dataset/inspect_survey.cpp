// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/inspect_survey.h"

#include <millrace/error.h>
#include <millrace/random.h>

#include <algorithm>
#include <utility>

#include "command/console/progress.h"
#include "command/dataset/all_records.h"

namespace millrace::cli {
namespace {

/// Facts from one record's header.
struct Glance {
  std::uint64_t index = 0;
  std::uint64_t bytes = 0;
  std::vector<std::int64_t> labels{};
  std::optional<std::uint64_t> image_bytes{};
  std::optional<ImageInfo> image{};
  /// The reason why the record could not be read, and its key; both are empty if it was read.
  std::string reason{};
  std::string key{};
};

/// Tools of one worker.
struct Looker {
  std::unique_ptr<DatasetReader> reader;
  std::unique_ptr<ImageDecoder> decoder;
};

/// Returns a record's label. For a record without a class, returns the distinct labels of its
/// boxes.
std::vector<std::int64_t> labels_of(std::span<const FieldSpec> specs, const Record& record) {
  const std::optional<std::int64_t> label = label_of(specs, record);
  std::vector<std::int64_t> labels;
  if (label.value_or(-1) == -1 && record.has("boxes") && record.has("labels") &&
      record["labels"].size() % sizeof(std::int64_t) == 0 && may_be_integer(specs, "labels")) {
    const std::span<const std::byte> bytes = record["labels"];
    labels.resize(bytes.size() / sizeof(std::int64_t));
    std::ranges::copy(bytes, std::as_writable_bytes(std::span(labels)).begin());
    std::ranges::sort(labels);
    labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  }
  if (labels.empty() && label) labels.push_back(*label);
  return labels;
}

Glance glance_at(const Dataset& dataset, std::span<const FieldSpec> specs, std::uint64_t index,
                 const Looker& looker) {
  Glance glance{.index = index};
  try {
    const Record record = looker.reader->read(index);
    for (const RecordField& field : record.fields()) glance.bytes += field.bytes.size();
    glance.labels = labels_of(specs, record);
    if (!record.has("image")) return glance;
    const std::span<const std::byte> image = record["image"];
    glance.image_bytes = image.size();
    if (const Status read = read_image_info(image, glance.image.emplace()); !read.is_ok())
      glance.reason = read.reason();
    // `read_image_info` also knows formats that no decoder accepts.
    else if (looker.decoder->open(image).is_ok())
      glance.image->decoder = looker.decoder->header().decoder;
    else
      glance.image->decoder = "none";
    if (const Status intact = looker.reader->intact(); !intact.is_ok())
      glance.reason = intact.reason();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    glance.reason = error.reason();
  }
  if (!glance.reason.empty()) {
    glance.image.reset();
    glance.key = dataset.key(index);
  }
  return glance;
}

void take(Survey& survey, Glance&& glance) {
  ++survey.looked_at;
  survey.bytes += glance.bytes;
  for (const std::int64_t label : glance.labels) ++survey.labels[label];
  if (glance.image_bytes) survey.image_bytes.add(*glance.image_bytes);
  if (!glance.reason.empty())
    survey.unread.push_back({glance.index, std::move(glance.key), std::move(glance.reason)});
  if (!glance.image) return;
  const ImageInfo& image = *glance.image;
  const auto width = static_cast<std::uint64_t>(image.width);
  const auto height = static_cast<std::uint64_t>(image.height);
  ++survey.images;
  survey.width.add(width);
  survey.height.add(height);
  survey.shorter_side.add(std::min(width, height));
  survey.pixels.add(width * height);
  if (image.quality) survey.quality.add(static_cast<std::uint64_t>(*image.quality));
  if (image.chroma) ++survey.chroma[*image.chroma];
  ++survey.scan_types[image.scan_type];
  ++survey.decoders[image.decoder];
  ++survey.orientations[image.orientation.value_or(0)];
}

/// Returns the start of part n if the numbers below `all` are divided into `count` parts. Does not
/// overflow.
std::uint64_t begin_of_part(std::uint64_t n, std::uint64_t count, std::uint64_t all) {
  return all / count * n + all % count * n / count;
}

/// Returns a pseudo-random number of that part, the same in each run. If it were always the first,
/// the sample could coincide with a period in the dataset.
std::uint64_t one_of_part(std::uint64_t n, std::uint64_t count, std::uint64_t all) {
  const std::uint64_t begin = begin_of_part(n, count, all);
  return begin + Random(0, n).below(begin_of_part(n + 1, count, all) - begin);
}

}  // namespace

bool may_be_integer(std::span<const FieldSpec> specs, std::string_view field) {
  const auto spec = std::ranges::find(specs, field, &FieldSpec::name);
  return spec == specs.end() || spec->dtype == DType::int64 || spec->dtype == DType::uint64;
}

std::optional<std::int64_t> label_of(std::span<const FieldSpec> specs, const Record& record) {
  if (!record.has("label") || record["label"].size() != sizeof(std::int64_t) ||
      !may_be_integer(specs, "label"))
    return {};
  return record.integer("label");
}

Survey survey(const std::shared_ptr<const Dataset>& dataset, std::uint64_t sample, Runtime& runtime,
              const Interrupt& interrupt) {
  Survey found{.records = dataset->size(), .sample = look_at_record(*dataset)};
  const std::uint64_t records = found.records;
  const std::uint64_t count = sample == 0 ? records : std::min(sample, records);
  Progress progress(stderr, "looked at", count);
  const auto lookers = std::make_shared<std::vector<Looker>>(runtime.workers());
  for (Looker& looker : *lookers) looker = {dataset->make_reader(), make_image_decoder()};
  const auto look = [dataset, specs = dataset->field_specs(), lookers, count, records](
                        std::uint64_t n, unsigned worker) {
    return glance_at(*dataset, specs, one_of_part(n, count, records), (*lookers)[worker]);
  };
  found.interrupted = !over_records(runtime, count, 2048, nullptr, look, [&](Glance glance) {
    // Only the header's bytes were read, so only these are added.
    progress.advance(glance.image ? glance.image->header_bytes : 0);
    take(found, std::move(glance));
    return !interrupt.requested();
  });
  found.seconds = progress.seconds();
  return found;
}

}  // namespace millrace::cli
