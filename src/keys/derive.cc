#include "src/keys/derive.h"

#include <openssl/kdf.h>

#include "src/base/unique_handle.h"

namespace trireme {
namespace {

struct KdfTraits {
  using Handle = EVP_KDF*;
  static Handle none() { return nullptr; }
  static void close(Handle kdf) { EVP_KDF_free(kdf); }
};
struct KdfContextTraits {
  using Handle = EVP_KDF_CTX*;
  static Handle none() { return nullptr; }
  static void close(Handle context) { EVP_KDF_CTX_free(context); }
};

}  // namespace

bool derive_with(const char* function, const OSSL_PARAM* parameters, Secret& derived) {
  const UniqueHandle<KdfTraits> kdf(EVP_KDF_fetch(nullptr, function, nullptr));
  const UniqueHandle<KdfContextTraits> context(EVP_KDF_CTX_new(kdf.get()));
  return context && EVP_KDF_derive(context.get(), derived.data(), derived.bytes(), parameters) == 1;
}

OSSL_PARAM octets_parameter(const char* name, std::string_view bytes) {
  // OpenSSL's parameters are not const, but those of inputs are only read.
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

}  // namespace trireme
