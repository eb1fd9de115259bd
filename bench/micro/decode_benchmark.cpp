// SPDX-License-Identifier: Apache-2.0
//
// Cost of decoding a whole photograph, and the box of a training crop: without an index, while
// making an index, and with the index of the whole image. Also the cost of packing the crop for a
// device, of decoding progressive JPEGs, and of decoding two photographs interleaved, as the
// pipeline's workers do.
#include <millrace/detail/interleaved_decoder.h>
#include <millrace/detail/jpeg_crop_packer.h>

#include <array>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "micro/photographs.h"

namespace millrace {
namespace {

Region whole_of(Size size, std::size_t) { return {0, 0, size.width, size.height}; }
Region crop_of(Size size, std::size_t number) { return micro::drawn_crop(size, number).box; }

enum class Index { none, noted, whole, rows };

/// Returns the decoder's index of a photograph, made while the whole image is decoded. The decoder
/// gets a checksum, as from a dataset that compares checksums.
std::vector<std::byte> whole_index(ImageDecoder& decoder, const std::string& photograph,
                                   std::uint64_t checksum, IndexPoints points) {
  const Size size = micro::size_of(decoder, photograph);
  decoder.use_index({}, checksum, points);
  PixelView view;
  if (!decoder.decode({0, 0, size.width, size.height}, view).is_ok())
    throw std::runtime_error("a photograph cannot be decoded");
  const auto index = decoder.extended_index();
  return {index.begin(), index.end()};
}

/// Decodes regions of photographs.
class Regions {
 public:
  Regions(Region (*region_of)(Size, std::size_t), Index index,
          const std::vector<std::string>& photographs = micro::photographs())
      : region_of_(region_of), index_(index), photographs_(photographs) {
    if (index != Index::whole && index != Index::rows) return;
    const IndexPoints points = index == Index::rows ? IndexPoints::rows : IndexPoints::tiles;
    for (const std::string& photograph : photographs_) {
      indices_.push_back(whole_index(*decoder_, photograph, indices_.size(), points));
      index_bytes_ += static_cast<double>(indices_.back().size());
      jpeg_bytes_ += static_cast<double>(photograph.size());
    }
  }

  Region region_of(std::size_t number) {
    const std::size_t n = number % photographs_.size();
    return region_of_(micro::size_of(*decoder_, photographs_[n]), number);
  }
  /// Opens a photograph, with its index.
  ImageDecoder& open(std::size_t number) {
    const std::size_t n = number % photographs_.size();
    if (!decoder_->open(micro::bytes_of(photographs_[n])).is_ok())
      throw std::runtime_error("a photograph cannot be opened");
    if (index_ != Index::none)
      decoder_->use_index(
          indices_.empty() ? std::span<const std::byte>() : std::span<const std::byte>(indices_[n]),
          n);
    return *decoder_;
  }
  PixelView decode(std::size_t number, const Region& region) {
    PixelView view;
    if (!open(number).decode(region, view).is_ok())
      throw std::runtime_error("a photograph cannot be decoded");
    if (index_ != Index::none) benchmark::DoNotOptimize(decoder_->extended_index().size());
    return view;
  }
  /// Compares the pixels with libjpeg-turbo's decode of the whole image.
  void verify() {
    micro::WholeDecode whole;
    for (std::size_t n = 0; n < photographs_.size(); ++n) {
      const std::string& photograph = photographs_[n];
      const Region region = region_of(n);
      const Size size = micro::size_of(*decoder_, photograph);
      if (!micro::same_pixels(decode(n, region),
                              micro::part_of(whole.run(photograph, size), region)))
        throw std::runtime_error("the bits differ");
    }
  }
  /// Size of the indices as a share of the photographs' bytes.
  double index_share() const { return jpeg_bytes_ > 0 ? index_bytes_ / jpeg_bytes_ : 0; }

 private:
  Region (*region_of_)(Size, std::size_t);
  Index index_;
  const std::vector<std::string>& photographs_;
  std::unique_ptr<ImageDecoder> decoder_ = make_image_decoder();
  std::vector<std::vector<std::byte>> indices_;
  double index_bytes_ = 0;
  double jpeg_bytes_ = 0;
};

void decode(benchmark::State& state, Region (*region_of)(Size, std::size_t), Index index) {
  Regions regions(region_of, index);
  regions.verify();
  micro::beside_whole_decode(state, [&](const std::string&, std::size_t number, Size) {
    const Region region = regions.region_of(number);
    const double begin = micro::thread_seconds();
    benchmark::DoNotOptimize(regions.decode(number, region).pixels);
    return micro::thread_seconds() - begin;
  });
  if (index == Index::whole || index == Index::rows)
    state.counters["index_of_jpeg"] = regions.index_share();
}

/// Packs the crops. `us` is the time of a packed crop in microseconds: opening the JPEG with its
/// index, then the packing, which takes `pack_us`. `packed` is the share of the crops that the
/// device can make, `kilobytes` the mean size of a packed crop without the weights.
void pack_jpeg_crop(benchmark::State& state) {
  constexpr std::size_t max_scratch = std::size_t{8} << 20U;
  Regions regions(crop_of, Index::whole);
  JpegCropPacker packer;
  std::vector<std::byte> place;
  double seconds = 0;
  double pack_seconds = 0;
  double bytes = 0;
  double packed = 0;
  micro::beside_whole_decode(state, [&](const std::string&, std::size_t number, Size) {
    Crop crop;
    crop.region = regions.region_of(number);
    const double begin = micro::thread_seconds();
    ImageDecoder& decoder = regions.open(number);
    const double opened = micro::thread_seconds();
    const std::size_t size = packer.open(decoder) ? packer.measure(crop, max_scratch) : 0;
    if (size > place.size()) place.resize(size);
    if (size > 0) packer.pack(place.data());
    const double end = micro::thread_seconds();
    if (size == 0) return end - begin;
    seconds += end - begin;
    pack_seconds += end - opened;
    bytes += static_cast<double>(size);
    ++packed;
    return end - begin;
  });
  state.counters["us"] = 1e6 * seconds / packed;
  state.counters["pack_us"] = 1e6 * pack_seconds / packed;
  state.counters["kilobytes"] = 1e-3 * bytes / packed;
  state.counters["packed"] = packed / static_cast<double>(state.iterations());
}

/// Does the same as `decode` for progressive JPEGs. The share refers to libjpeg-turbo's decode of
/// these JPEGs.
void decode_progressive(benchmark::State& state, Region (*region_of)(Size, std::size_t),
                        Index index) {
  Regions regions(region_of, index, micro::progressive_photographs());
  regions.verify();
  micro::beside_whole_decode(
      state,
      [&](const std::string&, std::size_t number, Size) {
        const Region region = regions.region_of(number);
        const double begin = micro::thread_seconds();
        benchmark::DoNotOptimize(regions.decode(number, region).pixels);
        return micro::thread_seconds() - begin;
      },
      micro::progressive_photographs());
  if (index == Index::rows) state.counters["index_of_jpeg"] = regions.index_share();
}

/// Decodes crops of photographs, two of them interleaved. A call begins one crop and ends the
/// finished ones.
class InterleavedCrops {
 public:
  explicit InterleavedCrops(Index index) : index_(index) {}

