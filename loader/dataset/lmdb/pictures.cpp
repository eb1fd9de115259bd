// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/pictures.h"

#include <algorithm>
#include <utility>

namespace millrace {

std::string_view picture_kind(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xD8\xFF"sv)) return "JPEG";
  if (text.starts_with("\x89PNG\r\n\x1A\n"sv)) return "PNG";
  if (text.starts_with("RIFF"sv) && text.size() > 12 && text.substr(8, 4) == "WEBP"sv)
    return "WebP";
  if (text.starts_with("GIF87a"sv) || text.starts_with("GIF89a"sv)) return "GIF";
  if (text.starts_with("II*\0"sv) || text.starts_with("MM\0*"sv)) return "TIFF";
  // Two letters are a weak signature, so more of the header must match.
  if (text.starts_with("BM"sv) && text.size() > 26 && text.substr(6, 4) == "\0\0\0\0"sv)
    return "BMP";
  if (text.size() > 8 && text[0] == 'P' && (text[1] == '5' || text[1] == '6') &&
      (text[2] == '\n' || text[2] == ' '))
    return "PNM";
  return {};
}

bool is_picture(const RawPixels& pixels) {
  constexpr std::int64_t most = 1 << 20;
  const auto fits = [](std::int64_t side) { return side > 0 && side <= most; };
  return fits(pixels.height) && fits(pixels.width) &&
         (pixels.channels == 1 || pixels.channels == 3) &&
         std::cmp_equal(pixels.values.size(), pixels.height * pixels.width * pixels.channels);
}

void make_pnm(const RawPixels& pixels, std::vector<std::byte>& pnm) {
  const std::string header = (pixels.channels == 1 ? "P5\n" : "P6\n") +
                             std::to_string(pixels.width) + " " + std::to_string(pixels.height) +
                             "\n255\n";
  pnm.resize(header.size() + pixels.values.size());
  std::ranges::copy(std::as_bytes(std::span(header)), pnm.begin());
  std::byte* to = pnm.data() + header.size();
  const std::byte* from = pixels.values.data();
  if (pixels.channels == 1) {
    std::ranges::copy(pixels.values, to);
    return;
  }
  const auto count = static_cast<std::size_t>(pixels.height * pixels.width);
  const std::size_t next = pixels.is_planar ? 1 : 3, plane = pixels.is_planar ? count : 1;
  for (std::size_t n = 0; n < count; ++n, from += next, to += 3) {
    to[0] = from[2 * plane];
    to[1] = from[plane];
    to[2] = from[0];
  }
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t length : shape)
    text += (text.empty() ? "" : " x ") + std::to_string(length);
  return text;
}

}  // namespace millrace
