// SPDX-License-Identifier: Apache-2.0
//
// Decodes images and reads their headers.
//
// Threads and lifetimes: a decoder belongs to one thread at a time. The functions may be called
// from any thread. The encoded bytes that `open` is given must stay valid until the next `open`.
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
  /// Name of the decoder, such as "libpng" or "libwebp (lossy)". A codec with several decoders also
  /// says why it takes this one: "millrace", "libjpeg-turbo (arithmetic coding)". Where the first
  /// one finds doubtful data, another one decides; `decode` and `check` then change the name to
  /// "libjpeg-turbo (doubtful data)". The text lives as long as the program.
  const char* decoder = "";
  /// Whether `decode` or `check` skipped stray bytes. `decoder` then says so, too:
  /// "millrace (repaired)".
  bool repaired = false;

  Size size() const { return {width, height}; }
};

/// Granularity of an image's index: several points in each row of its blocks, or one. `rows` takes
/// fewer bytes and gains less. The difference grows with the image's width. For photographs 500
/// pixels wide, `rows` takes an eighth of the bytes, and a crop takes 8% more time.
enum class IndexPoints { tiles, rows };

/// Takes the rows of a region's pixels in parts, from the top to the bottom.
class RowSink {
 public:
  virtual ~RowSink() = default;
  /// The view is valid during the call.
  virtual void add(const PixelView& rows) = 0;

 protected:
  RowSink() = default;
  RowSink(const RowSink&) = default;
  RowSink& operator=(const RowSink&) = default;
};

/// Decodes a region of an encoded image to 8-bit RGB. The pixels are those of Pillow's
/// `convert("RGB")`, which drops alpha. It is the interface of the codecs: each kind of image has
/// its codec in a folder of its own. One decoder decodes one image after the other. It keeps its
/// handles, and scratch memory of up to `DecodeBudget::small_bytes`. Nothing else outlives an
/// image, so a result does not depend on the images before. Lack of memory throws `std::bad_alloc`;
/// it never makes an image bad.
class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;

  /// Reads the header of an encoded image and keeps a view of the bytes. Fills `header()` on
  /// success. Returns a bad status, with the reason, for an image that cannot be decoded.
  virtual Status open(std::span<const std::byte> encoded) = 0;
  virtual const ImageHeader& header() const = 0;

  /// Decodes `region` of the opened image. `region` must lie inside the image and not be empty;
  /// otherwise it throws `Error` (`invalid_argument`). `view` shows the pixels in the decoder's
  /// scratch, until `close` or the next `open`. Returns a bad status if the data that it read is
  /// truncated or corrupt; `view` is then empty. May be called once per `open`; a second call
  /// throws `Error` (`invalid_argument`). Waits for its share of the budget, and keeps it as long
  /// as the view.
  virtual Status decode(const Region& region, PixelView& view) = 0;

  /// Decodes as `decode` does, and passes each row to `sink` once. A bad status may follow the
  /// first rows. By default the region is decoded as a whole, and the sink gets all rows at once.
  virtual Status decode_rows(const Region& region, RowSink& sink);

  /// Decodes as `decode` does, at 1/2, 1/4 or 1/8 of the image's resolution. `reduction` is 2, 4 or
  /// 8; otherwise it throws `Error` (`invalid_argument`). The reduced sides are the image's divided
  /// by `reduction`, rounded up. `region` lies in the reduced image. A codec that can decode only
  /// the lower frequencies takes less time. Its pixels are then close to those of a resampled
  /// image, but not equal. For other kinds the pixels are means of pixels.
  virtual Status decode_reduced(const Region& region, int reduction, PixelView& view) = 0;

  /// Returns the interleaved decoding of the opened image, or null if its codec does not offer it.
  /// Valid until the next `open`. Throws `Error` (`invalid_argument`) if no image is open.
  virtual InterleavedDecoder* interleaved() { return nullptr; }

  /// Uses an index of the opened image, and extends it. An index says where in the image's bytes
  /// decoding can begin. A region that `decode` has read over before is then decoded faster. Pixels
  /// and results are the same.
  ///
  /// `index` is the result of `new_index` for the same bytes, or empty. It need not outlive the
  /// call. `checksum` is a checksum of the image's bytes: the same each time, and different for
  /// each other image. nullopt: the XXH3-64 of the bytes, computed here. An index made with another
  /// checksum, or a damaged one, counts as empty. `points` is the granularity of a new index. An
  /// existing index keeps its own, and that of a progressive JPEG has rows.
  ///
  /// Returns true if it uses the given index. Returns false if that index is empty or counts as
  /// empty. For an image that cannot have an index it does nothing and returns false.
  virtual bool use_index(std::span<const std::byte> index,
                         std::optional<std::uint64_t> checksum = std::nullopt,
                         IndexPoints points = IndexPoints::tiles);
  /// Returns the index after `use_index` and `decode` or `check`. The result is empty if they added
  /// nothing to the given index, and from the second call on. Valid until the next `open`.
  virtual std::span<const std::byte> new_index();

  /// Reads the opened image to its end without keeping pixels. Returns a bad status where a decode
  /// of the whole image would. It is also bad if data is left after the last row, or if the end
  /// itself is missing. After `use_index` it makes the index of the whole image; it is then also
  /// bad if the given index differs. May be called once per `open`, instead of `decode`.
  virtual Status check() = 0;

  /// Writes the opened image to `form` in a form that `open` takes, too, and that is decoded faster
  /// to the same pixels. Returns false if the image's kind has no such form, and for doubtful data.
  /// Reads all of the image. May wait for the budget. The image stays open.
  virtual bool recode(std::vector<std::byte>& form);

  /// Ends the view, and gives the memory for a large image back to the budget. Other threads may
  /// wait for that memory: call it after using a view, before waiting for anything.
  virtual void close() = 0;

 protected:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = default;
  ImageDecoder& operator=(const ImageDecoder&) = default;
};

