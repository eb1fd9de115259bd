// SPDX-License-Identifier: Apache-2.0
#include "command/dataset/annotations/json_entries.h"

#include <fmt/format.h>
#include <millrace/detail/errno_text.h>
#include <millrace/detail/interrupted.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

namespace millrace::cli {
namespace {

namespace fs = std::filesystem;

/// Reads a file sequentially for the parser, which takes one byte at a time.
class FileBytes {
 public:
  explicit FileBytes(const fs::path& path) : path_(path), file_(open_stdio(path.c_str(), "rbe")) {
    if (!file_) fail(errno == ENOENT ? ErrorCode::not_found : ErrorCode::io);
    std::setvbuf(file_.get(), nullptr, _IONBF, 0);
    XXH3_64bits_reset(hash_.get());
  }

  bool at_end() { return at_ == read_ && !read_on(); }
  char here() const { return part_[at_]; }
  void step() { ++at_; }
  /// Call when the parser has completed a value.
  void note_value() { quiet_parts_ = 0; }
  std::uint64_t hash() const { return XXH3_64bits_digest(hash_.get()); }

 private:
  struct CloseBytes {
    void operator()(std::FILE* file) const { std::fclose(file); }
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };

  [[noreturn]] void fail(ErrorCode code) const {
    throw Error(code, path_.string() + " cannot be read: " + errno_text(errno));
  }

  bool read_on() {
    constexpr int max_parts = 64;
    // The parser buffers each text completely, so the length of texts is limited.
    if (++quiet_parts_ > max_parts)
      throw Error(ErrorCode::invalid_argument,
                  path_.string() + " has a value of more than 4 MiB, too long for an annotation");
    read_ = std::fread(part_.data(), 1, part_.size(), file_.get());
    if (std::ferror(file_.get()) != 0) fail(ErrorCode::io);
    XXH3_64bits_update(hash_.get(), part_.data(), read_);
    at_ = 0;
    return read_ > 0;
  }

  fs::path path_;
  std::unique_ptr<std::FILE, CloseBytes> file_;
  std::unique_ptr<XXH3_state_t, CloseBytes> hash_{XXH3_createState()};
  std::vector<char> part_ = std::vector<char>(std::size_t{1} << 16);
  std::size_t read_ = 0;
  std::size_t at_ = 0;
  int quiet_parts_ = 0;
};

/// Iterator to the next byte; the end iterator if it has no file.
class ByteIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  explicit ByteIterator(FileBytes* bytes) : bytes_(bytes) {}

  char operator*() const { return bytes_->here(); }
  ByteIterator& operator++() {
    bytes_->step();
    return *this;
  }
  void operator++(int) { bytes_->step(); }
  friend bool operator==(const ByteIterator& a, const ByteIterator& b) {
    return a.at_end() == b.at_end();
  }

 private:
  bool at_end() const { return bytes_ == nullptr || bytes_->at_end(); }

  FileBytes* bytes_;
};

/// SAX handler of the parser. It builds only the values of one entry.
class EntryReader final : public nlohmann::json_sax<EntryValue> {
 public:
  EntryReader(const fs::path& file, const std::vector<EntryList>& lists, FileBytes& bytes)
      : file_(file), lists_(lists), bytes_(bytes), seen_(lists.size()) {}

  /// Throws if one of the lists is missing.
  void check_lists() const {
    for (std::size_t list = 0; list < lists_.size(); ++list)
      if (!seen_[list]) fail_file(fmt::format("it has no \"{}\"", lists_[list].name));
  }

  bool null() override { return passes() || take(nullptr); }
  bool boolean(bool value) override { return passes() || take(value); }
  bool number_integer(number_integer_t value) override { return passes() || take(value); }
  bool number_unsigned(number_unsigned_t value) override { return passes() || take(value); }
  bool number_float(number_float_t value, const string_t&) override {
    return passes() || take(value);
  }
  bool string(string_t& value) override { return passes() || take(std::move(value)); }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return open(false); }
  bool start_array(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    if (passes()) return true;
    if (levels_ == in_whole) {
      const auto found = std::ranges::find(lists_, name, &EntryList::name);
      list_ = found == lists_.end() ? nullptr : &*found;
      if (list_ == nullptr) return true;
      const auto at = static_cast<std::size_t>(found - lists_.begin());
      if (seen_[at]) fail_file(fmt::format("\"{}\" comes twice", name));
      seen_[at] = true;
    } else {
      const auto found = std::ranges::find(list_->keys, name, &EntryKey::name);
      key_ = found == list_->keys.end() ? nullptr : &*found;
      if (key_ != nullptr && value().has_value())
        place().fail(fmt::format("\"{}\" comes twice", name));
    }
    return true;
  }

  bool parse_error(std::size_t position, const std::string& last,
                   const nlohmann::detail::exception& error) override {
    constexpr int number_overflows = 406;
    const bool in_a_list = levels_ >= in_list && list_ != nullptr;
    std::string problem = error.id == number_overflows
                              ? cut(last) + " is not finite"
                              : fmt::format("it goes wrong at byte {}", position);
    if (in_a_list) {
      const bool has_key = levels_ >= in_entry && key_ != nullptr && passed_from_ == 0;
      problem += ", in " + place().text() + (has_key ? fmt::format(", \"{}\"", key_->name) : "");
    }
    fail_file("it is not valid JSON: " + problem);
  }

 private:
  // Nesting levels: outside, then inside the whole object, a list, an entry, and a list of numbers.
  enum Level : std::size_t { outside, in_whole, in_list, in_entry, in_numbers };

