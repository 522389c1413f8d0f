#include "io/tokens/bpe_trainer.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <queue>
#include <unordered_map>

#include <fmt/format.h>

#include "io/tokens/byte_characters.h"
#include "src/base/check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using Symbol = std::int32_t;
using PairKey = std::uint64_t;

PairKey key_of(Symbol a, Symbol b) {
  return static_cast<PairKey>(a) << 32 | static_cast<PairKey>(b);
}

struct KeyHash {
  std::size_t operator()(PairKey key) const {
    key = (key ^ (key >> 29)) * 0xBF58476D1CE4E5B9U;
    return static_cast<std::size_t>(key ^ (key >> 32));
  }
};

// Candidate is a pair that may be merged next, with the words in which it was last found. Its count
// may be out of date.
struct Candidate {
  std::int64_t count = 0;
  PairKey pair = 0;
  std::vector<std::uint32_t> words = {};  // rising

  // The largest count comes first, of equal ones the smallest ids.
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

void add_word(std::vector<std::uint32_t>& words, std::uint32_t word) {
  if (words.empty() || words.back() != word) {
    words.push_back(word);
  }
}

// The tokens so far, by text.
class Vocabulary {
 public:
  explicit Vocabulary(const std::vector<std::string>& special) {
    for (const std::string& token : special) {
      if (!ids_.contains(token)) {
        (void)id_of(token);
      }
    }
    // Sorted by their numbers, byte characters are not in the order of the bytes.
    std::vector<std::size_t> bytes(256);
    std::iota(bytes.begin(), bytes.end(), std::size_t{0});
    std::ranges::sort(bytes, {}, [](std::size_t byte) { return kByteCharacters[byte]; });
    for (const std::size_t byte : bytes) {
      of_bytes_[byte] = id_of(to_byte_characters(std::string(1, static_cast<char>(byte))));
    }
  }

  // Returns the id of a token, which gets the next one if it is new.
  Symbol id_of(const std::string& text) {
    const auto [at, is_new] = ids_.emplace(text, static_cast<Symbol>(texts_.size()));
    if (is_new) {
      texts_.push_back(text);
    }
    return at->second;
  }
  Symbol of_byte(char byte) const { return of_bytes_[static_cast<unsigned char>(byte)]; }
  Symbol joined(Symbol a, Symbol b) {
    return id_of(texts_[static_cast<std::size_t>(a)] + texts_[static_cast<std::size_t>(b)]);
  }
  std::int64_t size() const { return std::ssize(texts_); }
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::unordered_map<std::string, Symbol> ids_;
  std::vector<std::string> texts_;
  std::array<Symbol, 256> of_bytes_{};
};

// Trainer holds the words as symbols and the counts of all pairs.
class BpeTraining {
 public:
  BpeTraining(const WordCounts& words, Vocabulary& vocabulary)
      : words_(words), vocabulary_(vocabulary) {
    std::unordered_map<PairKey, std::vector<std::uint32_t>, KeyHash> found;
    for (std::uint32_t word = 0; word < words.size(); ++word) {
      begins_.push_back(symbols_.size());
      for (const char byte : words[word].first) {
        symbols_.push_back(vocabulary.of_byte(byte));
      }
      lengths_.push_back(words[word].first.size());
      for (std::size_t i = 0; i + 1 < lengths_[word]; ++i) {
        const PairKey pair = key_of(symbols_[begins_[word] + i], symbols_[begins_[word] + i + 1]);
        counts_[pair] += words[word].second;
        add_word(found[pair], word);
      }
    }
    for (auto& [pair, in] : found) {
      queue_.push({counts_[pair], pair, std::move(in)});
    }
  }

