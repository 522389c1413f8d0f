// EntryValues finds where the values of a text's entries end, such as that of `password: x`, and
// whether they tell something. It remembers what it has found between brackets, so that this takes
// time linear in the bytes for all entries together. All places are offsets in bytes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "src/study/redaction/bracket_pairs.h"
#include "src/study/redaction/secret_text.h"

namespace trireme {

// Returns whether the name at `key` stands in the string of a connection to a database, behind a
// user, as in UID=sa;PWD=x.
bool is_behind_user(std::string_view text, std::size_t key);

class EntryValues {
 public:
  explicit EntryValues(std::string_view text) : text_(text) {}

  // Returns the end of the value at `begin`, behind its quote, of the entry that begins at `key`.
  // assignment: the first character of the operator, or a blank if there is none.
  std::size_t end(std::string_view name, std::size_t key, std::size_t begin, std::string_view quote,
                  char assignment);
  // Returns the end of the value below the rest of a line at `begin` that introduces it in YAML.
  std::size_t end_below(std::size_t key, std::size_t begin);

  // Returns whether a value of a secret's name tells nothing (secret_names.h).
  bool is_harmless(std::string_view name, TextRange value);

 private:
  bool is_bracket(std::size_t at) const;
  const BracketPairs& brackets();
  // Returns the end of the value at `begin` of an entry that begins a line between brackets of
  // YAML, or nothing if it is no such entry.
  std::optional<std::size_t> end_in_flow(std::size_t key, std::size_t begin);

  std::size_t end_of_plain(std::size_t key, std::size_t begin, bool with_blanks);
  bool is_comment(std::size_t line) const;
  // Returns the end of the last of the lines of comments behind the line end at `line_end`, or that
  // place itself.
  std::size_t end_of_comments(std::size_t line_end);

  std::string_view text_;
  std::optional<BracketPairs> brackets_;  // made when they are first needed
  std::array<TextRange, 4> plain_ = {};   // the latest values without quotes of each kind
  TextRange comments_;                    // the latest lines of comments, between two line ends
  // The latest values in brackets that hold no secret, so that entries within them need no search
  // of their own: first below any name that may count something, such as `tokens`, then below one
  // that may be a pass of a training step.
  std::array<TextRange, 2> harmless_ = {};
};

}  // namespace trireme
