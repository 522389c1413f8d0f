// TokenConnection is a session with a token and a key in it, which a token key uses until it is
// lost. Move-only; used by one thread at a time.
#pragma once

#include <string>

#include "src/keys/pkcs11_session.h"

namespace trireme {

struct TokenConnection {
  Pkcs11Session session;
  CK_OBJECT_HANDLE key;
  TokenKeyFacts facts;
};

// Logs in and finds the key, which must be usable for CKM_AES_GCM. Throws as open_token_key() does
// (token_key.h).
TokenConnection connect_to_key(const Pkcs11Uri& uri, TokenPin& pin);

// Throws PolicyError unless the token can encrypt and decrypt with CKM_AES_GCM.
void check_has_gcm(const Pkcs11Session& session);

// Returns "id:" and the hexadecimal digits of the key's id, or "label:" and its label if it has
// none.
std::string object_text(const TokenKeyFacts& facts);

}  // namespace trireme
