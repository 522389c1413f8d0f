#include "src/train/saving/base_weights.h"

#include <nlohmann/json.hpp>

#include "io/checkpoint/load/load_step.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/train/engine/training_state.h"
#include "src/train/saving/finite_check.h"
#include "src/train/saving/host_mirror.h"
#include "src/train/saving/initial_weights.h"

namespace trireme {
namespace {

constexpr const char* kField = "lora";
constexpr const char* kFolder = "base";
constexpr const char* kDigest = "base_sha256";

// Limit of the frozen elements that are loaded at a time, unless one parameter has more.
constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 26;

// FrozenPart is consecutive frozen parameters [first, end) of a store.
struct FrozenPart {
  ParameterId first = 0;
  ParameterId end = 0;
  std::int64_t elements = 0;
};

std::vector<FrozenPart> frozen_parts(const ParameterStore& store) {
  std::vector<FrozenPart> parts;
  for (ParameterId id = 0; id < store.count(); ++id) {
    const std::int64_t elements = store[id].elements();
    if (!store[id].frozen) {
      continue;
    }
    if (parts.empty() || parts.back().end != id ||
        parts.back().elements + elements > kElementsAtOnce) {
      parts.push_back({id, id, 0});
    }
    parts.back().end = id + 1;
    parts.back().elements += elements;
  }
  return parts;
}

// Loads the parameters of a part and rounds their working copies. Returns why a weight is unusable,
// or "".
std::string load_part(const StepFolder& base, const FrozenPart& part, const ParameterStore& store) {
  DeviceContext& context = store.context();
  Pool passing(context.device());  // returns its memory to the system when it ends
  const Tensor values(passing, {part.elements}, DType::f32);
  std::vector<StatePiece> pieces;
  std::int64_t at = 0;
  for (ParameterId id = part.first; id < part.end; ++id) {
    pieces.push_back({id, 0, values.view().slice(at, store[id].elements()), {}, {}});
    at += store[id].elements();
  }
  std::vector<TensorBlock> blocks;
  add_blocks(store, pieces, blocks);
  HostMirror mirror(context);
  load_step(base.path, *base.manifest, mirror.fetch(blocks));
  mirror.store();
  std::string fault = fault_of_numbers(context, blocks, FiniteCheck::finite);
  for (const StatePiece& piece : pieces) {
    context.kernels().cast(context.stream(), store.compute(piece.id), piece.value);
  }
  context.stream().synchronize();  // before the memory of `passing` goes away
  return fault;
}

// Returns what prevents this rank from loading its frozen weights, or "".
std::string fault_of_base(const StepFolder& base, const Engine& engine) {
  for (const auto& chunk : engine.chunks()) {
    for (const FrozenPart& part : frozen_parts(chunk->parameters)) {
      try {
        const std::string fault = load_part(base, part, chunk->parameters);
        if (!fault.empty()) {
          return fmt::format("{}: {}", base.path.string(), fault);
        }
      } catch (const DataError& error) {
        return error.what();
      }
    }
  }
  return "";
}

const nlohmann::json& record_in(const nlohmann::json& extra) { return object_field(extra, kField); }

}  // namespace

void put_base(const StepFolder& base, nlohmann::json& extra) {
  extra[kField] = {{kFolder, std::filesystem::absolute(base.path).lexically_normal().string()},
                   {kDigest, base.manifest_sha256}};
}

void check_same_base(const nlohmann::json& checkpoint, const nlohmann::json& run) {
  if (!checkpoint.contains(kField) || !run.contains(kField)) {
    return;  // the configurations differ, which is refused elsewhere
  }
  const nlohmann::json& saved = record_in(checkpoint);
  const nlohmann::json& own = record_in(run);
  if (text_field(saved, kDigest) != text_field(own, kDigest)) {
    throw ConfigError(fmt::format(
        "the adapters in the checkpoint were trained beside the weights of {} (manifest {:.12}...),"
        " but checkpoint.init_from is {} ({:.12}...): name the same weights again",
        text_field(saved, kFolder), text_field(saved, kDigest), text_field(own, kFolder),
        text_field(own, kDigest)));
  }
}

bool has_adapters(const Manifest& manifest) {
  return manifest.meta.config->contains("lora.products");
}

StepFolder recorded_base(const StepFolder& step) {
  const nlohmann::json& record = record_in(*step.manifest->meta.extra);
  const std::string& folder = text_field(record, kFolder);
  std::vector<std::string> none;
  StepFolder base;
  try {
    base = find_step(folder, none);
  } catch (const NotFound& error) {
    throw NotFound(
        fmt::format("{} holds adapters, which need the weights that they were trained beside: {}",
                    step.path.string(), error.what()));
  }
  if (base.manifest_sha256 != text_field(record, kDigest) || has_adapters(*base.manifest)) {
    throw DataError(
        fmt::format("{} holds adapters for the weights that were in {}, but another "
                    "checkpoint is there now",
                    step.path.string(), folder));
  }
  return base;
}

std::string load_base_weights(StepFolder base, const RunConfig& config, Engine& engine,
                              Communicator& world, StepKeys* keys,
                              const std::function<void(const Manifest&)>& admit) {
  open_initial_step(base, config, keys, admit);
  const std::string faults = gather_faults(world, fault_of_base(base, engine));
  if (!faults.empty()) {
    throw DataError(fmt::format("checkpoint.init_from: {}", faults));
  }
  return fmt::format(
      "the frozen weights are those of {} (step {}); adapters of rank {} are trained",
      base.path.string(), base.manifest->meta.step, config.model.lora.rank);
}

}  // namespace trireme