/// Makes a decoder for every supported kind of image. It recognises the kind by the first bytes,
/// and makes the codec of that kind when it is first needed. Decoders of several threads that are
/// given the same budget share its memory.
std::unique_ptr<ImageDecoder> make_image_decoder(
    std::shared_ptr<DecodeBudget> budget = std::make_shared<DecodeBudget>());

/// Checks that `encoded` is of a kind that can be decoded. Its first 16 bytes are enough. The
/// reason of a bad status names the image's kind and the supported ones.
Status check_image_kind(std::span<const std::byte> encoded);

/// The properties of an image that its file states, beyond the header that decoding needs. A member
/// that a kind of image does not have keeps its default.
struct ImageInfo : ImageHeader {
  int bits_per_sample = 8;
  /// Layout of the pixels in the file. JPEGs: "baseline", "progressive, arithmetic", "extended, 12
  /// bits" ... Others begin with their kind: "PNG palette, 4 bits, interlaced", "WebP lossy, alpha,
  /// animated", "PGM".
  std::string scan_type;
  /// "4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1" or "4:1:0"; "gray" for one component; otherwise
  /// the components' sampling factors, such as "2x2 1x2 1x1". nullopt for an image stored as RGB.
  std::optional<std::string> chroma;
  /// 1 to 100, on the scale of libjpeg's `jpeg_set_quality`; nullopt if it is unknown.
  std::optional<int> quality;
  /// EXIF orientation, 1 to 8, by EXIF or XMP; nullopt if the file does not state one.
  std::optional<int> orientation;
  /// Blocks (MCUs) between restart markers; 0 = no restart markers.
  int restart_interval = 0;
  /// Bytes before the first pixel's data.
  std::size_t header_bytes = 0;
};

/// Reads an image's segments up to its first pixel. Decodes nothing. Returns a bad status, with the
/// reason, where `check_image_kind` does and where these segments are corrupt or truncated; `info`
/// is then unspecified. Images that cannot be decoded for another reason (12-bit or lossless JPEGs)
/// are not bad here.
Status read_image_info(std::span<const std::byte> encoded, ImageInfo& info);

}  // namespace millrace
