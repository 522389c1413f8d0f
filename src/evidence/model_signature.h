// Signatures of exported models in the form of the OpenSSF's model signing v1.0
// (https://github.com/sigstore/model-transparency): the file `model.sig` in the folder of the
// model. Tools for that form, such as PyPI's model-signing, check it with the public key.
//
// It is a Sigstore bundle with an envelope (envelope.h), which holds an in-toto Statement v1:
//
//   {"mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
//    "verificationMaterial": {"publicKey": {"hint": "<SHA-256 of the public key's PEM>"},
//                             "tlogEntries": []},
//    "dsseEnvelope": {...}}
//
//   {"_type": "https://in-toto.io/Statement/v1",
//    "subject": [{"name": "<folder>", "digest": {"sha256": "<of all digests below, as bytes>"}}],
//    "predicateType": "https://model_signing/signature/v1.0",
//    "predicate": {
//     "serialization": {"method": "files", "hash_type": "sha256", "allow_symlinks": false,
//                       "ignore_paths": ["model.sig"]},
//     "resources": [{"name": "config.json", "algorithm": "sha256", "digest": "<64 digits>"}, ...],
//     "checkpoint": {"step": 100, "digest": {"sha256": "<of its manifest>"}},
//     "finished": "...Z"}}
//
// The last two fields are our own; other programs ignore them. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/evidence/envelope.h"
#include "src/evidence/statement.h"

namespace trireme {

inline constexpr const char* kModelSignatureName = "model.sig";
// No larger signature is read: a file of a model takes about 200 bytes.
inline constexpr std::int64_t kMostModelSignatureBytes = std::int64_t{64} << 20;

struct ModelStatement {
  std::string name;            // of the model; only a hint
  std::vector<Subject> files;  // by their path below the folder
  std::string checkpoint;      // SHA-256 of its manifest; empty if unknown
  std::int64_t step = 0;       // of the checkpoint
  std::string finished;        // when it was signed; empty if unknown
  // Files and folders that the statement leaves out, by their path below the folder.
  std::vector<std::string> ignored = {};
};

// Throws ConfigError unless the key is one of ECDSA, because the form has no other keys.
void check_signs_models(const SigningKey& key);
// Returns the text of model.sig. Sorts the files. Throws what check_signs_models() throws.
std::string model_signature_text(ModelStatement statement, const SigningKey& key);

struct SignedModel {
  ModelStatement statement;
  SignatureFinding signature;
};

// Throws DataError that names `origin` if the text is not such a bundle, or if its statement
// contradicts itself, names a file outside the folder, or has digests of another kind. Whether the
// signature is good is up to the caller. Bundles of other programs are read as well.
SignedModel parse_model_signature(std::string_view text, const std::string& origin,
                                  const std::vector<TrustedKey>& trusted);

}  // namespace trireme
