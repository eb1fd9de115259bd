// SPDX-License-Identifier: Apache-2.0
//
// Decodes images and reads their headers.
//
// Threads and lifetimes: a decoder belongs to one thread at a time. The free functions may be
// called from any thread. The encoded bytes passed to `open` must stay valid until the next `open`.
#pragma once

#include <millrace/decode_budget.h>
#include <millrace/detail/export.h>
#include <millrace/error.h>
#include <millrace/image.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace MILLRACE_API millrace {

class InterleavedDecoder;

/// The properties of an image that its decoder knows before it decodes any pixel.
struct ImageHeader {
  ImageKind kind = ImageKind::unknown;
  int width = 0;
  int height = 0;
  /// Components as stored: 1 is grey or a palette, 2 is grey and alpha, 3 is colour, 4 is CMYK or
  /// colour and alpha.
  int components = 0;
  /// Name of the decoder, such as "libpng" or "libwebp (lossy)". If a JPEG needs libjpeg-turbo, the
  /// name has the reason: "libjpeg-turbo (arithmetic coding)". If the decoder "millrace" finds
  /// invalid data in a scan, libjpeg-turbo decodes the image instead. `decode` and `check` then
  /// change the name to "libjpeg-turbo (doubtful data)". The text lives as long as the program.
  const char* decoder = "";
  /// Whether the file has stray bytes, which `decode` or `check` skipped. The pixels are then those
  /// of the file without these bytes; the file is not changed. `decoder` is then
  /// "millrace (repaired)".
  bool repaired = false;

  Size size() const { return {width, height}; }
};

/// Granularity of a seek index. `tiles` stores several points for each row of MCUs, `rows` stores
/// one. `rows` takes fewer bytes and saves less time. For photographs 500 pixels wide, `rows` takes
/// an eighth of the bytes that `tiles` takes, and a crop takes 8% longer than with `tiles`. Both
/// differences grow with the image's width.
enum class IndexPoints { tiles, rows };

/// Receives the pixel rows of a region in parts, from the top to the bottom.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// Receives the next rows. The view is valid during the call.
  virtual void add(const PixelView& rows) = 0;

 protected:
  RowSink() = default;
  RowSink(const RowSink&) = default;
  RowSink& operator=(const RowSink&) = default;
};

