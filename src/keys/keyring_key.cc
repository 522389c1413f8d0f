#include "src/keys/keyring_key.h"

#include <cerrno>
#include <cstring>

#include <linux/keyctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr const char* kKeyType = "user";

[[noreturn]] void refuse_keyring(const std::string& description, int code) {
  const std::string key =
      fmt::format("the key '{}' in the kernel's keyring", printable(description));
  switch (code) {
    case ENOKEY:
      throw NotFound(fmt::format(
          "{} is absent: put it into the session or user keyring on this host, for example with "
          "`keyctl padd user NAME @u`",
          key));
    case EKEYEXPIRED:
      throw PolicyError(key + " has expired: put it there again");
    case EKEYREVOKED:
    case EKEYREJECTED:
      throw PolicyError(key + " was revoked or rejected: put it there again");
    case EACCES:
      throw PolicyError(key + " may not be read by this process: see `keyctl setperm`");
    default:
      throw PolicyError(fmt::format("{} cannot be used: {}; containers often forbid keyrings", key,
                                    std::strerror(code)));
  }
}

// Returns the number of the key, or -1 and sets errno.
long search(int keyring, const std::string& description) {
  return ::syscall(SYS_keyctl, KEYCTL_SEARCH, keyring, kKeyType, description.c_str(), 0);
}

// A process may read a key that it finds only through the keyrings of its own. The user keyring is
// often not among them (no pam_keyinit), so it is linked to the keyring of this process, which ends
// with it. Whatever fails here is seen by the search.
void link_user_keyring() {
  (void)::syscall(SYS_keyctl, KEYCTL_LINK, KEY_SPEC_USER_KEYRING, KEY_SPEC_PROCESS_KEYRING);
}

}  // namespace

std::unique_ptr<KeyringKey> KeyringKey::load(const std::string& description) {
  link_user_keyring();
  long key = search(KEY_SPEC_SESSION_KEYRING, description);
  if (key < 0 && errno == ENOKEY) {
    key = search(KEY_SPEC_PROCESS_KEYRING, description);
  }
  if (key < 0) {
    refuse_keyring(description, errno);
  }
  Secret bytes(DataKey::kBytes);
  const long length = ::syscall(SYS_keyctl, KEYCTL_READ, key, bytes.data(), bytes.bytes());
  if (length < 0) {
    refuse_keyring(description, errno);
  }
  if (length != static_cast<long>(DataKey::kBytes)) {
    throw DataError(fmt::format("the key '{}' in the kernel's keyring has {} bytes, not {}",
                                printable(description), length, DataKey::kBytes));
  }
  return std::unique_ptr<KeyringKey>(new KeyringKey(description, DataKey(std::move(bytes))));
}

std::string KeyringKey::title() const {
  return fmt::format("key '{}' in the kernel's keyring ({})", printable(name()), id());
}

}  // namespace trireme
