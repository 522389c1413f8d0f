#include "tests/fuzz/hdf5_input.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "io/data/document_ends.h"
#include "io/data/shard_check.h"
#include "io/h5/crash_guard.h"
#include "io/h5/h5_file.h"
#include "src/base/error.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

// libhdf5 1.10 leaks buffers when it refuses a file.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
// libhdf5 believes the sizes in a file and refuses the file when malloc returns null. The sanitizer
// must let it: by default it ends a program that asks for more than 1 TiB.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace trireme {
namespace {
namespace fs = std::filesystem;

constexpr std::int64_t kMostElements = std::int64_t{1} << 20;
// Small files take much less than this.
constexpr std::chrono::milliseconds kLimit{300};
// Exit codes of the other process: a sum of these, or 65.
constexpr int kTokensRead = 1;
constexpr int kShardAccepted = 2;

std::vector<std::int64_t> read(H5Integers& from, std::int64_t first) {
  std::vector<std::int64_t> values(
      static_cast<std::size_t>(std::min(from.size() - first, kMostElements)));
  from.read(first, static_cast<std::int64_t>(values.size()), values.data());
  return values;
}

// Returns whether there are tokens, and all were read.
bool read_as_foreign(const fs::path& path) {
  const CrashGuard guard(path);
  const H5File file = H5File::open_to_read(path, kLimit);
  std::optional<H5Integers> tokens = file.integers("/tokens");
  if (!tokens) {
    return false;
  }
  (void)read(*tokens, 0);
  (void)read(*tokens, std::max<std::int64_t>(tokens->size() - kMostElements, 0));
  std::optional<H5Integers> found = file.integers("/doc_offsets");
  if (found && found->size() <= kMostElements) {
    H5Array offsets(std::move(*found));
    check_offsets(offsets, tokens->size(), "input");
    DocumentEnds ends(&offsets, tokens->size() / 2);
    ends.pass(tokens->size());
    require(ends.next() == DocumentEnds::kNone);
  }
  return true;
}

// Describes tests/fuzz/corpus/hdf5_fuzz/shard, which make_hdf5_corpus.py makes.
bool read_as_shard(const fs::path& path) {
  ShardEntry entry;
  entry.path = "shards/00000.h5";
  entry.bytes = 4144;
  entry.n_tokens = 16;
  entry.n_docs = 1;
  entry.data_offset = 4112;
  entry.data_bytes = 32;
  entry.docs_offset = 4096;
  entry.docs_bytes = 16;
  ShardFormat format;
  format.vocab = 257;
  format.tokenizer = "bytes";
  format.tokenizer_digest = "9678f131598d06d9aab86d0bf9acd610535f3239ff3f2b6e6ec67496d0323110";
  check_shard(path, entry, format, kLimit);
  return true;
}

template <class Read>
bool accepts(Read read) {
  try {
    return read();
  } catch (const Error&) {
    return false;
  }
}

// Runs in the other process, whose stderr is `output`.
[[noreturn]] void read_and_end(const fs::path& path, int output) {
  ::dup2(output, STDERR_FILENO);
  for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    ::signal(number, SIG_DFL);
  }
  int code = 0;
  code += accepts([&] { return read_as_foreign(path); }) ? kTokensRead : 0;
  code += accepts([&] { return read_as_shard(path); }) ? kShardAccepted : 0;
  ::_exit(code);
}

void print_output(int output) {
  ::lseek(output, 0, SEEK_SET);
  std::array<char, 4096> block{};
  for (ssize_t bytes = 0; (bytes = ::read(output, block.data(), block.size())) > 0;) {
    (void)std::fwrite(block.data(), 1, static_cast<std::size_t>(bytes), stderr);
  }
}

}  // namespace

Hdf5Outcome read_hdf5_input(std::string_view input) {
  static const TempFolder folder;
  const fs::path path = folder.path() / "input.h5";
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  require(file != nullptr && std::fwrite(input.data(), 1, input.size(), file) == input.size() &&
          std::fclose(file) == 0);
  const int output = ::memfd_create("output", MFD_CLOEXEC);
  require(output >= 0);
  const pid_t child = ::fork();
  require(child >= 0);
  if (child == 0) {
    read_and_end(path, output);
  }
  int status = 0;
  require(::waitpid(child, &status, 0) == child);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  const bool contained = code == static_cast<int>(ExitCode::bad_data);
  if (!contained && (code < 0 || code > kTokensRead + kShardAccepted)) {
    print_output(output);
    std::fprintf(stderr, "the process that read the input ended with wait status 0x%x\n",
                 static_cast<unsigned>(status));
    std::abort();
  }
  ::close(output);
  if (contained) {
    return {.contained = true};
  }
  return {.tokens_read = (code & kTokensRead) != 0, .shard_accepted = (code & kShardAccepted) != 0};
}

}  // namespace trireme
