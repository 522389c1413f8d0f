// A release says that a checkpoint may leave the site in plain, and is signed by several people:
// the releasers, whose public keys the site policy names. It is the payload of a DSSE envelope
// (src/evidence/envelope.h) of the type kReleaseType:
//
//   {"version": 1, "manifest_sha256": "<64 digits>", "uri": "file:///runs/a/checkpoints/step-...",
//    "label": {...} or null, "recipient": "the university", "reason": "paper", "user": "sara",
//    "host": "n1", "time": "2026-11-26T12:00:00Z"}
//
// The digest is that of the checkpoint's manifest, which in turn fixes every byte of the
// checkpoint. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/policy/label.h"

namespace trireme {

inline constexpr std::string_view kReleaseType = "application/vnd.trireme.release+json";

struct Release {
  std::string manifest_sha256;
  std::string uri;
  std::optional<Label> label;
  std::string recipient;
  std::string reason;
  std::string user;
  std::string host;
  std::string time;
};

// Returns why a text is no recipient or reason that releasers can read before they sign, or "".
std::string fault_of_release_text(const std::string& text);

std::string release_text(const Release& release);
// Throws DataError that names `origin` if the text is no release, or says more than those who sign
// it are shown.
Release parse_release(std::string_view text, const std::string& origin);

}  // namespace trireme
