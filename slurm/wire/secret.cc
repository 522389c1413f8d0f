#include "slurm/wire/secret.h"

#include <cerrno>

#include <sys/random.h>

#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {

std::string fresh_secret() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string bytes(32, '\0');
  while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    if (errno != EINTR) {
      throw IoError("cannot read random numbers from the kernel");
    }
  }
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

std::string proof_of(std::string_view secret, std::string_view side, std::string_view their_nonce,
                     std::string_view own_nonce, std::string_view who) {
  // The key's 64 digits fill SHA-256's block, so it needs no padding. These are the inner and outer
  // pads of the RFC.
  std::string inner(secret);
  std::string outer(secret);
  for (std::size_t i = 0; i < secret.size(); ++i) {
    inner[i] = static_cast<char>(inner[i] ^ 0x36);
    outer[i] = static_cast<char>(outer[i] ^ 0x5c);
  }
  for (const std::string_view part : {side, their_nonce, own_nonce, who}) {
    inner += fmt::format("{}:", part.size());
    inner += part;
  }
  return sha256_hex(outer + sha256_hex(inner));
}

bool same_proof(std::string_view a, std::string_view b) {
  int difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= a[i] ^ b[i];
  }
  return difference == 0;
}

}  // namespace trireme
