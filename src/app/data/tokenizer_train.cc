#include "src/app/data/tokenizer_train.h"

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/workers.h"
#include "io/tokens/byte_level_files.h"
#include "io/tokens/tokenizer_files.h"
#include "io/tokens/unicode.h"
#include "io/tokens/word_counts.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stopwatch.h"
#include "src/base/units.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

struct TrainTokenizerOptions {
  std::vector<std::string> inputs;
  std::vector<std::string> exclude;
  std::string out;
  std::string field = "text";
  std::string pattern = "llama3";
  std::vector<std::string> special;
  std::string end_token = "<|endoftext|>";
  std::int64_t vocab = 0;
  std::int64_t min_frequency = 2;
  std::int64_t threads = 0;
  bool json = false;
};

// Text that one thread reads at a time. A file of text is cut only above this size, so that the
// words are those of whole documents.
constexpr std::int64_t kBytesAtOnce = std::int64_t{64} << 20;
constexpr std::int64_t kMostThreads = 1024;
constexpr std::size_t kMostSpecial = 10000;
constexpr std::size_t kMostSpecialBytes = 1000;

// Returns the special tokens: the one that ends a document, then the others.
std::vector<std::string> special_tokens(const TrainTokenizerOptions& options) {
  std::vector<std::string> special = {options.end_token};
  special.insert(special.end(), options.special.begin(), options.special.end());
  if (special.size() > kMostSpecial) {
    throw ConfigError(
        fmt::format("{} special tokens are more than {}", special.size(), kMostSpecial));
  }
  std::set<std::string> seen;
  for (const std::string& token : special) {
    if (token.empty() || token.size() > kMostSpecialBytes || !is_utf8(token)) {
      throw ConfigError(
          fmt::format("a special token has 1 to {} bytes of UTF-8, and one here has {}",
                      kMostSpecialBytes, token.size()));
    }
    if (!seen.insert(token).second) {
      throw ConfigError(fmt::format("the special token {} is given twice", token));
    }
  }
  return special;
}

void check_options(const TrainTokenizerOptions& options) {
  const std::vector<std::string>& patterns = training_patterns();
  if (std::ranges::find(patterns, options.pattern) == patterns.end()) {
    throw ConfigError(fmt::format("unknown pattern '{}': expected {}", options.pattern,
                                  fmt::join(patterns, ", ")));
  }
  if (options.min_frequency < 1 || options.threads < 0 || options.threads > kMostThreads) {
    throw ConfigError(
        fmt::format("--min-frequency {} must be at least 1, and --threads {} from 0 to {}",
                    options.min_frequency, options.threads, kMostThreads));
  }
  std::error_code unknown;
  const bool is_file = fs::exists(options.out, unknown) && !fs::is_directory(options.out, unknown);
  if (is_file || fs::exists(fs::path(options.out) / "tokenizer.json", unknown)) {
    throw PolicyError(fmt::format("--out {} {}: choose another folder", options.out,
                                  is_file ? "exists" : "has a tokenizer.json"));
  }
}

// Fertility counts, of the words of one script, how many there are and their tokens.
struct Fertility {
  std::int64_t words = 0;
  std::int64_t tokens = 0;

  nlohmann::ordered_json json() const {
    return {{"words", words},
            {"tokens", tokens},
            {"fertility", words == 0 ? nlohmann::ordered_json()
                                     : nlohmann::ordered_json(static_cast<double>(tokens) /
                                                              static_cast<double>(words))}};
  }
  std::string text() const {
    return words == 0 ? "no words"
                      : fmt::format("{:.2f} tokens per word ({})",
                                    static_cast<double>(tokens) / static_cast<double>(words),
                                    counted(words, "word"));
  }
};

std::array<Fertility, kScripts> fertility_of(const CountedWords& counted_words,
                                             const TrainedBpe& trained) {
  std::array<Fertility, kScripts> fertility{};
  for (std::size_t i = 0; i < counted_words.words.size(); ++i) {
    const auto& [word, times] = counted_words.words[i];
    fertility.at(static_cast<std::size_t>(script_of(with_replacements(word)))).tokens +=
        times * trained.tokens_per_word[i];
  }
  for (std::size_t script = 0; script < kScripts; ++script) {
    fertility.at(script).words = counted_words.spaced_words.at(script);
  }
  return fertility;
}

void write_files(const TrainTokenizerOptions& options, const nlohmann::json& definition) {
  (void)BpeTokenizer(definition, options.end_token);  // it can be read
  const fs::path out = options.out;
  const bool is_new = !fs::exists(fs::symlink_status(out));
  const nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"eos_token", options.end_token}};
  try {
    make_directories(out);
    write_file_durably(out / "tokenizer_config.json", config.dump(1) + "\n");
    write_file_durably(out / "tokenizer.json", definition.dump(1) + "\n");
  } catch (const IoError&) {
    // A folder without all of its files would look like a tokenizer.
    std::error_code ignored;
    fs::remove(out / "tokenizer_config.json", ignored);
    fs::remove(out / "tokenizer.json", ignored);
    if (is_new) {
      fs::remove_all(out, ignored);
    }
    throw;
  }
}

