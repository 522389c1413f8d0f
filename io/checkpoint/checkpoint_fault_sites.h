// The fault points of checkpoints: loading, saving on disk and in memory, and deletion, each in
// their order. The folders memory and load of this one pass some of them.
#pragma once

#include <array>

#include "src/base/fault_site.h"

namespace trireme {

inline constexpr std::array kCheckpointFaultSites = {
    FaultSite{"load.manifest", FaultSite::Kind::point,
              "each rank, when it has read a checkpoint's manifest"},
    FaultSite{"load.shard", FaultSite::Kind::data, "a reading thread, before it compares digests"},
    FaultSite{"load.reshard", FaultSite::Kind::point,
              "a reading thread, before it hands bytes to their tensors"},
    FaultSite{"ckpt.snapshot", FaultSite::Kind::point, "before the copy of the state"},
    FaultSite{"ckpt.snapshot_taken", FaultSite::Kind::point, "after the copy of the state"},
    FaultSite{"ckpt.shard_open", FaultSite::Kind::point, "before a shard's file is created"},
    FaultSite{"ckpt.shard_write", FaultSite::Kind::point, "before each transfer into a shard"},
    FaultSite{"ckpt.shard_sync", FaultSite::Kind::point, "before a shard is synced"},
    FaultSite{"ckpt.shard_read_back", FaultSite::Kind::point, "before a shard is read back"},
    FaultSite{"ckpt.shard_done", FaultSite::Kind::point, "when a rank's shard is durable"},
    FaultSite{"ckpt.gather", FaultSite::Kind::point, "before rank 0 gathers the shards' tables"},
    FaultSite{"ckpt.manifest_write", FaultSite::Kind::point,
              "rank 0, before it creates the manifest's file"},
    FaultSite{"ckpt.keys_written", FaultSite::Kind::point,
              "rank 0, when the wrapped key of an encrypted step is synced, before the manifest"},
    FaultSite{"ckpt.provenance_written", FaultSite::Kind::point,
              "rank 0, when the signed provenance is synced, before the manifest is created"},
    FaultSite{"ckpt.manifest_written", FaultSite::Kind::point,
              "rank 0, when the manifest is synced"},
    FaultSite{"ckpt.directory_synced", FaultSite::Kind::point,
              "rank 0, when the attempt's folder is synced"},
    FaultSite{"ckpt.fence", FaultSite::Kind::point,
              "rank 0, before it checks that it still holds the lock"},
    FaultSite{"ckpt.rename", FaultSite::Kind::point, "rank 0, before the rename that commits"},
    FaultSite{"ckpt.renamed", FaultSite::Kind::point,
              "rank 0, when the step has its name, before LATEST is written"},
    FaultSite{"ckpt.latest_written", FaultSite::Kind::point, "rank 0, when LATEST is written"},
    FaultSite{"ckpt.gc_before", FaultSite::Kind::point, "rank 0, before an old step is deleted"},
    FaultSite{"ckpt.gc_renamed", FaultSite::Kind::point,
              "rank 0, when an old step has been renamed"},
    FaultSite{"ckpt.gc_mid", FaultSite::Kind::point,
              "rank 0, when the manifest of an old step has been deleted"},
    FaultSite{"ckpt.gc_after", FaultSite::Kind::point, "rank 0, when an old step has been deleted"},
    FaultSite{"memory.snapshot", FaultSite::Kind::point,
              "each rank, before its copy into the node's memory"},
    FaultSite{"memory.snapshot_taken", FaultSite::Kind::point,
              "each rank, after its copy into the node's memory"},
    FaultSite{"memory.gather", FaultSite::Kind::point,
              "each rank, before it announces its shard in memory to all ranks"},
    FaultSite{"memory.rename", FaultSite::Kind::point,
              "a node's leader, before the step in memory gets its name"},
    FaultSite{"memory.renamed", FaultSite::Kind::point,
              "a node's leader, when the step in memory has its name"},
    FaultSite{"memory.serve", FaultSite::Kind::data,
              "each rank, before it sends blocks of its node's memory"},
};

}  // namespace trireme
