#include "io/checkpoint/memory/memory_slot.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Writes zeros if the file system can't reserve memory: missing memory would otherwise raise a
// signal (SIGBUS) during the copy.
void take_memory(File& file, std::int64_t bytes) {
  file.reserve(bytes);
  if (file.size() == bytes) {
    return;
  }
  const std::vector<char> zeros(1 << 20);
  for (std::int64_t at = 0; at < bytes;) {
    const std::int64_t part = std::min(bytes - at, static_cast<std::int64_t>(zeros.size()));
    file.write_at(at, zeros.data(), part);
    at += part;
  }
}

MappedMemory map_file(const File& file, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(round_up(bytes, kDataAlignment));
  void* data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (data == MAP_FAILED) {
    throw_errno(errno, "map", file.path());
  }
  (void)::madvise(data, size, MADV_HUGEPAGE);
  return {static_cast<std::byte*>(data), size};
}

}  // namespace

MemorySlot::MemorySlot(const fs::path& file, std::int64_t bytes, int threads)
    : file_(file), bytes_(bytes) {
  File opened = File::create_new(file);
  try {
    take_memory(opened, bytes);
    memory_.reset(map_file(opened, bytes));
  } catch (const IoError& e) {
    ::unlink(file.c_str());
    throw IoError(fmt::format("cannot reserve {} for a checkpoint in the node's memory: {}",
                              format_bytes(bytes), e.what()));
  }
  touch(memory_.get().data, bytes, threads);
}

bool MemorySlot::move_to(const fs::path& file) {
  if (::rename(file_.c_str(), file.c_str()) != 0) {
    if (errno == ENOENT) {
      return false;
    }
    throw_errno(errno, fmt::format("rename {} to", file_.string()), file);
  }
  file_ = file;
  return true;
}

void MemorySlot::remove() {
  memory_.reset();
  bytes_ = 0;
  (void)::unlink(file_.c_str());
}

}  // namespace trireme
