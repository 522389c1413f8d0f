// Reads any bytes as an HDF5 file: as another program's tokens and documents, as `data convert`
// does, and as the corpus file `shard`, whose entry is given here. It must be refused with an
// error, or read within bounds.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "io/data/document_ends.h"
#include "io/data/shard_check.h"
#include "io/h5/h5_file.h"
#include "src/base/error.h"

// libhdf5 1.10 leaks buffers when it refuses a file.
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }
// libhdf5 believes the sizes in a file and refuses the file when malloc returns null. The sanitizer
// must let it: by default it ends a program that asks for more than 1 TiB.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

namespace trireme {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 20;

std::vector<std::int64_t> read(H5Integers& from, std::int64_t first) {
  std::vector<std::int64_t> values(
      static_cast<std::size_t>(std::min(from.size() - first, kMostElements)));
  from.read(first, static_cast<std::int64_t>(values.size()), values.data());
  return values;
}

void read_as_foreign(const std::string& path) {
  const H5File file = H5File::open_to_read(path);
  std::optional<H5Integers> tokens = file.integers("/tokens");
  if (!tokens) {
    return;
  }
  (void)read(*tokens, 0);
  (void)read(*tokens, std::max<std::int64_t>(tokens->size() - kMostElements, 0));
  std::optional<H5Integers> offsets = file.integers("/doc_offsets");
  if (offsets && offsets->size() <= kMostElements) {
    check_offsets(*offsets, tokens->size(), "input");
    DocumentEnds ends(&*offsets, tokens->size() / 2);
    ends.pass(tokens->size());
    if (ends.next() != DocumentEnds::kNone) {
      std::abort();
    }
  }
}

// Describes tests/fuzz/corpus/hdf5_fuzz/shard, which make_hdf5_corpus.py makes.
void read_as_shard(const std::string& path) {
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
  check_shard(path, entry, format);
}

template <class Read>
void refuses(Read read) {
  try {
    read();
  } catch (const Error&) {
    // The input was refused.
  }
}

}  // namespace
}  // namespace trireme

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  if (file < 0 || ::write(file, data, bytes) != static_cast<ssize_t>(bytes)) {
    std::abort();
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  trireme::refuses([&] { trireme::read_as_foreign(path); });
  trireme::refuses([&] { trireme::read_as_shard(path); });
  ::close(file);
  return 0;
}
