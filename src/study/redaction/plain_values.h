// Finds where a value without quotes ends, such as that of DB_PASS=a,b and of password: it's. Pure
// functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace trireme {

// Returns the end of the value at `begin`: a line end, a tab, a quote that is not within a word, a
// comma, semicolon or closing bracket behind which the value cannot go on, and a blank unless
// with_blanks. The value goes on behind a comma if another word follows at once that is no entry as
// in "a=b,c=d", and behind a backslash that escapes something. A call with a text in quotes, such
// as Some("x"), belongs to it.
// parameter: whether the value is a parameter's of a URL, which ends before "&".
std::size_t end_of_plain_value(std::string_view text, std::size_t begin, bool with_blanks,
                               bool parameter = false);

// Returns the place behind the backslashes at `at` and the sign that they escape, or `at` if they
// end a value without quotes: before a line end and, within a text in quotes, before one of its
// quotes and in "\n", "\r" and "\t".
std::size_t behind_escape(std::string_view text, std::size_t at);
// Returns whether a quote is open before `at` on its line, or the line is too long to tell.
bool may_be_in_string(std::string_view text, std::size_t at);
// Returns the end of the texts in quotes that follow the one that ends at `at`, with blanks between
// them, and are no keys; or `at` if there are none.
std::size_t end_of_texts(std::string_view text, std::size_t at);

// Returns the end of the value at `begin` of a name at `name`, if a quote opens right before the
// name and closes on the same line, as in 'DB_PASS=a b'.
std::optional<std::size_t> end_of_quoted_entry(std::string_view text, std::size_t name,
                                               std::size_t begin);

}  // namespace trireme
