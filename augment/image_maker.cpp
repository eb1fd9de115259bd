// SPDX-License-Identifier: Apache-2.0
#include "image_maker.h"

#include <millrace/detail/sample_position.h>
#include <millrace/detail/vector_checks.h>
#include <millrace/image_transform.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace millrace {
namespace {

constexpr std::size_t first_target = 1;
constexpr std::size_t decode_stage = 0;
constexpr std::size_t augment_stage = 1;

/// Limit on the resized image: a very narrow image would grow to gigabytes when its shorter side is
/// resized.
constexpr std::int64_t max_resized_pixels = 100'000'000;

/// Returns the smallest region that contains both.
Region around(const Region& a, const Region& b) {
  const int x = std::min(a.x, b.x);
  const int y = std::min(a.y, b.y);
  return {x, y, std::max(a.x + a.width, b.x + b.width) - x,
          std::max(a.y + a.height, b.y + b.height) - y};
}

void copy_kept(std::span<const std::byte> kept, Program::Flips flips, const SampleImage& image) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(kept.data());
  if (!flips.flipped && !flips.mirrored) {
    std::memcpy(image.pixels, from, kept.size());
    return;
  }
  const std::size_t row = static_cast<std::size_t>(image.size.width) * 3;
  std::uint8_t* to = image.pixels + (flips.flipped ? kept.size() : 0);
  for (int y = 0; y < image.size.height; ++y, from += row) {
    if (flips.flipped) to -= row;
    if (flips.mirrored)
      mirror_rows(from, {image.size.width, 1}, to);
    else
      std::memcpy(to, from, row);
    if (!flips.flipped) to += row;
  }
}

}  // namespace

ImageMaker::ImageMaker(const SampleImages& images, const Recipe& recipe,
                       const std::shared_ptr<DecodeBudget>& budget, Takes takes)
    : images_(images),
      resolution_(recipe.resolution),
      may_be_kept_(images.main().random_geometry() == nullptr && recipe.views.empty() &&
                   recipe.images.empty() && !has_moving(recipe.targets)),
      needs_orientation_(std::ranges::any_of(images.programs, &Program::needs_orientation)),
      may_be_packed_(images.packed && images.main().leaves_pixels()),
      device_share_(recipe.device_share),
      takes_(takes),
      decoder_(make_image_decoder(budget)),
      targets_(recipe.targets, first_target, budget) {
  choose_instruction_set(pixel_passes);
}

Status ImageMaker::begin(const Record& record, Random& random, Sample& sample) {
  record_ = &record;
  random_ = &random;
  sample_ = &sample;
  encoded_ = &images_.encoded.front();
  decodes_ = declined_ = packed_ = false;
  kept_ = {};
  room_ = {};
  if (Status taken = targets_.read(record); !taken.is_ok()) return taken;
  if (may_be_kept_) {
    const std::size_t bytes = images_.all.size() * image(images_.all.front()).bytes();
    kept_ = sample.cached();
    if (kept_.size() == bytes) {
      sample.enter_stage(augment_stage);
      return Status::ok();
    }
    kept_ = {};
    // The room may have another size if a transform that wraps this one caches its own data.
    if (const auto room = sample.room_in_cache(); room.size() == bytes) room_ = room;
  }
  if (Status opened = open(record["image"]); declined_ || !opened.is_ok()) return opened;
  decodes_ = true;
  return begin_image();
}

Status ImageMaker::open(std::span<const std::byte> encoded) {
  const std::span<const std::byte> form = sample_->recoded();
  uses_form_ = !form.empty();
  bytes_ = uses_form_ ? form : encoded;
  const bool recodes = !uses_form_ && sample_->wants_recoded(encoded.size());
  if (takes_ == Takes::all) {
    Status opened = decoder_->open(bytes_);
    if (opened.is_ok() && recodes) recode(encoded);
    interleaved_ = opened.is_ok() ? decoder_->interleaved() : nullptr;
    return opened;
  }
  declined_ =
      uses_form_ || recodes || !offers_interleaving(encoded) || !decoder_->open(encoded).is_ok();
  if (declined_) return Status::ok();
  interleaved_ = decoder_->interleaved();
  const Size size = decoder_->header().size();
  declined_ = std::int64_t{size.width} * size.height > InterleavedDecoder::max_pixels;
  return Status::ok();
}

