// How a step's folder of a node's memory goes to its partner node, over one connection:
//
//   sender:    begin {node, step}
//   sender:    file {name, bytes, xxh3}, then frames of raw bytes, as many as it takes; and so on
//   sender:    end
//   receiver:  done {whole, why}
//
// Plain values; reading refuses with a DataError what the writers don't make.
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
  std::string step = {};  // the folder's name
};
struct CopyFile {
  std::string name = {};
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;  // XXH3 of all of them
};
struct CopyEnd {};
struct CopyDone {
  bool whole = false;
  std::string why = {};  // not
};
using CopyMessage = std::variant<CopyBegin, CopyFile, CopyEnd, CopyDone>;

std::string to_json(const CopyMessage& message);
CopyMessage parse_copy_message(std::string_view text);

// "step-00000100-g000003"; and the files that such a folder may hold.
bool is_memory_step_name(std::string_view name);
bool is_step_file_name(std::string_view name);
// By which the newest is the greatest: generation, then step.
std::pair<std::int64_t, std::int64_t> age_of(std::string_view step_name);

}  // namespace trireme
