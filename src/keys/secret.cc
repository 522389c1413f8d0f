#include "src/keys/secret.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <sys/mman.h>
#include <unistd.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/private_file.h"

namespace trireme {

void Secret::PagesTraits::close(Pages pages) {
  wipe(pages.data, pages.bytes);
  ::munmap(pages.data, pages.bytes);
}

Secret::Secret(std::size_t bytes) : bytes_(bytes), is_locked_(false) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t whole = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
  void* const data =
      ::mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw ResourceError(fmt::format("no memory for a key: {}", std::strerror(errno)));
  }
  forbid_core_files();
  memory_.reset({static_cast<unsigned char*>(data), whole});
  is_locked_ = ::mlock(data, whole) == 0;
  (void)::madvise(data, whole, MADV_DONTDUMP);
  (void)::madvise(data, whole, MADV_WIPEONFORK);
}

Secret::Secret(std::string_view bytes) : Secret(bytes.size()) {
  std::copy(bytes.begin(), bytes.end(), data());
}

void wipe(void* data, std::size_t bytes) { OPENSSL_cleanse(data, bytes); }

void fill_random(unsigned char* data, std::size_t bytes) {
  check(RAND_priv_bytes(data, static_cast<int>(bytes)) == 1,
        "OpenSSL has a source of random bytes");
}

}  // namespace trireme
