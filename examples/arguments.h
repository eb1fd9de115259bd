// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>

/// The command line of a trainer: a DATASET, and options with one value each.
class Arguments {
 public:
  /// Throws `std::invalid_argument` if the arguments are not a dataset and options with values.
  Arguments(int argc, char** argv) {
    for (int arg = 1; arg < argc; ++arg) {
      const std::string name = argv[arg];
      if (!name.starts_with("--")) {
        dataset_ = name;
      } else if (++arg == argc) {
        throw std::invalid_argument(name + " needs a value");
      } else {
        options_[name] = argv[arg];
      }
    }
    if (dataset_.empty()) throw std::invalid_argument("name a DATASET");
  }

  const std::string& dataset() const { return dataset_; }

  /// Store an option's value in `into`, which is unchanged if the option is missing.
  void take(const std::string& name, std::string& into) {
    take_as(name, into, [](const std::string& text) { return text; });
  }
  void take(const std::string& name, std::uint64_t& into) {
    take_as(name, into, [](const std::string& text) {
      if (text.find_first_not_of("0123456789") != std::string::npos)
        throw std::invalid_argument(text);
      return std::uint64_t{std::stoull(text)};
    });
  }
  void take(const std::string& name, double& into) {
    take_as(name, into, [](const std::string& text) { return std::stod(text); });
  }

  /// Throws `std::invalid_argument` for unknown options: those that `take` did not ask for.
  void finish() const {
    if (!options_.empty()) throw std::invalid_argument("unknown option " + options_.begin()->first);
  }

 private:
  template <typename Value, typename Parse>
  void take_as(const std::string& name, Value& into, Parse parse) {
    const auto found = options_.extract(name);
    if (found.empty()) return;
    try {
      into = parse(found.mapped());
    } catch (const std::exception&) {
      throw std::invalid_argument(name + " is \"" + found.mapped() +
                                  "\", which is not a valid number for it");
    }
  }

  std::string dataset_;
  std::map<std::string, std::string> options_;
};
