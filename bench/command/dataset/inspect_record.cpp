// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "command/dataset/inspect_output.h"
#include "command/dataset/inspect_training.h"
#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string image_text(const RecordView& view) {
  if (!view.image)
    return view.no_image.empty() ? "" : "image\n" + table_row("unknown", printable(view.no_image));
  const ImageInfo& image = *view.image;
  std::string text = "image\n";
  text += table_row("size", fmt::format("{} x {} pixels", image.width, image.height));
  text += table_row("components",
                    fmt::format("{} of {} bits", image.components, image.bits_per_sample));
  text += table_row("chroma", image.chroma.value_or("none"));
  text += table_row("scan type", image.scan_type);
  text +=
      table_row("quality", image.quality ? fmt::format("{} (IJG scale, estimated)", *image.quality)
                           : image.kind == ImageKind::jpeg || image.kind == ImageKind::coefficients
                               ? "n/a (tables of another encoder)"
                               : "n/a (no JPEG)");
  text += table_row("EXIF orientation",
                    image.orientation ? fmt::format("{}", *image.orientation) : "none");
  text += table_row("restart interval",
                    image.restart_interval > 0
                        ? count_text(static_cast<std::uint64_t>(image.restart_interval), "MCU")
                        : "none");
  return text + table_row("header", fmt::format("{} bytes", image.header_bytes));
}

}  // namespace

std::string label_text(const Dataset& dataset, const Record& record) {
  const std::vector<FieldSpec> specs = dataset.field_specs();
  const std::optional<std::int64_t> label = label_of(specs, record);
  if (!label && record.has("label") && !may_be_integer(specs, "label"))
    return field_text(specs, record, {"label", record["label"]}).value;
  if (!label) return "none";
  const std::vector<std::string> classes = dataset.classes();
  if (*label < 0 || static_cast<std::uint64_t>(*label) >= classes.size())
    return fmt::format("{}", *label);
  return fmt::format("{} ({})", *label, printable(classes[static_cast<std::size_t>(*label)]));
}

std::string to_text(const Dataset& dataset, const RecordView& view) {
  std::string text =
      fmt::format("record {} of {}\n", view.record.index(), printable(dataset.name()));
  text += table_row("key", printable(view.key));
  const std::vector<FieldSpec> specs = dataset.field_specs();
  if (label_of(specs, view.record)) text += table_row("label", label_text(dataset, view.record));
  if (view.stored) {
    text += table_row("file", printable(view.stored->file));
    text += table_row("stored", fmt::format("{} bytes", view.stored->bytes));
    if (view.stored->checksum != 0)
      text += table_row("checksum", fmt::format("{:016x}, {}", view.stored->checksum,
                                                view.fault.empty() ? "matches" : "DOES NOT MATCH"));
    else
      text += table_row("checksum", "none is stored");
  }
  text += "fields\n";
  for (const RecordField& field : view.record.fields()) {
    const std::string value = field_text(specs, view.record, field).value;
    const std::string size = count_text(field.bytes.size(), "byte");
    text += table_row(printable(field.name),
                      value.empty() ? size : fmt::format("{:<16}{}", size, value));
  }
  return text + image_text(view);
}

std::string to_json(const Dataset& dataset, const RecordView& view) {
  Json fields = Json::array();
  for (const RecordField& field : view.record.fields())
    fields.push_back({{"name", std::string(field.name)}, {"bytes", field.bytes.size()}});
  Json json = {{"dataset", dataset.name()}, {"index", view.record.index()}, {"key", view.key}};
  const std::optional<std::int64_t> label = label_of(dataset.field_specs(), view.record);
  json["label"] = label ? Json(*label) : Json();
  if (view.stored) {
    json["file"] = view.stored->file;
    json["stored_bytes"] = view.stored->bytes;
    if (view.stored->checksum != 0)
      json["checksum"] = fmt::format("{:016x}", view.stored->checksum);
  }
  json["fault"] = view.fault.empty() ? Json() : Json(view.fault);
  json["fields"] = fields;
  if (view.image) {
    const ImageInfo& image = *view.image;
    json["image"] = {{"width", image.width},
                     {"height", image.height},
                     {"components", image.components},
                     {"bits_per_sample", image.bits_per_sample},
                     {"chroma", image.chroma ? Json(*image.chroma) : Json()},
                     {"scan_type", image.scan_type},
                     {"quality", image.quality ? Json(*image.quality) : Json()},
                     {"exif_orientation", image.orientation ? Json(*image.orientation) : Json()},
                     {"restart_interval", image.restart_interval},
                     {"header_bytes", image.header_bytes}};
  } else {
    json["image"] = {};
    if (!view.no_image.empty()) json["no_image"] = view.no_image;
  }
  return json_text(json);
}

}  // namespace millrace::cli
