// SPDX-License-Identifier: Apache-2.0
#include "micro/crop_batch.h"

#include <millrace/detail/crop_layout.h>
#include <millrace/detail/jpeg_recoder.h>
#include <millrace/detail/scan_decoding.h>
#include <millrace/geometry.h>
#include <millrace/random.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

namespace millrace::micro {
namespace {

/// The same constants as in the kernels (gpu/pixel/crop_kernel.h).
constexpr std::int32_t warp = 32, block_warps = 8, tile_warps = 4, blocks_of_sample = 16;

std::int32_t parts(std::int32_t all, std::int32_t of) { return (all + of - 1) / of; }

std::vector<std::byte> read_bytes(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> all{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(all.size());
  std::memcpy(bytes.data(), all.data(), all.size());
  return bytes;
}

/// Number of coefficients that a tile stores.
std::int32_t values_of(const std::uint8_t* tile) {
  const std::size_t lengths_at = 3 + std::size_t{tile[2]};
  std::uint32_t lengths = 0;
  std::memcpy(&lengths, tile + lengths_at, sizeof lengths);
  std::size_t bytes = 0;
  for (unsigned block = 0; block < 8; ++block) bytes += lengths >> (4 * block) & 15U;
  std::int32_t values = 0;
  for (std::size_t n = 0; n < bytes; ++n)
    values += std::popcount(tile[lengths_at + sizeof lengths + n]);
  return values;
}

/// A pass of a warp over one symbol of each lane.
struct SymbolPass {
  /// Length in bits of the longest code of a coefficient behind the first.
  std::int32_t code_bits = 0;
  /// Whether a lane reads the first of the 8 words of a sector of the cache.
  bool new_sector = false;
};

/// A lane of `decode_segments`.
struct ScanLane {
  jpeg::WordBits bits;
  CropScan::Segment segment;

  /// Decodes the next MCU, and adds its symbols to the passes over the warp's MCUs.
  void decode(const jpeg::ScanTables& tables, std::vector<SymbolPass>& passes) {
    std::size_t pass = 0;
    std::uint32_t block = 0;
    bool ended = true;
    std::uint32_t from = bits.position();
    const auto pass_of = [&](std::size_t number) -> SymbolPass& {
      if (passes.size() <= number) passes.resize(number + 1);
      return passes[number];
    };
    const auto count = [&](bool is_stored, std::uint32_t of, std::uint32_t, std::uint32_t index,
                           std::int16_t value) {
      if (!is_stored) return;
      // A block without its last coefficient has an end-of-block symbol.
      if (of != block && !ended) ++pass;
      block = of;
      ended = index == 63;
      SymbolPass& now = pass_of(pass++);
      const std::uint32_t to = bits.position();
      const auto size =
          static_cast<std::int32_t>(std::bit_width(static_cast<std::uint32_t>(std::abs(value))));
      if (index > 0)
        now.code_bits = std::max(now.code_bits, static_cast<std::int32_t>(to - from) - size);
      now.new_sector = now.new_sector || from / 256 != to / 256;
      from = to;
    };
    if (!jpeg::decode_mcu(tables, bits, segment.begin_predictors, count)) return;
    if (!ended) pass_of(pass);
  }
};

}  // namespace

std::filesystem::path& photographs_folder() {
  static std::filesystem::path folder;
  return folder;
}

std::vector<CropRecord> crop_records(const std::filesystem::path& folder, std::size_t most,
                                     CropForm form) {
  std::vector<std::filesystem::path> paths;
  std::vector<CropRecord> records;
  if (folder.empty() || !std::filesystem::is_directory(folder)) return records;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string kind = entry.path().extension().string();
    if (kind == ".JPEG" || kind == ".jpeg" || kind == ".jpg") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  JpegRecoder recoder(std::make_shared<DecodeBudget>());
  const std::size_t count = std::min(most, paths.size());
  const auto decoder = make_image_decoder();
  for (std::size_t n = 0; n < count; ++n) {
    const std::vector<std::byte> file = read_bytes(paths[n * paths.size() / count]);
    CropRecord record;
    if (form == CropForm::coefficients) {
      if (recoder.store_coefficients_only(file, record.bytes).is_ok()) records.push_back(record);
      continue;
    }
    if (!decoder->open(file).is_ok()) continue;
    decoder->use_index({});
    if (!decoder->check().is_ok()) continue;
    const auto index = decoder->extended_index();
    if (!index.empty()) records.push_back({file, {index.begin(), index.end()}});
  }
  return records;
}

bool CropBatch::add(const CropRecord& record, std::size_t number) {
  const bool is_jpeg = !record.index.empty();
  std::size_t bytes = 0;
  if (is_jpeg) {
    if (!decoder_->open(record.bytes).is_ok()) return false;
    decoder_->use_index(record.index);
    if (jpeg_packer_.open(*decoder_))
      bytes = jpeg_packer_.measure(draw_crop(decoder_->header().size(), number), max_scratch);
  } else if (!packer_.open(record.bytes).is_ok() ||
             !packer_.measure(draw_crop(packer_.size(), number), max_scratch, bytes).is_ok()) {
    return false;
  }
  if (bytes == 0) return false;
  const std::size_t begin = units_.size();
  units_.resize(begin + (bytes + sizeof(Unit) - 1) / sizeof(Unit));
  is_jpeg ? jpeg_packer_.pack(units_[begin].bytes) : packer_.pack(units_[begin].bytes);
  offsets_.push_back(static_cast<std::uint32_t>(begin));
  return true;
}

/// Draws a random crop; `number` seeds the random numbers.
Crop CropBatch::draw_crop(Size image, std::size_t number) {
  Random random(5, number);
  const auto draw = [&] { return random.uniform(); };
  const Region box = random_resized_crop(image, {0.08, 1}, {3.0 / 4, 4.0 / 3}, draw);
  const Resampling resampling{
      .from = {box.width, box.height}, .to = {side, side}, .window = {0, 0, side, side}};
  const auto wanted = [](int from, bool mirrored) {
    return ResampleAxis::Wanted{from, 0,    static_cast<float>(from), side,
                                0,    side, Interpolation::bilinear,  mirrored};
  };
  horizontal_.make(wanted(box.width, draw() < 0.5));
  vertical_.make(wanted(box.height, false));
  const auto axis_of = [](const ResampleAxis& axis) {
    return CropAxis{axis.begins(), axis.weights(), axis.taps(), static_cast<int>(axis.stride())};
  };
  return {.region = {box.x + horizontal_.first(), box.y + vertical_.first(), horizontal_.needed(),
                     vertical_.needed()},
          .horizontal = axis_of(horizontal_),
          .vertical = axis_of(vertical_),
          .vertical_first = vertical_first(resampling)};
}

void CropBatch::clear() {
  units_.clear();
  offsets_.clear();
}

const CropHeader& CropBatch::crop(std::size_t sample) const {
  return *reinterpret_cast<const CropHeader*>(units_[offsets_[sample]].bytes);
}

std::size_t CropBatch::scratch_bytes(std::size_t first, std::size_t count) const {
  std::size_t bytes = 0;
  for (std::size_t sample = first; sample < first + count; ++sample)
    bytes +=
        (crop_scratch_bytes(crop(sample), side) + scratch_unit - 1) / scratch_unit * scratch_unit;
  return bytes;
}

void CropCounts::add(const CropHeader& crop) {
  ++crops_;
  sums_["packed_bytes"] += crop.bytes;
  sums_["plane_bytes"] += static_cast<double>(plane_at(crop, crop.components));
  sums_["source_pixels"] += crop.width * static_cast<double>(crop.height);
  sums_["vertical_first"] += crop.vertical_first;
  crop.scan.segment_count > 0 ? add_scan(crop) : add_tiles(crop);
  add_passes(crop);
}

void CropCounts::add_tiles(const CropHeader& crop) {
  struct OfWarp {
    std::int32_t tiles = 0, value_rounds = 0;
  };
  std::array<std::array<OfWarp, tile_warps>, blocks_of_sample> of_warps{};
  for (std::int32_t component = 0; component < crop.components; ++component) {
    const CropHeader::Plane& plane = crop.planes[component];
    for (std::int32_t row = 0; row < plane.rows; ++row) {
      const auto* const ends =
          part_of<std::uint32_t>(crop, part_of<std::uint32_t>(crop, plane.rows_at)[row]);
      const auto* const tiles = reinterpret_cast<const std::uint8_t*>(ends + plane.tiles);
      for (std::int32_t tile = 0; tile < plane.tiles; ++tile) {
        const std::int32_t values = values_of(tiles + (tile == 0 ? 0 : ends[tile - 1]));
        OfWarp& of_warp = of_warps[static_cast<std::size_t>(row % blocks_of_sample)]
                                  [static_cast<std::size_t>(tile % tile_warps)];
        ++of_warp.tiles;
        of_warp.value_rounds += parts(values, 2 * warp);
        sums_["values"] += values;
        sums_["value_warps"] += parts(values, 2 * warp);
      }
      sums_["tile_warps"] += plane.tiles;
    }
    sums_["tile_rows"] += plane.rows;
  }
  for (const auto& of_block : of_warps) {
    const OfWarp& slowest = *std::ranges::max_element(of_block, {}, &OfWarp::tiles);
    sums_["tile_rounds"] += slowest.tiles;
    sums_["value_rounds"] += slowest.value_rounds;
  }
}

void CropCounts::add_scan(const CropHeader& crop) {
  constexpr std::int32_t owners = warp / 8;  // MCUs whose blocks a warp transforms in one pass
  const auto* const segments = part_of<CropScan::Segment>(crop, crop.scan.segments_at);
  const auto tables = std::make_unique<jpeg::ScanTables>();
  tables->make(crop, part_of<CropScan::Code>(crop, crop.scan.codes_at), 0, 1);
  std::map<std::int32_t, ScanPasses> of_blocks;
  for (std::int32_t first = 0; first < crop.scan.segment_count; first += warp) {
    std::vector<ScanLane> lanes;
    for (std::int32_t n = first; n < std::min(first + warp, crop.scan.segment_count); ++n)
      lanes.push_back({{part_of<std::uint32_t>(crop, crop.scan.words_at), crop.scan.word_count,
                        segments[n].begin_bit},
                       segments[n]});
    ScanPasses& passes = of_blocks[first / warp % blocks_of_sample];
    ++passes["part"];
    for (std::int32_t mcu = 0;; ++mcu) {
      std::vector<SymbolPass> symbols;
      std::int32_t there = 0, transforms = 0, last_group = -1;
      for (std::size_t n = 0; n < lanes.size(); ++n) {
        if (mcu >= lanes[n].segment.mcus) continue;
        ++there;
        lanes[n].decode(*tables, symbols);
        const std::int32_t group = static_cast<std::int32_t>(n) / owners;
        transforms += group != last_group ? 1 : 0;
        last_group = group;
      }
      if (there == 0) break;
      ++passes["mcu"];
      passes["symbol"] += static_cast<double>(symbols.size());
      for (const SymbolPass& pass : symbols) {
        passes["long"] += pass.code_bits > 9 ? 1 : 0;
        passes["sector"] += pass.new_sector ? 1 : 0;
      }
      passes["block"] += tables->layout.blocks;
      passes["transform"] += transforms * static_cast<double>(tables->layout.blocks);
    }
  }
  if (static_cast<std::size_t>(crops_ - 1) % CropWork::max_samples == 0) longest_.emplace_back();
  for (auto& [block, passes] : of_blocks) {
    passes["scan"] = 1;
    passes["code"] = crop.scan.code_count;
    for (const auto& [name, count] : passes) sums_[name + "_warps"] += count;
    if (passes["symbol"] > longest_.back()["symbol"]) longest_.back() = passes;
  }
  sums_["segments"] += crop.scan.segment_count;
}

void CropCounts::add_passes(const CropHeader& crop) {
  constexpr std::int32_t side = CropBatch::side;
  const bool vertical_first = crop.vertical_first != 0;
  const std::int32_t rows = vertical_first ? side : crop.height;
  const auto count = [&](const std::string& name, std::int32_t passes, std::int32_t width,
                         std::int32_t taps) {
    const std::int32_t warps = parts(width, warp);
    const std::int32_t rounds = parts(warps, block_warps);
    sums_[name + "_warps"] += passes * warps;
    sums_[name + "_rounds"] += passes * rounds;
    sums_[name + "_tap_warps"] += passes * warps * taps;
    sums_[name + "_tap_rounds"] += passes * rounds * taps;
  };
  sums_["rows"] += rows;
  sums_["down_rows"] += vertical_first ? 0 : side;
  count("plain", vertical_first ? 0 : rows, crop.width, 1);
  count("summed", vertical_first ? rows : 0, crop.width, crop.vertical.taps);
  count("across", rows, side, crop.horizontal.taps);
  count("down", vertical_first ? 0 : side, 3 * side / 4, crop.vertical.taps);
}

std::map<std::string, double> CropCounts::means() const {
  std::map<std::string, double> means;
  for (const auto& [name, sum] : sums_) means[name] = sum / std::max(crops_, 1.0);
  for (const ScanPasses& passes : longest_)
    for (const auto& [name, count] : passes)
      means[name + "_longest"] += count / static_cast<double>(longest_.size());
  if (drawn_ > 0) means["packed"] = crops_ / drawn_;
  return means;
}

}  // namespace millrace::micro
