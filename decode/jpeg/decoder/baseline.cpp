// SPDX-License-Identifier: Apache-2.0
#include "jpeg/decoder/baseline.h"

#include <algorithm>

namespace millrace::jpeg {
namespace {

std::int64_t mcus_of(const Frame& frame) {
  return std::int64_t{frame.mcus_across} * frame.mcus_down;
}

}  // namespace

/// Returns the approximate number of MCUs that are skipped before the window and between its rows.
std::int64_t BaselineDecoder::skipped_mcus(const Frame& frame, const SeekIndex* index) const {
  const std::int64_t rows = window().last_mcu_row - window().first_mcu_row + 1;
  const std::int64_t across = frame.mcus_across;
  const std::int64_t last = across * window().last_mcu_row + window().last_mcu;
  if (index != nullptr) {
    const Tiles tiles(frame, index->granularity);
    if (static_cast<std::int64_t>(index->points.size()) > tiles.of(last))
      return rows * (window().first_mcu % tiles.mcus);
  } else if (frame.has_restarts_in_rows()) {
    return rows * (window().first_mcu % frame.restart_interval);
  }
  return last + 1 - rows * window().mcus();
}

bool BaselineDecoder::decode(const Frame& frame, const Region& region, int reduction,
                             std::uint8_t* pixels, SeekIndex* index) {
  start(frame, region, reduction, pixels, index);
  return finish();
}

void BaselineDecoder::begin(const Frame& frame, const Region& region, int reduction,
                            std::uint8_t* pixels, SeekIndex* index) {
  start(frame, region, reduction, pixels, index);
  const int mcus = window().mcus();
  const bool has_two = valid_so_far_ && window().first_mcu_row < window().last_mcu_row &&
                       entropy_.can_decode_two_rows(first_mcu(window().last_mcu_row), mcus);
  run_ = has_two ? nullptr : next_run();
}

void BaselineDecoder::start(const Frame& frame, const Region& region, int reduction,
                            std::uint8_t* pixels, SeekIndex* index) {
  frame_ = &frame;
  // An image with restart markers in its rows uses only a complete index. The number of points in a
  // partial index would decide how much is skipped, and so whether damage before the region is
  // found.
  const auto is_whole = [&] {
    return static_cast<std::int64_t>(index->points.size()) ==
           Tiles(frame, index->granularity).count;
  };
  if (index != nullptr && frame.has_restarts_in_rows() && !is_whole()) index = nullptr;
  region_.begin(frame, region, reduction, pixels);
  for (CoefficientRow& row : rows_) row.shape(frame, window().mcus());
  mcu_row_ = window().first_mcu_row;
  row_begun_ = false;
  valid_so_far_ = entropy_.begin(frame, skipped_mcus(frame, index), last_zigzag_indices(), index);
}

/// Decodes up to the next sequence of MCUs (`McuRun`) that can be interleaved with one of another
/// image, and returns it. Returns nullptr if the region has none left.
McuRun* BaselineDecoder::next_run() {
  while (valid_so_far_ && mcu_row_ <= window().last_mcu_row) {
    if (!row_begun_) begin_row();
    while (McuRun* run = valid_so_far_ ? entropy_.next_run() : nullptr) {
      if (can_interleave_runs(*run)) return run;
      jpeg::finish(*run);
    }
    finish_rows(1);
  }
  return nullptr;
}

void BaselineDecoder::decode_interleaved(BaselineDecoder& a, BaselineDecoder& b) {
  if (&a == &b) return;
  try {
    while (a.can_interleave() && b.can_interleave()) {
      jpeg::decode_interleaved(*a.run_, *b.run_);
      for (BaselineDecoder* one : {&a, &b})
        if (one->run_->state != McuRun::State::open) one->run_ = one->next_run();
    }
  } catch (...) {  // memory ran out: the positions of both decoders are unknown
    for (BaselineDecoder* one : {&a, &b}) {
      one->valid_so_far_ = false;
      one->run_ = nullptr;
    }
    throw;
  }
}

void BaselineDecoder::begin_row() {
  const int mcus = window().mcus();
  valid_so_far_ = entropy_.select_mcus(first_mcu(mcu_row_), mcus, rows_.front());
  row_begun_ = true;
}

bool BaselineDecoder::finish() {
  run_ = nullptr;
  const int mcus = window().mcus();
  while (valid_so_far_ && mcu_row_ <= window().last_mcu_row) {
    if (!row_begun_ && mcu_row_ < window().last_mcu_row &&
        entropy_.can_decode_two_rows(first_mcu(mcu_row_ + 1), mcus)) {
      valid_so_far_ = entropy_.decode_two(first_mcu(mcu_row_), first_mcu(mcu_row_ + 1), mcus,
                                          rows_[0], rows_[1]);
      finish_rows(2);
    } else {
      if (!row_begun_) begin_row();
      finish_rows(1);
    }
  }
  const bool at_end = window().last_mcu_row == frame_->mcus_down - 1;
  if (!valid_so_far_ || !(at_end ? reach_end() : entropy_.is_sound())) return false;
  entropy_.extend_index();
  return true;
}

/// Finishes decoding the coefficients of the next `count` rows of MCUs, and makes their pixels.
void BaselineDecoder::finish_rows(int count) {
  valid_so_far_ = valid_so_far_ && entropy_.finish();
  row_begun_ = false;
  for (int n = 0; valid_so_far_ && n < count; ++n, ++mcu_row_)
    region_.add(rows_[static_cast<std::size_t>(n)], mcu_row_);
}

/// Skips the remaining MCUs. Returns whether the image ends after them.
bool BaselineDecoder::reach_end() {
  return entropy_.select_mcus(mcus_of(*frame_), 0, rows_.front()) && entropy_.finish() &&
         entropy_.is_at_end();
}

bool BaselineDecoder::check(const Frame& frame, SeekIndex* index) {
  frame_ = &frame;
  if (!entropy_.begin(frame, mcus_of(frame), {63, 63, 63}, index) || !reach_end()) return false;
  entropy_.extend_index();
  return true;
}

}  // namespace millrace::jpeg
