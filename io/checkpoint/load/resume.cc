#include "io/checkpoint/load/resume.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/fault.h"
#include "src/base/units.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns how messages name the step.
std::string name_of(const StepCandidate& step) {
  return step.places.empty() ? step.disk.string()
                             : fmt::format("step {} in memory", step.name.step);
}

// Throws ConfigError on all ranks if the checkpoint does not fit the run on any of them. Returns a
// description of a contradiction within the manifest, or "". All ranks have the same manifest and
// return alike.
std::string check_fits(Communicator& comm, const StepCandidate& step, const Manifest& manifest,
                       std::span<const TensorBlock> blocks, const ResumeOptions& options) {
  std::string fault;
  std::string misfit;
  try {
    if (options.accept) {
      options.accept(manifest);
    }
    misfit = fmt::format("{}", fmt::join(mismatches(manifest, blocks), "\n  "));
  } catch (const ConfigError& e) {
    fault = e.what();
  } catch (const DataError& e) {
    return fmt::format("{}: {}", kManifestName, e.what());
  }
  if (const std::string all = gather_faults(comm, fault); !all.empty()) {
    throw ConfigError(fault.empty() ? all : fault);
  }
  const std::string all = gather_faults(comm, misfit);
  if (all.empty()) {
    return "";
  }
  const std::string& shown = misfit.empty() ? all : misfit;
  if (options.is_same_model && options.is_same_model(manifest)) {
    return fmt::format("{}: its tensors do not match its model:\n  {}", kManifestName, shown);
  }
  throw ConfigError(fmt::format("{} does not fit this run:\n  {}", name_of(step), shown));
}

Manifest send_manifest(Communicator& comm, const Inventory& inventory, const StepCandidate& step) {
  std::string text;
  if (comm.rank() == step.manifest_rank) {
    text = to_text(inventory.found(step).manifest);
  }
  return parse_manifest(broadcast_text(comm, text, step.manifest_rank), name_of(step));
}

// Returns why nobody can open the step, or "", on all ranks alike.
std::string unlock_candidate(Communicator& comm, const Inventory& inventory,
                             const StepCandidate& step, Manifest& manifest, StepKeys* keys) {
  if (keys == nullptr) {
    if (!manifest.data_key.empty()) {
      throw PolicyError(
          fmt::format("{} is encrypted, and no key was given: see encryption.keys", name_of(step)));
    }
    return "";
  }
  const bool is_mine = comm.rank() == step.manifest_rank;
  return keys->unlock(manifest, is_mine ? inventory.found(step).folder : fs::path(name_of(step)),
                      step.manifest_rank);
}

Resumed result_of(Communicator& comm, const StepCandidate& step, Manifest manifest,
                  const LoadStats& stats) {
  Resumed resumed;
  resumed.folder = step.disk;
  resumed.manifest_sha256 = step.manifest_sha256;
  resumed.manifest = std::move(manifest);
  resumed.load = stats;
  resumed.bytes = stats.bytes;
  comm.all_reduce({resumed.bytes.data(), kCopyKinds, DType::i64}, ReduceOp::sum).wait();
  resumed.from_memory =
      std::any_of(resumed.bytes.begin(), resumed.bytes.end() - 1, [](auto n) { return n > 0; });
  const std::string repairs =
      gather_faults(comm, fmt::format("{}", fmt::join(stats.repairs, "; ")));
  if (!repairs.empty()) {
    resumed.repairs.push_back(repairs);
  }
  return resumed;
}

// Says how the load of a candidate went.
struct Attempt {
  std::string fault;        // why the step is of no use, or ""
  bool is_missing = false;  // whether the fault is that shards have no copy
  LoadStats stats = {};
};

struct Wanted {
  const Manifest& manifest;
  std::span<const TensorBlock> blocks;
  const ResumeOptions& options;
};

Attempt load_candidate(Communicator& comm, const NodeMap& nodes, const Inventory& inventory,
                       const StepCandidate& step, const Wanted& wanted) {
  const auto& [manifest, blocks, options] = wanted;
  Attempt attempt{check_fits(comm, step, manifest, blocks, options)};
  if (!attempt.fault.empty()) {
    return attempt;
  }
  CheckpointLoader loader(comm, nodes, inventory, step, manifest, options.io);
  attempt.fault = loader.missing();
  attempt.is_missing = !attempt.fault.empty();
  if (attempt.is_missing) {
    return attempt;
  }
  attempt.fault = loader.load(blocks);
  if (attempt.fault.empty() && options.fault_of_loaded) {
    attempt.fault = options.fault_of_loaded();
  }
  attempt.stats = loader.stats();
  return attempt;
}

[[noreturn]] void refuse_to_start_anew(const fs::path& folder, bool on_disk,
                                       const std::vector<std::string>& skipped) {
  if (!on_disk) {
    throw DataError(fmt::format(
        "the nodes' memory holds checkpoints, but none is valid, and there is none in {}:\n  "
        "{}\nCheck these nodes for faulty memory (dmesg, trireme health). To start from the "
        "beginning, launch the run again: checkpoints in memory are removed when their launch ends",
        folder.string(), fmt::join(skipped, "\n  ")));
  }
  throw DataError(
      fmt::format("{} holds checkpoints, but none is valid:\n  {}\nRestore one of them. To start "
                  "from the beginning instead, remove {} or choose another checkpoint.dir",
                  folder.string(), fmt::join(skipped, "\n  "), folder.string()));
}

}  // namespace

std::string Resumed::source() const {
  if (!from_memory) {
    return folder.string();
  }
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < kCopyKinds; ++i) {
    if (bytes[i] > 0) {
      parts.push_back(fmt::format("{} from {}", format_bytes(bytes[i]),
                                  copy_kind_text(static_cast<CopyKind>(i))));
    }
  }
  return fmt::format("memory, step {} ({})", manifest.meta.step, fmt::join(parts, ", "));
}

std::optional<Resumed> resume(Communicator& comm, const fs::path& folder,
                              std::span<const TensorBlock> blocks, const ResumeOptions& options) {
  static const NodeMap kNoNodes;
  const NodeMap& nodes = options.nodes == nullptr ? kNoNodes : *options.nodes;
  Inventory inventory(comm, nodes, options.node, options.identity);
  inventory.add_disk(folder, options.step);
  std::vector<std::string> skipped = inventory.problems();
  bool is_damaged = inventory.disk_has_any() || inventory.memory_is_damaged();
  std::vector<StepIdentity> damaged;
  for (const StepCandidate& step : inventory.candidates()) {
    Manifest manifest = send_manifest(comm, inventory, step);
    fault("load.manifest");
    Attempt attempt{unlock_candidate(comm, inventory, step, manifest, options.keys)};
    if (attempt.fault.empty()) {
      attempt = load_candidate(comm, nodes, inventory, step, {manifest, blocks, options});
    }
    if (attempt.fault.empty()) {
      Resumed resumed = result_of(comm, step, std::move(manifest), attempt.stats);
      resumed.skipped = std::move(skipped);
      resumed.damaged = std::move(damaged);
      return resumed;
    }
    skipped.push_back(fmt::format("{}: {}", name_of(step), attempt.fault));
    is_damaged = is_damaged || !attempt.is_missing;
    if (!attempt.is_missing && !step.disk.empty()) {
      damaged.push_back({step.name.step, step.name.generation});
    }
  }
  if (!is_damaged) {
    if (options.nothing_whole && !skipped.empty()) {
      options.nothing_whole(skipped);
    }
    return std::nullopt;
  }
  refuse_to_start_anew(folder, inventory.disk_has_any(), skipped);
}

}  // namespace trireme
