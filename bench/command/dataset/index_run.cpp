// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/index_run.h"

#include <fmt/format.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>

#include <cstdio>
#include <new>
#include <span>
#include <vector>

#include "command/console/progress.h"
#include "command/dataset/all_records.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

/// Tools of one worker.
struct IndexTools {
  std::unique_ptr<DatasetReader> reader;
  std::unique_ptr<ImageDecoder> decoder;
};

/// Result for one record.
struct IndexedRecord {
  std::uint64_t image_bytes = 0;
  bool has_image = false;
  bool coefficients = false;
  /// The reason why the record is bad; empty for a good record.
  std::string bad{};
  /// Empty if the record has no index.
  std::vector<std::byte> index{};
};

IndexedRecord index_of(const Dataset& dataset, std::uint64_t number, IndexPoints points,
                       IndexTools& tools) {
  IndexedRecord made;
  try {
    const Record record = tools.reader->read(number);
    ImageDecoder& decoder = *tools.decoder;
    made.has_image = record.has("image");
    if (!made.has_image) return made;
    made.bad = decoder.open(record["image"]).reason();
    if (!made.bad.empty()) return made;
    made.image_bytes = record["image"].size();
    made.coefficients = image_kind(record["image"]) == ImageKind::coefficients;
    decoder.use_index({}, image_checksum(record), points);
    made.bad = decoder.check().reason();
    if (const Status intact = tools.reader->intact(); !intact.is_ok()) made.bad = intact.reason();
    if (!made.bad.empty()) return made;
    const std::span<const std::byte> index = decoder.extended_index();
    made.index.assign(index.begin(), index.end());
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    made.bad = error.reason();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::io, fmt::format("the index of record {} of {} cannot be made: there is "
                                           "not enough memory",
                                           number, dataset.name()));
  }
  return made;
}

}  // namespace

IndexResult write_index(const std::shared_ptr<const Dataset>& dataset, IndexPoints points,
                        const DecodeLimits& limits, Runtime& runtime, const Interrupt& interrupt) {
  IndexResult result{.records = dataset->size()};
  Progress progress(stderr, "indexed", result.records);
  HintsWriter writer(dataset);
  const auto tools_of_workers = std::make_shared<std::vector<IndexTools>>(runtime.workers());
  const auto budget = std::make_shared<DecodeBudget>(limits);
  for (IndexTools& tools : *tools_of_workers)
    tools = {dataset->make_reader(), make_image_decoder(budget)};
  const auto make = [dataset, tools_of_workers, points](std::uint64_t number, unsigned worker) {
    return index_of(*dataset, number, points, (*tools_of_workers)[worker]);
  };
  std::uint64_t number = 0;
  const auto take = [&](const IndexedRecord& made) {
    progress.advance(made.image_bytes);
    writer.append(made.index);
    if (!made.bad.empty())
      result.bad.push_back({number, dataset->key(number), made.bad});
    else if (!made.has_image)
      ++result.without_image;
    else if (made.index.empty())
      ++(made.coefficients ? result.coefficients : result.others);
    ++number;
    result.image_bytes += made.image_bytes;
    return !interrupt.requested();
  };
  result.interrupted = !over_records(runtime, result.records, 128, dataset, make, take);
  if (!result.interrupted) writer.finish();
  result.indexed = writer.hints();
  result.index_bytes = writer.bytes();
  result.seconds = progress.seconds();
  return result;
}

std::string index_text(const IndexResult& result) {
  const double share = result.image_bytes == 0 ? 0
                                               : 100.0 * static_cast<double>(result.index_bytes) /
                                                     static_cast<double>(result.image_bytes);
  std::string text =
      fmt::format("{} of {} images ({:.1f} MB, {:.2f}% of theirs)", result.indexed, result.records,
                  static_cast<double>(result.index_bytes) / 1e6, share);
  if (result.coefficients > 0)
    text += fmt::format("; {} without, since coefficients need no index", result.coefficients);
  if (result.others > 0)
    text += fmt::format("; {} without, since their decoder does not use one", result.others);
  if (const std::uint64_t count = result.without_image; count > 0)
    text +=
        fmt::format("; {} {} no image", count_text(count, "record"), count == 1 ? "has" : "have");
  if (const std::size_t count = result.bad.size(); count > 0)
    text += fmt::format("; {} {} bad", count_text(count, "record"), count == 1 ? "is" : "are");
  return text;
}

}  // namespace millrace::cli
