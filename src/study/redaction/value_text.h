// Finds where the value of an assignment ends, in YAML, TOML, shells and other texts. Pure
// functions; all places are offsets in bytes, at most text.size().
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trireme {

bool is_blank(char c);  // a blank or a tab
std::size_t end_of_line(std::string_view text, std::size_t at);
// Returns the line up to `at`, or its last 256 bytes, in which words explain a name.
std::string_view line_before(std::string_view text, std::size_t at);
// Returns the first of the characters, or the end of the text.
std::size_t first_of(std::string_view text, std::string_view characters, std::size_t at);
// Does the same, but takes entities of XML such as &lt; for one character each.
std::size_t first_of_plain(std::string_view text, std::string_view characters, std::size_t at);
// Returns whether the text before `at` on its line consists of blanks, dashes of a list and the
// question mark of YAML's explicit keys, at most 4 KiB of them.
bool begins_line(std::string_view text, std::size_t at);

// Returns the length of an operator such as ":", "=", ":=", "+=" or "=>", or 0.
std::size_t assignment_at(std::string_view text, std::size_t at);

// Returns the place of the quote that ends a text: one with as many backslashes as that at its
// begin, or three; escaped backslashes may stand before it, and '' and "" stand for a quote in the
// text. Lines that follow belong to the text if
// they are indented, and all lines up to the quote if `any_line`.
std::size_t end_of_quote(std::string_view text, std::size_t begin, std::string_view quote,
                         bool any_line = false);
// Returns the quotes that are open before `at` on its line.
std::string open_quotes(std::string_view text, std::size_t at);
// Returns the end of a shell's word, such as "a"'b'c, of which all before `at` is known. A quote
// that is open around it ends it.
std::size_t end_of_shell_word(std::string_view text, std::size_t at, std::string_view open);
// Returns the end of an argument of a command that begins at `at`, with all its parts in quotes, as
// in jane:'a b'"c". open: the quotes around it.
std::size_t end_of_argument(std::string_view text, std::size_t at, std::string_view open);

// Returns the end of the lines below `at` that are indented deeper than the key at `key`, and of
// lists that are not, without the last line end; or the end of the line at `at` if there are none.
std::size_t end_of_block(std::string_view text, std::size_t at, std::size_t key, bool lists);
// Returns whether what is left of the line at `at` only introduces a value in YAML below it, such
// as "|", ">-", a tag, an anchor or a comment.
bool introduces_block(std::string_view text, std::size_t at);

// Returns whether a comma at this place is followed by a quoted text that is no key, as in
// ("WANDB_API_KEY", "x").
bool is_pair(std::string_view text, std::size_t comma);
// Returns the end of the texts in quotes behind the one that ends at `at`, as in
// user, password = "jane", "x"; or `at` if there are none. key: the place of the last name.
std::size_t end_of_tuple(std::string_view text, std::size_t key, std::size_t at);
// Returns whether a value of JSON begins here, which may stand below its key.
bool begins_json(std::string_view text, std::size_t at);
// Returns whether a key in quotes begins here, as on the line behind one that was cut off.
bool is_quoted_key(std::string_view text, std::size_t at);
// Returns whether a name is one of those behind "machine" or "login", on its line or on one of
// those before it.
bool follows_netrc(std::string_view text, std::size_t begin);
// Returns whether an entry of YAML such as "? password\n: x" begins before this key.
bool is_explicit_key(std::string_view text, std::size_t key);
// Returns the place behind the tags and anchors of YAML at this place, at most four.
std::size_t end_of_tags(std::string_view text, std::size_t at);
// Returns the end of the value at `begin` if it is in quotes, a header's, or one that ends with its
// line or below it; or nothing for others (plain_values.h) and those in brackets. assignment: the
// first character of the operator, or a blank if there is none. key: the place where the entry
// begins.
std::optional<std::size_t> end_of_value(std::string_view text, std::size_t begin,
                                        std::string_view quote, std::string_view name,
                                        char assignment, std::size_t key);

}  // namespace trireme
