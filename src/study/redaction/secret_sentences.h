// Finds secrets in sentences and prompts, such as "the API key was changed from 'a' to 'b'". Pure
// functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "src/study/redaction/secret_text.h"

namespace trireme {

// Returns whether the words at [begin, end) name a secret in a sentence: one word, or with the one
// before it, as in "API key". The word "pass" alone is rather a part of a training step.
bool is_named_in_sentence(std::string_view text, std::size_t begin, std::size_t end);

// Returns the values of a name that ends at `at` in a sentence: what a verb, "from", "to" or an
// arrow connects with the name, also if the name's owner stands between, as in "the password of
// root is X", and the other values of a list or of a change. Without quotes, ordinary words, as in
// "the password is wrong", are no values.
std::vector<TextRange> values_in_sentence(std::string_view text, std::size_t at);

// Returns the value behind the colon in a prompt such as "password for root: X", of which the name
// ends at `at`, or none.
std::vector<TextRange> value_of_prompt(std::string_view text, std::size_t at);

// Returns whether a word of a sentence may be a secret: it has digits, signs or capitals where
// ordinary words have none, or is very long.
bool looks_secret(std::string_view word);

}  // namespace trireme
