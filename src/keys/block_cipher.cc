#include "src/keys/block_cipher.h"

#include <algorithm>

#include <openssl/evp.h>

#include "src/base/check.h"
#include "src/base/unique_handle.h"

namespace trireme {
namespace {

constexpr std::size_t kBlockNonceBytes = 12;
using Nonce = std::array<unsigned char, kBlockNonceBytes>;

struct CipherTraits {
  using Handle = EVP_CIPHER_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_CIPHER_CTX_free(context); }
};
using CipherContext = UniqueHandle<CipherTraits>;

struct WipedAtEnd {
  EVP_CIPHER_CTX* context;
  ~WipedAtEnd() { (void)EVP_CIPHER_CTX_reset(context); }
};

// Looked up once, because that takes as long as the encryption of some kilobytes.
const EVP_CIPHER* aes_256_gcm() {
  static const EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, "AES-256-GCM", nullptr);
  check(cipher != nullptr, "OpenSSL has AES-256-GCM");
  return cipher;
}

Nonce nonce_of(BlockPlace place) {
  Nonce nonce{};
  auto number = static_cast<std::uint64_t>(place.number);
  for (std::size_t i = kBlockNonceBytes - 2; number != 0; --i) {
    nonce[i] = static_cast<unsigned char>(number);
    number >>= 8;
  }
  nonce.back() = place.is_last ? 1 : 0;
  return nonce;
}

const unsigned char* input(const std::byte* data) {
  return reinterpret_cast<const unsigned char*>(data);
}
unsigned char* output(std::byte* data) { return reinterpret_cast<unsigned char*>(data); }

}  // namespace

// OpenSSL expands the key into memory of its own, which is not locked: it is there only while a
// block is encrypted or decrypted, and wiped afterwards.
struct BlockCipher::State {
  Secret key;
  CipherContext context{EVP_CIPHER_CTX_new()};
};

BlockCipher::BlockCipher(const DataKey& key, std::string_view file)
    : state_(std::make_unique<State>(State{key.file_key(file)})) {}
BlockCipher::~BlockCipher() = default;
BlockCipher::BlockCipher(BlockCipher&&) noexcept = default;
BlockCipher& BlockCipher::operator=(BlockCipher&&) noexcept = default;

BlockTag BlockCipher::seal(BlockPlace place, const std::byte* plain, std::int64_t bytes,
                           std::byte* sealed) {
  EVP_CIPHER_CTX* const context = state_->context.get();
  const WipedAtEnd wiped{context};
  const Nonce nonce = nonce_of(place);
  BlockTag tag{};
  int written = 0;
  int rest = 0;
  check(bytes <= kSealedBlockBytes &&
            EVP_EncryptInit_ex(context, aes_256_gcm(), nullptr, state_->key.data(), nonce.data()) ==
                1 &&
            EVP_EncryptUpdate(context, output(sealed), &written, input(plain),
                              static_cast<int>(bytes)) == 1 &&
            EVP_EncryptFinal_ex(context, output(sealed) + written, &rest) == 1 &&
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1,
        "OpenSSL encrypts a block");
  return tag;
}

bool BlockCipher::open(BlockPlace place, const std::byte* sealed, std::int64_t bytes,
                       const BlockTag& tag, std::byte* plain) {
  EVP_CIPHER_CTX* const context = state_->context.get();
  const WipedAtEnd wiped{context};
  const Nonce nonce = nonce_of(place);
  BlockTag expected = tag;
  int written = 0;
  int rest = 0;
  check(bytes <= kSealedBlockBytes &&
            EVP_DecryptInit_ex(context, aes_256_gcm(), nullptr, state_->key.data(), nonce.data()) ==
                1 &&
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, kTagBytes, expected.data()) == 1 &&
            EVP_DecryptUpdate(context, output(plain), &written, input(sealed),
                              static_cast<int>(bytes)) == 1,
        "OpenSSL decrypts a block");
  if (EVP_DecryptFinal_ex(context, output(plain) + written, &rest) != 1) {
    std::fill_n(plain, bytes, std::byte{0});
    return false;
  }
  return true;
}

}  // namespace trireme
