// SPDX-License-Identifier: Apache-2.0
#include "coefficients/scan_writer.h"

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "jpeg/huffman.h"

namespace millrace::coefficients {
namespace {

constexpr unsigned sixteen_zeros = jpeg::sixteen_zeros;

unsigned bits_of(int value) {
  return static_cast<unsigned>(std::bit_width(static_cast<unsigned>(std::abs(value))));
}
/// Returns a value's bits as T.81 codes them: a negative value minus 1.
std::uint32_t coded(int value) { return static_cast<std::uint32_t>(value < 0 ? value - 1 : value); }

/// Encodes one scan. Once a code is missing, its functions return false.
class ScanCoder {
 public:
  ScanCoder(const jpeg::Frame& frame, const Coefficients& coefficients, const Scan& scan,
            std::vector<std::uint8_t>& to)
      : frame_(frame), coefficients_(coefficients), scan_(scan), bits_(to) {}

  bool code() {
    bits_.reserve();
    return (scan_.component_count == 1 ? code_component() : code_mcus()) && end_segment();
  }

 private:
  using Block = const std::int16_t*;

  const std::int16_t* block(int component, int row, int column) const {
    const int number = row * blocks_across(frame_, component) + column;
    return coefficients_.blocks[static_cast<std::size_t>(component)].data() +
           static_cast<std::size_t>(number) * block_values;
  }

  /// Encodes a scan of one component. Such a scan omits the blocks that only fill MCUs.
  bool code_component() {
    const Scan::Component& component = scan_.components.front();
    const jpeg::Component& light = frame_.components.front();
    const auto part = [](int of, int by) { return (of + by - 1) / by; };
    const bool is_chroma = component.number > 0;
    const int across = part(part(frame_.width, is_chroma ? light.across : 1), jpeg::block_side);
    const int down = part(part(frame_.height, is_chroma ? light.down : 1), jpeg::block_side);
    for (int row = 0; row < down; ++row)
      for (int column = 0; column < across; ++column)
        if (!begin_mcu() || !code_block(0, block(component.number, row, column))) return false;
    return true;
  }

  bool code_mcus() {
    for (int row = 0; row < frame_.mcus_down; ++row)
      for (int column = 0; column < frame_.mcus_across; ++column)
        if (!begin_mcu() || !code_mcu(row, column)) return false;
    return true;
  }
  bool code_mcu(int row, int column) {
    for (int n = 0; n < scan_.component_count; ++n) {
      const int number = scan_.components[static_cast<std::size_t>(n)].number;
      const jpeg::Component& component = frame_.components[static_cast<std::size_t>(number)];
      for (int y = 0; y < component.down; ++y)
        for (int x = 0; x < component.across; ++x)
          if (!code_block(n,
                          block(number, row * component.down + y, column * component.across + x)))
            return false;
    }
    return true;
  }

  /// Writes a restart marker if one is due.
  bool begin_mcu() {
    if (scan_.restart_interval == 0) return true;
    if (mcus_in_segment_++ < scan_.restart_interval) return true;
    if (!end_segment()) return false;
    bits_.put_marker(static_cast<std::uint8_t>(0xD0 + restarts_));
    restarts_ = (restarts_ + 1) % 8;
    mcus_in_segment_ = 1;
    predictors_ = {};
    return true;
  }
  bool end_segment() {
    if (!end_run()) return false;
    bits_.end_segment(scan_.padding);
    return true;
  }

  bool code_block(int n, Block block) {
    bits_.reserve();
    const auto number = static_cast<std::size_t>(n);
    const Scan::Component& component = scan_.components[number];
    if (!scan_.progressive) return code_dc(number, block[0]) && code_ac(*component.ac, block);
    if (scan_.first == 0) {
      if (scan_.high == 0) return code_dc(number, block[0] >> scan_.low);
      bits_.at.put(static_cast<std::uint32_t>(block[0] >> scan_.low) & 1, 1);
      return true;
    }
    return scan_.high == 0 ? code_ac_first(*component.ac, block)
                           : code_ac_refined(*component.ac, block);
  }

  bool code_dc(std::size_t n, int value) {
    const int difference = value - predictors_[n];
    predictors_[n] = value;
    const unsigned bits = bits_of(difference);
    return bits <= max_bits && scan_.components[n].dc->put(bits, coded(difference), bits, bits_.at);
  }

  static bool put_value(const SymbolCodes& codes, unsigned zeros, int value, BitCursor& to) {
    const unsigned bits = bits_of(value);
    return bits <= max_bits && codes.put(zeros << 4 | bits, coded(value), bits, to);
  }

  bool code_ac(const SymbolCodes& codes, Block block) {
    BitCursor at = bits_.at;
    bool has_codes = true;
    unsigned last = 0;
    zigzag_.take(block);
    for (std::uint64_t left = zigzag_.stored & ~1ULL; left != 0; left &= left - 1) {
      const auto n = static_cast<unsigned>(std::countr_zero(left));
      unsigned zeros = n - last - 1;
      last = n;
      for (; zeros > 15; zeros -= 16) has_codes = codes.put(sixteen_zeros, at) && has_codes;
      has_codes = put_value(codes, zeros, zigzag_.values[n], at) && has_codes;
    }
    if (last < block_values - 1) has_codes = codes.put(0, at) && has_codes;
    bits_.at = at;
    return has_codes;
  }