/// Recodes the open image to a form that decodes faster, opens that form and puts it in the cache.
/// An image without such a form stays open as it is stored.
void ImageMaker::recode(std::span<const std::byte> encoded) {
  if (form_.capacity() > DecodeBudget::small_bytes) form_ = std::vector<std::byte>();
  if (decoder_->recode(form_)) {
    uses_form_ = form_.size() <= DecodeBudget::small_bytes && decoder_->open(form_).is_ok();
    if (uses_form_)
      bytes_ = form_;
    else
      static_cast<void>(decoder_->open(encoded).is_ok());
  }
  if (!uses_form_) form_.clear();
  sample_->keep_recoded(form_);
}

Status ImageMaker::finish() {
  if (decodes_) {
    decodes_ = false;
    if (Status made = finish_image(); !made.is_ok()) return made;
    kept_ = room_;
  }
  if (!kept_.empty()) {
    const Program::Flips flips = images_.main().flips(*random_);
    for (const SampleImagePlace& place : images_.all) {
      const SampleImage to = image(place);
      copy_kept(kept_.subspan(place.number * to.bytes(), to.bytes()), flips, to);
    }
  }
  for (const EncodedImage& further : std::span(images_.encoded).subspan(1))
    if (Status made = make_further(further); !made.is_ok())
      return Status::bad("its field \"" + further.field + "\" " + made.reason());
  // Images of stream 0 share the sample's random numbers, so each of them starts from `begin`.
  const Random begin = *random_;
  for (std::size_t number = 0; number < images_.all.size(); ++number) {
    const SampleImagePlace& place = images_.all[number];
    if (place.stream == 0) *random_ = begin;
    SampleImage to = image(place);
    images_.programs[place.program].run(to, random_of(number));
  }
  if (images_.packed)
    *static_cast<std::uint8_t*>((*sample_)[*images_.packed].data) = packed_ ? 1 : 0;
  return targets_.write(*sample_);
}

/// Decodes and resamples a further image of the record. Requires that the decoder is closed.
Status ImageMaker::make_further(const EncodedImage& encoded) {
  sample_->enter_stage(decode_stage);
  encoded_ = &encoded;
  interleaved_ = nullptr;
  if (Status opened = decoder_->open((*record_)[encoded.field]); !opened.is_ok()) return opened;
  Status begun = begin_image();
  return begun.is_ok() ? finish_image() : begun;
}

SampleImage ImageMaker::image(const SampleImagePlace& place) {
  SampleImage image{static_cast<std::uint8_t*>((*sample_)[place.field].data), place.output,
                    *sample_, scratch_, targets_.move() && place.field == 0 ? &targets_ : nullptr};
  image.pixels += place.number * image.bytes();
  return image;
}

/// Combines the operations for image `number` of the sample in one plan. If the cache has room for
/// the sample, the plan has only the geometric operations.
ResamplePlan ImageMaker::plan_of(std::size_t number, Size stored, int orientation) {
  const SampleImagePlace& place = images_.all[number];
  const Program& program = images_.programs[place.program];
  const int view = place.program == 0 ? static_cast<int>(place.number) : 0;
  if (!is_main() && place.stream == 0)
    return main_plans_[place.number].for_image(stored, orientation);
  return room_.empty() ? program.plan(stored, orientation, random_of(number), view)
                       : program.plan_geometry(stored, orientation, view);
}

