// SPDX-License-Identifier: Apache-2.0
#include "dataset/lmdb/foreign_file.h"

#include <millrace/detail/json_text.h>

#include <utility>

#include "dataset/lmdb/page_table.h"

namespace millrace {
namespace {

constexpr std::size_t max_names = 64;

std::string quoted(std::string_view name) {
  return name.empty() ? "its main database" : "its database " + cut(KeyNames().name(name));
}

LabelValues label_values(const LmdbFile& file, const LmdbTree& tree) {
  std::vector<std::string> some;
  constexpr std::size_t enough = 256;
  look_at_some(
      file, tree,
      [&](const std::string&, std::span<const std::byte> value) {
        const auto part = value.first(std::min(value.size(), enough));
        some.emplace_back(reinterpret_cast<const char*>(part.data()), part.size());
      },
      [](const std::string&) {});
  return LabelValues(some);
}

}  // namespace

Status look_at_main(const std::filesystem::path& path,
                    Status (*look)(const LmdbFile& file, const LmdbTree& main)) {
  const std::filesystem::path at = lmdb_file_at(path);
  if (Status found = LmdbFile::probe(at); !found.is_ok()) return found;
  try {
    const auto file = LmdbFile::open(at, false);
    const LmdbTree& main = file->meta().main;
    if (Status sound = check_database(main, ""); !sound.is_ok()) return sound;
    return look(*file, main);
  } catch (const LmdbDamage& damage) {
    return Status::bad(std::string("it has damaged pages: ") + damage.what());
  } catch (const Error& error) {
    if (error.code() == ErrorCode::io) throw;
    return Status::bad(error.reason());
  }
}

Status check_database(const LmdbTree& tree, std::string_view name) {
  if ((tree.flags & lmdb::several_values) != 0)
    return Status::bad(quoted(name) +
                       " keeps several values for a key (MDB_DUPSORT), which is not read");
  if (tree.entries == 0) return Status::bad(quoted(name) + " has nothing in it");
  return Status::ok();
}

bool holds_databases(const LmdbFile& file, const LmdbTree& main) {
  const LmdbCursor cursor(file);
  return cursor.with([&](const LmdbPages& pages) {
    for (const double share : {0.0, 0.5, 1.0}) {
      const auto [leaf, at] = pages.entry_near(main, share);
      if (!pages.entry_is_tree(leaf, at)) return false;
    }
    return true;
  });
}

std::vector<std::string> database_names(const LmdbFile& file) {
  std::vector<std::string> names;
  const LmdbTree& main = file.meta().main;
  if (main.entries > max_names) return names;
  const LmdbCursor cursor(file);
  std::vector<LmdbLeaf> leaves;
  const auto add = [&](LmdbLeaf leaf) { leaves.push_back(leaf); };
  cursor.with([&](const LmdbPages& pages) { pages.walk_leaves(main, add, {}); });
  for (const LmdbLeaf leaf : leaves)
    for (unsigned at = 0; at < leaf.entries; ++at)
      cursor.with([&](const LmdbPages& pages) {
        if (!pages.entry_is_tree(leaf, at)) return;
        const auto key = pages.entry_key(leaf, at);
        names.emplace_back(reinterpret_cast<const char*>(key.data()), key.size());
      });
  return names;
}

ForeignFile::ForeignFile(const std::filesystem::path& path, const OpenOptions& options)
    : file_(LmdbFile::share(LmdbFile::open(lmdb_file_at(path), options.map))),
      options_(options),
      warnings_(file_->warnings()) {}

void ForeignFile::refuse(const LmdbDamage& damage) const {
  throw Error(ErrorCode::corrupt,
              file_->name() + " has damaged pages (" + damage.what() + "); copy it again");
}

LmdbTree ForeignFile::database(const std::string& name) const {
  return guarded([&] {
    const LmdbTree& main = file_->meta().main;
    if (name.empty()) {
      if (const Status sound = check_database(main, ""); !sound.is_ok())
        throw Error(ErrorCode::corrupt, file_->name() + ": " + sound.reason(), "", {},
                    sound.reason());
      return main;
    }
    const auto tree = LmdbCursor(*file_).with(
        [&](const LmdbPages& pages) { return pages.find_tree(main, name); });
    if (!tree) {
      std::string names;
      for (const std::string& other : database_names(*file_))
        names += (names.empty() ? "" : ", ") + cut(KeyNames().name(other));
      throw Error(ErrorCode::invalid_argument,
                  file_->name() + " has no database \"" + cut(name) +
                      "\"; it has: " + (names.empty() ? "no named ones" : names));
    }
    if (const Status sound = check_database(*tree, name); !sound.is_ok())
      throw Error(ErrorCode::corrupt, file_->name() + ": " + sound.reason(), "", {},
                  sound.reason());
    return *tree;
  });
}

Entries ForeignFile::entries(const LmdbTree& tree) {
  return guarded([&] {
    Entries entries(file_, tree, stored_or_made_table(*file_, tree, warnings_));
    entries.leave_out_metadata();
    return entries;
  });
}

std::shared_ptr<const Dataset> ForeignFile::open(std::unique_ptr<LmdbSchema> schema,
                                                 std::string_view format) {
  const LmdbTree tree = database(options_.images);
  LmdbParts parts{
      .records = entries(tree), .labels = {}, .schema = {}, .key_names = {}, .facts = {}};
  if (!options_.labels.empty()) {
    const LmdbTree labels = database(options_.labels);
    if ((labels.flags ^ tree.flags) != 0)
      throw Error(ErrorCode::corrupt,
                  file_->name() + ": the databases " + options_.images + " and " + options_.labels +
                      " have keys of different kinds, so they cannot be joined");
    parts.labels.emplace(LabelEntries{entries(labels), label_values(*file_, labels)});
    guarded([&] { check_joined(parts); });
  }
  guarded([&] { schema->look_at_keys(parts.records); });
  const Survey found = guarded([&] { return survey(*file_, tree, *schema); });
  if (found.fitting == 0)
    throw Error(
        ErrorCode::corrupt,
        file_->name() + " is not of the format " + std::string(format) + ": " + found.why_not(), "",
        {}, found.why_not());
  parts.schema = std::move(schema);
  parts.key_names = KeyNames(tree.flags, found.keys);
  parts.facts.format_reason = found.reason();
  parts.facts.fields = found.fields;
  if (parts.labels) {
    std::erase(parts.facts.fields, "label");
    parts.facts.fields.emplace_back("label");
    parts.facts.format_reason += ", and the database " + options_.labels + " has their labels";
  }
  return finish(std::move(parts), format);
}

std::shared_ptr<const Dataset> ForeignFile::finish(LmdbParts parts, std::string_view format) {
  parts.facts.format = format;
  parts.facts.files = {file_->name()};
  parts.facts.warnings = warnings_;
  return make_lmdb_dataset(std::move(parts), options_);
}

}  // namespace millrace
