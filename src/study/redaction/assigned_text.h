// Finds the parts of an assignment, such as `password: x` or {"name": "password", "value": "x"}, in
// a text of any kind. Pure functions; all places are offsets in bytes, at most text.size().
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trireme {

// Skips blanks, also those of Unicode, and line ends behind a backslash.
std::size_t skip_blanks(std::string_view text, std::size_t at);
// Skips those and all line ends.
std::size_t skip_white(std::string_view text, std::size_t at);

// Skips backslashes, as in JSON within JSON, and a quote behind them. Returns what was skipped.
std::string_view quote_at(std::string_view text, std::size_t at);

// Returns the place behind the word that begins at `at`: letters, digits, '_', '-', '.', and
// escapes such as \u0077 that stand for one of them.
std::size_t end_of_word(std::string_view text, std::size_t at);
// Returns the word with its escapes resolved.
std::string plain_word(std::string_view word);

struct NamePhrase {
  std::string name;
  std::size_t begin = 0;
};
// Returns the name that ends with the word at [begin, end), if a value is assigned to it
// and other words stand before it: all words of a name in quotes, as in "wandb api key": x, or else
// the last word, or the last two if only both together name a secret. If the last two together name
// none, as "forward pass", the result is no secret's name. `begin` of the result is that of the
// line if at most three words begin it.
std::optional<NamePhrase> secret_phrase(std::string_view text, std::size_t begin, std::size_t end);

// Returns whether a key such as "name" or "value" belongs to a pair of a name and its value.
bool is_name_key(std::string_view key);
bool is_value_key(std::string_view key);
// Returns whether the word at [begin, end), such as "value", is the key of an object or a list item
// whose neighbouring key, such as "name", has a secret's name as its value.
bool is_value_of_secret(std::string_view text, std::size_t begin, std::size_t end);

}  // namespace trireme
