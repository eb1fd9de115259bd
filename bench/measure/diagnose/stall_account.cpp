// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/stall_account.h"

#include <millrace/error.h>

#include <algorithm>
#include <boost/math/statistics/univariate_statistics.hpp>
#include <cmath>
#include <functional>
#include <limits>

#include "measure/bench/student_t.h"

namespace millrace::cli {
namespace {

/// A stall matters if it takes at least this share of an epoch.
constexpr double matters = 0.02;

std::vector<double> difference(const std::vector<double>& of, const std::vector<double>& less) {
  std::vector<double> values(of.size());
  std::ranges::transform(of, less, values.begin(), std::minus());
  return values;
}

void check_rounds(const PhaseTimes& times) {
  const std::size_t rounds = times.step.size();
  const bool cold = !times.cold_pass.empty() || !times.warm_pass.empty();
  bool same = rounds > 0;
  for (const auto* phase : {&times.ready_batch, &times.copies, &times.loader})
    same = same && phase->size() == rounds;
  if (cold)
    for (const auto* phase : {&times.warm_pass, &times.cold_pass})
      same = same && phase->size() == rounds;
  if (!same)
    throw Error(ErrorCode::invalid_argument,
                "every phase must have been measured equally often, at least once");
}

EpochShare difference_of(EpochPart part, const std::vector<double>& of,
                         const std::vector<double>& less) {
  return {.part = part, .measured = repeated(difference(of, less))};
}

/// Sets the time per batch for which a measured stall counts.
void count(EpochShare& stall, double measured_epoch_ms) {
  stall.within_noise = std::abs(stall.measured.mean) <= stall.measured.noise;
  stall.unsure = stall.within_noise && stall.measured.noise >= matters * measured_epoch_ms;
  // A negative difference means that this stall is absent, even if that is uncertain.
  stall.batch_ms = stall.within_noise && !stall.unsure ? 0 : std::max(0.0, stall.measured.mean);
}

}  // namespace

Repeated repeated(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Repeated result{.mean = boost::math::statistics::mean(values)};
  if (values.size() == 1) {
    result.noise = std::numeric_limits<double>::infinity();
    return result;
  }
  result.deviation = std::sqrt(boost::math::statistics::sample_variance(values));
  result.noise = student_t(count - 1, 0.975) * result.deviation / std::sqrt(count);
  return result;
}

double from_start_ms(double first_ms, double rest_ms, double pass_batches, double epoch_batches) {
  if (pass_batches <= 1) return first_ms;
  return (first_ms + rest_ms / (pass_batches - 1) * std::max(0.0, epoch_batches - 1)) /
         std::max(1.0, epoch_batches);
}

const EpochShare* StallAccount::find(EpochPart part) const {
  const auto found = std::ranges::find(parts, part, &EpochShare::part);
  return found == parts.end() ? nullptr : &*found;
}

double StallAccount::share(EpochPart part) const {
  const EpochShare* found = find(part);
  return found == nullptr ? 0 : found->share;
}

double StallAccount::waiting() const { return batch_ms > 0 ? 1 - share(EpochPart::compute) : 0; }

bool StallAccount::unsure() const { return std::ranges::any_of(parts, &EpochShare::unsure); }

StallAccount account_stalls(const PhaseTimes& times) {
  check_rounds(times);
  StallAccount account;
  account.parts = {{.part = EpochPart::compute, .measured = repeated(times.step)},
                   difference_of(EpochPart::trainer, times.ready_batch, times.step),
                   difference_of(EpochPart::copy, times.copies, times.ready_batch),
                   difference_of(EpochPart::preparation, times.loader, times.copies)};
  if (!times.cold_pass.empty())
    account.parts.push_back(difference_of(EpochPart::fetch, times.cold_pass, times.warm_pass));

  double measured_ms = 0;
  for (const EpochShare& part : account.parts) measured_ms += std::max(0.0, part.measured.mean);
  account.parts.front().batch_ms = account.parts.front().measured.mean;
  for (auto part = account.parts.begin() + 1; part != account.parts.end(); ++part)
    count(*part, measured_ms);
  for (const EpochShare& part : account.parts) account.batch_ms += part.batch_ms;
  for (EpochShare& part : account.parts)
    part.share = account.batch_ms > 0 ? part.batch_ms / account.batch_ms : 0;
  return account;
}

}  // namespace millrace::cli
