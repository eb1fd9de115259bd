// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/samples.h"

#include <millrace/detail/json_text.h>

#include <set>
#include <utility>

#include "dataset/lmdb/keys.h"

namespace millrace {
namespace {

constexpr int max_samples = 16;

std::string key_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void look_at_some(
    const LmdbFile& file, const LmdbTree& tree,
    const std::function<void(const std::string& key, std::span<const std::byte> value)>& look,
    const std::function<void(const std::string& reason)>& bad) {
  if (tree.entries == 0) return;
  const LmdbCursor cursor(file);
  std::set<std::pair<std::uint64_t, unsigned>> seen;
  for (int n = 0; n < max_samples; ++n) {
    try {
      const std::pair<LmdbLeaf, unsigned> place = cursor.with([&](const LmdbPages& pages) {
        return pages.entry_near(tree, static_cast<double>(n) / max_samples);
      });
      if (!seen.emplace(place.first.page, place.second).second) continue;
      const std::string key = cursor.with([&](const LmdbPages& pages) {
        return key_text(pages.entry_key(place.first, place.second));
      });
      if (is_metadata_key(key)) continue;
      look(key, cursor.with([&](const LmdbPages& pages) {
        return pages.entry_value(place.first, place.second);
      }));
    } catch (const LmdbDamage& damage) {
      bad(damage.what());
    }
  }
}

Survey survey(const LmdbFile& file, const LmdbTree& tree, const LmdbSchema& schema) {
  Survey found;
  const std::unique_ptr<EntryParser> parser = schema.make_parser();
  std::vector<RecordField> fields;
  const auto misfits = [&](const std::string& reason) {
    if (found.misfit.empty()) found.misfit = reason;
  };
  const auto look = [&](const std::string& key, std::span<const std::byte> value) {
    ++found.looked_at;
    found.keys.push_back(key);
    fields.clear();
    const Status parsed = parser->parse(key, value, fields);
    const std::string kind = parsed.is_ok() ? parser->kind() : "";
    const std::string name = "the value of key \"" + cut(KeyNames().name(key)) + "\"";
    if (!parsed.is_ok()) return misfits(name + ": " + cut(parsed.reason()));
    if (kind.empty()) return misfits(name + " does not begin as a known image format does");
    ++found.fitting;
    ++found.kinds[kind];
    if (!found.fields.empty()) return;
    for (const RecordField& field : fields) found.fields.emplace_back(field.name);
  };
  look_at_some(file, tree, look, [&](const std::string& reason) {
    ++found.looked_at;
    misfits(reason);
  });
  return found;
}

std::string Survey::reason() const {
  std::string text = (fits() ? "all of " : std::to_string(fitting) + " of ") +
                     std::to_string(looked_at) + " records that were looked at hold ";
  constexpr std::size_t max_kinds = 3;
  std::size_t named = 0;
  for (const auto& [kind, count] : kinds)
    if (named++ < max_kinds) text += (named == 1 ? "" : " or ") + kind;
  return kinds.size() > max_kinds ? text + " and so on" : text;
}

std::string Survey::why_not() const { return looked_at == 0 ? "it has no record" : misfit; }

}  // namespace millrace
