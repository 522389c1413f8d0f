// Runs the fuzz targets without a fuzzer, so that programs of any compiler can run them: each file
// of a target's corpus unchanged, then with random changes that are the same in every run.
//
//   fuzz_test CORPUS [ROUNDS | SECONDS"s"] [TARGET ...]
//
// Tries ROUNDS changed inputs per file (default 200), or as many as fit into SECONDS per target. An
// input that ends the process is written to fuzz-crash in the working folder.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include "src/base/philox.h"
#include "tests/fuzz/fuzz_table.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// The target and input being tried, for the signal handler.
const char* target_name = "";
std::string input;

// Calls only functions that are safe in a signal handler.
void keep_input(int signal) {
  const int file = ::open("fuzz-crash", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  (void)!::write(file, input.data(), input.size());
  for (const char* text : {"fuzz: ", target_name, " ended on the input in fuzz-crash\n"}) {
    (void)!::write(STDERR_FILENO, text, std::char_traits<char>::length(text));
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void run(const FuzzTarget& target, std::string text) {
  input = std::move(text);
  target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
}

// A source of random numbers, which are the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : seed_(seed) {}
  std::size_t below(std::size_t end) { return mix64(seed_ + 0x9e3779b97f4a7c15 * ++drawn_) % end; }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

const std::vector<std::string>& telling_texts() {
  static const std::vector<std::string> texts = {"0",
                                                 "-1",
                                                 "1",
                                                 "9223372036854775807",
                                                 "-9223372036854775808",
                                                 "18446744073709551615",
                                                 "{}",
                                                 "[]",
                                                 "null",
                                                 "1152921504606846976",
                                                 "4294967296",
                                                 "1e308",
                                                 "",
                                                 "\"",
                                                 "\n",
                                                 "nan",
                                                 "true",
                                                 std::string(1, '\0'),
                                                 "[",
                                                 "{",
                                                 ":",
                                                 "\xff",
                                                 "\x1b[2J",
                                                 "../"};
  return texts;
}

// Makes one change at a random place: flips a bit, removes or doubles bytes, inserts a special
// text, replaces a number or word by one, or copies a part of another input.
void change(std::string& text, const std::vector<std::string>& corpus, Dice& dice) {
  const std::size_t at = dice.below(text.size() + 1);
  const std::size_t left = text.size() - at;
  const std::string& telling = telling_texts()[dice.below(telling_texts().size())];
  switch (dice.below(6)) {
    case 0:
      if (left > 0) {
        text[at] = static_cast<char>(text[at] ^ (1 << dice.below(8)));
      }
      break;
    case 1:
      text.erase(at, dice.below(std::min<std::size_t>(left, 16) + 1));
      break;
    case 2:
      text.insert(at, text.substr(at, dice.below(std::min<std::size_t>(left, 64) + 1)));
      break;
    case 3:
      text.insert(at, telling);
      break;
    case 4: {
      const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
      const auto begin =
          std::find_if(text.begin() + static_cast<std::ptrdiff_t>(at), text.end(), is_word);
      const auto end = std::find_if_not(begin, text.end(), is_word);
      text.replace(begin, end, telling);
      break;
    }
    default: {
      const std::string& other = corpus[dice.below(corpus.size())];
      const std::size_t from = dice.below(other.size() + 1);
      text.insert(at, other.substr(from, dice.below(64)));
    }
  }
}

struct Effort {
  std::int64_t rounds = 200;  // per input
  double seconds = 0;         // per target; 0 means as long as the rounds take
};

// Returns the number of inputs that were run.
std::int64_t exercise(const FuzzTarget& target, const std::vector<std::string>& corpus,
                      const Effort& effort) {
  target_name = target.name.c_str();
  std::int64_t done = 0;
  for (const std::string& text : corpus) {
    run(target, text);
    ++done;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto in_time = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() <
           effort.seconds;
  };
  const std::int64_t most = effort.seconds > 0
                                ? std::numeric_limits<std::int64_t>::max()
                                : effort.rounds * static_cast<std::int64_t>(corpus.size());
  for (std::int64_t i = 0; i < most && (effort.seconds == 0 || in_time()); ++i) {
    Dice dice(static_cast<std::uint64_t>(i));
    std::string text = corpus[static_cast<std::size_t>(i) % corpus.size()];
    for (std::size_t changes = 1 + dice.below(4); changes > 0; --changes) {
      change(text, corpus, dice);
    }
    run(target, std::move(text));
    ++done;
  }
  return done;
}

std::vector<std::string> read_corpus(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> corpus;
  for (const fs::path& path : files) {
    std::ifstream file(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  if (corpus.empty()) {
    throw std::runtime_error(folder.string() + " holds no input");
  }
  return corpus;
}

int replay(const std::vector<std::string>& arguments) {
  Effort effort;
  if (arguments.size() > 1) {
    const int number = std::stoi(arguments[1]);
    if (arguments[1].ends_with('s')) {
      effort.seconds = number;
    } else {
      effort.rounds = number;
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    ::signal(signal, keep_input);
  }
  std::int64_t all = 0;
  for (const FuzzTarget& target : fuzz_targets()) {
    const auto end = arguments.end();
    if (arguments.size() > 2 && std::find(arguments.begin() + 2, end, target.name) == end) {
      continue;
    }
    const std::vector<std::string> corpus = read_corpus(fs::path(arguments[0]) / target.name);
    const std::int64_t done = exercise(target, corpus, effort);
    fmt::print("{:<24} {:>9} inputs from {} of the corpus\n", target.name, done, corpus.size());
    std::fflush(stdout);
    all += done;
  }
  fmt::print("{:<24} {:>9} inputs\n", "all", all);
  return all > 0 ? 0 : 2;
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: fuzz_test CORPUS [ROUNDS | SECONDSs] [TARGET ...]\n");
    return 2;
  }
  return trireme::replay({argv + 1, argv + argc});
}