  [[noreturn]] void fail_file(const std::string& problem) const {
    throw Error(ErrorCode::invalid_argument, file_.string() + ": " + problem);
  }
  [[noreturn]] void fail_no_entry(const std::string& what) const {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {} is {}, must be an object",
                                                         file_.string(), place().text(), what));
  }
  EntryLocation place() const { return {file_, list_->name, number_}; }
  std::optional<EntryValue>& value() {
    return values_[static_cast<std::size_t>(key_ - list_->keys.data())];
  }

  /// Whether the parser is inside a skipped value.
  bool passes() {
    bytes_.note_value();
    return passed_from_ > 0;
  }

  /// Handles a value that is neither an object nor a list.
  bool take(EntryValue taken) {
    switch (levels_) {
      case outside:
        fail_file("it is " + cut(shown(taken)) + ", must be an object in { }");
      case in_whole:
        if (list_ != nullptr)
          fail_file(fmt::format("\"{}\" is {}, must be a list", list_->name, cut(shown(taken))));
        return true;
      case in_list:
        fail_no_entry(cut(shown(taken)));
      case in_entry:
        if (key_ == nullptr) return true;
        if (key_->max_numbers > 0) place().fail(key_->name, taken, key_->must_be);
        value() = std::move(taken);
        return true;
      default:
        if (!taken.is_number())
          place().fail(fmt::format("{}[{}]", key_->name, value()->size()), taken, "a number");
        if (value()->size() == key_->max_numbers)
          place().fail(fmt::format("\"{}\" has more than {} numbers, must be {}", key_->name,
                                   key_->max_numbers, key_->must_be));
        value()->push_back(std::move(taken));
        return true;
    }
  }

  bool open(bool is_list) {
    const char* const what = is_list ? "a list" : "an object";
    if (levels_ == max_json_levels)
      fail_file(fmt::format("it is nested in more than {} levels", max_json_levels));
    const std::size_t around = levels_++;
    if (passes()) return true;
    switch (around) {
      case outside:
        if (is_list) fail_file("it is a list, must be an object in { }");
        return true;
      case in_whole:
        if (list_ == nullptr) passed_from_ = levels_;
        if (list_ != nullptr && !is_list)
          fail_file(fmt::format("\"{}\" is {}, must be a list", list_->name, what));
        number_ = 0;
        return true;
      case in_list:
        if (is_list) fail_no_entry(what);
        values_.assign(list_->keys.size(), std::nullopt);
        key_ = nullptr;
        return true;
      case in_entry:
        if (key_ == nullptr) passed_from_ = levels_;
        if (key_ != nullptr && (!is_list || key_->max_numbers == 0))
          place().fail(fmt::format("\"{}\" is {}, must be {}", key_->name, what, key_->must_be));
        if (key_ != nullptr) value() = EntryValue::array();
        return true;
      default:
        place().fail(
            fmt::format("\"{}[{}]\" is {}, must be a number", key_->name, value()->size(), what));
    }
  }

  bool close() {
    if (passes()) {
      if (passed_from_ == levels_) passed_from_ = 0;
    } else if (levels_ == in_entry) {
      for (std::size_t key = 0; key < values_.size(); ++key)
        if (!values_[key] && list_->keys[key].required)
          place().fail(fmt::format("it has no \"{}\"", list_->keys[key].name));
      list_->take(JsonEntry(place(), list_->keys, values_));
      ++number_;
    }
    --levels_;
    return true;
  }

  static std::string shown(const EntryValue& value) {
    return value.dump(-1, ' ', false, EntryValue::error_handler_t::replace);
  }

  const fs::path& file_;
  const std::vector<EntryList>& lists_;
  FileBytes& bytes_;
  /// The lists found so far.
  std::vector<bool> seen_;
  std::size_t levels_ = 0;
  /// Level of the skipped value; 0 = nothing is skipped.
  std::size_t passed_from_ = 0;
  /// The list and the key of the current value; null if the value is skipped.
  const EntryList* list_ = nullptr;
  const EntryKey* key_ = nullptr;
  /// Number of the entry in its list.
  std::uint64_t number_ = 0;
  std::vector<std::optional<EntryValue>> values_;
};

}  // namespace

std::string EntryLocation::text() const { return fmt::format("{}[{}]", list, number); }

void EntryLocation::fail(const std::string& problem) const {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: {}: {}", file.string(), text(), problem));
}

void EntryLocation::fail(std::string_view key, const EntryValue& value,
                         std::string_view must_be) const {
  fail(fmt::format("\"{}\" is {}, must be {}", key,
                   cut(value.dump(-1, ' ', false, EntryValue::error_handler_t::replace)), must_be));
}

std::size_t JsonEntry::at(std::string_view key) const {
  return static_cast<std::size_t>(std::ranges::find(keys_, key, &EntryKey::name) - keys_.begin());
}

const EntryValue* JsonEntry::find(std::string_view key) const {
  const std::optional<EntryValue>& value = values_[at(key)];
  return value ? &*value : nullptr;
}

void JsonEntry::refuse(std::string_view key) const {
  place_.fail(key, *find(key), keys_[at(key)].must_be);
}

std::int64_t JsonEntry::integer(std::string_view key) const {
  const EntryValue& value = *find(key);
  const bool is_beyond = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
  if (!value.is_number_integer() || is_beyond) refuse(key);
  return value.get<std::int64_t>();
}

const std::string& JsonEntry::text(std::string_view key) const {
  const EntryValue& value = *find(key);
  if (!value.is_string()) refuse(key);
  return value.get_ref<const std::string&>();
}

std::uint64_t read_json_entries(const fs::path& file, const std::vector<EntryList>& lists) {
  FileBytes bytes(file);
  EntryReader reader(file, lists, bytes);
  EntryValue::sax_parse(ByteIterator(&bytes), ByteIterator(nullptr), &reader);
  reader.check_lists();
  return bytes.hash();
}

}  // namespace millrace::cli
