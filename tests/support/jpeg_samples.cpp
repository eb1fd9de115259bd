// SPDX-License-Identifier: Apache-2.0
#include "support/jpeg_samples.h"

#include <turbojpeg.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

// jpeglib.h needs the headers above it.
// clang-format off
#include <cstdio>
#include <jpeglib.h>
// clang-format on

namespace millrace::testing {
namespace {

using Scans = Encoding::Scans;

/// A scan of one component.
jpeg_scan_info scan(int component, int first, int last, int high, int low) {
  return {1, {component, 0, 0, 0}, first, last, high, low};
}

std::vector<jpeg_scan_info> scan_script(Scans scans, int components) {
  std::vector<jpeg_scan_info> script;
  if (scans == Scans::per_component)
    for (int component = 0; component < components; ++component)
      script.push_back(scan(component, 0, 63, 0, 0));
  if (scans == Scans::progressive_incomplete) {
    // DC is complete, AC lacks its two lowest bits, and the last component has no AC at all.
    jpeg_scan_info dc{components, {0, 1, 2, 3}, 0, 0, 0, 1};
    script.push_back(dc);
    dc.Ah = 1;
    dc.Al = 0;
    script.push_back(dc);
    for (int component = 0; component + 1 < components; ++component)
      script.push_back(scan(component, 1, 63, 0, 2));
  }
  if (scans == Scans::per_coefficient) {
    script.push_back({components, {0, 1, 2, 3}, 0, 0, 0, 0});
    for (int component = 0; component < components; ++component) {
      for (int coefficient = 1; coefficient < DCTSIZE2; ++coefficient) {
        script.push_back(scan(component, coefficient, coefficient, 0, 1));
        script.push_back(scan(component, coefficient, coefficient, 1, 0));
      }
    }
  }
  return script;
}

void set_colour(jpeg_compress_struct& handle, const Image& image, const Encoding& encoding) {
  handle.input_components = image.channels;
  handle.in_color_space = image.channels == 1   ? JCS_GRAYSCALE
                          : image.channels == 3 ? JCS_RGB
                                                : JCS_CMYK;
  jpeg_set_defaults(&handle);
  if (encoding.stored_as_rgb) jpeg_set_colorspace(&handle, JCS_RGB);
  if (encoding.stored_as_ycck) jpeg_set_colorspace(&handle, JCS_YCCK);
  for (int component = 0; component < handle.num_components; ++component) {
    handle.comp_info[component].h_samp_factor = encoding.h[static_cast<std::size_t>(component)];
    handle.comp_info[component].v_samp_factor = encoding.v[static_cast<std::size_t>(component)];
  }
}

/// Length of the segment whose marker is at `at`, including the marker.
std::size_t segment_bytes(const Bytes& encoded, std::size_t at) {
  return 2 + std::to_integer<std::size_t>(encoded[at + 2]) * 256 +
         std::to_integer<std::size_t>(encoded[at + 3]);
}

}  // namespace

std::vector<Encoding> encodings() {
  const std::vector<Encoding> samplings = {
      {.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}},
      {.name = "4:2:2", .h = {2, 1, 1, 1}, .v = {1, 1, 1, 1}},
      {.name = "4:2:0", .h = {2, 1, 1, 1}, .v = {2, 1, 1, 1}},
      {.name = "4:4:0", .h = {1, 1, 1, 1}, .v = {2, 1, 1, 1}},
      {.name = "4:1:1", .h = {4, 1, 1, 1}, .v = {1, 1, 1, 1}},
      {.name = "4:1:0", .h = {4, 1, 1, 1}, .v = {2, 1, 1, 1}},
      {.name = "1x4", .h = {1, 1, 1, 1}, .v = {4, 1, 1, 1}},
      {.name = "mixed", .h = {2, 1, 2, 1}, .v = {2, 2, 1, 1}},
      {.name = "colour finer than light", .h = {1, 2, 2, 1}, .v = {1, 2, 1, 1}},
  };
  std::vector<Encoding> all;
  for (const Encoding& sampling : samplings) {
    for (const Scans scans :
         {Scans::one, Scans::per_component, Scans::progressive, Scans::progressive_incomplete}) {
      for (const bool arithmetic : {false, true}) {
        for (const int restart_rows : {0, 1}) {
          Encoding encoding = sampling;
          encoding.scans = scans;
          encoding.arithmetic = arithmetic;
          encoding.restart_rows = restart_rows;
          constexpr const char* names[] = {"", ", a scan per component", ", progressive",
                                           ", progressive and incomplete"};
          encoding.name += names[static_cast<std::size_t>(scans)];
          if (arithmetic) encoding.name += ", arithmetic";
          if (restart_rows > 0) encoding.name += ", restarts";
          all.push_back(encoding);
        }
      }
    }
  }
  all.push_back(
      {.name = "stored as RGB", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .stored_as_rgb = true});
  all.push_back({.name = "low quality", .quality = 12});
  return all;
}

