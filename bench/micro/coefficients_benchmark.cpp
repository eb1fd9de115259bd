// SPDX-License-Identifier: Apache-2.0
//
// Cost of records of coefficients: making and restoring them, expanding the tiles of a training
// crop, and making its pixels. Costs are shares of the time in which libjpeg-turbo decodes the
// whole photographs. `of_jpeg` is the records' size divided by that of the JPEGs.
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/image_decoder.h>

#include <vector>

#include "micro/photographs.h"

namespace millrace {
namespace {

using Bytes = std::vector<std::byte>;

/// Returns the records of all photographs. The record of a photograph that must stay a JPEG is
/// empty.
const std::vector<Bytes>& coefficient_records() {
  static const std::vector<Bytes> all = [] {
    JpegRecoder recoder(std::make_shared<DecodeBudget>());
    std::vector<Bytes> made(micro::photographs().size());
    for (std::size_t n = 0; n < made.size(); ++n)
      if (!recoder.store(micro::bytes_of(micro::photographs()[n]), made[n]).is_ok())
        made[n].clear();
    return made;
  }();
  return all;
}

double share_of_jpegs() {
  double of_records = 0;
  double of_jpegs = 0;
  for (std::size_t n = 0; n < coefficient_records().size(); ++n) {
    if (coefficient_records()[n].empty()) continue;
    of_records += static_cast<double>(coefficient_records()[n].size());
    of_jpegs += static_cast<double>(micro::photographs()[n].size());
  }
  return of_records / of_jpegs;
}

/// Times a function of a photograph's number and of its record.
template <typename Run>
void time_records(benchmark::State& state, const Run& run) {
  micro::beside_whole_decode(state, [&](const std::string&, std::size_t number, Size size) {
    const Bytes& record = coefficient_records()[number % coefficient_records().size()];
    if (record.empty()) return 0.0;
    const double begin = micro::thread_seconds();
    run(number, record, size);
    return micro::thread_seconds() - begin;
  });
  state.counters["of_jpeg"] = share_of_jpegs();
}

void make_record(benchmark::State& state) {
  JpegRecoder recoder(std::make_shared<DecodeBudget>());
  Bytes made;
  time_records(state, [&](std::size_t number, const Bytes&, Size) {
    const std::string& photograph = micro::photographs()[number % micro::photographs().size()];
    benchmark::DoNotOptimize(recoder.store(micro::bytes_of(photograph), made).is_ok());
  });
}
BENCHMARK(make_record)->UseManualTime();

/// Makes a record of the pixels alone, as the cache of the first epoch does.
void make_pixel_record(benchmark::State& state) {
  JpegRecoder recoder(std::make_shared<DecodeBudget>());
  Bytes made;
  time_records(state, [&](std::size_t number, const Bytes&, Size) {
    const std::string& photograph = micro::photographs()[number % micro::photographs().size()];
    benchmark::DoNotOptimize(
        recoder.store_coefficients_only(micro::bytes_of(photograph), made).is_ok());
  });
}
BENCHMARK(make_pixel_record)->UseManualTime();

void restore_file(benchmark::State& state) {
  JpegRecoder recoder(std::make_shared<DecodeBudget>());
  Bytes made;
  time_records(state, [&](std::size_t, const Bytes& record, Size) {
    benchmark::DoNotOptimize(recoder.restore(record, made).is_ok());
  });
}
BENCHMARK(restore_file)->UseManualTime();

/// Expands all tiles of a record and compares its checksum.
void check_record(benchmark::State& state) {
  const auto decoder = make_image_decoder();
  time_records(state, [&](std::size_t, const Bytes& record, Size) {
    benchmark::DoNotOptimize(decoder->open(record).is_ok() && decoder->check().is_ok());
  });
}
BENCHMARK(check_record)->UseManualTime();

void record_crop(benchmark::State& state) {
  const auto decoder = make_image_decoder();
  time_records(state, [&](std::size_t number, const Bytes& record, Size size) {
    PixelView view;
    benchmark::DoNotOptimize(decoder->open(record).is_ok() &&
                             decoder->decode(micro::drawn_crop(size, number).box, view).is_ok());
  });
}
BENCHMARK(record_crop)->UseManualTime();

void whole_record(benchmark::State& state) {
  const auto decoder = make_image_decoder();
  time_records(state, [&](std::size_t, const Bytes& record, Size size) {
    PixelView view;
    benchmark::DoNotOptimize(decoder->open(record).is_ok() &&
                             decoder->decode({0, 0, size.width, size.height}, view).is_ok());
  });
}
BENCHMARK(whole_record)->UseManualTime();

}  // namespace
}  // namespace millrace
