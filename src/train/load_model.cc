#include "src/train/load_model.h"

#include <functional>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/load/load_step.h"
#include "io/checkpoint/names.h"
#include "io/checkpoint/steps_to_try.h"
#include "io/checkpoint/store.h"
#include "mpi/agreement.h"
#include "mpi/self_communicator.h"
#include "src/base/data_error_in.h"
#include "src/base/json_fields.h"
#include "src/train/engine/training_state.h"
#include "src/train/run/fingerprint.h"
#include "src/train/run/model_fingerprint.h"
#include "src/train/saving/base_weights.h"
#include "src/train/saving/finite_check.h"
#include "src/train/saving/host_mirror.h"
#include "src/train/saving/stored_count.h"

namespace trireme {
namespace {

// Returns the precision in which to compute. The CPU lacks fp16; fp32 has all of its numbers.
DType chosen_precision(DType trained, std::optional<DType> asked, Device device) {
  if (asked == DType::f16 && device.is_host()) {
    throw ConfigError("--precision fp16 needs a CUDA device: on the CPU, choose bf16 or fp32");
  }
  if (asked) {
    return *asked;
  }
  return trained == DType::f16 && device.is_host() ? DType::f32 : trained;
}

// Reads the manifest's description of the model.
void read_meta(const CheckpointMeta& meta, LoadedModel& loaded) {
  const nlohmann::json& config = *meta.config;
  loaded.config = model_from_fingerprint(config);
  loaded.step = meta.step;
  loaded.sequence = config.contains("data.sequence")
                        ? count_field(config, "data.sequence", 1, loaded.config.context)
                        : loaded.config.context;
  loaded.separates_documents = separates_documents(config);
  if (loaded.separates_documents && loaded.config.has_learned_positions()) {
    throw DataError(
        fmt::format("field 'data.documents' is 'separate', but a model of family {} "
                    "has learned positions",
                    family_name(loaded.config.family)));
  }
  loaded.tokenizer = tokenizer_from_extra(*meta.extra);
  check_tokenizer(loaded.tokenizer, loaded.config.vocab);
  loaded.compute = trained_precision(config);
}

// Called before memory is allocated for the weights. frozen: whether the manifest holds the frozen
// parameters, or the others.
void check_shapes(const StepFolder& step, const ParameterStore& store, Weights weights,
                  bool frozen = false) {
  const std::string prefix = weights == Weights::average ? fmt::format("{}.", kAverageName) : "";
  std::vector<TensorBlock> blocks;
  for (const Parameter& p : store.all()) {
    const Shape& shape = p.place.whole;
    if (p.frozen != frozen) {
      continue;
    }
    blocks.push_back(
        {prefix + p.name, shape, Extent::whole(shape), {nullptr, shape.elements(), DType::f32}});
  }
  check_fits(*step.manifest, blocks, step.path / kManifestName);
}

void check_base(const StepFolder& base, const LoadedModel& loaded) {
  ModelConfig base_config = loaded.config;
  base_config.lora = {};
  base_config.frozen = {};
  try {
    check_stored_weights(*base.manifest, base_config);
  } catch (const DataError& error) {
    throw data_error_in((base.path / kManifestName).string(), error);
  }
  check_shapes(base, *loaded.parameters, Weights::latest, true);
}

// Loads the parameters that are frozen, or the others, from one step.
void load_masters(const StepFolder& step, const MasterWeights& masters, Weights weights,
                  bool frozen) {
  DeviceContext& context = masters.store().context();
  std::vector<TensorBlock> blocks;
  const std::vector<TensorBlock> all = parameters_to_load(masters, weights);
  for (ParameterId id = 0; id < masters.store().count(); ++id) {
    if (masters.store()[id].frozen == frozen) {
      blocks.push_back(all[static_cast<std::size_t>(id)]);
    }
  }
  HostMirror mirror(context);
  load_step(step.path, *step.manifest, mirror.fetch(blocks));
  mirror.store();
  if (const auto fault = fault_of_numbers(context, blocks, FiniteCheck::finite); !fault.empty()) {
    throw DataError(fmt::format("{}: {} (the run had diverged, or the checkpoint was changed)",
                                step.path.string(), fault));
  }
}

// base: that of a step that needs one (needs_base), or null.
void load_masters(const StepFolder& step, const StepFolder* base, const MasterWeights& masters,
                  Weights weights) {
  load_masters(step, masters, weights, false);
  if (base != nullptr) {
    load_masters(*base, masters, Weights::latest, true);
  }
}

// Loads the weights into memory that is free again at the end, and from there packs the matrices
// and rounds the rest.
void load_packed(const StepFolder& step, const StepFolder* base, DeviceContext& context,
                 Weights weights, int bits, LoadedModel& loaded) {
  DeviceContext passing(DeviceContext::Beside{context});
  ParameterStore whole(passing, DType::f32);
  const Model model(loaded.config, whole);
  whole.allocate();
  const MasterWeights masters(whole);
  load_masters(step, base, masters, weights);
  loaded.packed = std::make_unique<PackedWeights>(masters, model, bits, context);
  const std::vector<bool> needed = loaded.packed->needed(whole);
  loaded.parameters->allocate(needed);
  for (ParameterId id = 0; id < whole.count(); ++id) {
    if (needed[static_cast<std::size_t>(id)]) {
      context.kernels().cast(context.stream(), loaded.parameters->compute(id), masters.value(id));
    }
  }
  context.stream().synchronize();
}

// base: that of a step that needs one (needs_base), or null.
LoadedModel load_whole_step(const StepFolder& step, const StepFolder* base, DeviceContext& context,
                            std::optional<DType> compute, Weights weights, int packed_bits) {
  LoadedModel loaded;
  const Manifest& manifest = *step.manifest;
  try {
    if (weights == Weights::average && !has_average(*manifest.meta.config)) {
      throw ConfigError(
          fmt::format("{} holds no moving average of the weights, because it was trained without "
                      "optimizer.ema: omit --ema",
                      step.path.string()));
    }
    read_meta(manifest.meta, loaded);
    loaded.manifest_sha256 = step.manifest_sha256;
    loaded.text = text_origin_of(step, base, loaded.config.vocab);
    check_stored_count(manifest, loaded.config);
    check_stored_weights(manifest, loaded.config);
    const DType usual = chosen_precision(loaded.compute, std::nullopt, context.device());
    loaded.compute = chosen_precision(loaded.compute, compute, context.device());
    loaded.as_trained = loaded.compute == usual;
    loaded.parameters = std::make_unique<ParameterStore>(context, loaded.compute);
    loaded.model = std::make_unique<Model>(loaded.config, *loaded.parameters);
  } catch (const DataError& error) {
    throw data_error_in((step.path / kManifestName).string(), error);
  }
  check_shapes(step, *loaded.parameters, weights);
  if (base != nullptr) {
    check_base(*base, loaded);
  }
  if (packed_bits != 0) {
    load_packed(step, base, context, weights, packed_bits, loaded);
    return loaded;
  }
  loaded.parameters->allocate();
  MasterWeights masters(*loaded.parameters);
  load_masters(step, base, masters, weights);
  masters.refresh_working_copies();
  return loaded;
}

using LoadStep = std::function<LoadedModel(const StepFolder&, const StepFolder* base)>;

// Returns why the step cannot be loaded on all ranks, or "" after setting `loaded`.
std::string try_step(const std::filesystem::path& path, Communicator& world, StepKeys& keys,
                     LoadedModel& loaded, const LoadStep& load) {
  StepFolder step;
  std::optional<StepFolder> base;
  const auto try_together = [&](const std::function<void()>& work) {
    std::string fault;
    try {
      work();
    } catch (const DataError& error) {
      fault = error.what();
    }
    const std::string faults = gather_faults(world, fault);
    return fault.empty() ? faults : fault;
  };
  std::string fault = try_together([&] {
    std::vector<std::string> none;
    step = find_step(path, none);
    if (needs_base(*step.manifest)) {
      base = recorded_base(step);
    }
  });
  if (fault.empty()) {
    fault = keys.unlock(*step.manifest, step.path);
  }
  if (fault.empty() && base) {
    fault = keys.unlock(*base->manifest, base->path);
  }
  return fault.empty() ? try_together([&] { loaded = load(step, base ? &*base : nullptr); })
                       : fault;
}

[[noreturn]] void refuse_all(const std::filesystem::path& directory, Communicator& world,
                             const std::vector<std::string>& problems) {
  run_on_root(world, [&]() -> std::string {
    const std::filesystem::path clean =
        directory.has_filename() ? directory : directory.parent_path();
    if (is_step_folder(clean)) {
      throw DataError(fmt::format("{}\n{}", problems.front(), advice_on_damage(clean)));
    }
    if (problems.size() == 1) {
      throw DataError(problems.front());
    }
    throw no_valid_checkpoint_in(clean, problems);
  });
  throw DataError("no checkpoint can be loaded");  // not reached: run_on_root() throws on all ranks
}

}  // namespace

void check_exists(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory, ignored)) {
    throw no_checkpoint_in(directory);
  }
}

