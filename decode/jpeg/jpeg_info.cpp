// SPDX-License-Identifier: Apache-2.0
#include "jpeg/jpeg_info.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/orientation.h"

namespace millrace {
namespace {

using Bytes = std::span<const std::byte>;
/// The steps of a quantisation table, in the order of the file (zigzag).
using Table = std::array<int, 64>;

constexpr int start_of_scan = 0xDA;
constexpr int end_of_image = 0xD9;

int byte_at(Bytes bytes, std::size_t at) { return std::to_integer<int>(bytes[at]); }
int big_endian16(Bytes bytes, std::size_t at) {
  return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

bool begins_with(Bytes bytes, std::string_view text) {
  return bytes.size() >= text.size() && std::memcmp(bytes.data(), text.data(), text.size()) == 0;
}

/// The table of Annex K that the Independent JPEG Group's encoder scales, in zigzag order.
constexpr Table luminance = {16,  11, 12, 14,  12,  10,  16,  14,  13, 14,  18,  17,  16,
                             19,  24, 40, 26,  24,  22,  22,  24,  49, 35,  37,  29,  40,
                             58,  51, 61, 60,  57,  51,  56,  55,  64, 72,  92,  78,  64,
                             68,  87, 69, 55,  56,  80,  109, 81,  87, 95,  98,  103, 104,
                             103, 62, 77, 113, 121, 112, 100, 120, 92, 101, 103, 99};

/// Returns the distance of a table from the standard table of a quality; nullopt if a single step
/// differs by more than rounding explains.
std::optional<int> distance(const Table& table, int quality) {
  const int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
  int sum = 0;
  for (std::size_t n = 0; n < table.size(); ++n) {
    const int difference =
        std::abs(table[n] - std::clamp((luminance[n] * percent + 50) / 100, 1, 255));
    if (difference > 1) return {};
    sum += difference;
  }
  return sum;
}

std::optional<int> quality_of(const Table& table) {
  constexpr int farthest = 16;
  std::optional<int> best;
  int best_distance = farthest + 1;
  for (int quality = 1; quality <= 100; ++quality)
    if (const auto found = distance(table, quality); found && *found < best_distance) {
      best = quality;
      best_distance = *found;
    }
  return best;
}

/// Reads the segments of one image, one after the other.
class Header {
 public:
  Header(Bytes bytes, JpegInfo& info) : bytes_(bytes), info_(info) {}

  Status read() {
    for (at_ = 2;;) {
      int marker = 0;
      if (Status found = find_marker(marker); !found.is_ok()) return found;
      if (marker == end_of_image) return Status::bad("it has no scan");
      if (has_no_segment(marker)) continue;
      if (bytes_.size() - at_ < 2) return ends_early();
      const auto length = static_cast<std::size_t>(big_endian16(bytes_, at_));
      if (length < 2 && is_passed_over(marker)) {
        at_ += 2;  // skips the length only, as libjpeg and Pillow do
        continue;
      }
      if (length < 2)
        return Status::bad("a segment is said to be " + std::to_string(length) + " bytes long");
      if (length > bytes_.size() - at_) return ends_early();
      const Bytes segment = bytes_.subspan(at_ + 2, length - 2);
      at_ += length;
      if (marker == start_of_scan) break;
      if (Status taken = take(marker, segment); !taken.is_ok()) return taken;
    }
    return finish();
  }

 private:
  static Status ends_early() { return Status::bad("it ends before its first scan"); }

  static bool has_no_segment(int marker) {
    return marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
  }

  /// Returns whether libjpeg skips a marker's segment without a check of its length: APP0 to APP15,
  /// COM and DNL.
  static bool is_passed_over(int marker) {
    return (marker >= 0xE0 && marker <= 0xEF) || marker == 0xFE || marker == 0xDC;
  }

  /// Finds the next marker. Skips everything before it, as libjpeg does.
  Status find_marker(int& marker) {
    for (marker = 0; marker == 0;) {
      while (at_ < bytes_.size() && byte_at(bytes_, at_) != 0xFF) ++at_;
      while (at_ < bytes_.size() && byte_at(bytes_, at_) == 0xFF) ++at_;
      if (at_ >= bytes_.size()) return ends_early();
      marker = byte_at(bytes_, at_++);
    }
    return Status::ok();
  }

  Status take(int marker, Bytes segment) {
    // SOF0 to SOF15. The codes of DHT, JPG and DAC lie between them.
    if (marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC)
      return take_frame(marker, segment);
    if (marker == 0xDB) return take_tables(segment);
    if (marker == 0xDD) {
      if (segment.size() < 2) return Status::bad("its restart interval is cut short");
      info_.restart_interval = big_endian16(segment, 0);
    }
    if (marker == 0xE1) take_metadata(segment);
    return Status::ok();
  }

  /// Keeps EXIF, whose further segments continue the first, and the last XMP packet. Pillow does
  /// the same.
  void take_metadata(Bytes segment) {
    using namespace std::string_view_literals;
    constexpr std::string_view exif_name = "Exif\0\0"sv;
    constexpr std::string_view xmp_name = "http://ns.adobe.com/xap/1.0/\0"sv;
    if (begins_with(segment, xmp_name)) xmp_ = segment.subspan(xmp_name.size());
    if (!begins_with(segment, exif_name)) return;
    if (exif_.empty()) {
      exif_ = segment;
      return;
    }
    if (joined_exif_.empty()) joined_exif_.assign(exif_.begin(), exif_.end());
    const Bytes rest = segment.subspan(exif_name.size());
    joined_exif_.insert(joined_exif_.end(), rest.begin(), rest.end());
    exif_ = joined_exif_;
  }

  Status take_frame(int marker, Bytes segment) {
    if (has_frame_) return Status::bad("it has two frame headers");
    if (segment.size() < 6) return Status::bad("its frame header is cut short");
    has_frame_ = true;
    constexpr JpegInfo::Process processes[] = {
        JpegInfo::Process::baseline, JpegInfo::Process::extended, JpegInfo::Process::progressive,
        JpegInfo::Process::lossless};
    const int number = marker - 0xC0;
    info_.process = (number & 4) != 0 ? JpegInfo::Process::hierarchical : processes[number & 3];
    info_.arithmetic = number > 8;
    info_.bits_per_sample = byte_at(segment, 0);
    info_.height = big_endian16(segment, 1);
    info_.width = big_endian16(segment, 3);
    info_.components = byte_at(segment, 5);
    if (info_.width == 0 || info_.height == 0)
      return Status::bad("its frame header says " + std::to_string(info_.width) + " x " +
                         std::to_string(info_.height) + " pixels");
    if (info_.components == 0 ||
        segment.size() < 6 + 3 * static_cast<std::size_t>(info_.components))
      return Status::bad("its frame header is cut short");
    frame_ = segment;
    return Status::ok();
  }

  Status take_tables(Bytes segment) {
    while (!segment.empty()) {
      const int number = byte_at(segment, 0) & 15;
      const std::size_t step_bytes = byte_at(segment, 0) >> 4 != 0 ? 2 : 1;
      if (number >= 4)
        return Status::bad("it has a quantisation table number " + std::to_string(number));
      if (segment.size() < 1 + 64 * step_bytes)
        return Status::bad("a quantisation table is cut short");
      Table& table = tables_[static_cast<std::size_t>(number)].emplace();
      for (std::size_t step = 0; step < table.size(); ++step)
        table[step] =
            step_bytes == 1 ? byte_at(segment, 1 + step) : big_endian16(segment, 1 + 2 * step);
      segment = segment.subspan(1 + 64 * step_bytes);
    }
    return Status::ok();
  }

  /// Returns a component's sampling factors, horizontal and vertical.
  std::pair<int, int> sampling(int component) const {
    const int factors = byte_at(frame_, 6 + 3 * static_cast<std::size_t>(component) + 1);
    return {factors >> 4, factors & 15};
  }

  std::string scan_type() const {
    constexpr const char* names[] = {"baseline", "extended", "progressive", "lossless",
                                     "hierarchical"};
    return names[static_cast<std::size_t>(info_.process)] +
           std::string(info_.arithmetic ? ", arithmetic" : "") +
           (info_.bits_per_sample == 8 ? ""
                                       : ", " + std::to_string(info_.bits_per_sample) + " bits");
  }

  std::string chroma() const {
    if (info_.components == 1) return "gray";
    const auto [h, v] = sampling(0);
    bool even = info_.components == 3 || info_.components == 4;
    for (int component = 1; component < info_.components; ++component) {
      // The fourth component is black, at the first one's resolution.
      const std::pair expected = component == 3 ? sampling(0) : sampling(1);
      even = even && sampling(component) == expected;
    }
    const auto [chroma_h, chroma_v] = sampling(1);
    if (even && chroma_h > 0 && chroma_v > 0 && h % chroma_h == 0 && v % chroma_v == 0) {
      constexpr std::pair<std::pair<int, int>, const char*> names[] = {
          {{1, 1}, "4:4:4"}, {{2, 1}, "4:2:2"}, {{2, 2}, "4:2:0"},
          {{1, 2}, "4:4:0"}, {{4, 1}, "4:1:1"}, {{4, 2}, "4:1:0"}};
      for (const auto& [factors, name] : names)
        if (factors == std::pair(h / chroma_h, v / chroma_v)) return name;
    }
    std::string text;
    for (int component = 0; component < info_.components; ++component) {
      const auto [across, down] = sampling(component);
      text += (text.empty() ? "" : " ") + std::to_string(across) + "x" + std::to_string(down);
    }
    return text;
  }

  Status finish() {
    if (!has_frame_) return Status::bad("it has a scan without a frame header before it");
    info_.scan_type = scan_type();
    info_.chroma = chroma();
    const int number = byte_at(frame_, 6 + 2);
    if (number < 4 && tables_[static_cast<std::size_t>(number)])
      info_.quality = quality_of(*tables_[static_cast<std::size_t>(number)]);
    info_.header_bytes = at_;
    info_.orientation = stated_orientation(exif_, xmp_);
    return Status::ok();
  }

  Bytes bytes_;
  JpegInfo& info_;
  std::size_t at_ = 0;
  bool has_frame_ = false;
  Bytes frame_;
  Bytes exif_;
  Bytes xmp_;
  /// Memory of `exif_` if it has several segments.
  std::vector<std::byte> joined_exif_;
  std::array<std::optional<Table>, 4> tables_;
};

}  // namespace

Status read_jpeg_info(std::span<const std::byte> encoded, JpegInfo& info) {
  info = {};
  info.kind = ImageKind::jpeg;
  return Header(encoded, info).read();
}

}  // namespace millrace
