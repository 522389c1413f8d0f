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

struct BlockCipher::Contexts {
  CipherContext seal{EVP_CIPHER_CTX_new()};
  CipherContext open{EVP_CIPHER_CTX_new()};
};

BlockCipher::BlockCipher(const DataKey& key, std::string_view file)
    : contexts_(std::make_unique<Contexts>()) {
  const Secret file_key = key.file_key(file);
  check(EVP_EncryptInit_ex(contexts_->seal.get(), EVP_aes_256_gcm(), nullptr, file_key.data(),
                           nullptr) == 1 &&
            EVP_DecryptInit_ex(contexts_->open.get(), EVP_aes_256_gcm(), nullptr, file_key.data(),
                               nullptr) == 1,
        "OpenSSL has AES-256-GCM");
}
BlockCipher::~BlockCipher() = default;
BlockCipher::BlockCipher(BlockCipher&&) noexcept = default;
BlockCipher& BlockCipher::operator=(BlockCipher&&) noexcept = default;

BlockTag BlockCipher::seal(BlockPlace place, const std::byte* plain, std::int64_t bytes,
                           std::byte* sealed) {
  EVP_CIPHER_CTX* const context = contexts_->seal.get();
  const Nonce nonce = nonce_of(place);
  BlockTag tag{};
  int written = 0;
  int rest = 0;
  check(bytes <= kSealedBlockBytes &&
            EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
            EVP_EncryptUpdate(context, output(sealed), &written, input(plain),
                              static_cast<int>(bytes)) == 1 &&
            EVP_EncryptFinal_ex(context, output(sealed) + written, &rest) == 1 &&
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag.data()) == 1,
        "OpenSSL encrypts a block");
  return tag;
}

bool BlockCipher::open(BlockPlace place, const std::byte* sealed, std::int64_t bytes,
                       const BlockTag& tag, std::byte* plain) {
  EVP_CIPHER_CTX* const context = contexts_->open.get();
  const Nonce nonce = nonce_of(place);
  BlockTag expected = tag;
  int written = 0;
  int rest = 0;
  check(bytes <= kSealedBlockBytes &&
            EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
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
