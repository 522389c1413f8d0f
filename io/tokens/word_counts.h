// Counts the words into which a pre-tokenizer cuts texts, on several threads, for the training of a
// tokenizer. The result does not depend on the number of threads.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "io/data/text_reading.h"
#include "io/tokens/bpe_trainer.h"
#include "io/tokens/pre_tokenizer.h"

namespace trireme {

// Scripts for which fertility, the tokens per word, is reported.
enum class Script : std::uint8_t { arabic, latin, other };
inline constexpr std::size_t kScripts = 3;

// Returns the script of the first character of text (valid UTF-8) that belongs to one of them:
// letters and marks of the blocks of Unicode for Arabic and for Latin.
Script script_of(std::string_view text);

struct CountedWords {
  WordCounts words;  // sorted
  // Parts of texts between white space, by script: what people call words.
  std::array<std::int64_t, kScripts> spaced_words{};
  std::int64_t bytes = 0;  // of text, with U+FFFD for what is not UTF-8
  PackCounts inputs;
};

// Each of `plans` is read by one thread at a time. The pre-tokenizer makes bytes. Throws what
// read_texts() throws.
CountedWords count_words(const TextInputs& inputs, const std::vector<TextShard>& plans,
                         const PreTokenizer& pre_tokenizer, int threads);

}  // namespace trireme