/// Begins the opened image: plans its resampling. Then packs the image for the device or begins
/// an interleaved decode, if possible.
Status ImageMaker::begin_image() {
  if (needs_orientation_)
    if (Status read = read_image_info((*record_)[encoded_->field], info_); !read.is_ok())
      return read;
  const Size stored = decoder_->header().size();
  const int orientation = info_.orientation.value_or(1);
  plans_.clear();
  const Random begin = *random_;
  if (is_main()) {
    own_random_.clear();
    own_seed_ = Random(begin).bits64();
  }
  for (std::size_t number = encoded_->first; number < encoded_->first + encoded_->count; ++number) {
    const std::uint32_t stream = images_.all[number].stream;
    own_random_.emplace_back(own_seed_, stream);
    if (is_main() && stream == 0) *random_ = begin;
    plans_.push_back(plan_of(number, stored, orientation));
    const ResamplePlan& plan = plans_.back();
    if (!plan.problem.empty()) return Status::bad(plan.problem);
    if (const Size to = plan.resampling.to; std::int64_t{to.width} * to.height > max_resized_pixels)
      return Status::bad("resized to " + std::to_string(to.width) + " x " +
                         std::to_string(to.height) + " pixels; at most " +
                         std::to_string(max_resized_pixels / 1'000'000) + " megapixels are made");
  }
  if (is_main() && images_.encoded.size() > 1) main_plans_ = plans_;  // before they are reduced
  if (is_main() && targets_.move())
    if (Status placed = targets_.place(stored, plans_.front()); !placed.is_ok()) return placed;
  int reduction = resolution_ == Resolution::reduced ? plans_.front().reduction() : 1;
  for (const ResamplePlan& plan : plans_)
    if (reduction > 1) reduction = std::min(reduction, plan.reduction());
  if (is_main() && !uses_form_ && sample_->has_hints())
    decoder_->use_index(sample_->hint(), image_checksum(*record_));
  if (is_main() && may_be_packed_ && device_share_.has(position_of(*sample_)) && room_.empty() &&
      ImagePacker::takes(plans_.front())) {
    Status packed = pack_image();
    if (packed_ || !packed.is_ok()) return packed;
  }
  Region needed{};
  for (ResamplePlan& plan : plans_) {
    if (reduction > 1) plan.reduce(reduction);
    needed = needed.width > 0 ? around(needed, prepare(plan)) : prepare(plan);
  }
  needed_ = {needed, reduction};
  if (reduction == 1 && interleaved_ != nullptr) interleaved_->begin_decode(needed);
  return Status::ok();
}

/// Packs the image for the device, if the device can make it.
Status ImageMaker::pack_image() {
  const bool has_coefficients = decoder_->header().kind == ImageKind::coefficients;
  std::size_t bytes = 0;
  if (!has_coefficients)
    bytes = packer_.measure(*decoder_, plans_.front());
  else if (Status measured = packer_.measure(bytes_, plans_.front(), bytes); !measured.is_ok())
    return measured;
  if (bytes == 0) return Status::ok();
  const SampleImagePlace& place = images_.all.front();
  const std::span<std::byte> room =
      sample_->packed_room(place.field, bytes, packer_.min_bytes(image(place).bytes()));
  if (room.empty()) return Status::ok();
  packer_.pack(room.data());
  packed_ = true;
  decodes_ = false;
  decoder_->close();
  sample_->set_decoder_name(has_coefficients ? "device (coefficients)" : "device (JPEG)");
  return Status::ok();
}

Status ImageMaker::finish_image() {
  // Closes the decoder on every path, since other threads may wait for its memory.
  const struct Close {
    ImageDecoder& decoder;
    ~Close() { decoder.close(); }
  } at_end{*decoder_};
  Status decoded = plans_.size() == 1 && needed_.reduction == 1 && resampler_.takes_parts()
                       ? resample_parts()
                       : resample_whole();
  if (!decoded.is_ok()) return decoded;

  if (!is_main()) return Status::ok();
  if (const auto index = decoder_->extended_index(); !index.empty()) sample_->keep_hint(index);
  sample_->set_decoder_name(decoder_->header().decoder);
  return Status::ok();
}