  double seconds(const std::string& photograph, std::size_t number, Size size) {
    const Region region = crop_of(size, number);
    const double begin = micro::thread_seconds();
    CropLane& free = lanes_[lanes_.front().under_way ? 1 : 0];
    free.photograph = &photograph;
    free.size = size;
    free.region = region;
    if (!free.decoder->open(micro::bytes_of(photograph)).is_ok())
      throw std::runtime_error("a photograph cannot be opened");
    if (index_ != Index::none) free.decoder->use_index({}, number);
    free.under_way = free.decoder->interleaved()->begin_decode(region);
    if (!free.under_way) end(free);
    auto& [a, b] = lanes_;
    if (a.under_way && b.under_way) {
      a.decoder->interleaved()->decode_interleaved(*b.decoder->interleaved());
      for (CropLane& lane : lanes_)
        if (!lane.decoder->interleaved()->can_interleave()) end(lane);
    }
    return micro::thread_seconds() - begin;
  }
  /// Compares the pixels with libjpeg-turbo's decodes of the whole images.
  void verify() {
    micro::WholeDecode whole;
    whole_ = &whole;
    const auto decoder = make_image_decoder();
    for (std::size_t n = 0; n < micro::photographs().size(); ++n) {
      const std::string& photograph = micro::photographs()[n];
      (void)seconds(photograph, n, micro::size_of(*decoder, photograph));
    }
    whole_ = nullptr;
  }

 private:
  struct CropLane {
    std::unique_ptr<ImageDecoder> decoder = make_image_decoder();
    const std::string* photograph = nullptr;
    Size size;
    Region region;
    bool under_way = false;
  };
  void end(CropLane& lane) {
    PixelView view;
    if (!lane.decoder->decode(lane.region, view).is_ok())
      throw std::runtime_error("a photograph cannot be decoded");
    benchmark::DoNotOptimize(view.pixels);
    if (whole_ != nullptr &&
        !micro::same_pixels(view,
                            micro::part_of(whole_->run(*lane.photograph, lane.size), lane.region)))
      throw std::runtime_error("the bits differ");
    if (index_ != Index::none) benchmark::DoNotOptimize(lane.decoder->extended_index().size());
    lane.under_way = false;
  }

  Index index_;
  std::array<CropLane, 2> lanes_;
  /// Set while pixels are compared.
  micro::WholeDecode* whole_ = nullptr;
};

void decode_in_turn(benchmark::State& state, Index index) {
  InterleavedCrops crops(index);
  crops.verify();
  micro::beside_whole_decode(state,
                             [&](const std::string& photograph, std::size_t number, Size size) {
                               return crops.seconds(photograph, number, size);
                             });
}
BENCHMARK_CAPTURE(decode, whole, whole_of, Index::none)->UseManualTime()->Iterations(1000);
BENCHMARK_CAPTURE(decode, train_crop, crop_of, Index::none)->UseManualTime()->Iterations(1000);
BENCHMARK_CAPTURE(decode, train_crop_noting, crop_of, Index::noted)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(decode, train_crop_indexed, crop_of, Index::whole)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK(pack_jpeg_crop)->UseManualTime()->Iterations(1000);
BENCHMARK_CAPTURE(decode, train_crop_indexed_rows, crop_of, Index::rows)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(decode_progressive, whole, whole_of, Index::none)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(decode_progressive, train_crop, crop_of, Index::none)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(decode_progressive, train_crop_noting, crop_of, Index::noted)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(decode_progressive, train_crop_indexed_rows, crop_of, Index::rows)
    ->UseManualTime()
    ->Iterations(1000);
BENCHMARK_CAPTURE(decode_in_turn, train_crop, Index::none)->UseManualTime()->Iterations(1000);
BENCHMARK_CAPTURE(decode_in_turn, train_crop_noting, Index::noted)
    ->UseManualTime()
    ->Iterations(1000);

}  // namespace
}  // namespace millrace
