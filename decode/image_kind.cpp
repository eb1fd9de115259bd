// SPDX-License-Identifier: Apache-2.0
#include <millrace/image.h>

#include <string_view>

namespace millrace {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  ImageKind kind;
};

constexpr Magic magics[] = {
    {0, "\x8aJCF\r\n\x1a\n"sv, ImageKind::coefficients},
    {0, "\xff\xd8"sv, ImageKind::jpeg},
    {0, "\x89PNG\r\n\x1a\n"sv, ImageKind::png},
    {8, "WEBP"sv, ImageKind::webp},
    {0, "GIF87a"sv, ImageKind::gif},
    {0, "GIF89a"sv, ImageKind::gif},
    {0, "BM"sv, ImageKind::bmp},
    {0, "II*\0"sv, ImageKind::tiff},
    {0, "MM\0*"sv, ImageKind::tiff},
    {4, "ftypavif"sv, ImageKind::avif},
    {4, "ftypavis"sv, ImageKind::avif},
    {4, "ftyphei"sv, ImageKind::heic},
    {4, "ftyphev"sv, ImageKind::heic},
    {4, "ftypmif1"sv, ImageKind::heic},
    {0, "\xff\x0a"sv, ImageKind::jpeg_xl},
    {4, "JXL \r\n"sv, ImageKind::jpeg_xl},
    {4, "jP  \r\n"sv, ImageKind::jpeg_2000},
};

/// Returns whether the bytes begin as a PNM. The first two characters alone would also match words
/// of a text.
bool is_pnm(std::string_view bytes) {
  return bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         " \t\n\v\f\r#"sv.find(bytes[2]) != std::string_view::npos;
}

}  // namespace

const char* to_string(ImageKind kind) {
  constexpr const char* names[] = {"unknown",
                                   "JPEG",
                                   "PNG",
                                   "WebP",
                                   "GIF",
                                   "BMP",
                                   "TIFF",
                                   "AVIF",
                                   "HEIC",
                                   "JPEG XL",
                                   "JPEG 2000",
                                   "PNM",
                                   "JPEG coefficients"};
  return names[static_cast<std::size_t>(kind)];
}

ImageKind image_kind(std::span<const std::byte> encoded) {
  const std::string_view bytes(reinterpret_cast<const char*>(encoded.data()), encoded.size());
  for (const Magic& magic : magics)
    if (bytes.size() >= magic.offset && bytes.substr(magic.offset).starts_with(magic.bytes))
      return magic.kind;
  return is_pnm(bytes) ? ImageKind::pnm : ImageKind::unknown;
}

}  // namespace millrace
