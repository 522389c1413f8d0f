// Functions on text that do what Python's methods of str do, for templates that were written for
// it. Texts are UTF-8. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Remove white space, as Python's str.strip() knows it, from the ends.
std::string_view lstripped(std::string_view text);
std::string_view rstripped(std::string_view text);
inline std::string_view stripped(std::string_view text) { return lstripped(rstripped(text)); }
// Remove those characters from the ends.
std::string_view lstripped(std::string_view text, std::string_view characters);
std::string_view rstripped(std::string_view text, std::string_view characters);

// Returns where a text occurs first, or npos. The time grows with the sum of both sizes.
std::size_t find_text(std::string_view text, std::string_view what);

// Cuts text at white space, or at a separator, which is not empty. most: cuts; negative for any
// number.
std::vector<std::string_view> split_words(std::string_view text);
std::vector<std::string_view> split_at(std::string_view text, std::string_view separator,
                                       std::int64_t most);
// Replaces all occurrences. from: not empty.
std::string with_replaced(std::string_view text, std::string_view from, std::string_view to);

// Returns the number of characters.
std::int64_t characters(std::string_view text);
// Returns the beginning of each character, and the size of the text.
std::vector<std::size_t> character_starts(std::string_view text);

// Returns the value of a string literal without its quotes; nothing if an escape is not known.
std::optional<std::string> unescaped(std::string_view literal);
// Returns the digits that Python prints for a number.
std::string python_digits(double x);
// Returns what stands between the quotes of a JSON string, as json.dumps(ensure_ascii=False) writes
// it.
std::string json_escaped(std::string_view text);

}  // namespace trireme
