// What a checkpoint must agree in before a run resumes from it, and what is told of it.
#include <algorithm>
#include <numeric>
#include <set>
#include <string_view>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/train/checkpointing.h"
#include "src/train/run/fingerprint.h"

namespace trireme {

namespace {

// Whether this run's batches up to `counters` are as many samples as the checkpoint has seen.
bool same_samples(const BatchSchedule& batches, const TrainingCounters& counters,
                  const CheckpointMeta& saved) {
  return batches.has_room_for(counters.batches()) &&
         batches.before(counters.batches()) == saved.samples;
}

}  // namespace

// The place in the data is counted in batches: of other sizes they would begin elsewhere.
void TrainingCheckpoints::check_samples(const TrainingCounters& counters,
                                        const CheckpointMeta& saved) const {
  const BatchSchedule batches = parts_.config.batches();
  if (!same_samples(batches, counters, saved)) {
    throw ConfigError(
        fmt::format("the checkpoint of step {} has seen {} samples, which are not {} batches of "
                    "train.global_batch {}{}: continue with the batch size that it was trained "
                    "with, or start a new run",
                    saved.step, saved.samples, counters.batches(), batches.full(),
                    batches.stages() > 1 ? " and train.batch_ramp" : ""));
  }
}

void TrainingCheckpoints::tell_resumed(const Resumed& resumed) const {
  if (parts_.world.rank() != 0) {
    return;
  }
  for (const std::string& why : resumed.skipped) {
    parts_.log.warning(fmt::format("skipped {}", why));
  }
  for (const std::string& damage : resumed.repairs) {
    parts_.log.warning(fmt::format("used another copy of a damaged file: {}", damage));
  }
  parts_.log.event("resumed", {{"step", resumed.manifest.meta.step},
                               {"generation", resumed.manifest.generation},
                               {"from_memory", resumed.from_memory},
                               {"bytes", resumed.bytes},
                               {"seconds", resumed.load.seconds}});
  parts_.log.info(fmt::format(
      "resumed from {}: {} in {}", resumed.source(),
      format_bytes(std::accumulate(resumed.bytes.begin(), resumed.bytes.end(), std::int64_t{0})),
      format_seconds(resumed.load.seconds)));
}

namespace {

// Tells whether checkpoint.allow_change can accept a changed field. It cannot if the tensors of the
// checkpoint or its place in the data (check_samples()) would no longer fit. The positions of GPT-2
// are a tensor, and so is what Llama's heads share.
bool can_be_allowed(std::string_view field, Family family, bool same_place) {
  if (field == "train.global_batch" || field.starts_with("train.batch_ramp.")) {
    return same_place;
  }
  static const std::set<std::string_view> fixed = {
      "model.family", "model.layers",         "model.hidden",   "model.ffn",
      "model.vocab",  "model.tie_embeddings", "model.kv_heads", "model.head_dim"};
  const std::string_view of_family = family == Family::gpt2 ? "model.context" : "model.heads";
  return !fixed.contains(field) && field != of_family;
}

// What to do about the differences `changed`, lines "FIELD: ...".
std::string advice(const std::vector<std::string>& changed, Family family, bool same_place) {
  std::vector<std::string_view> fixed;
  for (const std::string& line : changed) {
    const std::string_view field = std::string_view(line).substr(0, line.find(':'));
    if (!can_be_allowed(field, family, same_place)) {
      fixed.push_back(field);
    }
  }
  std::string text = "Go back to the old values or choose another checkpoint.dir";
  if (fixed.size() < changed.size()) {
    text += ", or accept a field with checkpoint.allow_change=[FIELD]";
  }
  if (!fixed.empty()) {
    text += fmt::format("; no option accepts another {}", fmt::join(fixed, ", "));
  }
  return text;
}

}  // namespace

void TrainingCheckpoints::accept(const Manifest& manifest) const {
  const RunFingerprints& own = parts_.fingerprints;
  check_same_states(*manifest.meta.config, parts_.config);
  std::vector<std::string> allowed = fields_without_effect(*manifest.meta.config, *own.config);
  const std::vector<std::string>& named = parts_.config.checkpoint.allow_change;
  allowed.insert(allowed.end(), named.begin(), named.end());
  const std::vector<std::string> changed =
      differences(with_later_fields(*manifest.meta.config), *own.config, allowed);
  if (!changed.empty()) {
    const bool same_place =
        same_samples(parts_.config.batches(), counters_of(manifest.meta), manifest.meta);
    const std::vector<std::string> readable =
        differences(readable_numbers(with_later_fields(*manifest.meta.config)),
                    readable_numbers(*own.config), allowed);
    throw ConfigError(fmt::format(
        "the checkpoint of step {} belongs to another run:\n  {}\n{}", manifest.meta.step,
        fmt::join(readable.size() == changed.size() ? readable : changed, "\n  "),
        advice(changed, parts_.config.model.family, same_place)));
  }
  warn_of_other_numerics(manifest);
}

// The place in the data counts samples: at another length, as many samples end at another token.
void TrainingCheckpoints::warn_of_other_samples(const CheckpointMeta& saved) const {
  const std::int64_t now = parts_.config.data.sequence;
  const std::int64_t before = count_field(*saved.config, "data.sequence");
  if (parts_.world.rank() != 0 || before == now || saved.samples == 0) {
    return;
  }
  std::string follows =
      "they are cut and shuffled anew, so that some tokens are read again and others are left out "
      "until the epoch ends";
  if (parts_.config.data.shuffle == "none") {
    const auto samples = static_cast<double>(saved.samples);  // a product may exceed 64 bits
    const auto [least, most] = std::minmax({before, now});
    follows = fmt::format("the tokens {:.0f} to {:.0f} of the data's order {}",
                          samples * static_cast<double>(least), samples * static_cast<double>(most),
                          now < before ? "are read again" : "are left out");
  }
  parts_.log.warning(fmt::format(
      "data.sequence was {} up to step {} and is {}: the place in the data counts samples ({} so "
      "far): {}; the metric `tokens` counts all samples at the present length",
      before, saved.step, now, saved.samples, follows));
}

void TrainingCheckpoints::warn_of_other_numerics(const Manifest& manifest) const {
  if (parts_.world.rank() != 0) {
    return;
  }
  const nlohmann::json& saved = *manifest.meta.numerics;
  const std::vector<std::string> unknown = fields_not_recorded(saved);
  const std::vector<std::string> changed =
      differences(saved, *parts_.fingerprints.numerics, unknown);
  if (!changed.empty()) {
    parts_.log.warning(fmt::format(
        "this run computes differently from the one that wrote step {}: its results may not have "
        "the bits of an uninterrupted run\n  {}",
        manifest.meta.step, fmt::join(changed, "\n  ")));
  }
  if (!unknown.empty()) {
    parts_.log.warning(fmt::format(
        "the checkpoint of step {} does not record its {} (an older version of trireme wrote it): "
        "if they were not this run's, the bits of an uninterrupted run are not promised",
        manifest.meta.step, fmt::join(unknown, ", ")));
  }
}

}  // namespace trireme
