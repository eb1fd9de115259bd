// SPDX-License-Identifier: Apache-2.0
#include <millrace/concat_dataset.h>
#include <millrace/detail/json_text.h>
#include <millrace/error.h>

#include <algorithm>
#include <string>
#include <utility>

#include "dataset/fingerprint.h"
#include "dataset/joined_dataset.h"

namespace millrace {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw Error(ErrorCode::invalid_argument, "concat_datasets: " + message);
}

std::string class_in_words(const std::vector<std::string>& classes, std::size_t number) {
  return number < classes.size() ? "\"" + cut(classes[number]) + "\"" : "no class";
}

[[noreturn]] void refuse_classes(const Dataset& first, const Dataset& other) {
  const std::vector<std::string> expected = first.classes();
  const std::vector<std::string> found = other.classes();
  const auto number =
      static_cast<std::size_t>(std::ranges::mismatch(expected, found).in1 - expected.begin());
  refuse("label " + std::to_string(number) + " is " + class_in_words(expected, number) + " in " +
         first.name() + " and " + class_in_words(found, number) + " in " + other.name() +
         "; pack them with the same classes");
}

/// Adds the facts of a part: `facts` keeps what all parts have in common.
void add_facts(DatasetFacts& facts, DatasetFacts of_part, std::uint64_t records, bool first) {
  if (first) {
    facts = {.fields = std::move(of_part.fields),
             .fingerprint = of_part.fingerprint,
             .created_by = std::move(of_part.created_by)};
    return;
  }
  std::erase_if(facts.fields, [&](const std::string& field) {
    return std::ranges::find(of_part.fields, field) == of_part.fields.end();
  });
  facts.fingerprint =
      facts.fingerprint && of_part.fingerprint
          ? std::optional(fingerprint_of_both(*facts.fingerprint, *of_part.fingerprint, records))
          : std::nullopt;
  if (facts.created_by != of_part.created_by) facts.created_by.clear();
}

}  // namespace

std::shared_ptr<const Dataset> concat_datasets(std::vector<std::shared_ptr<const Dataset>> parts) {
  if (parts.empty()) refuse("there are no datasets to join");
  JoinedDescription joined;
  const Dataset* with_classes = nullptr;
  for (std::size_t number = 0; number < parts.size(); ++number) {
    if (!parts[number]) refuse("dataset " + std::to_string(number) + " is null");
    const Dataset& part = *parts[number];
    joined.name += (number == 0 ? "" : " + ") + part.name();
    add_facts(joined.facts, part.facts(), part.size(), number == 0);
    std::vector<std::string> classes = part.classes();
    if (classes.empty()) continue;
    if (with_classes == nullptr) {
      with_classes = &part;
      joined.classes = std::move(classes);
    } else if (classes != joined.classes) {
      refuse_classes(*with_classes, part);
    }
  }
  return join_datasets(std::move(parts), std::move(joined));
}

}  // namespace millrace
