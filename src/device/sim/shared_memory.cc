#include "src/device/sim/shared_memory.h"

#include <cstdlib>
#include <cstring>
#include <vector>

#include <link.h>
#include <sys/mman.h>

#include "src/device/sim/block.h"
#include "src/device/sim/kernel_thread.h"

// Null in programs without sanitizers. Their runtime may keep thread_local variables of its own.
extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}

namespace sim {
namespace {

constexpr std::size_t kSharedAlignment = 128;
constexpr std::size_t kRoom = 256 << 10;  // of at least kMaxSharedBytes
constexpr std::size_t kGuard = 64 << 10;
static_assert(kRoom >= kMaxSharedBytes);

std::byte* shared_start = nullptr;
std::size_t shared_bytes = 0;

std::byte* reserve_shared() {
  void* memory = ::mmap(nullptr, kRoom + kGuard, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED ||
      ::mprotect(static_cast<std::byte*>(memory) + kRoom, kGuard, PROT_NONE) != 0) {
    std::abort();
  }
  return static_cast<std::byte*>(memory);
}

// The thread_local variables of this program on the calling thread.
struct ThreadLocals {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

ThreadLocals thread_locals_of_program() {
  ThreadLocals found;
  if (!StaticShared::is_filled()) {
    return found;
  }
  const auto take_first = [](dl_phdr_info* program, std::size_t, void* to) {
    for (int at = 0; at < program->dlpi_phnum; ++at) {
      if (program->dlpi_phdr[at].p_type == PT_TLS && program->dlpi_tls_data != nullptr) {
        *static_cast<ThreadLocals*>(to) = {static_cast<std::byte*>(program->dlpi_tls_data),
                                           program->dlpi_phdr[at].p_memsz};
      }
    }
    return 1;  // the program itself is the first
  };
  ::dl_iterate_phdr(take_first, &found);
  return found;
}

ThreadLocals program_locals;
std::vector<std::byte> saved_locals;

}  // namespace

void use_dynamic_shared(std::size_t bytes) {
  static std::byte* const room = reserve_shared();
  shared_bytes = (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
  shared_start = room + kRoom - shared_bytes;
}

void clear_dynamic_shared() { std::memset(shared_start, 0xFF, shared_bytes); }

bool is_behind_shared(const void* address) {
  const std::byte* end = shared_start + shared_bytes;
  return shared_start != nullptr && address >= end && address < end + kGuard;
}

void* dynamic_shared_memory() { return shared_start; }

bool StaticShared::is_filled() { return __asan_init == nullptr && __tsan_init == nullptr; }

StaticShared::StaticShared() {
  if (program_locals.data == nullptr) {
    program_locals = thread_locals_of_program();
    saved_locals.resize(program_locals.bytes);
  }
  if (program_locals.bytes > 0) {
    std::memcpy(saved_locals.data(), program_locals.data, program_locals.bytes);
    std::memset(program_locals.data, 0xFF, program_locals.bytes);
  }
}

StaticShared::~StaticShared() {
  if (program_locals.bytes > 0) {
    std::memcpy(program_locals.data, saved_locals.data(), program_locals.bytes);
  }
}

}  // namespace sim
