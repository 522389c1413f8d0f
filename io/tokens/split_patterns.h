// Splits text as the regular expressions of well-known tokenizers do, without an engine for
// regular expressions: one hand-written scanner for each. Pure functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace trireme {

// Returns the end of the match that starts at byte `at` < text.size(). text: valid UTF-8. The
// patterns match at every byte where a character starts.
using SplitScanner = std::size_t (*)(std::string_view text, std::size_t at);

// The regular expression of GPT-2, which the pre-tokenizer ByteLevel uses, too.
std::size_t scan_gpt2(std::string_view text, std::size_t at);

// Returns null for an expression without a scanner.
SplitScanner scanner_of(std::string_view regex);

// Returns the regular expression of "gpt2", "llama3", "qwen2" or "tekken"; "" for another name.
std::string_view regex_named(std::string_view name);

}  // namespace trireme
