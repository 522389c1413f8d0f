// BracketPairs knows which square and curly brackets of a text belong together, and where values
// between them end that have no quotes, as in YAML's flow mappings. Immutable once made; all places
// are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace trireme {

class BracketPairs {
 public:
  // Takes time linear in the bytes. A closing bracket of either kind closes the last open one.
  explicit BracketPairs(std::string_view text);

  // Returns the place behind the bracket that closes the one at `begin`, or the end of the line.
  std::size_t end(std::size_t begin) const;

  // Returns the end of the value at `begin` if the key at `key` is an entry between brackets that
  // begin like a list or mapping of YAML, or nothing if it is none. The value ends before the
  // bracket that closes them, before a comma at the end of a line or before another entry, and
  // before an entry on another line.
  std::optional<std::size_t> end_of_flow_value(std::size_t key, std::size_t begin) const;

 private:
  // A bracket, with npos for places that do not exist.
  struct Mark {
    std::size_t at = 0;
    std::size_t close = 0;   // the place of the bracket that closes this one
    std::size_t around = 0;  // the innermost bracket that is open behind this one
  };
  const Mark* mark_before(std::size_t at) const;
  std::optional<std::size_t> close_of_flow(std::size_t key) const;

  std::string_view text_;
  std::vector<Mark> marks_;  // by their places
};

}  // namespace trireme
