// SPDX-License-Identifier: Apache-2.0
#include "jpeg/progressive/script.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include "jpeg/scan_bytes.h"

namespace millrace::jpeg {
namespace {

constexpr int define_huffman_tables = 0xC4;
constexpr int end_of_image = 0xD9;
constexpr int start_of_scan = 0xDA;
constexpr int define_restart_interval = 0xDD;
constexpr int last_restart = first_restart + 7;

using Bytes = std::span<const std::uint8_t>;
using Codes = std::array<std::optional<HuffmanCode>, 4>;

void take_codes(JHUFF_TBL* const (&tables)[NUM_HUFF_TBLS], Codes& codes) {
  for (std::size_t n = 0; n < codes.size(); ++n) {
    codes[n].reset();
    if (tables[n] != nullptr) codes[n] = code_of(*tables[n]);
  }
}

class ScriptReader {
 public:
  ScriptReader(const jpeg_decompress_struct& image, const Frame& frame,
               std::uint64_t max_scan_pixels, Script& script)
      : image_(image),
        bytes_(frame.scan),
        component_count_(frame.component_count),
        max_scans_(std::min<std::uint64_t>(Libjpeg::max_scans,
                                           max_scan_pixels / (std::uint64_t{image.image_width} *
                                                              std::uint64_t{image.image_height}))),
        script_(script) {}

  bool read() {
    script_.scans.clear();
    script_.codes.clear();
    script_.refined_bit_count = 0;
    take_codes(image_.dc_huff_tbl_ptrs, dc_codes_);
    take_codes(image_.ac_huff_tbl_ptrs, ac_codes_);
    restart_interval_ = static_cast<int>(image_.restart_interval);
    for (auto& bits : low_bits_) bits.fill(unknown);
    if (!take_first_scan() || !pass_data()) return false;
    for (;;) {
      if (bytes_.size() - at_ < 2 || bytes_[at_] != 0xFF) return false;
      const int marker = bytes_[at_ + 1];
      at_ += 2;
      if (marker == end_of_image) return is_complete();
      if (bytes_.size() - at_ < 2) return false;
      const std::size_t length = big_endian16(bytes_.subspan(at_));
      if (length < 2 || length > bytes_.size() - at_) return false;
      const Bytes segment = bytes_.subspan(at_ + 2, length - 2);
      at_ += length;
      if (!take_segment(marker, segment)) return false;
    }
  }

 private:
  static constexpr int unknown = -1;

  static std::size_t big_endian16(Bytes bytes) {
    return std::size_t{bytes[0]} << 8 | std::size_t{bytes[1]};
  }

  bool take_segment(int marker, Bytes segment) {
    switch (marker) {
      case define_huffman_tables:
        return take_tables(segment);
      case define_restart_interval:
        if (segment.size() != 2) return false;
        restart_interval_ = static_cast<int>(big_endian16(segment));
        return true;
      case start_of_scan:
        return take_scan(segment) && pass_data();
      default:
        return false;
    }
  }

  bool take_tables(Bytes segment) {
    while (!segment.empty()) {
      if (segment.size() < 17) return false;
      const int place = segment[0];
      HuffmanCode code;
      std::copy_n(segment.begin() + 1, code.counts.size(), code.counts.begin());
      std::size_t count = 0;
      for (const std::uint8_t of_length : code.counts) count += of_length;
      segment = segment.subspan(17);
      if ((place & 0xEF) >= NUM_HUFF_TBLS || count > code.symbols.size() || count > segment.size())
        return false;
      std::copy_n(segment.begin(), count, code.symbols.begin());
      segment = segment.subspan(count);
      Codes& codes = (place & 0x10) != 0 ? ac_codes_ : dc_codes_;
      codes[static_cast<std::size_t>(place & 15)] = code;
    }
    return true;
  }

  /// A scan's parameters as its header states them.
  struct Parameters {
    int high = 0;
    std::array<int, 3> dc_tables{};
    int ac_table = 0;
  };

  /// Adds the scan whose header libjpeg has read.
  bool take_first_scan() {
    if (image_.comps_in_scan > component_count_) return false;
    ProgressiveScan scan{.component_count = image_.comps_in_scan,
                         .first = image_.Ss,
                         .last = image_.Se,
                         .low_bit = image_.Al};
    Parameters parameters{.high = image_.Ah};
    for (std::size_t n = 0; n < static_cast<std::size_t>(scan.component_count); ++n) {
      const jpeg_component_info& component = *image_.cur_comp_info[n];
      scan.components[n] = component.component_index;
      parameters.dc_tables[n] = component.dc_tbl_no;
      parameters.ac_table = component.ac_tbl_no;
    }
    return add_scan(scan, parameters);
  }

