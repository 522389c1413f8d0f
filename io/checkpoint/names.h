// Defines the names in a checkpoint folder, and the sizes that the format fixes. Pure functions,
// except for remove_tree().
//
//   run.lock                 says which run may write here            (run_lock.h)
//   GENERATION               the largest generation so far            (generation.h)
//   LATEST                   "step-00000100": a hint for people, never read by the program
//   step-00000100/           a committed checkpoint
//       manifest.json        written last                             (manifest.h)
//       shard-00000.safetensors   one per writing rank                (shard_plan.h)
//       keys.json            the wrapped key of encrypted shards      (src/keys/wrapped_keys.h)
//       provenance.intoto.jsonl   where the step comes from, signed; not needed to load it
//       PINNED               if present, retention does not delete the step
//   .tmp-100-3/              an attempt of generation 3 to save step 100
//   .replaced-100-3/         an older step 100, while generation 3 replaces it with its own
//   .trash-100-3/            a step that is being deleted
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/provenance_name.h"

namespace trireme {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kPinnedName = "PINNED";
inline constexpr std::string_view kLatestName = "LATEST";
inline constexpr std::string_view kGenerationName = "GENERATION";
inline constexpr std::string_view kLockName = "run.lock";
// Each digest block of a shard file, counted from its first byte, has a digest of its own.
inline constexpr std::int64_t kDigestBlockBytes = std::int64_t{1} << 20;
// A shard's tensor data starts on this boundary, which also suits O_DIRECT.
inline constexpr std::int64_t kDataAlignment = 4096;

constexpr std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

std::string step_folder_name(std::int64_t step);   // "step-00000100"
std::string shard_file_name(std::int64_t number);  // "shard-00000.safetensors"
// Return the number in such a name, or nothing for any other spelling.
std::optional<std::int64_t> parse_step_folder_name(std::string_view name);
std::optional<std::int64_t> parse_shard_file_name(std::string_view name);

// The name of a folder that is no checkpoint, such as ".tmp-<step>-<generation>".
struct TransientName {
  enum class Kind { attempt, replaced, trash };
  Kind kind = Kind::attempt;
  std::int64_t step = 0;
  std::int64_t generation = 0;
  std::string to_string() const;
};
std::optional<TransientName> parse_transient_name(std::string_view name);

// Removes a file or a whole folder, if it exists. Does not follow symbolic links.
void remove_tree(const std::filesystem::path& path);

}  // namespace trireme
