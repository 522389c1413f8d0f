#include <iterator>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/token_connection.h"
#include "src/keys/token_key.h"

namespace trireme {
namespace {

void generate_key(const Pkcs11Session& session, Pkcs11Uri& uri) {
  CK_OBJECT_CLASS secret_key = CKO_SECRET_KEY;
  CK_KEY_TYPE aes = CKK_AES;
  CK_ULONG bytes = DataKey::kBytes;
  CK_BBOOL yes = CK_TRUE;
  CK_BBOOL no = CK_FALSE;
  CK_ATTRIBUTE attributes[] = {{CKA_CLASS, &secret_key, sizeof secret_key},
                               {CKA_KEY_TYPE, &aes, sizeof aes},
                               {CKA_VALUE_LEN, &bytes, sizeof bytes},
                               {CKA_TOKEN, &yes, sizeof yes},
                               {CKA_PRIVATE, &yes, sizeof yes},
                               {CKA_SENSITIVE, &yes, sizeof yes},
                               {CKA_EXTRACTABLE, &no, sizeof no},
                               {CKA_ENCRYPT, &yes, sizeof yes},
                               {CKA_DECRYPT, &yes, sizeof yes},
                               {CKA_WRAP, &no, sizeof no},
                               {CKA_UNWRAP, &no, sizeof no},
                               {CKA_LABEL, uri.object.data(), uri.object.size()},
                               {CKA_ID, uri.id.data(), uri.id.size()}};
  CK_MECHANISM mechanism{CKM_AES_KEY_GEN, nullptr, 0};
  CK_OBJECT_HANDLE key = 0;
  session.check_result(session.calls().C_GenerateKey(session.handle(), &mechanism, attributes,
                                                     std::size(attributes), &key),
                       fmt::format("cannot make the key '{}'", printable(uri.object)));
}

}  // namespace

std::unique_ptr<WrappingKey> create_token_key(std::string_view uri) {
  Pkcs11Uri parsed = parse_pkcs11_uri(uri);
  if (parsed.object.empty()) {
    throw ConfigError("the URI of a new key needs object=NAME");
  }
  TokenPin pin(parsed.pin_source);
  const Pkcs11Session session(Pkcs11Module(parsed.module_path), parsed, pin,
                              Pkcs11Session::Use::write);
  session.prepare_new_key(parsed, {CKO_SECRET_KEY});
  check_has_gcm(session);
  generate_key(session, parsed);
  return open_token_key(uri);  // while this session lasts, the user is logged in
}

}  // namespace trireme
