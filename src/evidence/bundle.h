// A bundle is a file of signed statements, in the form of an in-toto attestation bundle
// (https://github.com/in-toto/attestation/blob/main/spec/v1/bundle.md): JSON Lines, each line an
// envelope (envelope.h) with a statement (statement.h). It lies beside the files that its first
// line describes:
//
//   line 1       this checkpoint or dataset
//   line 2       the checkpoint's parent, that is, the one from which its run was resumed
//   line 3 ...   the parent's parent, and so on; at most kMostAncestors lines
//
// The lines of the ancestors are copies: they keep the lineage when the ancestors themselves have
// been deleted. The first line states how many there are, so that none can be cut off. Pure
// functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/provenance_name.h"
#include "src/evidence/envelope.h"
#include "src/evidence/statement.h"

namespace trireme {

inline constexpr const char* kManifestSubject = "manifest.json";
inline constexpr std::size_t kMostAncestors = 255;
// No larger bundle of a checkpoint is read.
inline constexpr std::int64_t kMostBundleBytes = std::int64_t{16} << 20;
// A dataset's bundle names each raw file, which takes about 200 bytes: a million of them are
// allowed.
inline constexpr std::int64_t kMostDatasetBundleBytes = std::int64_t{256} << 20;
// A run copies no more of its parent's bundle into each of its checkpoints, which leaves room for
// the own line.
inline constexpr std::int64_t kMostAncestorBytes = kMostBundleBytes / 2;

struct SignedStatement {
  std::string line;  // as it stands in the file, without the line end
  Provenance provenance;
  SignatureFinding signature;
  std::vector<std::string> other_signers;  // identities of keys that are not trusted
};

// Throws DataError that names `origin` and the line if the text is not a bundle as Trireme writes
// it, byte by byte, or if a line is not about the parent of the line before it. Whether the
// signatures are good is up to the caller.
std::vector<SignedStatement> parse_bundle(std::string_view text, const std::string& origin,
                                          const std::vector<TrustedKey>& trusted);

// Returns the lines of the parent's bundle that its children repeat: from the newest on, as many as
// are allowed.
std::string_view kept_ancestors(std::string_view parent_bundle);
// Returns the text of a bundle: a new line, then those of the ancestors, which may be "".
std::string bundle_text(const Envelope& envelope, std::string_view ancestors);

}  // namespace trireme
