// SPDX-License-Identifier: Apache-2.0
//
// Random 224 px crops of photographs, packed for `CropWork`, and counts of the kernels' work.
#pragma once

#include <millrace/crop_work.h>
#include <millrace/detail/crop_packer.h>
#include <millrace/detail/jpeg_crop_packer.h>
#include <millrace/detail/resample.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace millrace::micro {

/// Folder of the photographs (`--photos`); `main` sets it. Empty without the option.
std::filesystem::path& photographs_folder();

/// A photograph as a record of the form `coefficients`, or as a JPEG with its seek index.
struct CropRecord {
  std::vector<std::byte> bytes;
  /// Empty for coefficients.
  std::vector<std::byte> index;
};

enum class CropForm { coefficients, jpeg };

/// Returns the records of at most `most` JPEGs in the folder, evenly spaced by their names.
std::vector<CropRecord> crop_records(const std::filesystem::path& folder, std::size_t most,
                                     CropForm form);

/// A batch of packed crops, as the train recipe draws and packs them.
class CropBatch {
 public:
  static constexpr std::int32_t side = 224;
  static constexpr std::size_t image_bytes = std::size_t{3} * side * side;
  /// A pipeline's limit on the scratch of a crop, in bytes.
  static constexpr std::size_t max_scratch = std::size_t{8} << 20U;

  /// Packs random crop `number` of a record. Returns false and adds nothing if it cannot be packed.
  bool add(const CropRecord& record, std::size_t number);
  void clear();
  std::size_t size() const { return offsets_.size(); }
  const CropHeader& crop(std::size_t sample) const;
  std::span<const std::byte> inputs() const { return std::as_bytes(std::span(units_)); }
  std::span<const std::uint32_t> offsets() const { return offsets_; }
  std::vector<std::uint8_t> packed() const { return std::vector<std::uint8_t>(size(), 1); }
  /// Scratch of `count` samples from `first` on.
  std::size_t scratch_bytes(std::size_t first, std::size_t count) const;

 private:
  struct alignas(CropWork::input_unit) Unit {
    std::byte bytes[CropWork::input_unit];
  };
  Crop draw_crop(Size image, std::size_t number);

  CropPacker packer_;
  JpegCropPacker jpeg_packer_;
  std::unique_ptr<ImageDecoder> decoder_ = make_image_decoder();
  ResampleAxis horizontal_, vertical_;
  std::vector<Unit> units_;
  std::vector<std::uint32_t> offsets_;
};

/// Sums of the work of crops. "warps" counts a loop's passes over all warps of the sample's blocks;
/// "rounds" counts the passes of the slowest warp of each block. For the scans of JPEGs, "longest"
/// counts the passes of the longest warp among `CropWork::max_samples` crops added in sequence.
class CropCounts {
 public:
  void add_drawn() { ++drawn_; }
  void add(const CropHeader& crop);
  /// Means over the added crops (`longest`: over their launches), and the share of the drawn ones
  /// that was added.
  std::map<std::string, double> means() const;

 private:
  /// Passes of the loops of `decode_segments`, by name.
  using ScanPasses = std::map<std::string, double>;

  void add_tiles(const CropHeader& crop);
  void add_scan(const CropHeader& crop);
  void add_passes(const CropHeader& crop);

  std::map<std::string, double> sums_;
  /// The longest warp of each launch.
  std::vector<ScanPasses> longest_;
  double crops_ = 0;
  double drawn_ = 0;
};

}  // namespace millrace::micro
