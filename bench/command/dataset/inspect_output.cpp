// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/inspect_output.h"

#include <fmt/format.h>
#include <millrace/detail/json_text.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "measure/text/figures.h"
#include "measure/text/text.h"

namespace millrace::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double pixels_per_megapixel = 1e6;

std::string bytes_of(std::uint64_t bytes) { return bytes_text(static_cast<double>(bytes)); }
std::string pixels_of(std::uint64_t pixels) { return fmt::format("{} px", pixels); }

std::string class_name(const std::vector<std::string>& classes, std::int64_t label) {
  if (label >= 0 && static_cast<std::uint64_t>(label) < classes.size())
    return printable(classes[static_cast<std::size_t>(label)]);
  return label == -1 ? "-1 (no class)" : fmt::format("label {}", label);
}

/// Returns the classes with their record counts, including empty classes, in the order of labels.
std::vector<std::pair<std::int64_t, std::uint64_t>> class_counts(const Dataset& dataset,
                                                                 const Survey& survey) {
  std::map<std::int64_t, std::uint64_t> counts = survey.labels;
  const std::size_t classes = dataset.classes().size();
  for (std::size_t label = 0; label < classes; ++label)
    counts.try_emplace(static_cast<std::int64_t>(label), 0);
  return {counts.begin(), counts.end()};
}

std::uint64_t file_bytes(const std::string& file) {
  std::error_code error;
  const std::uintmax_t bytes = std::filesystem::file_size(file, error);
  return error ? 0 : bytes;
}

std::string looked_at_text(const Survey& survey) {
  const std::string what =
      survey.looked_at == survey.records
          ? "all " + count_text(survey.records, "record")
          : fmt::format("{} of {} records, {}; all below is of these", survey.looked_at,
                        survey.records, survey.interrupted ? "then interrupted" : "spread evenly");
  return fmt::format("{} (headers only, no pixels decoded) in {:.2f} s", what, survey.seconds);
}

/// Returns a text such as " int64 [4]", with "up to" before an extent that varies; empty for an
/// unknown field.
std::string in_words(const std::vector<FieldSpec>& specs, const std::string& name) {
  const auto spec = std::ranges::find(specs, name, &FieldSpec::name);
  if (spec == specs.end()) return "";
  std::string extents;
  for (std::size_t axis = 0; axis < spec->shape.rank(); ++axis) {
    const std::string extent = std::to_string(spec->shape[axis]);
    const bool varies = axis == 0 && spec->variable;
    extents += (axis > 0 ? ", " : "");
    extents += !varies ? extent : extent == "0" ? "any number" : "up to " + extent;
  }
  return fmt::format(" {}{}", to_string(spec->dtype), extents.empty() ? "" : " [" + extents + "]");
}

std::string head(const Dataset& dataset, const Survey& survey) {
  const DatasetFacts facts = dataset.facts();
  std::string text =
      fmt::format("{}: {}\n", printable(dataset.name()), count_text(survey.records, "record"));
  if (!facts.format.empty())
    text += table_row("format", facts.format_reason.empty()
                                    ? facts.format
                                    : printable(facts.format + ": " + facts.format_reason));
  std::uint64_t on_disk = 0;
  for (const std::string& file : facts.files) on_disk += file_bytes(file);
  const std::optional<StoredRecord> first = dataset.stored_record(0);
  const bool has_own_files =
      first && std::ranges::find(facts.files, first->file) == facts.files.end();
  text += table_row(
      "size",
      has_own_files
          ? fmt::format("records' fields {}, each in a file of its own", bytes_of(survey.bytes))
          : fmt::format("{} in {}; records' fields {}", bytes_of(on_disk),
                        count_text(facts.files.size(), "file"), bytes_of(survey.bytes)));
  const std::vector<FieldSpec> specs = dataset.field_specs();
  std::string fields;
  for (const std::string& field : facts.fields)
    fields += (fields.empty() ? "" : ", ") + printable(field) + in_words(specs, field);
  text += table_row("fields", fields.empty() ? "none" : fields);
  if (!facts.created_by.empty()) text += table_row("created by", printable(facts.created_by));
  if (facts.fingerprint)
    text += table_row("fingerprint", fmt::format("{:016x}", *facts.fingerprint));
  return text + table_row("looked at", looked_at_text(survey));
}

std::string sample_text(const SampleRecord& sample) {
  if (sample.fields.empty()) return "";
  std::string text = fmt::format("\nrecord {} ({})\n", sample.index, printable(sample.key));
  for (const SampleField& field : sample.fields)
    text += table_row(printable(field.name),
                      fmt::format("{:<16}{}", count_text(field.bytes, "byte"), field.holds));
  for (const std::string& missing : sample.missing) text += table_row("missing", missing);
  return text;
}

