#include "slurm/health/node_rates.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/stopwatch.h"

namespace trireme {
namespace {

constexpr double kMega = 1e6;
// Size of the three arrays per thread, and of all threads together; other programs may need memory,
// too.
constexpr std::int64_t kTriadBytes = std::int64_t{96} << 20;
constexpr std::int64_t kMostTriadBytes = std::int64_t{2} << 30;
constexpr std::int64_t kBlock = std::int64_t{8} << 20;
constexpr std::int64_t kSharedBytes = std::int64_t{64} << 20;

struct AlignedFree {
  void operator()(void* memory) const { std::free(memory); }
};
using Block = std::unique_ptr<void, AlignedFree>;

Block aligned_block(std::int64_t bytes) {
  constexpr std::size_t kPage = 4096;
  // aligned_alloc() requires a multiple of the alignment.
  const std::size_t whole = (static_cast<std::size_t>(bytes) + kPage - 1) / kPage * kPage;
  void* memory = std::aligned_alloc(kPage, whole);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return Block(memory);
}

// Computes a = b + s c. values: f64 [3 x count], the arrays a, b and c.
void triad(double* values, std::int64_t count) {
  constexpr double kScale = 0.5;
  double* a = values;
  const double* b = values + count;
  const double* c = values + 2 * count;
  for (std::int64_t i = 0; i < count; ++i) {
    a[i] = b[i] + kScale * c[i];
  }
}

// Calls `work` with the numbers 0 to threads - 1, each on its own thread, and waits for all.
template <class Work>
void on_threads(int threads, const Work& work) {
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) {
    others.emplace_back([&work, i] { work(i); });
  }
  work(0);
}

// Opens a file and removes its name, so that nothing is left behind.
File nameless_file(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / fmt::format(".trireme-health-{}", ::getpid());
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  File file = File::create_new(path);
  std::filesystem::remove(path, ignored);
  return file;
}

}  // namespace

std::vector<double> memory_rates(int threads, int rounds) {
  constexpr auto kElement = static_cast<std::int64_t>(sizeof(double));
  const std::int64_t count = std::min(kTriadBytes, kMostTriadBytes / threads) / 3 / kElement;
  const std::int64_t bytes = 3 * count * kElement;
  std::vector<Block> blocks(static_cast<std::size_t>(threads));
  // Each thread touches its own memory first, so that the kernel places it on the thread's NUMA
  // node.
  on_threads(threads, [&](int i) {
    Block& block = blocks[static_cast<std::size_t>(i)];
    block = aligned_block(bytes);
    std::fill_n(static_cast<double*>(block.get()), 3 * count, 1.0);
  });
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const Stopwatch watch;
    on_threads(threads, [&](int i) {
      triad(static_cast<double*>(blocks[static_cast<std::size_t>(i)].get()), count);
    });
    rates.push_back(static_cast<double>(bytes) * threads / watch.seconds() / kMega);
  }
  return rates;
}

DiskRates disk_rates(const std::filesystem::path& folder, std::int64_t bytes,
                     std::chrono::duration<double> limit) {
  File file = nameless_file(folder);
  // This may fail: tmpfs and some other file systems refuse O_DIRECT.
  (void)::fcntl(file.fd(), F_SETFL, O_DIRECT);
  const Block block = aligned_block(kBlock);
  std::memset(block.get(), 0x5a, static_cast<std::size_t>(kBlock));
  DiskRates rates;
  const double half = limit.count() / 2;
  const Stopwatch writing;
  std::int64_t written = 0;
  while (written < bytes && (written == 0 || writing.seconds() < half)) {
    const Stopwatch watch;
    file.write_at(written, block.get(), kBlock);
    written += kBlock;
    if (written >= bytes) {
      file.sync();
    }
    rates.write.push_back(static_cast<double>(kBlock) / watch.seconds() / kMega);
  }
  file.sync();
  file.wont_need(0, written);
  const Stopwatch reading;
  for (std::int64_t at = 0; at < written && (at == 0 || reading.seconds() < half); at += kBlock) {
    const Stopwatch watch;
    file.read_exactly_at(at, block.get(), kBlock);
    rates.read.push_back(static_cast<double>(kBlock) / watch.seconds() / kMega);
  }
  return rates;
}

std::vector<double> shared_memory_rates(const std::filesystem::path& folder, int rounds) {
  std::vector<double> rates;
  for (int round = 0; round < rounds; ++round) {
    const File file = nameless_file(folder);
    if (::ftruncate(file.fd(), kSharedBytes) != 0) {
      throw_errno(errno, "enlarge", file.path());
    }
    const Stopwatch watch;
    // pwrite() reports a full tmpfs as an error, where a mapping would raise SIGBUS.
    const Block block = aligned_block(kBlock);
    std::memset(block.get(), 0x5a, static_cast<std::size_t>(kBlock));
    for (std::int64_t at = 0; at < kSharedBytes; at += kBlock) {
      const ssize_t written =
          ::pwrite(file.fd(), block.get(), static_cast<std::size_t>(kBlock), at);
      if (written != kBlock) {
        throw_errno(written < 0 ? errno : ENOSPC, "write", file.path());
      }
    }
    rates.push_back(static_cast<double>(kSharedBytes) / watch.seconds() / kMega);
  }
  return rates;
}

}  // namespace trireme
