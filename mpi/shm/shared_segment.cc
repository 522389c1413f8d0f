#include "mpi/shm/shared_segment.h"

#include <cerrno>
#include <cstring>
#include <random>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr std::uint64_t kMagic = 0x31'6d'68'73'65'72'69'74;  // "tireshm1"
constexpr std::int64_t kHugePage = std::int64_t{2} << 20;

[[noreturn]] void refuse(const std::string& what, int error) {
  throw ConfigError(
      fmt::format("the ranks of this host cannot share memory: {}: {}. Ranks in containers need a "
                  "common PID namespace and the same user; otherwise set comm.backend=mpi",
                  what, std::strerror(error)));
}

std::uint64_t random_bits() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// Returns whether a file may have this size. Exceeding `ulimit -f` would raise a signal, so the
// limit is checked first.
bool file_may_have(std::int64_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
         static_cast<rlim_t>(bytes) <= limit.rlim_cur;
}

// Checks the header before the file is mapped, because with different PID namespaces this may be
// any process's file.
void check_identity(int fd, const SegmentAddress& address, const std::string& path) {
  SegmentHeader found;
  const ssize_t got = ::pread(fd, &found, sizeof(found), 0);
  if (got != static_cast<ssize_t>(sizeof(found)) || found.magic != kMagic ||
      found.nonce != address.nonce) {
    refuse(path + " is not the peer's segment (is the peer in another PID namespace?)", ESTALE);
  }
}

}  // namespace

std::string SegmentAddress::text() const {
  return fmt::format("{} {} {} {}", pid, fd, reserve_bytes, nonce);
}

SegmentAddress SegmentAddress::parse(const std::string& text) {
  std::istringstream in(text);
  SegmentAddress address;
  std::string rest;
  in >> address.pid >> address.fd >> address.reserve_bytes >> address.nonce;
  if (!in || in >> rest || address.pid <= 0 || address.fd < 0 ||
      address.reserve_bytes < SharedSegment::kHeaderBytes) {
    throw CommError(fmt::format("'{}' is not a valid address of a peer's segment", text));
  }
  return address;
}

std::shared_ptr<SharedSegment> SharedSegment::make(std::int64_t reserve_bytes) {
  FileDescriptor fd(::memfd_create("trireme", MFD_CLOEXEC));
  if (!fd) {
    refuse("memfd_create", errno);
  }
  if (!file_may_have(kHeaderBytes)) {
    refuse(fmt::format("a file of {} (ulimit -f)", format_bytes(kHeaderBytes)), EFBIG);
  }
  if (::ftruncate(fd.get(), kHeaderBytes) != 0) {
    refuse("ftruncate", errno);
  }
  const SegmentAddress address{::getpid(), fd.get(), reserve_bytes, random_bits()};
  std::shared_ptr<SharedSegment> segment(new SharedSegment(std::move(fd), address));
  if (!segment->populate(0, kHeaderBytes)) {
    refuse("allocating the first page", ENOMEM);
  }
  segment->header().magic = kMagic;
  segment->header().nonce = address.nonce;
  return segment;
}

std::shared_ptr<SharedSegment> SharedSegment::open(const SegmentAddress& address) {
  const std::string path = fmt::format("/proc/{}/fd/{}", address.pid, address.fd);
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) {
    refuse("open " + path, errno);
  }
  check_identity(fd.get(), address, path);
  return std::shared_ptr<SharedSegment>(new SharedSegment(std::move(fd), address));
}

SharedSegment::SharedSegment(FileDescriptor fd, const SegmentAddress& address)
    : fd_(std::move(fd)), address_(address), reserved_bytes_(address.reserve_bytes + kHugePage) {
  const auto length = static_cast<std::size_t>(reserved_bytes_);
  void* const range =
      ::mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    refuse(fmt::format("{} of address space (ulimit -v?)", format_bytes(reserved_bytes_)), errno);
  }
  reserved_ = static_cast<std::byte*>(range);
  const auto misaligned = reinterpret_cast<std::uintptr_t>(range) % kHugePage;
  base_ = reserved_ + (kHugePage - static_cast<std::int64_t>(misaligned));
  if (::mmap(base_, static_cast<std::size_t>(address.reserve_bytes), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_FIXED, fd_.get(), 0) == MAP_FAILED) {
    const int error = errno;
    (void)::munmap(reserved_, length);
    refuse("mmap", error);
  }
  // Uses huge pages if the administrator allows them for shared memory.
  (void)::madvise(base_, static_cast<std::size_t>(address.reserve_bytes), MADV_HUGEPAGE);
}

SharedSegment::~SharedSegment() {
  (void)::munmap(reserved_, static_cast<std::size_t>(reserved_bytes_));
}

bool SharedSegment::contains(const void* data, std::int64_t bytes) const {
  const auto first = reinterpret_cast<std::uintptr_t>(base_);
  const auto at = reinterpret_cast<std::uintptr_t>(data);
  const auto length = static_cast<std::uintptr_t>(address_.reserve_bytes);
  return at >= first && at - first <= length &&
         static_cast<std::uintptr_t>(bytes) <= length - (at - first);
}

bool SharedSegment::grow(std::int64_t bytes) const {
  return file_may_have(bytes) && bytes <= address_.reserve_bytes &&
         ::ftruncate(fd_.get(), bytes) == 0;
}

// Allocates now, so that a shortage is an error and not a signal at the first access. It does so
// through the mapping, which asks for huge pages; older kernels can do it only through the file.
bool SharedSegment::populate(std::int64_t offset, std::int64_t bytes) const {
  if (::madvise(base_ + offset, static_cast<std::size_t>(bytes), MADV_POPULATE_WRITE) == 0) {
    return true;
  }
  return errno == EINVAL && ::posix_fallocate(fd_.get(), offset, bytes) == 0;
}

void SegmentTable::add(const std::shared_ptr<SharedSegment>& segment) {
  const std::lock_guard lock(mutex_);
  segments_[segment->address().nonce] = segment;
}

std::shared_ptr<SharedSegment> SegmentTable::find(const SegmentAddress& address) const {
  const std::lock_guard lock(mutex_);
  const auto at = segments_.find(address.nonce);
  return at == segments_.end() ? nullptr : at->second.lock();
}

}  // namespace trireme