std::string class_charts(const Dataset& dataset, const Survey& survey) {
  auto counts = class_counts(dataset, survey);
  if (counts.empty()) return "\nno labels\n";
  const std::vector<std::string> names = dataset.classes();
  const auto bars = [&](auto begin, auto end) {
    std::vector<Bar> all;
    for (; begin != end; ++begin) all.push_back({class_name(names, begin->first), begin->second});
    return all;
  };
  constexpr std::size_t max_classes = 12;
  constexpr std::ptrdiff_t shown = 5;
  const std::string title = count_text(counts.size(), names.empty() ? "label" : "class");
  if (counts.size() <= max_classes)
    return "\n" + chart(title, bars(counts.begin(), counts.end()), survey.looked_at);

  std::ranges::stable_sort(counts,
                           [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto empty =
      std::ranges::count_if(counts, [](const auto& entry) { return entry.second == 0; });
  std::string text =
      "\n" + chart(title, bars(counts.begin(), counts.begin() + shown), survey.looked_at);
  text += fmt::format("  ... {} more between, median {} ...\n", counts.size() - 2 * shown,
                      counts[counts.size() / 2].second);
  const std::string smallest =
      chart("", bars(counts.end() - shown, counts.end()), survey.looked_at);
  // Takes over the columns of the chart of the smallest classes, without its heading and its bars,
  // which would have another scale.
  for (std::size_t at = smallest.find('\n') + 1; at < smallest.size();) {
    const std::size_t end = smallest.find('\n', at);
    text += smallest.substr(at, std::min(smallest.find("  #", at), end) - at) + "\n";
    at = end + 1;
  }
  if (empty > 0) text += fmt::format("  {} of the classes have no record\n", empty);
  return text;
}

std::string summary_row(const char* name, const Distribution& numbers,
                        std::string (*text)(std::uint64_t)) {
  const Summary summary = summarize(numbers);
  return fmt::format("  {:<16}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", name, text(summary.min),
                     text(summary.p5), text(summary.median), text(summary.p95), text(summary.max),
                     text(static_cast<std::uint64_t>(std::llround(summary.mean))));
}

std::string megapixels_of(std::uint64_t pixels) {
  return fmt::format("{:.3f} MP", static_cast<double>(pixels) / pixels_per_megapixel);
}
std::string number_of(std::uint64_t number) { return fmt::format("{}", number); }

std::string summary_table(const Survey& survey) {
  if (survey.image_bytes.empty()) return "";
  std::string text = fmt::format("\n{:<18}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}\n", "images", "min",
                                 "5%", "median", "95%", "max", "mean");
  text += summary_row("encoded bytes", survey.image_bytes, bytes_of);
  if (survey.images == 0) return text;
  text += summary_row("width", survey.width, pixels_of) +
          summary_row("height", survey.height, pixels_of) +
          summary_row("pixels", survey.pixels, megapixels_of);
  if (!survey.quality.empty()) text += summary_row("quality (IJG)", survey.quality, number_of);
  return text;
}

std::vector<Bin> quality_bins(const Survey& survey) {
  return bins_of(survey.quality, {1, 50, 60, 70, 75, 80, 85, 90, 95, 101});
}

std::vector<Bar> quality_bars(const Survey& survey) {
  std::vector<Bar> bars;
  for (const Bin& bin : quality_bins(survey))
    bars.push_back({fmt::format("{} .. {}", bin.begin, bin.end - 1), bin.count});
  std::uint64_t known = 0;
  for (const Bar& bar : bars) known += bar.count;
  if (known < survey.images) bars.push_back({"n/a", survey.images - known});
  return bars;
}

std::vector<Bar> bars_of(const std::map<std::string, std::uint64_t>& counts) {
  std::vector<Bar> bars;
  bars.reserve(counts.size());
  for (const auto& [name, count] : counts) bars.push_back({name, count});
  std::ranges::stable_sort(bars, std::ranges::greater{}, &Bar::count);
  return bars;
}

std::vector<Bar> orientation_bars(const Survey& survey) {
  std::vector<Bar> bars;
  for (const auto& [orientation, count] : survey.orientations)
    bars.push_back({orientation == 0   ? "none"
                    : orientation == 1 ? "1 (upright)"
                                       : fmt::format("{}", orientation),
                    count});
  return bars;
}

std::string image_charts(const Survey& survey) {
  std::string text;
  if (!survey.image_bytes.empty())
    text += "\n" + chart("encoded bytes", bars_of(bins_of(survey.image_bytes), bytes_of),
                         survey.looked_at);
  if (survey.images == 0) return text;
  text +=
      "\n" + chart("shorter side", bars_of(bins_of(survey.shorter_side), pixels_of), survey.images);
  text += "\n" + chart("quality (IJG scale)", quality_bars(survey), survey.images);
  text += "\n" + chart("chroma subsampling", bars_of(survey.chroma), survey.images);
  text += "\n" + chart("scan type", bars_of(survey.scan_types), survey.images);
  text += "\n" + chart("decoder", bars_of(survey.decoders), survey.images);
  return text + "\n" + chart("EXIF orientation", orientation_bars(survey), survey.images);
}

std::string unread_text(const Dataset& dataset, const Survey& survey) {
  if (survey.unread.empty()) return "";
  constexpr std::size_t most = 10;
  std::string text = fmt::format("\n{} cannot be read, or its image cannot:\n",
                                 count_text(survey.unread.size(), "record"));
  for (std::size_t n = 0; n < std::min(most, survey.unread.size()); ++n) {
    const UnreadRecord& record = survey.unread[n];
    text += fmt::format("  {:>8}  {}: {}\n", record.index, printable(record.key),
                        printable(record.reason));
  }
  if (survey.unread.size() > most)
    text += fmt::format("  ... and {} more; --json lists all\n", survey.unread.size() - most);
  return text + fmt::format("`millrace verify {}` checks all records in full\n",
                            printable(dataset.name()));
}

Json to_json(const Distribution& distribution) {
  if (distribution.empty()) return {};
  const Summary summary = summarize(distribution);
  return {{"count", summary.count},   {"min", summary.min}, {"p5", summary.p5},
          {"median", summary.median}, {"p95", summary.p95}, {"max", summary.max},
          {"mean", summary.mean}};
}

Json to_json(const std::vector<Bin>& bins) {
  Json json = Json::array();
  for (const Bin& bin : bins)
    json.push_back({{"from", bin.begin}, {"below", bin.end}, {"records", bin.count}});
  return json;
}

Json with_bins(const Distribution& distribution, const std::vector<Bin>& bins) {
  Json json = to_json(distribution);
  if (!distribution.empty()) json["histogram"] = to_json(bins);
  return json;
}

}  // namespace

std::string to_text(const Dataset& dataset, const Survey& survey) {
  std::string text = head(dataset, survey);
  if (survey.looked_at == 0) return text;
  return text + sample_text(survey.sample) + class_charts(dataset, survey) + summary_table(survey) +
         image_charts(survey) + unread_text(dataset, survey);
}

std::string to_json(const Dataset& dataset, const Survey& survey) {
  const DatasetFacts facts = dataset.facts();
  const std::vector<std::string> names = dataset.classes();
  Json files = Json::array();
  for (const std::string& file : facts.files)
    files.push_back({{"path", file}, {"bytes", file_bytes(file)}});
  Json classes = Json::array();
  for (const auto& [label, count] : class_counts(dataset, survey)) {
    const bool named = label >= 0 && static_cast<std::uint64_t>(label) < names.size();
    classes.push_back(
        {{"label", label},
         {"name", named ? Json(escape_non_utf8(names[static_cast<std::size_t>(label)])) : Json()},
         {"records", count}});
  }
  Json orientations = Json::object();
  for (const auto& [orientation, count] : survey.orientations)
    orientations[orientation == 0 ? "none" : std::to_string(orientation)] = count;
  std::uint64_t known = 0;
  for (const auto& [quality, count] : survey.quality.sorted()) known += count;
  Json quality = with_bins(survey.quality, quality_bins(survey));
  quality["not_known"] = survey.images - known;
  Json unread = Json::array();
  for (const UnreadRecord& record : survey.unread)
    unread.push_back({{"index", record.index}, {"key", record.key}, {"reason", record.reason}});
  Json fields = Json::array();
  for (const SampleField& field : survey.sample.fields)
    fields.push_back({{"name", field.name}, {"bytes", field.bytes}, {"holds", field.holds}});
  const Json sample = {{"index", survey.sample.index},
                       {"key", survey.sample.key},
                       {"fields", fields},
                       {"missing", survey.sample.missing}};
  const Json json = {
      {"dataset", dataset.name()},
      {"records", survey.records},
      {"looked_at", survey.looked_at},
      {"interrupted", survey.interrupted},
      {"seconds", survey.seconds},
      {"files", files},
      {"format", facts.format},
      {"format_reason", facts.format_reason},
      {"sample", sample},
      {"fields", facts.fields},
      {"created_by", facts.created_by},
      {"fingerprint",
       facts.fingerprint ? Json(fmt::format("{:016x}", *facts.fingerprint)) : Json()},
      {"bytes", survey.bytes},
      {"classes", classes},
      {"images", survey.images},
      {"image_bytes", with_bins(survey.image_bytes, bins_of(survey.image_bytes))},
      {"width", to_json(survey.width)},
      {"height", to_json(survey.height)},
      {"shorter_side", with_bins(survey.shorter_side, bins_of(survey.shorter_side))},
      {"pixels", to_json(survey.pixels)},
      {"quality", quality},
      {"chroma", survey.chroma},
      {"scan_type", survey.scan_types},
      {"decoder", survey.decoders},
      {"exif_orientation", orientations},
      {"unread", unread}};
  return json_text(json);
}

}  // namespace millrace::cli
