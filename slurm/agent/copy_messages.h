// Defines the messages with which an agent copies the folder of one step from its node's memory to
// the partner node, over one connection:
//
//   sender:    begin {node, step}
//   sender:    file {name, bytes, xxh3}, then its bytes in frames; repeated for every file
//   sender:    end
//   receiver:  done {whole, why}
//
// The message types are plain values. Parsing throws DataError for text that the writers cannot
// have produced.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace trireme {

inline constexpr std::int64_t kCopyChunkBytes = std::int64_t{1} << 20;

struct CopyBegin {
  std::string node = {};
  std::string step = {};  // name of the step's folder
};
struct CopyFile {
  std::string name = {};
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;  // XXH3 of the whole file
};
struct CopyEnd {};
struct CopyDone {
  bool whole = false;
  std::string why = {};  // the reason if the copy is not whole
};
using CopyMessage = std::variant<CopyBegin, CopyFile, CopyEnd, CopyDone>;

std::string to_json(const CopyMessage& message);
CopyMessage parse_copy_message(std::string_view text);

// Return whether a name is that of a step's folder in a node's memory, such as
// "step-00000100-g000003", and whether it is that of a file which such a folder may contain.
bool is_memory_step_name(std::string_view name);
bool is_step_file_name(std::string_view name);
// Returns (generation, step). The newest step has the greatest pair.
std::pair<std::int64_t, std::int64_t> age_of(std::string_view step_name);

}  // namespace trireme
