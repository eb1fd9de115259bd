// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "page/html_page.h"

namespace millrace::cli {

/// Throughput with so many workers, over all runs of it that count.
struct SweepPoint {
  double workers = 1;
  double mean = 0;
  /// Standard deviation of the runs; 0 of a single one.
  double standard_deviation = 0;
  std::size_t runs = 1;
  /// More for the details, such as "feeds the step".
  std::string note{};
};

/// The universal scalability law: lambda N / (1 + sigma (N - 1) + kappa N (N - 1)) samples/s with N
/// workers.
struct SweepLaw {
  double lambda = 0;
  double sigma = 0;
  double kappa = 0;
  double r_squared = 0;
};

/// All that a page about a tune shows. All texts are plain.
struct TunePage {
  std::string dataset{};
  /// What was chosen, in words; why, in a sentence or two.
  std::string verdict{};
  std::string why{};
  std::vector<KeyNumber> numbers{};
  /// The sweep over workers.
  std::vector<SweepPoint> points{};
  std::optional<SweepLaw> law{};
  double chosen_workers = 0;
  /// What the trainer takes, in samples/s; where given, a line in the sweep.
  std::optional<double> needed_rate{};
  /// A sentence each on what could not be measured.
  std::vector<std::string> not_measured{};
  /// One per further variable that was searched: why its value was chosen, and a table of all that
  /// were measured.
  std::vector<PageSection> variables{};
  HtmlTable settings{};
  HtmlTable machine{};
};

/// One file that needs no other.
std::string to_html(const TunePage& tune);

}  // namespace millrace::cli
