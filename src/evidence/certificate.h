// A certificate of deletion says what was erased, when, where, how and by whom. It is a signed
// envelope (envelope.h) on one line, with an in-toto Statement v1 whose predicate is our own:
//
//   {"_type": "https://in-toto.io/Statement/v1",
//    "subject": [{"name": "manifest.json", "digest": {"sha256": "<64 digits>"}}, ...],
//    "predicateType": "urn:trireme:erasure:1",
//    "predicate": {
//     "kind": "checkpoint", "uri": "file:///...", "bytes": 123,
//     "method": {"keys": ["keys.json"], "overwritten": false, "removed": true},
//     "reason": "...", "host": "n1", "uid": 1000, "program": "trireme 1.0 (...)",
//     "started": "...Z", "finished": "...Z"}}
//
// The subjects are the files as they were before. Two lists in "method" exist only if they are not
// empty: "missing_keys", files of wrapped keys that a manifest needs and that were not there any
// more when the erasure began, and "gone_before", files that an interrupted command had listed and
// that were gone when it was given again.
//
// A draft has the same form with the predicate type "urn:trireme:erasure-draft:1", "removed" false
// and no time of the end. It is written before anything is erased and states nothing but what shall
// be. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/evidence/envelope.h"
#include "src/evidence/statement.h"

namespace trireme {

// No larger certificate is read: it has about 200 bytes for each file that was erased.
inline constexpr std::int64_t kMostCertificateBytes = std::int64_t{256} << 20;

struct Erasure {
  std::string kind;  // "checkpoint", "checkpoints" or "dataset"
  std::string uri;   // of the folder
  std::vector<Subject> files;
  std::int64_t bytes = 0;         // of all files
  std::vector<std::string> keys;  // files of wrapped keys, which were overwritten before all else
  std::vector<std::string> missing_keys;  // of encrypted files, gone before the erasure began
  std::vector<std::string> gone_before;   // files that were gone when it was given again
  bool overwritten = false;               // whether all other files were overwritten, too
  std::string reason;                     // as the user gave it; may be empty
  std::string host;
  std::int64_t uid = 0;
  std::string program;
  std::string started;
  std::string finished;
};

// Returns the line of a signed certificate, with its line end.
std::string certificate_text(const Erasure& erasure, const SigningKey& key);
// Returns the line of a signed draft.
std::string draft_text(const Erasure& erasure, const SigningKey& key);
// Returns a size that no certificate of this erasure exceeds, whatever is gone before its end.
std::int64_t most_certificate_bytes(const Erasure& erasure);

struct SignedErasure {
  Erasure erasure;
  SignatureFinding signature;
};

// Throws DataError that names `origin` if the text is not a certificate as certificate_text()
// writes it. Whether the signature is good is up to the caller.
SignedErasure parse_certificate(std::string_view text, const std::string& origin,
                                const std::vector<TrustedKey>& trusted);
// Does the same with a draft.
SignedErasure parse_draft(std::string_view text, const std::string& origin,
                          const std::vector<TrustedKey>& trusted);

}  // namespace trireme
