#include "src/train/saving/teacher_weights.h"

#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/train/run/fingerprint.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/frozen_weights.h"
#include "src/train/saving/stored_count.h"

namespace trireme {
namespace {

void check_fits(const StepFolder& step, const ModelConfig& teacher, const RunConfig& config) {
  const auto refuse = [&](const std::string& why) {
    throw ConfigError(fmt::format("distill.teacher: {} {}", step.path.string(), why));
  };
  if (teacher.vocab != config.model.vocab) {
    refuse(
        fmt::format("has a vocabulary of {} ids, but model.vocab is {}: a teacher needs the "
                    "vocabulary of the model that it teaches",
                    teacher.vocab, config.model.vocab));
  }
  if (teacher.context < config.data.sequence) {
    refuse(
        fmt::format("has a context of {} tokens, but data.sequence is {}: lower that, or choose "
                    "a teacher with a longer context",
                    teacher.context, config.data.sequence));
  }
  if (config.data.separates_documents() && teacher.has_learned_positions()) {
    refuse(
        "has learned positions, but data.documents is separate, which needs rotary ones "
        "or ALiBi: set that to joined, or choose a teacher of family llama");
  }
}

ModelConfig model_of(const StepFolder& step) {
  if (needs_base(*step.manifest)) {
    throw ConfigError(fmt::format(
        "distill.teacher: {} holds {} alone: export it, which joins them with the weights beside "
        "which they were trained, and import the result",
        step.path.string(), has_adapters(*step.manifest) ? "adapters" : "the trained weights"));
  }
  try {
    ModelConfig model = model_from_fingerprint(*step.manifest->meta.config);
    check_stored_count(*step.manifest, model);
    check_stored_weights(*step.manifest, model);
    return model;
  } catch (const DataError& error) {
    throw DataError(fmt::format("distill.teacher: {}: {}", step.path.string(), error.what()));
  }
}

// Returns what prevents this rank from loading its teacher, or "".
std::string fault_of_teacher(const StepFolder& step, const Engine& engine) {
  if (engine.teacher() == nullptr) {
    return "";
  }
  try {
    return load_frozen_weights(step, engine.teacher()->parameters(), FrozenWeights::all);
  } catch (const ConfigError& error) {  // its tensors are not those of its own model
    return fmt::format("{}: {}", step.path.string(), error.what());
  }
}

void open_teacher(StepFolder& step, StepKeys* keys) {
  if (keys == nullptr && !step.manifest->data_key.empty()) {
    throw PolicyError(
        fmt::format("distill.teacher: {} is encrypted: name a key that opens it in encryption.keys",
                    step.path.string()));
  }
  const std::string fault = keys == nullptr ? "" : keys->unlock(*step.manifest, step.path);
  if (!fault.empty()) {
    throw DataError(fmt::format("distill.teacher: {}", fault));
  }
}

}  // namespace

RunConfig with_teacher(RunConfig config, Communicator& world) {
  DistillConfig& distill = config.distill;
  if (!distill.is_on()) {
    return config;
  }
  const StepFolder step = find_initial_step("distill.teacher", distill.teacher, world);
  distill.teacher = step.path;
  distill.model = model_of(step);
  distill.manifest_sha256 = step.manifest_sha256;
  check_fits(step, *distill.model, config);
  return config;
}

std::string advice_on_other_teacher(const RunConfig& config, const std::string& saved_sha256) {
  if (!config.distill.is_on() || saved_sha256.empty()) {
    return "";
  }
  const std::filesystem::path now = config.distill.teacher;
  const std::filesystem::path folder = std::filesystem::absolute(now).parent_path();
  for (const StepFolder& step : list_steps(folder)) {
    if (step.manifest && step.manifest_sha256 == saved_sha256) {
      return fmt::format(
          "the teacher is now {}, but this run has learned from {}: a folder of checkpoints stands "
          "for its newest step, so set distill.teacher={}",
          now.string(), step.path.filename().string(), step.path.string());
    }
  }
  return fmt::format(
      "the teacher is now {}; the one that this run has learned from is not beside it any more",
      now.string());
}

void check_teacher_opens(const RunConfig& config, Communicator& world, StepKeys* keys,
                         const AdmitStep& admit) {
  StepFolder step = find_initial_step("distill.teacher", config.distill.teacher, world);
  if (admit) {
    admit(step);
  }
  open_teacher(step, keys);
}

std::string load_teacher(const RunConfig& config, const Engine& engine, Communicator& world,
                         StepKeys* keys, const AdmitStep& admit) {
  const DistillConfig& distill = config.distill;
  StepFolder step = find_initial_step("distill.teacher", distill.teacher, world);
  if (step.manifest_sha256 != distill.manifest_sha256) {
    throw ConfigError(
        fmt::format("distill.teacher: {} has changed since this run began to start: start it again",
                    step.path.string()));
  }
  if (admit) {
    admit(step);
  }
  open_teacher(step, keys);
  const std::string faults = gather_faults(world, fault_of_teacher(step, engine));
  if (!faults.empty()) {
    throw DataError(fmt::format("distill.teacher: {}\n{}", faults, advice_on_damage(step.path)));
  }
  return fmt::format("the teacher is {} (step {}, {} parameters); weight {:g}, temperature {:g}",
                     step.path.string(), step.manifest->meta.step,
                     format_count(static_cast<double>(parameter_count(distill.read_model()))),
                     distill.weight, distill.temperature);
}

}  // namespace trireme