/// Resamples rows as soon as they are decoded, so that the image is never in memory as a whole.
Status ImageMaker::resample_parts() {
  struct Parts final : RowSink {
    Resampler& resampler;
    Sample& sample;
    explicit Parts(ImageMaker& maker) : resampler(maker.resampler_), sample(*maker.sample_) {}
    void add(const PixelView& rows) override {
      sample.enter_stage(augment_stage);
      resampler.add(rows);
      sample.enter_stage(decode_stage);
    }
  } parts(*this);
  Status decoded = Status::ok();
  resample(plans_.front(), output_of(0), [&](std::uint8_t* window, std::size_t stride) {
    resampler_.begin(window, stride);
    decoded = decoder_->decode_rows(needed_.region, parts);
    if (decoded.is_ok()) sample_->enter_stage(augment_stage);
    return decoded.is_ok();
  });
  return decoded;
}

Status ImageMaker::resample_whole() {
  PixelView pixels;
  Status decoded = needed_.reduction > 1
                       ? decoder_->decode_reduced(needed_.region, needed_.reduction, pixels)
                       : decoder_->decode(needed_.region, pixels);
  if (!decoded.is_ok()) return decoded;
  sample_->enter_stage(augment_stage);
  resample_all(pixels);
  return Status::ok();
}

/// Returns the memory to make an image in: in the cache, if the cache has room for the sample.
std::uint8_t* ImageMaker::output_of(std::size_t number) {
  const SampleImage made = image(images_.all[encoded_->first + number]);
  if (room_.empty()) return made.pixels;
  return reinterpret_cast<std::uint8_t*>(room_.data()) + number * made.bytes();
}

void ImageMaker::resample_all(const PixelView& pixels) {
  for (std::size_t number = 0; number < plans_.size(); ++number) {
    const ResamplePlan& plan = plans_[number];
    // If there is one image, `begin_image` has already made its tables.
    const Region part = plans_.size() == 1 ? needed_.region : prepare(plan);
    const PixelView of_part{
        pixels.pixels + static_cast<std::size_t>(part.y - needed_.region.y) * pixels.stride +
            static_cast<std::size_t>(part.x - needed_.region.x) * 3,
        part.width, part.height, pixels.stride};
    resample(plan, output_of(number), [&](std::uint8_t* window, std::size_t stride) {
      resampler_.run(of_part, window, stride);
      return true;
    });
  }
}

/// Makes the resampler's tables. Returns the region of the stored image that the resampler needs.
Region ImageMaker::prepare(const ResamplePlan& plan) {
  Region needed = resampler_.prepare(plan.resampling);
  const Region box = plan.stored_box();
  needed.x += box.x;
  needed.y += box.y;
  return needed;
}

/// Makes the output: `make` makes its window, and this function fills the rest with padding or
/// zeros. `make` returns whether it succeeded.
template <typename Make>
void ImageMaker::resample(const ResamplePlan& plan, std::uint8_t* output, const Make& make) {
  const std::size_t stride = static_cast<std::size_t>(plan.output.width) * 3;
  const Region& window = plan.resampling.window;
  const PaddingMap& padding_map = plan.padding_map;
  if (padding_map.shown() && !padding_map.holds_window()) {
    const std::size_t row = static_cast<std::size_t>(window.width) * 3;
    const Scratch::Borrowed aside = scratch_.borrow(row * static_cast<std::size_t>(window.height));
    if (make(aside.data(), row)) padding_map.fill(plan.resampling, aside.data(), row, output);
    return;
  }
  if (!padding_map.shown() &&
      (window.width < plan.output.width || window.height < plan.output.height))
    std::memset(output, 0, stride * static_cast<std::size_t>(plan.output.height));
  std::uint8_t* corner =
      output + static_cast<std::size_t>(plan.y) * stride + static_cast<std::size_t>(plan.x) * 3;
  if (make(corner, stride) && padding_map.shown())
    padding_map.fill(plan.resampling, corner, stride, output);
}

}  // namespace millrace
