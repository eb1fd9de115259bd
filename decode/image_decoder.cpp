// SPDX-License-Identifier: Apache-2.0
#include <millrace/detail/interleaved_decoder.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/image_decoder.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

#include "codec/limits.h"
#include "coefficients/coefficient_decoder.h"
#include "jpeg/decoder/jpeg_decoder.h"
#include "jpeg/jpeg_info.h"
#include "png/png_decoder.h"
#include "png/png_info.h"
#include "pnm/pnm_decoder.h"
#include "webp/webp_decoder.h"
#include "webp/webp_info.h"

namespace millrace {
namespace {

struct Codec {
  ImageKind kind;
  std::unique_ptr<ImageDecoder> (*make)(const std::shared_ptr<DecodeBudget>&);
  Status (*read_info)(std::span<const std::byte>, ImageInfo&);
  bool interleaves;
  /// Whether this kind is a standard format, which other programs write. Messages name only these.
  bool is_standard_format = true;
};

template <typename Decoder>
std::unique_ptr<ImageDecoder> make(const std::shared_ptr<DecodeBudget>& budget) {
  return std::make_unique<Decoder>(budget);
}

/// Reads an image of one kind. Keeps only the information that all kinds have in common.
template <typename Info, Status (*read)(std::span<const std::byte>, Info&)>
Status read_info(std::span<const std::byte> encoded, ImageInfo& info) {
  Info found;
  Status status = read(encoded, found);
  info = std::move(found);
  return status;
}

template <typename Decoder>
constexpr bool interleaves = std::is_base_of_v<InterleavedDecoder, Decoder>;

/// All codecs. A codec gets only bytes that begin with its kind's signature.
constexpr Codec codecs[] = {
    {ImageKind::coefficients, make<CoefficientDecoder>, read_coefficient_info,
     interleaves<CoefficientDecoder>, false},
    {ImageKind::jpeg, make<JpegDecoder>, read_info<JpegInfo, read_jpeg_info>,
     interleaves<JpegDecoder>},
    {ImageKind::png, make<PngDecoder>, read_info<PngInfo, read_png_info>, interleaves<PngDecoder>},
    {ImageKind::webp, make<WebpDecoder>, read_info<WebpInfo, read_webp_info>,
     interleaves<WebpDecoder>},
    {ImageKind::pnm, make<PnmDecoder>, read_pnm_info, interleaves<PnmDecoder>},
};

std::string hex(std::span<const std::byte> bytes) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : bytes) {
    if (!text.empty()) text += ' ';
    text += digits[std::to_integer<unsigned>(byte) >> 4];
    text += digits[std::to_integer<unsigned>(byte) & 15];
  }
  return text;
}

/// Returns, for example, "JPEG, PNG and WebP".
std::string names_of_codecs(std::string_view last_separator) {
  std::string names;
  for (const Codec& codec : codecs) {
    if (!codec.is_standard_format) continue;
    if (!names.empty()) names += &codec + 1 == std::end(codecs) ? last_separator : ", ";
    names += to_string(codec.kind);
  }
  return names;
}

/// Finds the codec of an image. Returns a bad status if the image has an unsupported kind.
Status find_codec(std::span<const std::byte> encoded, std::size_t& number) {
  if (encoded.empty()) return Status::bad("empty (0 bytes)");
  const ImageKind kind = image_kind(encoded);
  for (number = 0; number < std::size(codecs); ++number)
    if (codecs[number].kind == kind) return Status::ok();
  if (kind != ImageKind::unknown)
    return Status::bad((kind == ImageKind::avif ? "an " : "a ") + std::string(to_string(kind)) +
                       " image; only " + names_of_codecs(" and ") + " are supported");
  return Status::bad("not a " + names_of_codecs(" or ") + " (starts with " +
                     hex(encoded.first(std::min<std::size_t>(encoded.size(), 4))) + ")");
}

}  // namespace

/// Passes each image to the decoder of its kind.
class AnyDecoder final : public ImageDecoder {
 public:
  explicit AnyDecoder(std::shared_ptr<DecodeBudget> budget) : budget_(std::move(budget)) {}