  bool code_ac_first(const SymbolCodes& codes, Block block) {
    run_codes_ = &codes;
    unsigned zeros = 0;
    for (int n = scan_.first; n <= scan_.last; ++n) {
      const int stored = block[zigzag_places[static_cast<std::size_t>(n)]];
      const int value = stored < 0 ? -(-stored >> scan_.low) : stored >> scan_.low;
      if (value == 0) {
        ++zeros;
        continue;
      }
      if (!end_run()) return false;
      for (; zeros > 15; zeros -= 16)
        if (!codes.put(sixteen_zeros, bits_.at)) return false;
      if (!put_value(codes, zeros, value, bits_.at)) return false;
      zeros = 0;
    }
    if (zeros == 0) return true;
    return ++run_ < longest_run || end_run();
  }

  /// Encodes the next bit of a block's coefficients. Bits that correct earlier coefficients follow
  /// the next code.
  bool code_ac_refined(const SymbolCodes& codes, Block block) {
    run_codes_ = &codes;
    std::array<int, block_values> sizes;
    int last_new = 0;
    for (int n = scan_.first; n <= scan_.last; ++n) {
      const auto at = static_cast<std::size_t>(n);
      sizes[at] = std::abs(block[zigzag_places[at]]) >> scan_.low;
      if (sizes[at] == 1) last_new = n;
    }
    unsigned zeros = 0;
    corrections_.clear();
    for (int n = scan_.first; n <= scan_.last; ++n) {
      const int size = sizes[static_cast<std::size_t>(n)];
      if (size == 0) {
        ++zeros;
        continue;
      }
      for (; zeros > 15 && n <= last_new; zeros -= 16) {
        if (!end_run() || !codes.put(sixteen_zeros, bits_.at)) return false;
        put_bits(corrections_);
      }
      if (size > 1) {
        corrections_.push_back(static_cast<std::uint8_t>(size & 1));
        continue;
      }
      if (!end_run() || !codes.put(zeros << 4 | 1, bits_.at)) return false;
      bits_.at.put(block[zigzag_places[static_cast<std::size_t>(n)]] < 0 ? 0 : 1, 1);
      put_bits(corrections_);
      zeros = 0;
    }
    if (zeros == 0 && corrections_.empty()) return true;
    ++run_;
    run_corrections_.insert(run_corrections_.end(), corrections_.begin(), corrections_.end());
    return (run_ < longest_run && run_corrections_.size() <= max_corrections) || end_run();
  }

  /// Writes the end-of-band code for the blocks of `run_`, and their correction bits.
  bool end_run() {
    if (run_ == 0) return true;
    const auto bits = static_cast<unsigned>(std::bit_width(run_)) - 1;
    if (!run_codes_->put(bits << 4, run_, bits, bits_.at)) return false;
    run_ = 0;
    put_bits(run_corrections_);
    return true;
  }
  void put_bits(std::vector<std::uint8_t>& all) {
    for (const std::uint8_t bit : all) bits_.at.put(bit, 1);
    all.clear();
  }

  static constexpr unsigned max_bits = 15;
  static constexpr unsigned longest_run = 0x7FFF;
  /// libjpeg's buffer holds 1,000 corrections, and must have room for the ones of one more block.
  static constexpr std::size_t max_corrections = 1000 - block_values + 1;

  const jpeg::Frame& frame_;
  const Coefficients& coefficients_;
  const Scan& scan_;
  ScanBits bits_;
  ZigzagBlock zigzag_;
  std::array<int, 3> predictors_{};
  int mcus_in_segment_ = 0;
  int restarts_ = 0;
  /// Number of blocks of a progressive scan that have ended early and are not encoded yet.
  unsigned run_ = 0;
  const SymbolCodes* run_codes_ = nullptr;
  std::vector<std::uint8_t> run_corrections_;
  std::vector<std::uint8_t> corrections_;
};

bool is_scan(const jpeg::Frame& frame, const Scan& scan) {
  if (scan.component_count < 1 || scan.component_count > frame.component_count) return false;
  for (int n = 0; n < scan.component_count; ++n) {
    const Scan::Component& component = scan.components[static_cast<std::size_t>(n)];
    if (component.number < 0 || component.number >= frame.component_count) return false;
    if (component.dc == nullptr || component.ac == nullptr) return false;
  }
  if (!scan.progressive)
    return scan.first == 0 && scan.last == 63 && scan.high == 0 && scan.low == 0;
  constexpr int max_low = 13;
  if (scan.low < 0 || scan.low > max_low) return false;
  if (scan.first == 0) return scan.last == 0;
  return scan.component_count == 1 && scan.first <= scan.last && scan.last <= 63;
}

}  // namespace

bool write_scan(const jpeg::Frame& frame, const Coefficients& coefficients, const Scan& scan,
                std::vector<std::uint8_t>& to) {
  return is_scan(frame, scan) && ScanCoder(frame, coefficients, scan, to).code();
}

}  // namespace millrace::coefficients
