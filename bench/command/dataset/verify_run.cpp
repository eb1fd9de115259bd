// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/verify_run.h"

#include <fmt/format.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/detail/stored_hints.h>
#include <millrace/error.h>
#include <millrace/image_decoder.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <cstdio>
#include <new>
#include <utility>

#include "command/console/progress.h"
#include "command/dataset/all_records.h"
#include "command/dataset/images/whole_pixels.h"
#include "measure/machine/touch_bytes.h"

namespace millrace::cli {
namespace {

/// Tools of one worker.
struct VerifyTools {
  std::unique_ptr<DatasetReader> reader;
  std::unique_ptr<ImageDecoder> decoder;
  std::unique_ptr<JpegRecoder> recoder;
  std::vector<std::byte> index{};
  std::vector<std::byte> file{};
};

/// Result for one record.
struct Checked {
  std::uint64_t bytes = 0;
  bool decoded = false;
  /// Whether the decoder skipped stray bytes of its image.
  bool repaired = false;
  /// Whether a stored seek index was verified (`verify_index`).
  bool index_verified = false;
  /// Whether the JPEG file of its coefficients was restored.
  bool restored = false;
  /// Whether the record's stored checksum was compared with its bytes.
  bool checksum_compared = false;
  /// Stored checksum; nullopt if the record was not found.
  std::optional<std::uint64_t> checksum{};
  std::optional<BadRecord> bad{};
};

std::string size_text(std::int64_t width, std::int64_t height) {
  return fmt::format("{} x {}", width, height);
}

/// Compares the fields "width" and "height", if present, with the image.
Status check_size(const Record& record, const ImageHeader& header) {
  constexpr std::size_t integer_bytes = sizeof(std::int64_t);
  const auto is_integer = [&](std::string_view name) {
    return record.has(name) && record[name].size() == integer_bytes;
  };
  if (!is_integer("width") || !is_integer("height")) return Status::ok();
  const std::int64_t width = record.integer("width");
  const std::int64_t height = record.integer("height");
  if (width == header.width && height == header.height) return Status::ok();
  return Status::bad(fmt::format("its fields say {} pixels, its image has {}",
                                 size_text(width, height), size_text(header.width, header.height)));
}

Status decode_image(const Record& record, ImageDecoder& decoder) {
  if (Status opened = decoder.open(record["image"]); !opened.is_ok()) return opened;
  if (Status size = check_size(record, decoder.header()); !size.is_ok()) return size;
  return decoder.check();
}

/// Decodes the field "mask" if it is a PNG, as `pack --masks` stores it. Only the trainer knows the
/// format of other masks.
Status decode_mask(const Record& record, ImageDecoder& decoder) {
  if (!record.has("mask") || image_kind(record["mask"]) != ImageKind::png) return Status::ok();
  Status sound = decoder.open(record["mask"]);
  if (sound.is_ok()) sound = decoder.check();
  return sound.is_ok() ? sound : Status::bad("its mask does not decode: " + sound.reason());
}

/// Verifies the stored seek index of an image: a decoder must find the same positions, and the
/// pixels must be equal with and without the index.
Status verify_index(const Record& record, const VerifyTools& tools) {
  ImageDecoder& decoder = *tools.decoder;
  const std::optional<std::uint64_t> checksum = image_checksum(record);
  std::uint64_t plain = 0;
  std::uint64_t with_index = 0;
  if (Status opened = decoder.open(record["image"]); !opened.is_ok()) return opened;
  if (!decoder.use_index(tools.index, checksum))
    return Status::bad("its stored seek index is damaged or another image's");
  if (Status checked = decoder.check(); !checked.is_ok()) return checked;
  if (Status opened = decoder.open(record["image"]); !opened.is_ok()) return opened;
  if (Status decoded = whole_pixels(decoder, plain); !decoded.is_ok()) return decoded;
  if (Status opened = decoder.open(record["image"]); !opened.is_ok()) return opened;
  decoder.use_index(tools.index, checksum);
  if (Status decoded = whole_pixels(decoder, with_index); !decoded.is_ok()) return decoded;
  return plain == with_index ? Status::ok()
                             : Status::bad("its pixels differ with its stored seek index");
}

/// Restores the JPEG file of a record of coefficients. The pixels of file and record must be equal.
Status restore_file(const Record& record, VerifyTools& tools) {
  ImageDecoder& decoder = *tools.decoder;
  std::uint64_t of_record = 0;
  std::uint64_t of_file = 0;
  if (Status opened = decoder.open(record["image"]); !opened.is_ok()) return opened;
  if (Status decoded = whole_pixels(decoder, of_record); !decoded.is_ok()) return decoded;
  if (Status restored = tools.recoder->restore(record["image"], tools.file); !restored.is_ok())
    return restored;
  if (Status opened = decoder.open(tools.file); !opened.is_ok()) return opened;
  if (Status decoded = whole_pixels(decoder, of_file); !decoded.is_ok()) return decoded;
  return of_record == of_file ? Status::ok()
                              : Status::bad("its coefficients show other pixels than its file");
}

Checked check(const Dataset& dataset, std::uint64_t index, VerifyDepth depth, VerifyTools& tools) {
  Checked checked;
  std::string reason;
  try {
    const Record record = tools.reader->read(index);
    for (const RecordField& field : record.fields()) checked.bytes += field.bytes.size();
    checked.checksum_compared = record.checksum().has_value();
    if (!checked.checksum_compared) touch_bytes(record);
    if (depth >= VerifyDepth::images && record.has("image")) {
      reason = decode_image(record, *tools.decoder).reason();
      checked.decoded = reason.empty();
      checked.repaired = checked.decoded && tools.decoder->header().repaired;
      if (reason.empty()) reason = decode_mask(record, *tools.decoder).reason();
    }
    if (depth == VerifyDepth::deep && reason.empty() && checked.decoded) {
      dataset.stored_hint(index, tools.index);
      if (!tools.index.empty()) reason = verify_index(record, tools).reason();
      checked.index_verified = !tools.index.empty() && reason.empty();
      if (reason.empty() && image_kind(record["image"]) == ImageKind::coefficients) {
        reason = restore_file(record, tools).reason();
        checked.restored = reason.empty();
      }
    }
    if (const Status intact = tools.reader->intact(); !intact.is_ok()) {
      reason = intact.reason();
      checked.decoded = checked.repaired = checked.index_verified = checked.restored = false;
    }
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_record) throw;
    reason = error.reason();
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::io, fmt::format("record {} of {} cannot be checked: there is not enough "
                                           "memory",
                                           index, dataset.name()));
  }
  if (!reason.empty()) checked.bad = {index, dataset.key(index), reason};
  if (const auto stored = dataset.stored_record(index); stored && stored->checksum != 0)
    checked.checksum = stored->checksum;
  return checked;
}

