#include "src/train/saving/resume_check.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"
#include "src/base/config_tree.h"
#include "src/base/json_fields.h"
#include "src/train/run/fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/stored_count.h"
#include "src/train/saving/teacher_weights.h"

namespace trireme {
namespace {

// Returns whether this run's batches before the next step contain as many samples as the checkpoint
// has seen.
bool same_samples(const BatchSchedule& batches, const TrainingCounters& counters,
                  const CheckpointMeta& saved) {
  return batches.has_room_for(counters.batches()) &&
         batches.before(counters.batches()) == saved.samples;
}

// Returns whether both configurations say how many samples each batch has in the same words.
bool same_batches(const nlohmann::json& saved, const nlohmann::json& own) {
  static const std::set<std::string_view> fields = {"train.global_batch", "train.batch_ramp.from",
                                                    "train.batch_ramp.by",
                                                    "train.batch_ramp.every"};
  return std::all_of(fields.begin(), fields.end(), [&](std::string_view field) {
    return saved.contains(field) && own.contains(field) && saved.at(field) == own.at(field);
  });
}

// Returns whether checkpoint.allow_change can accept a changed field. It can't if the tensors of
// the checkpoint or its place in the data (ResumeCheck::counters()) would no longer fit. Learned
// positions are a tensor whose shape depends on model.context; the number of Llama's heads
// determines the shapes of its attention.
bool can_be_allowed(std::string_view field, const ModelConfig& model, bool same_place) {
  if (field == "train.global_batch" || field.starts_with("train.batch_ramp.")) {
    return same_place;
  }
  static const std::set<std::string_view> fixed = {
      "model.family",         "model.layers",   "model.hidden",   "model.ffn",      "model.vocab",
      "model.tie_embeddings", "model.qkv_bias", "model.kv_heads", "model.head_dim", "model.alibi",
      "model.swiglu",         "lora.products",  "lora.rank",      "train.frozen"};
  const bool is_fixed_context = field == "model.context" && model.has_learned_positions();
  const bool is_fixed_heads = field == "model.heads" && model.family == Family::llama;
  return !fixed.contains(field) && !is_fixed_context && !is_fixed_heads;
}

// Returns what the user can do about `changed`, lines that begin with "FIELD:".
std::string advice(const std::vector<std::string>& changed, const ModelConfig& model,
                   bool same_place) {
  std::vector<std::string_view> fixed;
  for (const std::string& line : changed) {
    const std::string_view field = std::string_view(line).substr(0, line.find(':'));
    if (!can_be_allowed(field, model, same_place)) {
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

// Returns a line about the teacher if it is among what has changed, else "".
std::string advice_on_teacher(const std::vector<std::string>& changed, const nlohmann::json& saved,
                              const RunConfig& config) {
  static constexpr const char* kTeacherField = "distill.teacher";
  const bool is_changed = std::any_of(changed.begin(), changed.end(), [](const std::string& line) {
    return line.starts_with(fmt::format("{}:", kTeacherField));
  });
  const std::string advice = is_changed && saved.contains(kTeacherField)
                                 ? advice_on_other_teacher(config, text_field(saved, kTeacherField))
                                 : "";
  return advice.empty() ? "" : advice + "\n";
}

// Throws DataError if a field that describes the tokenizer has another type or an impossible value.
// The run itself does not use them, but `generate` and `eval` do (TokenizerIdentity).
void check_tokenizer_fields(const nlohmann::json& extra, std::int64_t vocab) {
  if (extra.contains("tokenizer")) {
    (void)text_field(extra, "tokenizer");
  }
  if (extra.contains("tokenizer_digest")) {
    (void)text_field(extra, "tokenizer_digest");
    (void)count_field(extra, "tokenizer_vocab", 1, vocab);
  }
}

}  // namespace

void check_allowed_fields(const std::vector<std::string>& allowed, const nlohmann::json& fields) {
  std::vector<std::string> known;
  for (const auto& [name, value] : fields.items()) {
    known.push_back(configuration_key(name));
  }
  for (const std::string& field : allowed) {
    const std::string key = configuration_key(field);
    const bool names_one = std::any_of(known.begin(), known.end(), [&](const std::string& name) {
      return name == key || name.starts_with(key + ".");
    });
    if (!names_one) {
      const std::string near = nearest_word(field, known);
      throw ConfigError(fmt::format(
          "checkpoint.allow_change: unknown field '{}'; `trireme ckpt show` lists the fields{}",
          field, near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    }
  }
}

void check_same_weights(const Manifest& manifest, const RunConfig& config,
                        const nlohmann::json& own_extra) {
  check_stored_weights(manifest, config.model);
  check_same_base(*manifest.meta.extra, own_extra);
  check_tokenizer_fields(*manifest.meta.extra, config.model.vocab);
}

ConfigError resume_is_never(const std::filesystem::path& folder, std::int64_t step) {
  return ConfigError(
      fmt::format("checkpoint.resume is never, but {} holds step {}: choose another "
                  "checkpoint.dir, or remove the old checkpoints",
                  folder.string(), step));
}

TrainingCounters ResumeCheck::counters(const CheckpointMeta& saved) const {
  const TrainingCounters counters = place_of(saved);
  warn_of_other_samples(saved);
  return counters;
}

// The place in the data is counted in batches, which would begin elsewhere if their sizes differed.
TrainingCounters ResumeCheck::place_of(const CheckpointMeta& saved) const {
  const TrainingCounters counters = counters_of(saved);
  const BatchSchedule batches = config_.batches();
  if (!same_samples(batches, counters, saved)) {
    if (same_batches(with_later_fields(*saved.config), *own_.config)) {
      throw DataError(fmt::format("samples is {}, but the counters say {} batches", saved.samples,
                                  counters.batches()));
    }
    throw ConfigError(
        fmt::format("the checkpoint of step {} has seen {} samples, which are not {} batches of "
                    "train.global_batch {}{}: continue with the batch size that it was trained "
                    "with, or start a new run",
                    saved.step, saved.samples, counters.batches(), batches.full(),
                    batches.stages() > 1 ? " and train.batch_ramp" : ""));
  }
  return counters;
}

void check_same_run(const Manifest& manifest, const RunConfig& config, const nlohmann::json& own) {
  check_same_states(*manifest.meta.config, config);
  std::vector<std::string> allowed = fields_without_effect(*manifest.meta.config, own);
  for (const std::string& field : config.checkpoint.allow_change) {
    allowed.push_back(configuration_key(field));
  }
  const nlohmann::json saved = by_configuration_keys(with_later_fields(*manifest.meta.config));
  const nlohmann::json wanted = by_configuration_keys(own);
  const std::vector<std::string> changed = differences(saved, wanted, allowed);
  if (!changed.empty()) {
    const bool same_place =
        same_samples(config.batches(), counters_of(manifest.meta), manifest.meta);
    const std::vector<std::string> readable =
        differences(readable_numbers(saved), readable_numbers(wanted), allowed);
    throw ConfigError(fmt::format(
        "the checkpoint of step {} belongs to another run:\n  {}\n{}{}", manifest.meta.step,
        fmt::join(readable.size() == changed.size() ? readable : changed, "\n  "),
        advice_on_teacher(changed, *manifest.meta.config, config),
        advice(changed, config.model, same_place)));
  }
}

void ResumeCheck::accept(const Manifest& manifest) const {
  check_same_run(manifest, config_, *own_.config);
  check_same_weights(manifest, config_, *own_.extra);
  (void)place_of(manifest.meta);
  warn_of_other_numerics(manifest);
}

bool ResumeCheck::is_same_model(const Manifest& manifest) const {
  const auto changed = differences(with_later_fields(*manifest.meta.config), *own_.config, {});
  return std::none_of(changed.begin(), changed.end(),
                      [](const std::string& line) { return line.starts_with("model."); });
}

// The place in the data counts samples. If their length differs, the same number of samples ends at
// another token.
void ResumeCheck::warn_of_other_samples(const CheckpointMeta& saved) const {
  const std::int64_t now = config_.data.sequence;
  const std::int64_t before = count_field(*saved.config, "data.sequence");
  if (before == now || saved.samples == 0) {
    return;
  }
  std::string follows =
      "they are cut and shuffled anew, so that some tokens are read again and others are left out "
      "until the epoch ends";
  if (config_.data.shuffle == "none") {
    const auto samples = static_cast<double>(saved.samples);  // a product may exceed 64 bits
    const auto [least, most] = std::minmax({before, now});
    follows = fmt::format("the tokens {:.0f} to {:.0f} of the data's order {}",
                          samples * static_cast<double>(least), samples * static_cast<double>(most),
                          now < before ? "are read again" : "are left out");
  }
  report_.warning(fmt::format(
      "data.sequence was {} up to step {} and is {}: the place in the data counts samples ({} so "
      "far): {}; the metric `tokens` counts all samples at the present length",
      before, saved.step, now, saved.samples, follows));
}

void ResumeCheck::warn_of_other_numerics(const Manifest& manifest) const {
  const nlohmann::json& saved = *manifest.meta.numerics;
  const std::vector<std::string> unknown = fields_not_recorded(saved);
  std::vector<std::string> ignored = algorithms_of_one_run(saved, *own_.numerics);
  ignored.insert(ignored.end(), unknown.begin(), unknown.end());
  const std::vector<std::string> changed = differences(saved, *own_.numerics, ignored);
  if (!changed.empty()) {
    report_.warning(fmt::format(
        "this run computes differently from the one that wrote step {}: its results may not have "
        "the bits of an uninterrupted run\n  {}",
        manifest.meta.step, fmt::join(changed, "\n  ")));
  }
  if (!unknown.empty()) {
    report_.warning(fmt::format(
        "the checkpoint of step {} does not record its {} (an older version of trireme wrote it): "
        "if they were not this run's, the bits of an uninterrupted run are not promised",
        manifest.meta.step, fmt::join(unknown, ", ")));
  }
}

}  // namespace trireme