void train(const TrainTokenizerOptions& options) {
  check_options(options);
  const std::vector<std::string> special = special_tokens(options);
  const InputFiles found = find_input_files(options.inputs, options.exclude, options.out);
  const Selection all;
  const int threads =
      options.threads > 0 ? static_cast<int>(options.threads) : available_processors();
  const Stopwatch watch;
  const CountedWords counted_words =
      count_words({found.files, all, options.field}, plan_shards(found.files, all, kBytesAtOnce),
                  PreTokenizer(byte_level_pre_tokenizer(options.pattern)), threads);
  const double count_seconds = watch.seconds();
  if (counted_words.words.empty()) {
    throw DataError("the inputs contain no text");
  }
  const TrainedBpe trained =
      train_bpe(counted_words.words, {options.vocab, options.min_frequency, special});
  const double merge_seconds = watch.seconds() - count_seconds;
  const nlohmann::json definition = byte_level_definition(trained, special, options.pattern);
  write_files(options, definition);
  const BpeTokenizer tokenizer(definition, options.end_token);

  const auto fertility = fertility_of(counted_words, trained);
  std::int64_t tokens = 0;
  for (const Fertility& each : fertility) {
    tokens += each.tokens;
  }
  const Fertility& arabic = fertility.at(static_cast<std::size_t>(Script::arabic));
  const Fertility& latin = fertility.at(static_cast<std::size_t>(Script::latin));
  const double rate = 1e-6 * static_cast<double>(counted_words.bytes) / count_seconds;
  if (options.json) {
    print_json({{"schema", 1},
                {"vocab", tokenizer.vocab()},
                {"merges", trained.merges.size()},
                {"bytes", counted_words.bytes},
                {"tokens", tokens},
                {"distinct_words", counted_words.words.size()},
                {"threads", threads},
                {"count_seconds", count_seconds},
                {"merge_seconds", merge_seconds},
                {"arabic", arabic.json()},
                {"latin", latin.json()},
                {"digest", tokenizer.digest()}});
    return;
  }
  fmt::print("read        {}, {} of text, {}; {:.1f} s, {:.1f} MB/s on {}\n",
             counted(counted_words.inputs.files, "file"), format_bytes(counted_words.bytes),
             counted(std::ssize(counted_words.words), "different word"), count_seconds, rate,
             counted(threads, "thread"));
  fmt::print("trained     {} ids, {}; {:.1f} s\n", tokenizer.vocab(),
             counted(std::ssize(trained.merges), "merge"), merge_seconds);
  if (tokenizer.vocab() < options.vocab) {
    fmt::print("            no other pair occurs {} times: the vocabulary stays below {}\n",
               options.min_frequency, options.vocab);
  }
  fmt::print("tokens      {}, {:.2f} bytes per token\n", tokens,
             static_cast<double>(counted_words.bytes) / static_cast<double>(tokens));
  fmt::print("Arabic      {}\nLatin       {}\n", arabic.text(), latin.text());
  fmt::print("written to  {}\ndigest      {}\n", printable(options.out), tokenizer.digest());
}

}  // namespace

void add_tokenizer_train(CommandLine& group) {
  CommandLine& command = group.add_command("train", "Train a byte-level BPE on texts");
  const auto options = std::make_shared<TrainTokenizerOptions>();
  command.add_option("INPUT", options->inputs, "Text files, JSON Lines files, and folders of them")
      .required();
  command.add_option("-o,--out", options->out, "The folder to write the tokenizer to")
      .required()
      .type_name("DIR");
  command.add_option("--vocab", options->vocab, "Number of token ids, with the special ones")
      .required()
      .type_name("N");
  command
      .add_option("--pattern", options->pattern,
                  "How text is cut into words: gpt2, llama3 or qwen2")
      .type_name("NAME");
  command.add_option("--end-of-document", options->end_token, "The token that ends a document")
      .type_name("TOKEN");
  command.add_option("--special", options->special, "Another special token; can be repeated")
      .one_value_per_use()
      .type_name("TOKEN");
  command
      .add_option("--min-frequency", options->min_frequency,
                  "Merge pairs that occur at least N times")
      .type_name("N");
  command.add_option("--field", options->field, "The field of JSON Lines files that holds the text")
      .type_name("NAME");
  command.add_option("--exclude", options->exclude, "Leave out names that match a shell pattern")
      .one_value_per_use()
      .type_name("PATTERN");
  command.add_option("--threads", options->threads, "Threads that read; 0: all usable cores")
      .type_name("N");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example:\n  trireme tokenizer train corpus/ --vocab 32000 --out tokenizer");
  command.callback([options] { train(*options); });
}

}  // namespace trireme