/// Finds records with equal checksums. If the fingerprint does not match, the damaged page refers
/// to one of them.
std::vector<BadRecord> repeated_records(const Dataset& dataset) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> records;
  for (std::uint64_t index = 0; index < dataset.size(); ++index)
    if (const auto stored = dataset.stored_record(index); stored && stored->checksum != 0)
      records.emplace_back(stored->checksum, index);
  std::ranges::sort(records);
  std::vector<BadRecord> repeated;
  const auto add = [&](std::uint64_t index, std::uint64_t other) {
    repeated.push_back(
        {index, dataset.key(index),
         fmt::format("it is the same record as {}; one of them replaces another record", other)});
  };
  for (std::size_t n = 1; n < records.size(); ++n) {
    if (records[n].first != records[n - 1].first) continue;
    if (n < 2 || records[n - 2].first != records[n].first)
      add(records[n - 1].second, records[n].second);
    add(records[n].second, records[n - 1].second);
  }
  std::ranges::sort(repeated, {}, &BadRecord::index);
  return repeated;
}

}  // namespace

VerifyResult verify(const std::shared_ptr<const Dataset>& dataset, VerifyDepth depth,
                    const DecodeLimits& limits, Runtime& runtime, const Interrupt& interrupt) {
  VerifyResult result{.records = dataset->size(), .fingerprint = dataset->facts().fingerprint};
  Progress progress(stderr, "verified", result.records);
  const auto tools_of_workers = std::make_shared<std::vector<VerifyTools>>(runtime.workers());
  const auto budget = std::make_shared<DecodeBudget>(limits);
  for (VerifyTools& tools : *tools_of_workers)
    tools = {dataset->make_reader(), make_image_decoder(budget),
             std::make_unique<JpegRecoder>(budget)};
  const auto check_record = [dataset, tools_of_workers, depth](std::uint64_t index,
                                                               unsigned worker) {
    return check(*dataset, index, depth, (*tools_of_workers)[worker]);
  };
  std::uint64_t fingerprint = 0;
  bool all_found = true;
  const auto take = [&](Checked checked) {
    progress.advance(checked.bytes);
    ++result.checked;
    result.bytes += checked.bytes;
    result.decoded += checked.decoded ? 1 : 0;
    result.repaired += checked.repaired ? 1 : 0;
    result.indices_verified += checked.index_verified ? 1 : 0;
    result.restored += checked.restored ? 1 : 0;
    result.checksums_compared += checked.checksum_compared ? 1 : 0;
    if (checked.checksum) fingerprint = fingerprint_with(fingerprint, *checked.checksum);
    all_found = all_found && checked.checksum;
    if (checked.bad) result.bad.push_back(std::move(*checked.bad));
    return !interrupt.requested();
  };
  result.interrupted = !over_records(runtime, result.records, 128, dataset, check_record, take);
  if (result.fingerprint && all_found && !result.interrupted)
    result.found_fingerprint = fingerprint;
  if (result.bad.empty() && !result.is_sound()) result.bad = repeated_records(*dataset);
  if (depth == VerifyDepth::deep) result.damaged_tables = damaged_hint_tables(*dataset);
  result.seconds = progress.seconds();
  return result;
}

}  // namespace millrace::cli
