#include "src/evidence/envelope.h"

#include <algorithm>
#include <initializer_list>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/base64.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kMostSignatures = 64;

// Returns the field at the end of a path of objects if it is a text, and otherwise "".
std::string text_at(const nlohmann::json& object, std::initializer_list<const char*> path) {
  const nlohmann::json* at = &object;
  for (const char* name : path) {
    if (!at->is_object() || !at->contains(name)) {
      return "";
    }
    at = &(*at)[name];
  }
  return at->is_string() ? at->get<std::string>() : "";
}

// Returns when the payload says that it was made: the head of an audit log, a statement about
// files, or a certificate. Returns "" for others.
std::string stated_time(const std::string& payload) {
  try {
    const nlohmann::json object = parse_json(payload);
    std::string time = text_at(object, {"time"});
    if (time.empty()) {
      time = text_at(object, {"predicate", "runDetails", "metadata", "finishedOn"});
    }
    return time.empty() ? text_at(object, {"predicate", "finished"}) : time;
  } catch (const DataError&) {
    return "";  // what cannot be read states no time
  }
}

std::string decoded(const nlohmann::json& object, const char* name) {
  try {
    return from_base64(text_field(object, name));
  } catch (const DataError& error) {
    throw DataError(fmt::format("field '{}': {}", name, error.what()));
  }
}

}  // namespace

std::string pae(std::string_view payload_type, std::string_view body) {
  return fmt::format("DSSEv1 {} {} {} {}", payload_type.size(), payload_type, body.size(), body);
}

Envelope make_envelope(std::string payload_type, std::string payload, const SigningKey* key) {
  Envelope envelope{std::move(payload_type), std::move(payload), {}};
  if (key != nullptr) {
    envelope.signatures.push_back(
        {key->public_key().id(), key->sign(pae(envelope.payload_type, envelope.payload))});
  }
  return envelope;
}

nlohmann::ordered_json to_json(const Envelope& envelope) {
  nlohmann::ordered_json signatures = nlohmann::ordered_json::array();
  for (const EnvelopeSignature& signature : envelope.signatures) {
    nlohmann::ordered_json one = {{"keyid", signature.key_id}, {"sig", to_base64(signature.bytes)}};
    if (!signature.public_key.empty()) {
      one["publicKey"] = to_base64(signature.public_key);
    }
    signatures.push_back(std::move(one));
  }
  return {{"payloadType", envelope.payload_type},
          {"payload", to_base64(envelope.payload)},
          {"signatures", std::move(signatures)}};
}

std::string to_text(const Envelope& envelope) { return to_json(envelope).dump() + "\n"; }

Envelope envelope_of(const nlohmann::json& object) {
  Envelope envelope{text_field(object, "payloadType"), decoded(object, "payload"), {}};
  const nlohmann::json& signatures = array_field(object, "signatures");
  if (signatures.size() > kMostSignatures) {
    throw DataError(
        fmt::format("{} signatures, at most {} are allowed", signatures.size(), kMostSignatures));
  }
  for (const nlohmann::json& each : signatures) {
    const std::string key_id =
        each.is_object() && each.contains("keyid") ? text_field(each, "keyid") : std::string();
    const auto has_same_key = [&](const EnvelopeSignature& other) {
      return other.key_id == key_id;
    };
    if (std::any_of(envelope.signatures.begin(), envelope.signatures.end(), has_same_key)) {
      throw DataError(fmt::format("two signatures have the keyid '{}'", printable(key_id)));
    }
    envelope.signatures.push_back({key_id, decoded(each, "sig"),
                                   each.contains("publicKey") ? decoded(each, "publicKey") : ""});
  }
  return envelope;
}

Envelope parse_envelope(std::string_view text, const std::string& origin) {
  try {
    return envelope_of(parse_json(text));
  } catch (const DataError& error) {
    throw data_error_in(fmt::format("{}: not a signed envelope (DSSE)", origin), error);
  }
}

std::optional<std::string> first_misfit(const Envelope& envelope) {
  const std::string message = pae(envelope.payload_type, envelope.payload);
  for (const EnvelopeSignature& signature : envelope.signatures) {
    if (signature.public_key.empty()) {
      continue;
    }
    const std::optional<PublicKey> key = PublicKey::of_der(signature.public_key);
    if (!key || key->id() != signature.key_id || !key->verifies(message, signature.bytes)) {
      return signature.key_id;
    }
  }
  return std::nullopt;
}

SignatureFinding find_signature(const Envelope& envelope, const std::vector<TrustedKey>& trusted) {
  const std::string message = pae(envelope.payload_type, envelope.payload);
  SignatureFinding finding;
  std::vector<std::string> revoked;
  for (const EnvelopeSignature& signature : envelope.signatures) {
    for (const TrustedKey& key : trusted) {
      const std::string& id = key.key.id();
      const bool is_good = key.key.verifies(message, signature.bytes);
      if (!is_good && signature.key_id == id) {
        return {SignatureState::forged, {name_of_key(key)}};
      }
      if (!is_good) {
        continue;
      }
      if (key.revoked && !key.counts_at(stated_time(envelope.payload))) {
        revoked.push_back(name_of_key(key) + revocation_text(key));
        continue;
      }
      finding.are_named = finding.are_named && signature.key_id == id;
      if (std::find(finding.key_ids.begin(), finding.key_ids.end(), id) == finding.key_ids.end()) {
        finding.signers.push_back(name_of_key(key));
        finding.key_ids.push_back(id);
      }
    }
  }
  if (!finding.key_ids.empty()) {
    finding.state = SignatureState::trusted;
  } else if (!revoked.empty()) {
    finding = {SignatureState::revoked, std::move(revoked)};
  } else if (!envelope.signatures.empty()) {
    finding = {SignatureState::untrusted, {"key " + short_id(envelope.signatures[0].key_id)}};
  }
  return finding;
}

std::string SignatureFinding::signer() const {
  return fmt::format("{}", fmt::join(signers, " and "));
}

}  // namespace trireme