  Status open(std::span<const std::byte> encoded) override {
    close();
    current_ = nullptr;
    std::size_t number = 0;
    if (Status found = find_codec(encoded, number); !found.is_ok()) return found;
    drop_large_except(number);
    std::unique_ptr<ImageDecoder>& decoder = decoders_[number];
    if (!decoder) decoder = codecs[number].make(budget_);
    if (Status opened = decoder->open(encoded); !opened.is_ok()) return opened;
    current_ = decoder.get();
    largest_[number] = std::max(largest_[number], pixels_of(current_->header().size()));
    encoded_ = encoded;
    return Status::ok();
  }

  const ImageHeader& header() const override { return current().header(); }
  Status decode(const Region& region, PixelView& view) override {
    return current().decode(region, view);
  }
  Status decode_rows(const Region& region, RowSink& sink) override {
    return current().decode_rows(region, sink);
  }
  Status decode_reduced(const Region& region, int reduction, PixelView& view) override {
    return current().decode_reduced(region, reduction, view);
  }
  InterleavedDecoder* interleaved() override { return current().interleaved(); }
  bool use_index(std::span<const std::byte> index, std::optional<std::uint64_t> checksum,
                 IndexPoints points) override {
    return current().use_index(index, checksum, points);
  }
  std::span<const std::byte> extended_index() override { return current().extended_index(); }
  Status check() override { return current().check(); }
  bool recode(std::vector<std::byte>& form) override {
    if (current().header().kind != ImageKind::jpeg) return false;
    if (recoder_ == nullptr) recoder_ = std::make_unique<JpegRecoder>(budget_);
    return recoder_->store_coefficients_only(encoded_, form).is_ok();
  }
  void close() override {
    if (current_ != nullptr) current_->close();
  }

 private:
  ImageDecoder& current() const {
    if (current_ == nullptr)
      throw Error(ErrorCode::invalid_argument, "no image is open; call open() first");
    return *current_;
  }

  /// Frees the decoders of other kinds that have opened large images. Together they would keep more
  /// than one decoder may. To make a decoder again takes little time beside such an image.
  void drop_large_except(std::size_t number) {
    constexpr std::int64_t large_pixels = 4'000'000;
    for (std::size_t other = 0; other < decoders_.size(); ++other)
      if (other != number && largest_[other] > large_pixels) {
        decoders_[other].reset();
        largest_[other] = 0;
      }
  }

  std::shared_ptr<DecodeBudget> budget_;
  std::array<std::unique_ptr<ImageDecoder>, std::size(codecs)> decoders_;
  /// Pixels of the largest image that each decoder has opened.
  std::array<std::int64_t, std::size(codecs)> largest_{};
  ImageDecoder* current_ = nullptr;
  std::span<const std::byte> encoded_;
  /// Null until it is needed.
  std::unique_ptr<JpegRecoder> recoder_;
};

Status ImageDecoder::decode_rows(const Region& region, RowSink& sink) {
  PixelView view;
  Status decoded = decode(region, view);
  if (decoded.is_ok()) sink.add(view);
  return decoded;
}
bool ImageDecoder::use_index(std::span<const std::byte>, std::optional<std::uint64_t>,
                             IndexPoints) {
  return false;
}
std::span<const std::byte> ImageDecoder::extended_index() { return {}; }
bool ImageDecoder::recode(std::vector<std::byte>&) { return false; }

std::unique_ptr<ImageDecoder> make_image_decoder(std::shared_ptr<DecodeBudget> budget) {
  return std::make_unique<AnyDecoder>(std::move(budget));
}

bool offers_interleaving(std::span<const std::byte> encoded) {
  return std::ranges::any_of(codecs, [kind = image_kind(encoded)](const Codec& codec) {
    return codec.kind == kind && codec.interleaves;
  });
}

Status check_image_kind(std::span<const std::byte> encoded) {
  std::size_t number = 0;
  return find_codec(encoded, number);
}

Status read_image_info(std::span<const std::byte> encoded, ImageInfo& info) {
  std::size_t number = 0;
  if (Status found = find_codec(encoded, number); !found.is_ok()) return found;
  return codecs[number].read_info(encoded, info);
}

}  // namespace millrace
