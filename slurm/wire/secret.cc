#include "slurm/wire/secret.h"

#include <cerrno>

#include <openssl/crypto.h>
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
  std::string text;
  for (const std::string_view part : {side, their_nonce, own_nonce, who}) {
    text += fmt::format("{}:", part.size());
    text += part;
  }
  return hmac_sha256_hex(secret, text);
}

bool same_proof(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace trireme
