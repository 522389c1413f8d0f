// Checkpoints in the memory of the nodes: where they lie, and what a node has. The node's folder is
// on a tmpfs, so that its files outlive the ranks; it belongs to one launch, whose agent makes and
// removes it, and copies whole steps to a partner node.
//
//   <node folder>/memory/own/step-00000100-g000003/   of the run of generation 3
//       shard-00005.safetensors ...     of this node's ranks, as on disk        (../shard_plan.h)
//       manifest.json                   of the whole checkpoint                 (../manifest.h)
//       WANTS_COPY                      the agent shall copy the manifest and these shards, one a
//                                       line, to its partner; there once the step is whole
//       COPIED                          it has: WANTS_COPY, renamed
//   <node folder>/memory/own/.tmp-100-3/              an attempt
//   <node folder>/memory/own/.free-3/                 files that no step needs: their pages count
//   <node folder>/memory/own/.trash-100-3/            a step that goes
//   <node folder>/memory/partner/<node>/step-.../     copies of that node's steps: the agent's
//
// A step counts once every node has renamed its folder; one that a few have is told by the shards
// that are missing.
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

// The field of a manifest's `extra` that names the run, in memory only: its checkpoint folder.
inline constexpr const char* kRunField = "run";

struct NodeMemory {
  std::filesystem::path folder;  // empty: this rank's node has none
  std::string name;              // of the node, for people

  // TRIREME_NODE_DIR and TRIREME_NODE, as `trireme launch` sets them; the host's name for want of a
  // better one.
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
// Nothing for any other spelling.
std::optional<MemoryStepName> parse_memory_step_name(std::string_view name);

// A node's part of a checkpoint.
struct MemoryStep {
  std::filesystem::path path;
  bool is_partner = false;  // a copy of another node's
  MemoryStepName name;
  std::optional<Manifest> manifest;  // if it is good
  std::vector<std::int64_t> shards;  // numbers in the manifest of those that are here in full size
  std::string problem;               // why there is no manifest
  bool is_damaged = false;           // the manifest is there, and bad
};

// The newest first, own ones before copies. A folder that is not there holds none.
std::vector<MemoryStep> list_memory_steps(const NodeMemory& node);

// Bytes of memory that checkpoints take on this node, those that no step needs any more included.
std::int64_t held_bytes(const NodeMemory& node);

// Equal for two manifests of the same shards, byte for byte.
std::string contents_id(const Manifest& manifest);

}  // namespace trireme
