#include "io/keys/shared_secret.h"

#include <cerrno>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi/agreement.h"
#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

using Descriptor = UniqueHandle<FileDescriptorTraits>;

// Memory without a name, which other processes of this user open through /proc.
class SharedPage {
 public:
  explicit SharedPage(const Secret& secret)
      : file_(::memfd_create("trireme", MFD_CLOEXEC)), bytes_(secret.bytes()) {
    if (!file_ || ::ftruncate(file_.get(), static_cast<off_t>(bytes_)) != 0) {
      refuse();
    }
    data_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (data_ == MAP_FAILED) {
      refuse();
    }
    (void)::mlock(data_, bytes_);
    (void)::madvise(data_, bytes_, MADV_DONTDUMP);
    std::memcpy(data_, secret.data(), bytes_);
  }
  ~SharedPage() {
    wipe(data_, bytes_);
    ::munmap(data_, bytes_);
  }
  SharedPage(const SharedPage&) = delete;
  SharedPage& operator=(const SharedPage&) = delete;

  std::string address() const { return fmt::format("{} {}", ::getpid(), file_.get()); }

 private:
  [[noreturn]] static void refuse() {
    throw PolicyError(fmt::format("a key cannot be shared with the other ranks of this host: {}",
                                  std::strerror(errno)));
  }

  Descriptor file_;
  std::size_t bytes_;
  void* data_ = MAP_FAILED;
};

Secret read_shared(const std::string& address, std::size_t bytes) {
  std::istringstream in(address);
  int pid = 0;
  int fd = -1;
  in >> pid >> fd;
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  Secret secret(bytes);
  if (!file || ::pread(file.get(), secret.data(), bytes, 0) != static_cast<ssize_t>(bytes)) {
    throw PolicyError(fmt::format(
        "the key of the first rank on this host cannot be read ({}: {}): ranks that share a key "
        "need the same user and a common PID namespace",
        path, std::strerror(errno)));
  }
  return secret;
}

}  // namespace

int first_on_host(const Communicator& comm, int rank) {
  int first = 0;
  while (comm.host(first) != comm.host(rank)) {
    ++first;
  }
  return first;
}

Secret share_on_host(Communicator& comm, std::optional<Secret> secret, std::size_t bytes) {
  const int first = first_on_host(comm, comm.rank());
  check(secret.has_value() == (comm.rank() == first), "the first rank of each host has the secret");
  std::optional<SharedPage> page;
  std::string fault;
  try {
    if (secret && comm.size() > 1) {
      page.emplace(*secret);
    }
  } catch (const PolicyError& error) {
    fault = error.what();
  }
  const std::vector<std::string> addresses = all_gather_text(comm, page ? page->address() : "");
  try {
    if (!secret && !addresses[static_cast<std::size_t>(first)].empty()) {
      secret = read_shared(addresses[static_cast<std::size_t>(first)], bytes);
    }
  } catch (const PolicyError& error) {
    fault = error.what();
  }
  // Also waits until all have copied it: then the page is wiped.
  if (const std::string faults = gather_faults(comm, fault); !faults.empty()) {
    throw PolicyError(faults);
  }
  return std::move(*secret);
}

}  // namespace trireme
