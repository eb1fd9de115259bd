// SPDX-License-Identifier: Apache-2.0
//
// A decoder belongs to one thread at a time; the functions may be called from any thread. The
// encoded bytes must outlive the calls that follow `open`, up to the next `open`.
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

namespace MILLRACE_API millrace {

namespace jpeg {
class BaselineDecoder;
}

/// What a decoder knows of an image before it decodes any pixel.
struct ImageHeader {
  ImageKind kind = ImageKind::unknown;
  int width = 0;
  int height = 0;
  /// Components as stored: 1 grey or the number of a palette's colour, 2 grey and alpha, 3 colour,
  /// 4 CMYK, or colour and alpha.
  int components = 0;
  /// Who decodes it: "libpng", "libwebp (lossy)", "millrace (PNM)"; of a JPEG also why not
  /// millrace's own stages: "millrace", "libjpeg-turbo (progressive)". Where these find something
  /// doubtful, libjpeg-turbo has the last word, and `decode` and `check` change it: "libjpeg-turbo
  /// (doubtful data)". A text that lives as long as the program.
  const char* decoder = "";
  /// Whether `decode` or `check` skipped stray bytes before a restart marker or the end of a JPEG.
  /// `decoder` then says so, too: "millrace (repaired)".
  bool repaired = false;

  Size size() const { return {width, height}; }
};

/// Where an image's index has its points: at each eighth MCU of a row of MCUs, or at the first one
/// of each row alone. That takes fewer bytes and gains less, the more so the wider the image: of
/// photographs of 500 pixels' width an eighth of the bytes, and 8% more time for a crop.
enum class IndexPoints { tiles, rows };

/// Decodes encoded images to 8-bit RGB, of the region that is needed, as Pillow's `convert("RGB")`
/// makes it: alpha is left out. It is the seam for codecs:
/// each kind of image has one in a room of its own. A decoder is used for one image after the other
/// and keeps its handles, and scratch of up to `DecodeBudget::small_bytes`. Nothing else outlives
/// an image: what comes of one does not depend on those before it.
/// A lack of memory is no bad image but `std::bad_alloc`.
class ImageDecoder {
 public:
  /// Regions of more pixels take no turns.
  static constexpr std::int64_t max_turn_pixels = 320'000;

  virtual ~ImageDecoder() = default;

  /// Reads the header of an encoded image and keeps a view of the bytes. Bad for what cannot be
  /// decoded; the reason says why. On success `header()` is filled.
  virtual Status open(std::span<const std::byte> encoded) = 0;
  virtual const ImageHeader& header() const = 0;

  /// Decodes `region` of the opened image (inside it, not empty; else throws `Error`,
  /// `invalid_argument`) and lets `view` show it in the decoder's scratch, until `close` or the
  /// next `open`. Bad when the data is cut short or damaged as far as it was read; `view` is then
  /// empty. May be called once per `open`; again, it throws `Error` (`invalid_argument`). Waits for
  /// its part of the budget, and keeps it as long as the view.
  virtual Status decode(const Region& region, PixelView& view) = 0;

  /// As `decode`, but of the image at 1/2, 1/4 or 1/8 of its resolution (`reduction` is 2, 4 or 8;
  /// else it throws `Error`, `invalid_argument`): of sides that are the image's divided by it,
  /// rounded up. `region` lies in that. For a JPEG it takes less time, since only the lower
  /// frequencies are transformed; so the pixels are close to a resampling of the whole, and not
  /// equal. For others they are means of pixels.
  virtual Status decode_reduced(const Region& region, int reduction, PixelView& view) = 0;

  /// Begins what `decode` of `region` does, so that `take_turns` can do most of it together with
  /// that of another image; `decode` then does the rest, or all if it is asked for another region.
  /// False if it has no turns to take: only a JPEG of the kind that datasets mostly hold has them,
  /// for a region of at most `max_turn_pixels` of which neither its index nor restart markers tell
  /// where all rows begin. Throws as `decode` does; never waits. `use_index` ends it.
  virtual bool begin_decode(const Region& region);
  /// Whether there are turns left to take.
  bool has_turns();
  /// Goes on with two images that were begun, symbol by symbol in turn, so that neither waits for
  /// its own look-ups alone: this takes less time than one after the other. Ends as soon as one of
  /// them has no turns left, at once if that is so already.
  static void take_turns(ImageDecoder& a, ImageDecoder& b);

