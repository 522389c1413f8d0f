#include "tests/slurm/wire/certificates.h"

#include <cstdio>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include "src/base/check.h"
#include "src/base/file.h"
#include "src/base/private_file.h"

namespace trireme {
namespace {

template <class Write>
std::string pem_text(Write write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  check(memory != nullptr && write(memory) == 1, "OpenSSL writes PEM");
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<std::size_t>(bytes));
  BIO_free(memory);
  return text;
}

template <class Read>
auto from_pem(const std::filesystem::path& path, Read read) {
  const std::string text = read_file(path);
  BIO* const memory = BIO_new_mem_buf(text.data(), static_cast<int>(text.size()));
  auto* const object = read(memory, nullptr, nullptr, nullptr);
  BIO_free(memory);
  check(object != nullptr, "OpenSSL reads PEM");
  return object;
}

}  // namespace

TestCertificate make_certificate(const std::filesystem::path& folder, const std::string& name,
                                 long seconds, const TestCertificate* issuer) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const made = X509_new();
  X509* const from = issuer == nullptr ? made : from_pem(issuer->certificate, PEM_read_bio_X509);
  EVP_PKEY* const signer = issuer == nullptr ? key : from_pem(issuer->key, PEM_read_bio_PrivateKey);
  std::int64_t serial = 0;
  RAND_bytes(reinterpret_cast<unsigned char*>(&serial), 7);
  X509_set_version(made, X509_VERSION_3);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(made), serial);
  X509_gmtime_adj(X509_getm_notBefore(made), -3600);
  X509_gmtime_adj(X509_getm_notAfter(made), seconds);
  X509_set_pubkey(made, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(made, X509_get_subject_name(from));
  X509_EXTENSION* const rule = X509V3_EXT_conf_nid(
      nullptr, nullptr, NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  X509_add_ext(made, rule, -1);
  X509_EXTENSION_free(rule);
  check(X509_sign(made, signer, EVP_sha256()) > 0, "OpenSSL signs a certificate");
  const TestCertificate files{folder / (name + ".pem"), folder / (name + ".key")};
  write_private_file(files.certificate,
                     pem_text([&](BIO* to) { return PEM_write_bio_X509(to, made); }));
  write_private_file(files.key, pem_text([&](BIO* to) {
                       return PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr,
                                                       nullptr);
                     }));
  if (issuer != nullptr) {
    X509_free(from);
    EVP_PKEY_free(signer);
  }
  X509_free(made);
  EVP_PKEY_free(key);
  return files;
}

}  // namespace trireme
