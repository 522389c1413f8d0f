#include "src/train/saving/initial_weights.h"

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/fingerprint.h"
#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/steps_to_try.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/finite_check.h"
#include "src/train/saving/host_mirror.h"
#include "src/train/saving/stored_count.h"

namespace trireme {
namespace {

// Fields of a model that may differ because they do not change what its weights mean.
std::vector<std::string> free_fields(const ModelConfig& model) {
  std::vector<std::string> fields = {"model.dropout", "model.attention_dropout",
                                     "model.initializer_range"};
  if (!model.has_learned_positions()) {  // which have a weight for each position
    fields.emplace_back("model.context");
  }
  return fields;
}

void check_same_model(const StepFolder& step, const ModelConfig& own) {
  const nlohmann::json all = with_later_fields(*step.manifest->meta.config);
  nlohmann::json saved = nlohmann::json::object();
  for (const auto& [name, value] : all.items()) {
    if (name.starts_with("model.")) {
      saved[name] = value;
    }
  }
  const std::vector<std::string> changed = differences(
      readable_numbers(by_configuration_keys(saved)),
      readable_numbers(by_configuration_keys(model_fingerprint(own))), free_fields(own));
  if (!changed.empty()) {
    throw ConfigError(fmt::format(
        "checkpoint.init_from: {} is of another model than this run's:\n  {}\nSet these fields as "
        "in the checkpoint, whose configuration `trireme ckpt show` prints",
        step.path.string(), fmt::join(changed, "\n  ")));
  }
}

void check_has_weights(const StepFolder& step) {
  if (needs_base(*step.manifest)) {
    throw ConfigError(fmt::format(
        "checkpoint.init_from: {} holds {} alone: export it, which joins them with the weights "
        "beside which they were trained, and import the result",
        step.path.string(), has_adapters(*step.manifest) ? "adapters" : "the trained weights"));
  }
}

// Returns the blocks of the weights that this rank holds, without optimizer state.
std::vector<TensorBlock> weights_of(Engine& engine) {
  std::vector<TensorBlock> blocks;
  for (const auto& chunk : engine.chunks()) {
    std::vector<StatePiece> pieces = chunk->state.pieces_to_load();
    for (StatePiece& piece : pieces) {
      piece.states.clear();
      piece.state_names.clear();
    }
    add_blocks(chunk->parameters, pieces, blocks);
  }
  return blocks;
}

// Returns what prevents this rank from loading its blocks, or "".
std::string fault_of_load(const StepFolder& step, Engine& engine,
                          const std::vector<TensorBlock>& blocks) {
  HostMirror mirror(engine.context());
  try {
    load_step(step.path, *step.manifest, mirror.fetch(blocks));
  } catch (const DataError& error) {
    return error.what();
  }
  mirror.store();
  const std::string fault = fault_of_numbers(engine.context(), blocks, FiniteCheck::finite);
  return fault.empty() ? "" : fmt::format("{}: {}", step.path.string(), fault);
}

// Collective. Returns why the step cannot be used, or "" after filling the engine's weights. Throws
// what open_initial_step() throws, except for damage.
std::string fault_of_step(StepFolder& step, const RunConfig& config, Engine& engine,
                          Communicator& world, StepKeys* keys, const AdmitStep& admit) {
  try {
    open_initial_step(step, config, keys, admit);
  } catch (const DataError& error) {  // on all ranks
    return error.what();
  }
  return gather_faults(world, fault_of_load(step, engine, weights_of(engine)));
}

}  // namespace

StepFolder find_initial_step(const char* key, const std::filesystem::path& path,
                             Communicator& world) {
  const std::string found = run_on_root(world, [&] {
    std::vector<std::string> skipped;
    try {
      return find_step(path, skipped).path.string();
    } catch (const NotFound& error) {
      throw NotFound(fmt::format("{}: {}", key, error.what()));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", key, error.what()));
    }
  });
  StepFolder step;
  std::string fault;
  try {
    std::vector<std::string> none;
    step = find_step(found, none);
  } catch (const Error& error) {  // this host sees other files than that of rank 0
    fault = error.what();
  }
  const std::string faults = gather_faults(world, fault);
  if (!faults.empty()) {
    throw NotFound(fmt::format("{}: {}", key, faults));
  }
  return step;
}

void open_initial_step(StepFolder& step, const RunConfig& config, StepKeys* keys,
                       const AdmitStep& admit) {
  if (admit) {
    admit(step);
  }
  if (keys == nullptr && !step.manifest->data_key.empty()) {
    throw PolicyError(fmt::format(
        "checkpoint.init_from: {} is encrypted: name a key that opens it in encryption.keys",
        step.path.string()));
  }
  const std::string fault = keys == nullptr ? "" : keys->unlock(*step.manifest, step.path);
  if (!fault.empty()) {
    throw DataError(fault);
  }
  check_has_weights(step);
  check_same_model(step, config.model);
  ModelConfig stored = config.model;
  stored.lora = {};
  stored.frozen = {};
  try {
    check_stored_weights(*step.manifest, stored);
  } catch (const DataError& error) {
    throw data_error_in((step.path / kManifestName).string(), error);
  }
}

std::string load_initial_weights(const RunConfig& config, Engine& engine, Communicator& world,
                                 const std::filesystem::path& folder, StepKeys* keys,
                                 const AdmitStep& admit, std::vector<std::string>& skipped) {
  const char* const key = "checkpoint.init_from";
  StepFolder step = find_initial_step(key, folder, world);  // throws if there is none
  const std::vector<std::filesystem::path> steps = steps_to_try(folder, world, skipped);
  for (std::size_t i = 0;; ++i) {
    step = find_initial_step(key, steps[i], world);
    const std::string fault = fault_of_step(step, config, engine, world, keys, admit);
    if (fault.empty()) {
      break;
    }
    skipped.push_back(fault);
    if (i + 1 == steps.size()) {
      throw steps.size() == 1
          ? DataError(fmt::format("{}: {}", key, fault))
          : DataError(fmt::format("{}: {}", key, no_valid_checkpoint_in(folder, skipped).what()));
    }
  }
  if (world.rank() != 0) {
    skipped.clear();
  }
  skipped = shortened(std::move(skipped), folder);
  engine.masters_changed();
  for (const auto& chunk : engine.chunks()) {
    chunk->state.optimizer().start_average();
  }
  return fmt::format("the weights are those of {} (step {}); the optimizer starts anew",
                     step.path.string(), step.manifest->meta.step);
}

}  // namespace trireme
