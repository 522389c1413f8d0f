#include "src/train/saving/base_weights.h"

#include <nlohmann/json.hpp>

#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"
#include "src/train/saving/frozen_weights.h"

namespace trireme {
namespace {

constexpr const char* kFolder = "base";
constexpr const char* kDigest = "base_sha256";

// Returns what prevents this rank from loading its frozen weights, or "".
std::string fault_of_base(const StepFolder& base, const Engine& engine) {
  for (const auto& chunk : engine.chunks()) {
    std::string fault = load_frozen_weights(base, chunk->parameters, FrozenWeights::declared);
    if (!fault.empty()) {
      return fault;
    }
  }
  return "";
}

bool has_record(const nlohmann::json& extra) {
  return extra.contains(kBaseOfAdapters) || extra.contains(kBaseOfModules);
}

const nlohmann::json& record_in(const nlohmann::json& extra) {
  return object_field(extra, extra.contains(kBaseOfModules) ? kBaseOfModules : kBaseOfAdapters);
}

std::string what_is_trained(const ModelConfig& model) {
  if (model.lora.is_on()) {
    return fmt::format("adapters of rank {} are trained", model.lora.rank);
  }
  return fmt::format("{} of {} parameters are trained",
                     format_count(static_cast<double>(trained_parameter_count(model))),
                     format_count(static_cast<double>(parameter_count(model))));
}

}  // namespace

void put_base(const StepFolder& base, nlohmann::json& extra, const char* field) {
  extra[field] = {{kFolder, std::filesystem::absolute(base.path).lexically_normal().string()},
                  {kDigest, base.manifest_sha256}};
}

void check_same_base(const nlohmann::json& checkpoint, const nlohmann::json& run) {
  if (!has_record(checkpoint) || !has_record(run)) {
    return;  // the configurations differ, which is refused elsewhere
  }
  const nlohmann::json& saved = record_in(checkpoint);
  const nlohmann::json& own = record_in(run);
  if (text_field(saved, kDigest) != text_field(own, kDigest)) {
    throw ConfigError(fmt::format(
        "what the checkpoint holds was trained beside the weights of {} (manifest {:.12}...), but "
        "checkpoint.init_from is {} ({:.12}...): name the same weights again",
        text_field(saved, kFolder), text_field(saved, kDigest), text_field(own, kFolder),
        text_field(own, kDigest)));
  }
}

bool has_adapters(const Manifest& manifest) {
  return manifest.meta.config->contains("lora.products");
}

bool needs_base(const Manifest& manifest) {
  return has_adapters(manifest) || manifest.meta.config->contains("train.frozen");
}

StepFolder recorded_base(const StepFolder& step) {
  const nlohmann::json& record = record_in(*step.manifest->meta.extra);
  const std::string& folder = text_field(record, kFolder);
  const char* const what =
      has_adapters(*step.manifest) ? "adapters" : "the weights of some modules";
  std::vector<std::string> none;
  StepFolder base;
  try {
    base = find_step(folder, none);
  } catch (const NotFound& error) {
    throw NotFound(
        fmt::format("{} holds {}, which need the weights that they were trained beside: {}",
                    step.path.string(), what, error.what()));
  }
  if (base.manifest_sha256 != text_field(record, kDigest) || needs_base(*base.manifest)) {
    throw DataError(
        fmt::format("{} holds {} trained beside the weights that were in {}, but another "
                    "checkpoint is there now",
                    step.path.string(), what, folder));
  }
  return base;
}

std::string load_base_weights(StepFolder base, const RunConfig& config, Engine& engine,
                              Communicator& world, StepKeys* keys, const AdmitStep& admit) {
  open_initial_step(base, config, keys, admit);
  const std::string faults = gather_faults(world, fault_of_base(base, engine));
  if (!faults.empty()) {
    throw DataError(
        fmt::format("checkpoint.init_from: {}\n{}", faults, advice_on_damage(base.path)));
  }
  return fmt::format("the frozen weights are those of {} (step {}); {}", base.path.string(),
                     base.manifest->meta.step, what_is_trained(config.model));
}

}  // namespace trireme