  /// Lets what follows use an index of the opened image, which says where in its bytes one can
  /// begin, and note more of it on the way: pixels and outcomes are the same, and regions are
  /// decoded faster that `decode` came across before. `index` is what `new_index` gave of the same
  /// bytes, or empty; it need not outlive the call. `checksum` is one of the image's bytes, the
  /// same each time and another for each other image; nullopt = their XXH3-64 is made here. An
  /// index that was made with another checksum counts as empty, and so does one that is damaged:
  /// false then. Does nothing, and is false, for an image that can have none.
  /// `points` says what is noted where `index` is empty or counts as such; a sound one goes on as
  /// it began.
  virtual bool use_index(std::span<const std::byte> index,
                         std::optional<std::uint64_t> checksum = std::nullopt,
                         IndexPoints points = IndexPoints::tiles);
  /// After `use_index` and `decode` or `check`: the index, if that noted more than was given, the
  /// first time that it is asked for; else empty. Valid until the next `open`.
  virtual std::span<const std::byte> new_index();

  /// Reads the opened image to its end without keeping pixels: bad where a decode of the whole
  /// would be, and where data is left after the last row or the end itself is missing. After
  /// `use_index` it notes the index of the whole, and is bad, too, where the given one says
  /// anything else. May be called once per `open`, instead of `decode`.
  virtual Status check() = 0;

  /// Ends the view, and gives the memory for a large image back to the budget, for which others may
  /// wait: a thread calls it when it has used a view, before it waits for anything.
  virtual void close() = 0;

 protected:
  ImageDecoder() = default;
  ImageDecoder(const ImageDecoder&) = default;
  ImageDecoder& operator=(const ImageDecoder&) = default;

 private:
  friend class AnyDecoder;
  /// Whose decode has begun; nullptr if none has.
  virtual jpeg::BaselineDecoder* begun() { return nullptr; }
};

/// Makes a decoder of every kind of image that can be decoded. It tells the kind by the first bytes
/// and makes the codec of that kind when it is first needed. The decoders of several threads that
/// are given the same budget share its memory.
std::unique_ptr<ImageDecoder> make_image_decoder(
    std::shared_ptr<DecodeBudget> budget = std::make_shared<DecodeBudget>());

/// Whether `encoded`, of which the first 16 bytes are enough, is of a kind that can be decoded. Bad
/// for all else, with the reason: "a GIF image; only JPEG, PNG, WebP and PNM are supported".
Status check_image_kind(std::span<const std::byte> encoded);

/// What an image's file says of it beyond the header that decoding needs. What a kind of image does
/// not have is left as it is here.
struct ImageInfo : ImageHeader {
  int bits_per_sample = 8;
  /// How the pixels are laid out in the file: of JPEGs "baseline", "progressive, arithmetic",
  /// "extended, 12 bits" ...; of others with their kind: "PNG palette, 4 bits, interlaced", "WebP
  /// lossy, alpha, animated", "PGM".
  std::string scan_type;
  /// "4:4:4", "4:2:2", "4:2:0", "4:4:0", "4:1:1", "4:1:0"; "gray" for one component; else the
  /// components' sampling factors, as "2x2 1x2 1x1". nullopt for what is stored as RGB.
  std::optional<std::string> chroma;
  /// 1 to 100, on the scale of libjpeg's `jpeg_set_quality`; nullopt if it cannot be told.
  std::optional<int> quality;
  /// Orientation by EXIF, 1 to 8; nullopt if the file does not say.
  std::optional<int> orientation;
  /// Blocks (MCUs) between restart markers; 0 = no restart markers.
  int restart_interval = 0;
  /// Bytes before the first pixel's data.
  std::size_t header_bytes = 0;
};

/// Reads an image's segments up to its first pixel, and decodes nothing. Bad, with the reason, for
/// what `check_image_kind` refuses and where these segments are damaged or cut short; `info` is
/// then unspecified. Images that cannot be decoded for another reason (12-bit or lossless JPEGs)
/// are not bad here.
Status read_image_info(std::span<const std::byte> encoded, ImageInfo& info);

}  // namespace millrace
