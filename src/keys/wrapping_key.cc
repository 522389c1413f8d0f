#include "src/keys/wrapping_key.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "src/base/check.h"
#include "src/base/unique_handle.h"
#include "src/keys/block_cipher.h"

namespace trireme {
namespace {

constexpr std::size_t kWrapNonceBytes = 12;
constexpr std::size_t kWrappedBytes = kWrapNonceBytes + DataKey::kBytes + kTagBytes;

struct WrapContextTraits {
  using Handle = EVP_CIPHER_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_CIPHER_CTX_free(context); }
};

const unsigned char* octets(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string recipient_context(std::string_view data_key_id) {
  return fmt::format("trireme recipient {}", data_key_id);
}

std::string wrap_with(const Secret& wrapping, const DataKey& key) {
  const std::string additional = recipient_context(key.id());
  std::string wrapped(kWrappedBytes, '\0');
  auto* const out = reinterpret_cast<unsigned char*>(wrapped.data());
  fill_random(out, kWrapNonceBytes);
  const UniqueHandle<WrapContextTraits> context(EVP_CIPHER_CTX_new());
  int length = 0;
  check(context && wrapping.bytes() == 32 &&
            EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, wrapping.data(), out) ==
                1 &&
            EVP_EncryptUpdate(context.get(), nullptr, &length, octets(additional),
                              static_cast<int>(additional.size())) == 1 &&
            EVP_EncryptUpdate(context.get(), out + kWrapNonceBytes, &length, key.bytes().data(),
                              static_cast<int>(DataKey::kBytes)) == 1 &&
            EVP_EncryptFinal_ex(context.get(), out + kWrapNonceBytes + length, &length) == 1 &&
            EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes,
                                out + kWrapNonceBytes + DataKey::kBytes) == 1,
        "OpenSSL wraps a key");
  return wrapped;
}

std::optional<DataKey> unwrap_with(const Secret& wrapping, std::string_view wrapped,
                                   std::string_view data_key_id) {
  if (wrapped.size() != kWrappedBytes || wrapping.bytes() != 32) {
    return std::nullopt;
  }
  const std::string additional = recipient_context(data_key_id);
  BlockTag tag{};
  std::memcpy(tag.data(), wrapped.data() + kWrapNonceBytes + DataKey::kBytes, tag.size());
  const UniqueHandle<WrapContextTraits> context(EVP_CIPHER_CTX_new());
  Secret plain(DataKey::kBytes);
  int length = 0;
  const bool opens =
      context &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, wrapping.data(),
                         octets(wrapped)) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &length, octets(additional),
                        static_cast<int>(additional.size())) == 1 &&
      EVP_DecryptUpdate(context.get(), plain.data(), &length, octets(wrapped) + kWrapNonceBytes,
                        static_cast<int>(DataKey::kBytes)) == 1 &&
      EVP_DecryptFinal_ex(context.get(), plain.data() + length, &length) == 1;
  if (!opens) {
    return std::nullopt;
  }
  DataKey key(std::move(plain));
  return key.id() == data_key_id ? std::optional(std::move(key)) : std::nullopt;
}

}  // namespace trireme
