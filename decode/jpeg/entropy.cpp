// SPDX-License-Identifier: Apache-2.0
#include "jpeg/entropy.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <limits>
#include <span>

namespace millrace::jpeg {

bool EntropyDecoder::begin(const Frame& frame, std::int64_t skipped,
                           std::array<int, 3> last_zigzag_indices, SeekIndex* index) {
  frame_ = &frame;
  current_ = 0;
  skipped_stray_bytes_ = false;
  begin_recording(index);
  done_ = skipped_to_ = decoded_to_ = run_mcus_ = 0;
  next_restart_ = 0;
  constexpr std::size_t many_segments = std::size_t{1} << 16;
  if (segments_.capacity() > many_segments) segments_ = std::vector<std::size_t>();
  segments_.assign(1, 0);
  before_restart_ = frame.restart_interval > 0 ? frame.restart_interval
                                               : std::numeric_limits<std::int64_t>::max();
  // Making the tables takes about as long as skipping this many MCUs without them.
  constexpr std::int64_t worth_tables = 60;
  const bool skips_by_table = skipped > worth_tables || last_zigzag_indices.front() < 63;
  for (ScanState& one : states_) {
    one.row_mcus = frame.mcus_across;
    one.next_point = nullptr;
    BlockKind* kind = one.kinds.data();
    for (std::size_t number = 0; number < static_cast<std::size_t>(frame.component_count);
         ++number) {
      const Component& component = frame.components[number];
      const auto ac = static_cast<std::size_t>(component.ac_table);
      for (int n = 0; n < component.across * component.down; ++n, ++kind)
        *kind = {.predictor = &one.predictors[number],
                 .dc = &dc_tables_[static_cast<std::size_t>(component.dc_table)],
                 .ac = &ac_tables_[ac],
                 .skip = skips_by_table ? &skip_tables_[ac] : nullptr,
                 .last_zigzag_index = static_cast<std::uint32_t>(last_zigzag_indices[number]),
                 .next = kind + 1};
    }
    kind[-1].next = one.kinds.data();
    one.block_count = static_cast<int>(kind - one.kinds.data());
  }
  state().bytes.begin(frame.scan, 0, ScanBytes::window_bytes, !recorded_points_.empty());
  state().bits = {0, state().bytes.first(), 0};
  state().predictors = {};
  return set_tables(frame, skips_by_table);
}

void EntropyDecoder::begin_recording(SeekIndex* index) {
  index_ = index;
  recorded_points_.clear();
  first_recorded_mcu_ = std::numeric_limits<std::int64_t>::max();
  if (index == nullptr) return;
  recorded_points_.resize(static_cast<std::size_t>(tiles().count - known_tiles()));
  first_recorded_mcu_ = tiles().first_mcu(known_tiles());
  next_point_ = recorded_points_.data();
  const bool of_rows = index->granularity == IndexPoints::rows;
  for (ScanState& one : states_)
    one.tile_mask = of_rows ? std::numeric_limits<int>::max() : tiles().mcus - 1;
}

bool EntropyDecoder::set_tables(const Frame& frame, bool with_skip_tables) {
  std::array<bool, 4> dc_set{};
  std::array<bool, 4> ac_set{};
  for (int number = 0; number < frame.component_count; ++number) {
    const auto dc =
        static_cast<std::size_t>(frame.components[static_cast<std::size_t>(number)].dc_table);
    const auto ac =
        static_cast<std::size_t>(frame.components[static_cast<std::size_t>(number)].ac_table);
    if (!dc_set[dc] && !dc_tables_[dc].set(frame.dc_codes[dc])) return false;
    if (!ac_set[ac] && !ac_tables_[ac].set(frame.ac_codes[ac])) return false;
    if (!ac_set[ac] && with_skip_tables) skip_tables_[ac].set(frame.ac_codes[ac]);
    dc_set[dc] = ac_set[ac] = true;
  }
  return true;
}

bool EntropyDecoder::ends_with(int marker, const ScanState& state) {
  const auto stray = state.bytes.stray_before(marker, state.bits.next, state.bits.count & 63);
  skipped_stray_bytes_ = skipped_stray_bytes_ || stray > std::size_t{0};
  return stray.has_value();
}

bool EntropyDecoder::ends_segment(const ScanState& state, int restart) {
  return ends_with(first_restart + restart, state);
}

bool EntropyDecoder::restart() {
  if (!ends_segment(state(), next_restart_)) return false;
  state().bytes.pass_marker();
  state().bits = {0, state().bytes.first(), 0};
  state().predictors = {};
  next_restart_ = (next_restart_ + 1) % 8;
  before_restart_ = frame_->restart_interval;
  return true;
}

/// Seeks the last known position at or before an MCU, if this skips MCUs. Known positions are the
/// points of the index; without an index, restart markers. About `mcus` MCUs will be read,
/// beginning with this one.
bool EntropyDecoder::go_near(std::int64_t mcu, int mcus) {
  if (index_ == nullptr) {
    if (!frame_->has_restarts_in_rows()) return true;
    const std::int64_t segment = mcu / frame_->restart_interval;
    return segment * frame_->restart_interval <= done_ || !knows_segment(segment) ||
           seek_segment(segment);
  }
  if (index_->points.empty()) return true;
  const std::int64_t tile = std::min(tiles().of(mcu), known_tiles() - 1);
  return tiles().first_mcu(tile) <= done_ || seek_tile(tile, tiles().of(mcu + mcus - 1) + 1);
}

bool EntropyDecoder::select_mcus(std::int64_t first, int mcus, CoefficientRow& row) {
  // If no MCU is wanted, all data must be checked, so nothing is skipped by seeking.
  if (!is_sound() || (mcus > 0 && !go_near(first, mcus))) return false;
  if (mcus > 0) row.clear();
  row_ = &row;
  skipped_to_ = first;
  decoded_to_ = first + mcus;
  return true;
}

McuRun* EntropyDecoder::next_run() {
  ScanState& scan = state();
  if (run_mcus_ > 0) {
    if (run_.state == McuRun::State::unsound) return nullptr;
    if (scan.next_point != nullptr) next_point_ = scan.next_point;
    done_ += run_mcus_;
    before_restart_ -= run_mcus_;
    run_mcus_ = 0;
  }
  if (done_ == decoded_to_) return nullptr;
  if (before_restart_ == 0 && !restart()) return nullptr;
  const std::int64_t end = done_ < skipped_to_ ? skipped_to_ : decoded_to_;
  const bool notes = done_ >= first_recorded_mcu_;
  run_mcus_ = std::min({end - done_, before_restart_, notes ? end : first_recorded_mcu_ - done_});
  scan.next_point = notes ? next_point_ : nullptr;
  if (notes) scan.column = static_cast<int>(done_ % scan.row_mcus);
  if (done_ < skipped_to_)
    begin_skipping(run_, scan, run_mcus_);
  else
    begin_decoding(run_, scan, *row_, static_cast<int>(done_ - skipped_to_),
                   static_cast<int>(run_mcus_));
  return &run_;
}

bool EntropyDecoder::finish() {
  if (run_mcus_ > 0 && run_.state == McuRun::State::open) jpeg::finish(run_);
  while (McuRun* run = next_run()) jpeg::finish(*run);
  return done_ == decoded_to_;
}

bool EntropyDecoder::can_decode_two_rows(std::int64_t second, int mcus) {
  if (state().kinds.front().last_zigzag_index != 63) return false;
  const int interval = frame_->restart_interval;
  const int across = frame_->mcus_across;
  if (index_ == nullptr) return interval == across && knows_segment(second / across);
  return interval % across == 0 && tiles().of(second + mcus - 1) < known_tiles();
}

bool EntropyDecoder::decode_two(std::int64_t first, std::int64_t second, int mcus,
                                CoefficientRow& first_row, CoefficientRow& second_row) {
  struct Lane {
    McuRun& run;
    CoefficientRow& row;
    ScanState* scan = nullptr;
    bool decodes = false;
  };
  std::array<Lane, 2> lanes{{{run_, first_row}, {second_run_, second_row}}};
  const auto decode = [&](Lane& lane) {
    begin_decoding(lane.run, *lane.scan, lane.row, 0, mcus);
    lane.decodes = true;
  };
  const auto begin = [&](Lane& lane, std::int64_t mcu) {
    if (!go_near(mcu, mcus) || (before_restart_ == 0 && !restart())) return false;
    lane.scan = &state();
    if (done_ < mcu)
      begin_skipping(lane.run, *lane.scan, mcu - done_);
    else
      decode(lane);
    done_ = mcu;
    return true;
  };
  if (!is_sound() || !begin(lanes[0], first)) return false;
  current_ = 1 - current_;
  if (!begin(lanes[1], second)) return false;
  first_row.clear();
  second_row.clear();
  const auto& [a, b] = lanes;
  using State = McuRun::State;
  const auto is_open = [](const Lane& lane) { return lane.run.state == State::open; };
  const auto can_turn = [](const Lane& lane) { return can_interleave_runs(lane.run); };
  while (is_open(a) || is_open(b)) {
    if (is_open(a) && is_open(b) && can_turn(a) && can_turn(b)) {
      decode_interleaved(a.run, b.run);
    } else {  // runs that cannot be interleaved, or the only open one
      const bool is_a = is_open(a) && !(is_open(b) && can_turn(a));
      jpeg::finish(is_a ? a.run : b.run);
    }
    for (Lane& lane : lanes) {
      if (lane.run.state == State::unsound) return false;
      if (lane.run.state == State::done && !lane.decodes) decode(lane);
    }
  }
  done_ = decoded_to_ = second + mcus;
  if (!is_sound(*a.scan)) return false;
  const int interval = frame_->restart_interval;
  if (interval == 0) return true;
  const auto last_before = [&](std::int64_t mcu) {
    return static_cast<int>((mcu - 1) / interval % 8);
  };
  next_restart_ = last_before(done_);
  before_restart_ = interval - 1 - (done_ - 1) % interval;
  const std::int64_t first_end = first + mcus;
  return first_end % interval != 0 || ends_segment(*a.scan, last_before(first_end));
}

/// Prefetches the bytes of the tile two rows below. The processor cannot predict their address.
void EntropyDecoder::fetch_ahead(std::int64_t tile, std::size_t bytes) const {
  constexpr std::size_t cache_line = 64;
  const std::int64_t later = tile + 2 * tiles().across;
  if (later >= known_tiles()) return;
  const std::span<const std::uint8_t> scan = frame_->scan;
  const auto bit = index_->points[static_cast<std::size_t>(later)].bit;
  const std::size_t begin = std::min<std::size_t>(bit / 8, scan.size());
  const std::size_t end = std::min(begin + std::min(bytes, ScanBytes::window_bytes), scan.size());
  for (std::size_t at = begin; at < end; at += cache_line) hwy::Prefetch(scan.data() + at);
}

/// Seeks a tile of the index. Reading will end before the tile `end`.
bool EntropyDecoder::seek_tile(std::int64_t tile, std::int64_t end) {
  const std::vector<SeekPoint>& points = index_->points;
  const SeekPoint& point = points[static_cast<std::size_t>(tile)];
  const std::size_t offset = point.bit / 8;
  const std::size_t end_offset =
      end < known_tiles() ? points[static_cast<std::size_t>(end)].bit / 8 : frame_->scan.size();
  const std::size_t wanted = end_offset > offset ? end_offset - offset : 0;
  fetch_ahead(tile, wanted);
  return seek(point, wanted, tiles().first_mcu(tile));
}

/// Seeks a known segment.
bool EntropyDecoder::seek_segment(std::int64_t segment) {
  const std::size_t offset = segments_[static_cast<std::size_t>(segment)];
  return seek({.bit = std::uint64_t{8} * offset}, ScanBytes::window_bytes,
              segment * frame_->restart_interval);
}

/// Continues at a point, where MCU `mcu` begins.
bool EntropyDecoder::seek(const SeekPoint& point, std::size_t wanted, std::int64_t mcu) {
  const std::size_t offset = point.bit / 8;
  if (offset >= frame_->scan.size()) return false;
  state().bytes.begin(frame_->scan, offset, wanted, !recorded_points_.empty());
  const std::uint8_t* const first = state().bytes.first();
  const auto used = static_cast<unsigned>(point.bit % 8);
  state().bits = {std::uint64_t{*first} << (56 + used), first + 1, 8 - used};
  std::ranges::copy(point.predictors, state().predictors.begin());
  done_ = mcu;
  if (const int interval = frame_->restart_interval; interval > 0) {
    next_restart_ = static_cast<int>(done_ / interval % 8);
    before_restart_ = interval - done_ % interval;
  }
  return true;
}

/// Finds the offsets of all segments up to this one. Returns false if one of them does not begin
/// after the restart marker that is due.
bool EntropyDecoder::knows_segment(std::int64_t segment) {
  while (static_cast<std::int64_t>(segments_.size()) <= segment) {
    const int marker = first_restart + static_cast<int>((segments_.size() - 1) % 8);
    const auto next = offset_behind(marker, frame_->scan, segments_.back());
    if (!next) return false;
    segments_.push_back(*next);
  }
  return true;
}

void EntropyDecoder::extend_index() {
  if (recorded_points_.empty()) return;
  for (SeekPoint* point = recorded_points_.data(); point != next_point_; ++point) {
    index_->points.push_back(*point);
    index_->points.back().bit =
        8 * std::uint64_t{state().bytes.offset_of(point->bit / 8)} + point->bit % 8;
  }
  recorded_points_.clear();
}

bool EntropyDecoder::is_sound(const ScanState& state) {
  return state.bytes.bits_left(state.bits.next) +
             static_cast<std::ptrdiff_t>(state.bits.count & 63) >=
         0;
}

bool EntropyDecoder::is_at_end() {
  constexpr int end_of_image = 0xD9;
  return done_ == std::int64_t{frame_->mcus_across} * frame_->mcus_down &&
         ends_with(end_of_image, state());
}

}  // namespace millrace::jpeg
