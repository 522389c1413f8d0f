#include "src/base/fault_sites.h"

#include <algorithm>
#include <array>

namespace trireme {
namespace {

using enum FaultSite::Kind;

constexpr std::array kSites = {
    FaultSite{"start.init", point, "each rank, before MPI is started"},
    FaultSite{"start.joined", point, "each rank, when MPI has started"},
    FaultSite{"start.kernel", numbers, "each result of a kernel that the self-check compares"},
    FaultSite{"data.open", point, "each rank, when it has read the dataset's manifest"},
    FaultSite{"data.read", point, "a loader's thread, before it reads a micro-batch"},
    FaultSite{"load.manifest", point, "each rank, when it has read a checkpoint's manifest"},
    FaultSite{"load.shard", data, "a reading thread, before it compares digests"},
    FaultSite{"load.reshard", point, "a reading thread, before it hands bytes to their tensors"},
    FaultSite{"step.forward", point, "before the forward pass of a micro-batch"},
    FaultSite{"step.backward", point, "before the backward pass of a micro-batch"},
    FaultSite{"step.gradient", numbers,
              "the first gradient that the backward pass of a micro-batch completes"},
    FaultSite{"step.loss", numbers, "the loss of the first micro-batch of a step, on a last stage"},
    FaultSite{"comm.all_reduce", point, "before an all-reduce is started"},
    FaultSite{"comm.wait", point, "within an operation, before it waits for a peer"},
    FaultSite{"step.optimizer", point, "before the optimizer changes weights"},
    FaultSite{"step.weights", numbers, "after the optimizer, on one parameter of the rank"},
    FaultSite{"step.evaluate", point, "before an evaluation, when its step is saved"},
    FaultSite{"step.end", point, "when a step is done, before it is logged or saved"},
    FaultSite{"ckpt.snapshot", point, "before the copy of the state"},
    FaultSite{"ckpt.snapshot_taken", point, "after the copy of the state"},
    FaultSite{"ckpt.shard_open", point, "before a shard's file is created"},
    FaultSite{"ckpt.shard_write", point, "before each transfer into a shard"},
    FaultSite{"ckpt.shard_sync", point, "before a shard is synced"},
    FaultSite{"ckpt.shard_read_back", point, "before a shard is read back"},
    FaultSite{"ckpt.shard_done", point, "when a rank's shard is durable"},
    FaultSite{"ckpt.gather", point, "before rank 0 gathers the shards' tables"},
    FaultSite{"ckpt.manifest_write", point, "rank 0, before it creates the manifest's file"},
    FaultSite{"ckpt.keys_written", point,
              "rank 0, when the wrapped key of an encrypted step is synced, before the manifest"},
    FaultSite{"ckpt.provenance_written", point,
              "rank 0, when the signed provenance is synced, before the manifest is created"},
    FaultSite{"ckpt.manifest_written", point, "rank 0, when the manifest is synced"},
    FaultSite{"ckpt.directory_synced", point, "rank 0, when the attempt's folder is synced"},
    FaultSite{"ckpt.fence", point, "rank 0, before it checks that it still holds the lock"},
    FaultSite{"ckpt.rename", point, "rank 0, before the rename that commits"},
    FaultSite{"ckpt.renamed", point,
              "rank 0, when the step has its name, before LATEST is written"},
    FaultSite{"ckpt.latest_written", point, "rank 0, when LATEST is written"},
    FaultSite{"ckpt.gc_before", point, "rank 0, before an old step is deleted"},
    FaultSite{"ckpt.gc_renamed", point, "rank 0, when an old step has been renamed"},
    FaultSite{"ckpt.gc_mid", point, "rank 0, when the manifest of an old step has been deleted"},
    FaultSite{"ckpt.gc_after", point, "rank 0, when an old step has been deleted"},
    FaultSite{"memory.snapshot", point, "each rank, before its copy into the node's memory"},
    FaultSite{"memory.snapshot_taken", point, "each rank, after its copy into the node's memory"},
    FaultSite{"memory.gather", point,
              "each rank, before it announces its shard in memory to all ranks"},
    FaultSite{"memory.rename", point, "a node's leader, before the step in memory gets its name"},
    FaultSite{"memory.renamed", point, "a node's leader, when the step in memory has its name"},
    FaultSite{"memory.serve", data, "each rank, before it sends blocks of its node's memory"},
    FaultSite{"finish.done", point, "rank 0, when all is saved, before DONE is written"},
    FaultSite{"finish.finalize", point, "each rank, before it leaves MPI"},
    FaultSite{"file.open", call, "opening or creating any file"},
    FaultSite{"file.read", call, "reading from any file"},
    FaultSite{"file.write", call, "writing to any file"},
    FaultSite{"file.sync", call, "fsync of any file or folder"},
    FaultSite{"file.close", call, "closing a file that was written"},
    FaultSite{"file.rename", call, "renaming anything"},
};

}  // namespace

std::span<const FaultSite> fault_sites() { return kSites; }

const FaultSite* find_fault_site(std::string_view name) {
  const auto found = std::find_if(kSites.begin(), kSites.end(),
                                  [name](const FaultSite& site) { return site.name == name; });
  return found == kSites.end() ? nullptr : &*found;
}

std::string_view name_of(FaultSite::Kind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"point", "data", "numbers", "call"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace trireme
