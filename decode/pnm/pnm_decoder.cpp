// SPDX-License-Identifier: Apache-2.0
#include "pnm/pnm_decoder.h"

#include <algorithm>
#include <string>

namespace millrace {
namespace {

using Bytes = std::span<const std::byte>;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\v' || c == '\f' || c == '\r';
}

/// Reads the numbers of a header, one after the other.
class PnmHeader {
 public:
  explicit PnmHeader(Bytes bytes) : bytes_(bytes) {}

  /// Reads a number and the one character after it. As in Netpbm, a comment counts as the end of
  /// its line, also in the middle of a number.
  Status read(const char* name, int& number) {
    char c = next();
    while (is_space(c)) c = next();
    if (ended_) return Status::bad("it ends in its header");
    if (c < '0' || c > '9') return Status::bad(std::string("its ") + name + " is not a number");
    constexpr int most = 1'000'000'000;
    for (number = 0; c >= '0' && c <= '9'; c = next()) {
      number = number * 10 + (c - '0');
      if (number >= most / 10)
        return Status::bad(std::string("its ") + name + " has too many digits");
    }
    if (ended_) return Status::bad("it ends in its header");
    if (!is_space(c))
      return Status::bad(std::string("its ") + name + " is not followed by white space");
    return Status::ok();
  }

  std::size_t position() const { return at_; }

 private:
  char next() {
    char c = take();
    if (c == '#')
      while (c != '\n' && c != '\r' && !ended_) c = take();
    return c;
  }
  char take() {
    if (at_ < bytes_.size()) return std::to_integer<char>(bytes_[at_++]);
    ended_ = true;
    return 0;
  }

  Bytes bytes_;
  std::size_t at_ = 2;
  bool ended_ = false;
};

/// Returns the bad status for a format other than P5 and P6.
Status refuse(char number) {
  constexpr const char* names[] = {"text PBM (P1)",  "text PGM (P2)",  "text PPM (P3)", "PBM (P4)",
                                   nullptr /* P5 */, nullptr /* P6 */, "PAM (P7)"};
  return Status::bad(std::string("a ") + names[number - '1'] +
                     "; only binary PGM (P5) and PPM (P6) are supported");
}

Status read_pnm_header(Bytes encoded, ImageHeader& header, std::size_t& pixels_at) {
  const char number = std::to_integer<char>(encoded[1]);
  if (number != '5' && number != '6') return refuse(number);
  PnmHeader text(encoded);
  int most = 0;
  if (Status read = text.read("width", header.width); !read.is_ok()) return read;
  if (Status read = text.read("height", header.height); !read.is_ok()) return read;
  if (Status read = text.read("maximal value", most); !read.is_ok()) return read;
  if (header.width == 0 || header.height == 0)
    return Status::bad("its header says " + std::to_string(header.width) + " x " +
                       std::to_string(header.height) + " pixels");
  if (most != 255)
    return Status::bad("its maximal value is " + std::to_string(most) + "; only 255 is supported");
  header.kind = ImageKind::pnm;
  header.components = number == '5' ? 1 : 3;
  header.decoder = "millrace (PNM)";
  pixels_at = text.position();
  return Status::ok();
}

}  // namespace

Status PnmDecoder::read_header(Bytes encoded, ImageHeader& header) {
  return read_pnm_header(encoded, header, pixels_at_);
}

std::uint64_t PnmDecoder::scratch_bytes(const Region&) const { return 0; }

Status PnmDecoder::has_rows(int rows) const {
  const ImageHeader& image = header();
  const auto row = static_cast<std::size_t>(image.width * std::int64_t{image.components});
  const std::size_t there = encoded().size() - pixels_at_;
  if (there >= row * static_cast<std::size_t>(rows)) return Status::ok();
  return Status::bad("cut short: " + std::to_string(there) + " of " +
                     std::to_string(row * static_cast<std::size_t>(image.height)) +
                     " bytes of pixels");
}

Status PnmDecoder::read_region(const Region& region, PixelView& view) {
  if (Status there = has_rows(region.y + region.height); !there.is_ok()) return there;
  const auto components = static_cast<std::size_t>(header().components);
  const std::size_t stored_stride = static_cast<std::size_t>(header().width) * components;
  const auto* from = reinterpret_cast<const std::uint8_t*>(encoded().data()) + pixels_at_ +
                     static_cast<std::size_t>(region.y) * stored_stride +
                     static_cast<std::size_t>(region.x) * components;
  if (components == 3) {
    view = {from, region.width, region.height, stored_stride};
    return Status::ok();
  }
  const std::size_t stride = 3 * static_cast<std::size_t>(region.width);
  std::uint8_t* to = reserve(stride * static_cast<std::size_t>(region.height));
  view = {to, region.width, region.height, stride};
  for (int y = 0; y < region.height; ++y, from += stored_stride)
    for (int x = 0; x < region.width; ++x, to += 3) std::fill_n(to, 3, from[x]);
  return Status::ok();
}

Status PnmDecoder::read_all() { return has_rows(header().height); }

Status read_pnm_info(Bytes encoded, ImageInfo& info) {
  info = {};
  Status read = read_pnm_header(encoded, info, info.header_bytes);
  info.scan_type = info.components == 1 ? "PGM" : "PPM";
  return read;
}

}  // namespace millrace
