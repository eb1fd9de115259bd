// SPDX-License-Identifier: Apache-2.0
#include "measure/diagnose/stall_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "measure/text/text.h"

namespace millrace::cli {
namespace {

/// The device counts as fed if its share of time without work is below this.
constexpr double fed_wait_limit = 0.02;
/// Speedups up to this are not mentioned.
constexpr double no_speedup = 1.02;
/// Workers count as short of cores if their share of time without a processor is above this.
constexpr double short_of_cores = 0.25;

/// The stage in which the device makes images is worth a remark from this share of its time on.
constexpr double noticeable = 0.05;

/// Returns the largest part of the epoch that `counts` accepts; the first part, compute, if it
/// accepts none.
template <typename Counts>
const EpochShare& largest(const StallAccount& account, Counts counts) {
  const EpochShare* found = nullptr;
  for (const EpochShare& part : account.parts)
    if (counts(part.part) && (found == nullptr || part.share > found->share)) found = &part;
  return found == nullptr ? account.parts.front() : *found;
}

/// Returns a text such as "; the machine was too noisy to be sure (preparation by 12.3 ms): ...".
std::string unsure_text(const StallAccount& account) {
  std::string parts;
  for (const EpochShare& part : account.parts)
    if (part.unsure)
      parts += fmt::format("{}{} by {:.1f} ms", parts.empty() ? "" : ", ", names_of(part.part).key,
                           part.measured.noise);
  return "; the machine was too noisy to be sure (" + parts +
         "): repeat it with more --rounds, or on a quieter machine";
}

/// Returns the stage with the largest share of the workers' time: reading or a stage of the
/// transform. Returns null if no stage took time.
const StageReport* slowest_stage(const Report& report) {
  const auto slowest = std::ranges::max_element(report.stages, {}, &StageReport::share);
  return slowest == report.stages.end() || slowest->share <= 0 ? nullptr : &*slowest;
}

/// Returns all stalls as a text, the largest first: "45.0% for preparation, 1.2% for fetch".
std::string stalls_text(const StallAccount& account) {
  std::vector<EpochShare> stalls(account.parts.begin() + 1, account.parts.end());
  std::erase_if(stalls, [](const EpochShare& part) { return part.batch_ms <= 0; });
  std::ranges::sort(stalls, std::greater(), &EpochShare::share);
  std::string text;
  for (const EpochShare& part : stalls)
    text += fmt::format("{}{} for {}", text.empty() ? "" : ", ", percent_text(part.share),
                        names_of(part.part).stall);
  return text;
}

std::string limit_text(const Verdict& verdict) {
  if (verdict.speedup_limit < no_speedup) return "more workers would not help";
  return fmt::format("more workers make an epoch at most {:.1f} times as fast ({} binds then)",
                     verdict.speedup_limit, verdict.next_bound);
}

/// Returns advice to leave fewer images to the device. Returns an empty text if the device takes
/// little time for images.
std::string share_advice(const Report& report) {
  const StageReport* stage = device_stage(report);
  if (stage == nullptr || stage->name != "crop" || stage->occupancy < noticeable) return {};
  return fmt::format(
      "The device makes images {} of its time (crop): a smaller device_share (--decode-share) "
      "leaves more of it to the step; `millrace tune` finds the share.",
      percent_text(stage->occupancy));
}

/// Whether the device is busier with images than the workers are.
bool device_is_busier(const Report& report) {
  return !share_advice(report).empty() &&
         device_stage(report)->occupancy > report.worker_utilization;
}

std::string preparation_advice(const Report& report, const Verdict& verdict) {
  if (device_is_busier(report)) return share_advice(report);
  const StageReport* stage = slowest_stage(report);
  const std::string what = stage == nullptr ? "the samples" : stage->name;
  const std::string slowest =
      stage == nullptr
          ? ""
          : fmt::format("{} is {} of the workers' time. ", stage->name, percent_text(stage->share));
  if (report.worker_delay.value_or(0) >= short_of_cores)
    return slowest + fmt::format(
                         "The workers wait {} of their time for a processor, so more of them would "
                         "not help: end or move what "
                         "else runs here, or give the process more cores.",
                         percent_text(*report.worker_delay));
  if (report.workers < report.cores)
    return slowest + fmt::format("Take more workers, of which there are {} on {} cores: {}.",
                                 report.workers, report.cores, limit_text(verdict));
  return slowest + fmt::format(
                       "Every core has a worker: on more cores, {}. Or make {} cheaper (smaller "
                       "images, a cheaper recipe).",
                       limit_text(verdict), what);
}

std::string fetch_advice(const StallContext& context, const Verdict& verdict) {
  if (stays_cached(context))
    return fmt::format(
        "It is the first epoch's alone: the dataset ({:.1f} MB) fits into memory and stays in the "
        "page cache. Where the first epoch matters, read the file once before (`cat FILE > "
        "/dev/null`); {}.",
        static_cast<double>(context.dataset_bytes) / 1e6, limit_text(verdict));
  return fmt::format(
      "Every epoch pays it, as the dataset ({:.1f} GB) does not stay in memory ({:.1f} GB): put it "
      "on faster storage, pack smaller images, or take a larger prefetch, which reads further "
      "ahead; {}.",
      static_cast<double>(context.dataset_bytes) / 1e9,
      static_cast<double>(context.memory_bytes) / 1e9, limit_text(verdict));
}

std::string advice(EpochPart part, const StallContext& context, const Verdict& verdict) {
  switch (part) {
    case EpochPart::compute:
      return "The loader feeds it; only a shorter step makes an epoch shorter. `millrace tune` "
             "finds the fewest workers that "
             "feed it.";
    case EpochPart::trainer:
      return "Shorten or overlap what the trainer's thread does between steps; " +
             limit_text(verdict) + ".";
    case EpochPart::copy:
      return "Copy fewer bytes (smaller samples), or a batch in parts (--micro-batches), each as "
             "soon as it is made; " +
             limit_text(verdict) + ".";
    case EpochPart::preparation:
      return preparation_advice(context.report, verdict);
    case EpochPart::fetch:
      return fetch_advice(context, verdict);
  }
  return {};
}

}  // namespace

const PartNames& names_of(EpochPart part) {
  static constexpr PartNames names[] = {
      {"compute", "compute (step alone)", "compute", "step", Bound::step},
      {"trainer", "trainer's thread", "the trainer's thread", "trainer", Bound::trainer},
      {"copy", "copy stall", "copy", "copy", Bound::copy},
      {"preparation", "preparation stall", "preparation", "preparation", Bound::transform},
      {"fetch", "fetch stall", "fetch", "read", Bound::storage}};
  return names[static_cast<std::size_t>(part)];
}

bool stays_cached(const StallContext& context) {
  return context.dataset_bytes <= context.memory_bytes / 2;
}

Verdict judge_stalls(const StallAccount& account, const StallContext& context) {
  const bool waits = account.waiting() >= fed_wait_limit;
  // Fetch stalls end with the first epoch if the dataset stays cached; all other stalls continue.
  const double first_epoch_share = stays_cached(context) ? account.share(EpochPart::fetch) : 0;
  const bool goes_on = account.waiting() - first_epoch_share >= fed_wait_limit;
  const auto is_candidate = [&](EpochPart part) {
    return part != EpochPart::fetch || first_epoch_share == 0 || !goes_on;
  };
  const EpochShare& part =
      waits ? largest(account,
                      [&](EpochPart one) { return one != EpochPart::compute && is_candidate(one); })
            : account.parts.front();

  const PartNames& names = names_of(part.part);
  Verdict verdict{.bound = names.bound, .stage = names.stage, .share = part.share};
  const double rest = 1 - first_epoch_share;
  verdict.speedup_limit = rest / std::max(1e-3, rest - account.share(EpochPart::preparation));
  const EpochShare& next = largest(
      account, [&](EpochPart one) { return one != EpochPart::preparation && is_candidate(one); });
  verdict.next_bound = names_of(next.part).stage;
  verdict.text =
      waits ? fmt::format("the device waits {} of an epoch: {}", percent_text(account.waiting()),
                          stalls_text(account))
            : fmt::format(
                  "the step bounds the run: {} of an epoch is compute, and the device waits {}",
                  percent_text(part.share), percent_text(account.waiting()));
  if (account.unsure()) verdict.text += unsure_text(account);
  verdict.advice = advice(part.part, context, verdict);
  const std::string share = share_advice(context.report);
  if (part.part != EpochPart::preparation && !share.empty()) verdict.advice += ' ' + share;
  return verdict;
}

}  // namespace millrace::cli
