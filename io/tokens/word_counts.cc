#include "io/tokens/word_counts.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "io/tokens/unicode.h"
#include "src/base/check.h"

namespace trireme {
namespace {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>()(text);
  }
};

bool is_between(char32_t code, char32_t first, char32_t last) {
  return code >= first && code <= last;
}

Script script_of_character(char32_t code) {
  if (is_between(code, 0x600, 0x6FF) || is_between(code, 0x750, 0x77F) ||
      is_between(code, 0x8A0, 0x8FF) || is_between(code, 0xFB50, 0xFDFF) ||
      is_between(code, 0xFE70, 0xFEFC)) {
    const bool belongs = (character_class(code) & (kLetter | kCombining)) != 0;
    return belongs ? Script::arabic : Script::other;
  }
  const bool latin = is_between(code, 'A', 'Z') || is_between(code, 'a', 'z') ||
                     (is_between(code, 0xC0, 0x24F) && code != 0xD7 && code != 0xF7) ||
                     is_between(code, 0x1E00, 0x1EFF);
  return latin ? Script::latin : Script::other;
}

// WordSink counts the words of one thread.
class WordSink final : public TextSink, public PartSink {
 public:
  explicit WordSink(const PreTokenizer& pre_tokenizer) : pre_tokenizer_(pre_tokenizer) {}

  void take(std::string_view text) override {
    if (!is_utf8(text)) {
      const std::string valid = with_replacements(text);
      count(valid);
    } else {
      count(text);
    }
  }
  void end_document(bool /*is_whole*/) override {}

  void take(const TextPart& part) override {
    check(part.is_bytes, "the pre-tokenizer makes bytes");
    if (const auto at = words.find(part.text); at != words.end()) {
      ++at->second;
    } else {
      words.emplace(part.text, 1);
    }
  }

  std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>> words;
  std::array<std::int64_t, kScripts> spaced_words{};
  std::int64_t bytes = 0;

 private:
  void count(std::string_view text) {
    bytes += static_cast<std::int64_t>(text.size());
    pre_tokenizer_.split({text, false, true}, *this);
    Script script = Script::other;
    bool in_word = false;
    const auto end_word = [&] {
      spaced_words.at(static_cast<std::size_t>(script)) += in_word ? 1 : 0;
      in_word = false;
      script = Script::other;
    };
    for (std::size_t at = 0; at < text.size();) {
      const char32_t code = next_character(text, at);
      if ((character_class(code) & kSpace) != 0) {
        end_word();
        continue;
      }
      in_word = true;
      script = script == Script::other ? script_of_character(code) : script;
    }
    end_word();
  }

  const PreTokenizer& pre_tokenizer_;
};

}  // namespace

Script script_of(std::string_view text) {
  Script script = Script::other;
  for (std::size_t at = 0; at < text.size() && script == Script::other;) {
    script = script_of_character(next_character(text, at));
  }
  return script;
}

CountedWords count_words(const TextInputs& inputs, const std::vector<TextShard>& plans,
                         const PreTokenizer& pre_tokenizer, int threads) {
  CountedWords counted;
  std::unordered_map<std::string, std::int64_t, TextHash, std::equal_to<>> words;
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // guards counted, words and error
  std::exception_ptr error;
  const auto work = [&] {
    WordSink sink(pre_tokenizer);
    PackCounts found;
    try {
      for (std::size_t i = next++; i < plans.size(); i = next++) {
        found += read_texts(inputs, plans[i], sink, {});
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      error = error ? error : std::current_exception();
      next = plans.size();
      return;
    }
    const std::lock_guard lock(mutex);
    counted.inputs += found;
    counted.bytes += sink.bytes;
    for (std::size_t script = 0; script < kScripts; ++script) {
      counted.spaced_words.at(script) += sink.spaced_words.at(script);
    }
    while (!sink.words.empty()) {
      auto node = sink.words.extract(sink.words.begin());
      const std::int64_t count = node.mapped();
      node.mapped() = 0;
      const auto inserted = words.insert(std::move(node));
      inserted.position->second += count;
    }
  };
  std::vector<std::thread> workers;
  for (int i = 1; i < threads; ++i) {
    workers.emplace_back(work);
  }
  work();
  for (std::thread& worker : workers) {
    worker.join();
  }
  if (error) {
    std::rethrow_exception(error);
  }
  counted.words.assign(words.begin(), words.end());
  std::ranges::sort(counted.words);
  return counted;
}

}  // namespace trireme