  bool take_scan(Bytes segment) {
    if (segment.empty() || segment[0] < 1 || segment[0] > component_count_) return false;
    ProgressiveScan scan{.component_count = segment[0]};
    const auto count = static_cast<std::size_t>(scan.component_count);
    if (segment.size() != 4 + 2 * count) return false;
    Parameters parameters;
    for (std::size_t n = 0; n < count; ++n) {
      scan.components[n] = component_of(segment[1 + 2 * n]);
      // libjpeg refuses a component that comes later in the scan than in the image.
      if (scan.components[n] < static_cast<int>(n)) return false;
      parameters.dc_tables[n] = segment[2 + 2 * n] >> 4;
      parameters.ac_table = segment[2 + 2 * n] & 15;
    }
    const Bytes rest = segment.subspan(1 + 2 * count);
    scan.first = rest[0];
    scan.last = rest[1];
    scan.low_bit = rest[2] & 15;
    parameters.high = rest[2] >> 4;
    return add_scan(scan, parameters);
  }

  /// Returns the number of the component with this identifier, or -1 unless exactly one has it.
  int component_of(int identifier) const {
    int found = -1;
    for (int number = 0; number < component_count_; ++number) {
      if (image_.comp_info[number].component_id != identifier) continue;
      if (found >= 0) return -1;
      found = number;
    }
    return found;
  }

  bool add_scan(ProgressiveScan& scan, const Parameters& parameters) {
    scan.refines = parameters.high != 0;
    scan.restart_interval = restart_interval_;
    scan.offset = at_;
    constexpr int highest_low_bit = 13;
    if (scan.low_bit > highest_low_bit || (scan.refines && scan.low_bit != parameters.high - 1))
      return false;
    if (scan.is_dc() ? scan.last != 0
                     : scan.last < scan.first || scan.last > 63 || scan.component_count != 1)
      return false;
    if (script_.scans.size() >= max_scans_) return false;
    for (std::size_t n = 0; n < static_cast<std::size_t>(scan.component_count); ++n) {
      for (std::size_t other = 0; other < n; ++other)
        if (scan.components[other] == scan.components[n]) return false;
      auto& bits = low_bits_[static_cast<std::size_t>(scan.components[n])];
      if (!scan.is_dc() && bits[0] == unknown) return false;
      for (int place = scan.first; place <= scan.last; ++place) {
        int& bit = bits[static_cast<std::size_t>(place)];
        if (bit != (scan.refines ? parameters.high : unknown)) return false;
        bit = scan.low_bit;
      }
      if (scan.is_dc() && !scan.refines &&
          !add_code(dc_codes_, parameters.dc_tables[n], scan.codes[n]))
        return false;
    }
    if (!scan.is_dc() && !add_code(ac_codes_, parameters.ac_table, scan.codes[0])) return false;
    if (!scan.is_dc() && scan.refines)
      script_.refined_bit_count = std::max(script_.refined_bit_count, scan.low_bit + 1);
    script_.scans.push_back(scan);
    return true;
  }

  bool add_code(const Codes& codes, int table, std::size_t& number) {
    if (table < 0 || table >= NUM_HUFF_TBLS || !codes[static_cast<std::size_t>(table)])
      return false;
    number = script_.codes.size();
    script_.codes.push_back(*codes[static_cast<std::size_t>(table)]);
    return true;
  }

  /// Skips the entropy-coded data of the last scan, up to the marker after it.
  bool pass_data() {
    ProgressiveScan& scan = script_.scans.back();
    while (at_ + 1 < bytes_.size()) {
      const void* const found = std::memchr(bytes_.data() + at_, 0xFF, bytes_.size() - 1 - at_);
      if (found == nullptr) return false;
      at_ = static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - bytes_.data());
      const int marker = bytes_[at_ + 1];
      const bool restarts = marker >= first_restart && marker <= last_restart;
      if (marker != 0 && !restarts) {
        scan.end_marker = marker;
        return true;
      }
      if (restarts && scan.restart_interval == 0) return false;
      at_ += 2;
    }
    return false;
  }

  bool is_complete() const {
    return std::ranges::all_of(
        std::span(low_bits_).first(static_cast<std::size_t>(component_count_)),
        [](const auto& bits) {
          return std::ranges::all_of(bits, [](int bit) { return bit == 0; });
        });
  }

  const jpeg_decompress_struct& image_;
  const Bytes bytes_;
  const int component_count_;
  const std::uint64_t max_scans_;
  Script& script_;
  std::size_t at_ = 0;
  int restart_interval_ = 0;
  Codes dc_codes_;
  Codes ac_codes_;
  /// The lowest bit that is known of each coefficient, by component.
  std::array<std::array<int, 64>, 3> low_bits_{};
};

}  // namespace

bool read_script(const jpeg_decompress_struct& image, const Frame& frame,
                 std::uint64_t max_scan_pixels, Script& script) {
  return ScriptReader(image, frame, max_scan_pixels, script).read();
}

}  // namespace millrace::jpeg