/// Decodes a region of an encoded image to 8-bit RGB. The pixels are those of Pillow's
/// `convert("RGB")`, which drops alpha. Each kind of image has a codec that implements this
/// interface, in its own folder. A decoder decodes one image after the other. Between images it
/// keeps its handles and up to `DecodeBudget::small_bytes` of scratch memory, but nothing that
/// could change the result of a later image. Lack of memory throws `std::bad_alloc`; the image is
/// not bad then.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;

  /// Reads the header of an encoded image and keeps a view of the bytes. Fills `header()` on
  /// success. Returns a bad status, with the reason, for an image that cannot be decoded.
  virtual Status open(std::span<const std::byte> encoded) = 0;
  virtual const ImageHeader& header() const = 0;

  /// Decodes `region` of the opened image. `region` must lie inside the image and not be empty;
  /// otherwise it throws `Error` (`invalid_argument`). `view` refers to pixels in the decoder's
  /// scratch memory, and is valid until `close` or the next `open`. Returns a bad status if the
  /// data that was read is truncated or corrupt; `view` is then empty. May be called once per
  /// `open`; a second call throws `Error` (`invalid_argument`). Waits until the budget has enough
  /// memory, and keeps this memory as long as the view is valid.
  virtual Status decode(const Region& region, PixelView& view) = 0;

  /// Decodes as `decode` does, and passes each row to `sink` once. Even if the status is bad,
  /// `sink` may already have received rows. The default implementation decodes the whole region and
  /// then passes all rows in one call.
  virtual Status decode_rows(const Region& region, RowSink& sink);

  /// Decodes as `decode` does, at 1/2, 1/4 or 1/8 of the image's resolution. `reduction` is 2, 4 or
  /// 8; otherwise it throws `Error` (`invalid_argument`). The width and height of the reduced image
  /// are those of the image divided by `reduction`, rounded up. `region` is a region of the reduced
  /// image. A codec that can decode the lower frequencies alone takes less time. Its pixels are
  /// then close to those of a resampled image, but not equal. Other codecs average blocks of
  /// pixels.
  virtual Status decode_reduced(const Region& region, int reduction, PixelView& view) = 0;

  /// Returns the interface that decodes two images alternately, the opened one and another. Null if
  /// the codec does not have it. The result is valid until the next `open`. Throws `Error`
  /// (`invalid_argument`) if no image is open.
  virtual InterleavedDecoder* interleaved() { return nullptr; }

  /// Uses a seek index of the opened image, and lets `decode` and `check` extend it. The index has
  /// positions in the image's bytes at which decoding can begin. So regions in the part that the
  /// index covers are decoded faster, with the same pixels and results.
  ///
  /// `index` is a result of `extended_index` for the same bytes, or empty. It is not used after the
  /// call. `checksum` is a checksum of the image's bytes: the same at each call for this image, and
  /// different for other images. nullopt = the XXH3-64 of the bytes, computed here. An index that
  /// is damaged, or was made with another checksum, counts as empty. `points` is the granularity of
  /// a new index. An existing index keeps its granularity, and the index of a progressive JPEG
  /// always has rows.
  ///
  /// Returns true if the given index is used, and false if it is empty or counts as empty. For an
  /// image that cannot have an index the call does nothing and returns false.
  virtual bool use_index(std::span<const std::byte> index,
                         std::optional<std::uint64_t> checksum = std::nullopt,
                         IndexPoints points = IndexPoints::tiles);
  /// Returns the index as `decode` or `check` has extended it after `use_index`. Only the first
  /// call returns it; later calls return an empty span. The result is also empty if nothing was
  /// added to the index. It is valid until `close` or the next `open`.
  virtual std::span<const std::byte> extended_index();

  /// Reads the opened image to its end without keeping pixels. Returns a bad status if a decode of
  /// the whole image would. The status is also bad if data is left after the last row, or if the
  /// end of the image is missing. After `use_index` the call makes the index of the whole image. If
  /// the index given to `use_index` is not a prefix of the index of the whole image, the status is
  /// bad. May be called once per `open`, instead of `decode`.
  virtual Status check() = 0;

  /// Recodes the opened image into `form`, which decodes faster to the same pixels. `open` accepts
  /// the result like an image. Returns false if the image's kind has no such form. Also returns
  /// false for a JPEG that millrace's own decoder cannot decode, or in which it skips stray bytes.
  /// Reads the whole image. May wait for the budget. The image stays open.
  virtual bool recode(std::vector<std::byte>& form);

  /// Makes the view invalid, and gives the memory of a large image back to the budget. Other
  /// threads may be waiting for this memory. So call `close` after the last use of the view, and
  /// before this thread waits for anything.
  virtual void close() = 0;

 protected:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = default;
  ImageDecoder& operator=(const ImageDecoder&) = default;
};

/// Makes a decoder for all supported kinds of images. It recognises the kind by the first bytes,
/// and creates a codec at the first image of its kind. Decoders with the same budget share its
/// memory, also across threads.
std::unique_ptr<ImageDecoder> make_image_decoder(
    std::shared_ptr<DecodeBudget> budget = std::make_shared<DecodeBudget>());

/// Checks that `encoded` has a kind that can be decoded. Its first 16 bytes are enough. The reason
/// of a bad status names the image's kind and the supported ones.
Status check_image_kind(std::span<const std::byte> encoded);

/// The properties of an image that its file states, beyond the header that decoding needs. A member
/// that a kind of image does not have keeps its default.
struct ImageInfo : ImageHeader {
  int bits_per_sample = 8;
  /// Coding of the pixels in the file, as text for people. For a JPEG, the coding process:
  /// "baseline", "progressive, arithmetic", "extended, 12 bits" ... For others, the kind and its
  /// variant: "PNG palette, 4 bits, interlaced", "WebP lossy, alpha, animated", "PGM".
  std::string scan_type;
  /// "4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1" or "4:1:0"; "gray" for one component; otherwise
  /// the components' sampling factors, such as "2x2 1x2 1x1". nullopt for an image stored as RGB.
  std::optional<std::string> chroma;
  /// 1 to 100, on the scale of libjpeg's `jpeg_set_quality`; nullopt if it is unknown.
  std::optional<int> quality;
  /// Orientation, 1 to 8, from the EXIF tag, or from XMP if that tag is missing. nullopt if
  /// neither states one, or if the value is invalid.
  std::optional<int> orientation;
  /// Number of MCUs between restart markers; 0 = no restart markers.
  int restart_interval = 0;
  /// Bytes before the first pixel's data.
  std::size_t header_bytes = 0;
};

/// Reads an image's segments up to its first pixel. Decodes nothing. Returns a bad status, with the
/// reason, if `check_image_kind` does or if these segments are corrupt or truncated; `info` is then
/// unspecified. Images that cannot be decoded for another reason (12-bit or lossless JPEGs) are not
/// bad here.
Status read_image_info(std::span<const std::byte> encoded, ImageInfo& info);

}  // namespace millrace