  // Merges one pair after another until there are `vocab` tokens or no pair is frequent enough.
  std::vector<std::pair<Symbol, Symbol>> run(std::int64_t vocab, std::int64_t min_frequency) {
    std::vector<std::pair<Symbol, Symbol>> merges;
    while (vocabulary_.size() < vocab && !queue_.empty()) {
      // The queue gives its largest element as const, but it is removed at once.
      Candidate top = std::move(const_cast<Candidate&>(queue_.top()));
      queue_.pop();
      if (top.count != counts_[top.pair]) {
        top.count = counts_[top.pair];
        queue_.push(std::move(top));
        continue;
      }
      if (top.count < std::max<std::int64_t>(min_frequency, 1)) {
        break;
      }
      const auto a = static_cast<Symbol>(top.pair >> 32);
      const auto b = static_cast<Symbol>(top.pair & 0xFFFFFFFFU);
      merges.emplace_back(a, b);
      merge_in_words(top.words, a, b, vocabulary_.joined(a, b));
    }
    return merges;
  }

  std::int64_t length(std::size_t word) const { return static_cast<std::int64_t>(lengths_[word]); }

 private:
  void merge_in_words(const std::vector<std::uint32_t>& words, Symbol a, Symbol b, Symbol merged) {
    std::unordered_map<PairKey, std::vector<std::uint32_t>, KeyHash> grown;
    for (const std::uint32_t word : words) {
      merge_in_word(word, a, b, merged, grown);
    }
    for (auto& [pair, in] : grown) {
      if (const std::int64_t count = counts_[pair]; count > 0) {
        queue_.push({count, pair, std::move(in)});
      }
    }
  }

  // Merges from left to right. Neighbours are those at that moment: on their right not yet merged.
  void merge_in_word(std::uint32_t word, Symbol a, Symbol b, Symbol merged,
                     std::unordered_map<PairKey, std::vector<std::uint32_t>, KeyHash>& grown) {
    Symbol* const symbols = symbols_.data() + begins_[word];
    const std::int64_t times = words_[word].second;
    const std::size_t length = lengths_[word];
    std::size_t to = 0;
    const auto grow = [&](Symbol left, Symbol right) {
      counts_[key_of(left, right)] += times;
      add_word(grown[key_of(left, right)], word);
    };
    for (std::size_t at = 0; at < length;) {
      if (symbols[at] != a || at + 1 == length || symbols[at + 1] != b) {
        symbols[to++] = symbols[at++];
        continue;
      }
      if (to > 0) {
        counts_[key_of(symbols[to - 1], a)] -= times;
        grow(symbols[to - 1], merged);
      }
      at += 2;
      if (at < length) {
        counts_[key_of(b, symbols[at])] -= times;
        grow(merged, symbols[at]);
      }
      symbols[to++] = merged;
    }
    lengths_[word] = to;
  }

  const WordCounts& words_;
  Vocabulary& vocabulary_;
  std::vector<Symbol> symbols_;       // of all words, each in the place that it had first
  std::vector<std::size_t> begins_;   // of each word
  std::vector<std::size_t> lengths_;  // of each word now
  std::unordered_map<PairKey, std::int64_t, KeyHash> counts_;
  std::priority_queue<Candidate> queue_;
};

}  // namespace

TrainedBpe train_bpe(const WordCounts& words, const BpeTrainingOptions& options) {
  Vocabulary vocabulary(options.special);
  if (options.vocab < vocabulary.size() || options.vocab > INT32_MAX) {
    throw ConfigError(fmt::format(
        "a vocabulary of {} ids is not possible: the bytes and the special tokens alone need {}",
        options.vocab, vocabulary.size()));
  }
  check(words.size() < UINT32_MAX, "words have 32-bit numbers");
  BpeTraining training(words, vocabulary);
  TrainedBpe trained;
  trained.merges = training.run(options.vocab, options.min_frequency);
  for (std::size_t word = 0; word < words.size(); ++word) {
    trained.tokens_per_word.push_back(training.length(word));
  }
  trained.tokens = vocabulary.take();
  return trained;
}

}  // namespace trireme
