// SPDX-License-Identifier: Apache-2.0
#include "jpeg/frame.h"

#include <algorithm>

namespace millrace::jpeg {
namespace {

bool is_one_scan_of_all(const jpeg_decompress_struct& image) {
  if (image.comps_in_scan != image.num_components) return false;
  for (int number = 0; number < image.num_components; ++number)
    if (image.cur_comp_info[number] != &image.comp_info[number]) return false;
  return image.Ss == 0 && image.Se == DCTSIZE2 - 1 && image.Ah == 0 && image.Al == 0;
}

bool take_code(const JHUFF_TBL* table, HuffmanCode& code) {
  if (table == nullptr) return false;
  code = code_of(*table);
  return true;
}

/// Sets a component's sampling and steps. Returns nullptr, or the name of the decoder that must
/// decode the image instead.
const char* take_component(const jpeg_decompress_struct& image, int number, Frame& frame) {
  const jpeg_component_info& from = image.comp_info[number];
  Component& to = frame.components[static_cast<std::size_t>(number)];
  to.dc_table = to.ac_table = 0;  // this image may lack the tables of the previous one
  // A scan of one component has one block in an MCU, whatever its sampling factors.
  to.across = image.num_components == 1 ? 1 : from.h_samp_factor;
  to.down = image.num_components == 1 ? 1 : from.v_samp_factor;
  const int most = number == 0 ? 2 : 1;
  if (to.across > most || to.down > most) return "libjpeg-turbo (sampling factors)";
  if (from.quant_tbl_no < 0 || from.quant_tbl_no >= NUM_QUANT_TBLS ||
      image.quant_tbl_ptrs[from.quant_tbl_no] == nullptr)
    return "libjpeg-turbo (no quantisation table)";
  std::ranges::copy(image.quant_tbl_ptrs[from.quant_tbl_no]->quantval, to.steps.begin());
  if (std::ranges::max(to.steps) > 255) return "libjpeg-turbo (16-bit quantisation tables)";
  return nullptr;
}

/// Returns false if a component's Huffman tables are missing.
bool take_tables(const jpeg_decompress_struct& image, int number, Frame& frame) {
  const jpeg_component_info& from = image.comp_info[number];
  Component& to = frame.components[static_cast<std::size_t>(number)];
  to.dc_table = from.dc_tbl_no;
  to.ac_table = from.ac_tbl_no;
  return to.dc_table >= 0 && to.dc_table < NUM_HUFF_TBLS && to.ac_table >= 0 &&
         to.ac_table < NUM_HUFF_TBLS &&
         take_code(image.dc_huff_tbl_ptrs[to.dc_table],
                   frame.dc_codes[static_cast<std::size_t>(to.dc_table)]) &&
         take_code(image.ac_huff_tbl_ptrs[to.ac_table],
                   frame.ac_codes[static_cast<std::size_t>(to.ac_table)]);
}

const char* check_colours(const jpeg_decompress_struct& image) {
  if (image.arith_code) return "libjpeg-turbo (arithmetic coding)";
  if (image.data_precision != 8) return "libjpeg-turbo (not 8 bits)";
  if (image.num_components != 1 && image.num_components != 3)
    return "libjpeg-turbo (four components)";
  if (image.num_components == 3 && image.jpeg_color_space != JCS_YCbCr)
    return "libjpeg-turbo (stored as RGB)";
  return nullptr;
}

const char* take_layout(const jpeg_decompress_struct& image, Frame& frame) {
  frame.width = static_cast<int>(image.image_width);
  frame.height = static_cast<int>(image.image_height);
  frame.component_count = image.num_components;
  for (int number = 0; number < frame.component_count; ++number)
    if (const char* other = take_component(image, number, frame)) return other;

  const Component& first = frame.components.front();
  // libjpeg does not smooth narrower images.
  constexpr int narrowest_smoothed = 5;
  if (first.across == 2 && frame.width < narrowest_smoothed) return "libjpeg-turbo (narrow chroma)";
  frame.count_mcus();
  return nullptr;
}

}  // namespace

HuffmanCode code_of(const JHUFF_TBL& table) {
  HuffmanCode code;
  std::copy_n(table.bits + 1, code.counts.size(), code.counts.begin());
  std::copy_n(table.huffval, code.symbols.size(), code.symbols.begin());
  return code;
}

const char* read_layout(const jpeg_decompress_struct& image, Frame& frame) {
  const char* const other = check_colours(image);
  return other != nullptr ? other : take_layout(image, frame);
}

const char* read_frame(const jpeg_decompress_struct& image, Frame& frame) {
  if (const char* other = check_colours(image)) return other;
  if (!image.progressive_mode && !is_one_scan_of_all(image)) return "libjpeg-turbo (several scans)";
  if (const char* other = take_layout(image, frame)) return other;
  for (int number = 0; !image.progressive_mode && number < frame.component_count; ++number)
    if (!take_tables(image, number, frame)) return "libjpeg-turbo (no Huffman tables)";
  frame.restart_interval = static_cast<int>(image.restart_interval);
  frame.scan = {image.src->next_input_byte, image.src->bytes_in_buffer};
  return nullptr;
}

}  // namespace millrace::jpeg