Image noise(int width, int height, unsigned seed, int channels) {
  Image image{width, height, channels, {}};
  std::mt19937 random(seed);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int channel = 0; channel < channels; ++channel)
        image.pixels.push_back(static_cast<std::uint8_t>(x * (channel + 1) + y * (3 - channel) +
                                                         static_cast<int>(random() % 128)));
  return image;
}

Bytes encode(const Image& image, const Encoding& encoding) {
  jpeg_compress_struct handle{};
  jpeg_error_mgr errors{};
  handle.err = jpeg_std_error(&errors);
  jpeg_create_compress(&handle);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&handle, &buffer, &size);
  handle.image_width = static_cast<JDIMENSION>(image.width);
  handle.image_height = static_cast<JDIMENSION>(image.height);
  set_colour(handle, image, encoding);
  jpeg_set_quality(&handle, encoding.quality, TRUE);
  handle.arith_code = encoding.arithmetic ? TRUE : FALSE;
  handle.optimize_coding = encoding.optimised ? TRUE : FALSE;
  handle.restart_in_rows = encoding.restart_rows;
  handle.restart_interval = static_cast<unsigned>(encoding.restart_mcus);
  const std::vector<jpeg_scan_info> script = scan_script(encoding.scans, handle.num_components);
  if (encoding.scans == Scans::progressive) jpeg_simple_progression(&handle);
  if (!script.empty()) {
    handle.scan_info = script.data();
    handle.num_scans = static_cast<int>(script.size());
  }
  jpeg_start_compress(&handle, TRUE);
  while (handle.next_scanline < handle.image_height) {
    const std::size_t stride =
        static_cast<std::size_t>(image.width) * static_cast<std::size_t>(image.channels);
    auto* row = const_cast<JSAMPROW>(image.pixels.data() + handle.next_scanline * stride);
    jpeg_write_scanlines(&handle, &row, 1);
  }
  jpeg_finish_compress(&handle);
  jpeg_destroy_compress(&handle);
  const auto* first = reinterpret_cast<const std::byte*>(buffer);
  Bytes encoded(first, first + size);
  std::free(buffer);
  return encoded;
}

Bytes progressive(const Bytes& encoded, const std::vector<Scan>& script, int restart_mcus) {
  jpeg_error_mgr errors{};
  jpeg_decompress_struct from{};
  from.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&from);
  jpeg_mem_src(&from, reinterpret_cast<const unsigned char*>(encoded.data()), encoded.size());
  jpeg_read_header(&from, TRUE);
  jvirt_barray_ptr* const coefficients = jpeg_read_coefficients(&from);
  jpeg_compress_struct to{};
  to.err = &errors;
  jpeg_create_compress(&to);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&to, &buffer, &size);
  jpeg_copy_critical_parameters(&from, &to);
  std::vector<jpeg_scan_info> scans;
  for (const Scan& one : script) {
    jpeg_scan_info& made = scans.emplace_back();
    made = scan(0, one.first, one.last, one.high, one.low);
    made.comps_in_scan = static_cast<int>(one.components.size());
    std::ranges::copy(one.components, made.component_index);
  }
  jpeg_simple_progression(&to);
  if (!scans.empty()) {
    to.scan_info = scans.data();
    to.num_scans = static_cast<int>(scans.size());
  }
  to.restart_interval = static_cast<unsigned>(restart_mcus);
  jpeg_write_coefficients(&to, coefficients);
  jpeg_finish_compress(&to);
  jpeg_destroy_compress(&to);
  jpeg_finish_decompress(&from);
  jpeg_destroy_decompress(&from);
  const auto* first = reinterpret_cast<const std::byte*>(buffer);
  Bytes written(first, first + size);
  std::free(buffer);
  return written;
}

