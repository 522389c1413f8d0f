// Envelopes hold a payload and signatures over it, in the form of DSSE v1.0.2
// (https://github.com/secure-systems-lab/dsse/blob/master/envelope.md):
//
//   {"payloadType": "application/vnd.trireme.audit-head+json", "payload": "<base64>",
//    "signatures": [{"keyid": "<64 digits>", "sig": "<base64>"}]}
//
// A signature covers pae(payloadType, payload). `keyid` is a hint: only the signature counts. Pure
// functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/evidence/keys.h"

namespace trireme {

struct EnvelopeSignature {
  std::string key_id;
  std::string bytes;
  // The DER of the public key with this keyid, so that anybody can see whether the signature fits
  // (first_misfit()); empty in most envelopes. It makes nobody trusted.
  std::string public_key = {};
};

struct Envelope {
  std::string payload_type;
  std::string payload;
  std::vector<EnvelopeSignature> signatures;
};

// The pre-authentication encoding: "DSSEv1 LEN(type) type LEN(body) body".
std::string pae(std::string_view payload_type, std::string_view body);

// Signs with the key, unless it is null.
Envelope make_envelope(std::string payload_type, std::string payload, const SigningKey* key);
nlohmann::ordered_json to_json(const Envelope& envelope);
std::string to_text(const Envelope& envelope);
// Both throw DataError, also if two signatures have the same keyid; the message of the second one
// names `origin`.
Envelope envelope_of(const nlohmann::json& object);
Envelope parse_envelope(std::string_view text, const std::string& origin);

// Returns the keyid of the first signature that does not fit its own public key, or whose public
// key is not that of its keyid; nothing if all that state one fit.
std::optional<std::string> first_misfit(const Envelope& envelope);

enum class SignatureState {
  trusted,    // a trusted key has signed this payload, and no signature is forged
  revoked,    // trusted keys have signed it, but all of them are revoked for its time
  untrusted,  // only other keys have signed it
  none,       // there is no signature
  forged,     // a signature names a trusted key, but that key did not sign this payload
};

struct SignatureFinding {
  SignatureState state = SignatureState::none;
  // The names of the keys, each with the beginning of its identity: of all trusted ones that have
  // signed, or of the one that is forged, or of the revoked ones with the reason, or of the first
  // of others.
  std::vector<std::string> signers = {};
  // The identities of the trusted keys that have signed, and whether each of them is the keyid of
  // its signature.
  std::vector<std::string> key_ids = {};
  bool are_named = true;
  // Returns "Site A (key ...) and Site B (key ...)".
  std::string signer() const;
};
SignatureFinding find_signature(const Envelope& envelope, const std::vector<TrustedKey>& trusted);

}  // namespace trireme