std::optional<DType> asked_precision(std::string_view word) { return dtype_of_precision(word); }

LoadedModel load_model(const std::filesystem::path& directory, DeviceContext& context,
                       std::optional<DType> compute, Weights weights, const KeyOptions& keys,
                       int packed_bits) {
  SelfCommunicator self;
  StepKeys opened(self, keys);
  return load_model(directory, self, context, compute, weights, opened, packed_bits);
}

LoadedModel load_model(const std::filesystem::path& directory, Communicator& world,
                       DeviceContext& context, std::optional<DType> compute, Weights weights,
                       StepKeys& keys, int packed_bits) {
  if (packed_bits != 0 && !context.device().is_host()) {
    throw ConfigError("--quantize needs the CPU: add --device cpu");
  }
  std::vector<std::string> problems;
  for (const std::filesystem::path& path : steps_to_try(directory, world, problems)) {
    LoadedModel loaded;
    const std::string fault =
        try_step(path, world, keys, loaded, [&](const StepFolder& step, const StepFolder* base) {
          return load_whole_step(step, base, context, compute, weights, packed_bits);
        });
    if (fault.empty()) {
      if (world.rank() == 0) {
        loaded.skipped = shortened(std::move(problems), directory);
      }
      return loaded;
    }
    problems.push_back(fault);
  }
  refuse_all(directory, world, problems);
}

}  // namespace trireme