Bytes without(const Bytes& encoded, int marker) {
  Bytes kept(encoded.begin(), encoded.begin() + 2);
  std::size_t at = 2;
  for (std::size_t length = 0; encoded[at + 1] != std::byte{0xDA}; at += length) {
    length = segment_bytes(encoded, at);
    if (encoded[at + 1] != static_cast<std::byte>(marker))
      kept.insert(kept.end(), &encoded[at], &encoded[at] + length);
  }
  kept.insert(kept.end(), &encoded[at], encoded.data() + encoded.size());
  return kept;
}

std::size_t first_scan(const Bytes& encoded) {
  std::size_t at = 2;
  while (encoded[at + 1] != std::byte{0xDA}) at += segment_bytes(encoded, at);
  return at + segment_bytes(encoded, at);
}

std::vector<Bytes> mixed_jpegs() {
  const Encoding kinds[] = {
      {},
      {.name = "own tables", .quality = 12, .optimised = true},
      {.name = "4:4:4", .h = {1, 1, 1, 1}, .v = {1, 1, 1, 1}, .restart_rows = 1, .quality = 60},
      {.name = "a scan per component", .scans = Scans::per_component, .quality = 75},
      {.name = "progressive", .scans = Scans::progressive, .quality = 40},
      {.name = "incomplete", .scans = Scans::progressive_incomplete},
      {.name = "arithmetic", .arithmetic = true, .quality = 20},
      {.name = "grey", .quality = 97},
  };
  std::vector<Bytes> jpegs;
  for (const Encoding& kind : kinds) {
    const int number = static_cast<int>(jpegs.size());
    const Bytes sound = encode(
        noise(41 + number, 60 - number, static_cast<unsigned>(number), kind.name == "grey" ? 1 : 3),
        kind);
    constexpr int dht = 0xC4;
    constexpr int dqt = 0xDB;
    constexpr std::array dqt_bytes{std::byte{0xFF}, std::byte{dqt}};
    jpegs.push_back(sound);
    jpegs.push_back(without(sound, dht));
    jpegs.push_back(without(sound, dqt));
    Bytes one_table = without(sound, dqt);
    const auto first = std::search(sound.begin(), sound.end(), dqt_bytes.begin(), dqt_bytes.end());
    one_table.insert(one_table.begin() + 2, first, first + 69);
    jpegs.push_back(one_table);
    jpegs.emplace_back(sound.begin(), sound.end() - static_cast<std::ptrdiff_t>(sound.size() / 4));
  }
  return jpegs;
}

Image reference_decode(const Bytes& encoded, int reduction) {
  const std::unique_ptr<void, int (*)(tjhandle)> handle(tjInitDecompress(), tjDestroy);
  const auto* bytes = reinterpret_cast<const unsigned char*>(encoded.data());
  const auto size = static_cast<unsigned long>(encoded.size());
  Image image;
  int sampling = 0;
  int colour = TJCS_RGB;
  // It fails for a sampling without a name, but has read the size by then.
  if (tjDecompressHeader3(handle.get(), bytes, size, &image.width, &image.height, &sampling,
                          &colour) != 0 &&
      image.width < 1)
    throw std::runtime_error(tjGetErrorStr2(handle.get()));
  const bool cmyk = colour == TJCS_CMYK || colour == TJCS_YCCK;
  image.channels = cmyk ? 4 : 3;
  image.width = (image.width + reduction - 1) / reduction;
  image.height = (image.height + reduction - 1) / reduction;
  image.pixels.resize(static_cast<std::size_t>(image.width) *
                      static_cast<std::size_t>(image.height) *
                      static_cast<std::size_t>(image.channels));
  if (tjDecompress2(handle.get(), bytes, size, image.pixels.data(), image.width, 0, image.height,
                    cmyk ? TJPF_CMYK : TJPF_RGB, 0) != 0)
    throw std::runtime_error(tjGetErrorStr2(handle.get()));
  return image;
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path.string());
  Bytes bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::vector<std::filesystem::path> jpeg_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".jpg" || entry.path().extension() == ".JPEG")
      files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace millrace::testing
