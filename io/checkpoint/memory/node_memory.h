// Describes checkpoints in the memory of the nodes: where they are, and which ones a node has. A
// node's folder is on a tmpfs, so that its files outlive the ranks. It belongs to one launch, whose
// agent creates and removes it, and copies whole steps to a partner node.
//
//   <node folder>/memory/own/step-00000100-g000003/   a step of the run of generation 3
//       shard-00005.safetensors ...     shards of this node's ranks, as on disk (../shard_plan.h)
//       manifest.json                   the manifest of the whole checkpoint    (../manifest.h)
//       WANTS_COPY                      asks the agent to copy the manifest and these shards, one
//                                       per line, to its partner; written once the step is whole
//       COPIED                          WANTS_COPY, renamed after the copy
//   <node folder>/memory/own/.tmp-100-3/              an attempt
//   <node folder>/memory/own/.free-3/                 files kept for their allocated pages
//   <node folder>/memory/own/.trash-100-3/            a step that is being deleted
//   <node folder>/memory/partner/<node>/step-.../     copies of that node's steps, from the agent
//
// A step is whole once every node has renamed its folder. If only some nodes have, a reader finds
// that shards are missing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/manifest.h"

namespace trireme {

inline constexpr std::string_view kWantsCopyName = "WANTS_COPY";
inline constexpr std::string_view kCopiedName = "COPIED";

// Names the field of a manifest's `extra` that identifies the run by its checkpoint folder. Only
// manifests in memory have it.
inline constexpr const char* kRunField = "run";

struct NodeMemory {
  std::filesystem::path folder;  // empty if this rank's node has none
  std::string name;              // the node's name, for messages

  // Reads TRIREME_NODE_DIR and TRIREME_NODE, which `trireme launch` sets. The name defaults to the
  // host name.
  static NodeMemory from_environment();
  std::filesystem::path own() const { return folder / "memory" / "own"; }
  std::filesystem::path partner() const { return folder / "memory" / "partner"; }
};

struct MemoryStepName {
  std::int64_t step = 0;
  std::int64_t generation = 0;
  std::string to_string() const;  // "step-00000100-g000003"
  friend bool operator==(const MemoryStepName&, const MemoryStepName&) = default;
};
// Returns nothing for any other spelling.
std::optional<MemoryStepName> parse_memory_step_name(std::string_view name);

// One node's part of a checkpoint.
struct MemoryStep {
  std::filesystem::path path;
  bool is_partner = false;  // whether it is a copy of another node's step
  MemoryStepName name;
  std::optional<Manifest> manifest;  // present if it is valid
  // Indices in the manifest of the shards that are here in full size.
  std::vector<std::int64_t> shards;
  std::string problem;      // why there is no manifest
  bool is_damaged = false;  // whether the manifest exists but is invalid
};

// Returns the steps sorted from the newest, own ones before partner copies. Returns none if the
// folder does not exist.
std::vector<MemoryStep> list_memory_steps(const NodeMemory& node);

// Returns the bytes of memory that checkpoints occupy on this node, including those no longer
// needed.
std::int64_t held_bytes(const NodeMemory& node);

// Returns an id that is equal for two manifests whose shards are equal, byte for byte.
std::string contents_id(const Manifest& manifest);

}  // namespace trireme
