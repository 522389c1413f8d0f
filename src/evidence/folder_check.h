// Checks the files of a folder against the signed statement in it (bundle.h): who has signed it,
// and whether the folder holds exactly the files that it names, with their digests.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/error.h"
#include "src/evidence/bundle.h"

namespace trireme {

// What is wrong, as a sentence, and the exit code that it deserves:
//   bad_data     a file, a signature or a line was changed, added or removed
//   refused      nothing is signed, or not by a trusted key, or a file may not be read
//   not_found    something that a statement names is no longer there, so that it was not checked
struct EvidenceFault {
  ExitCode code = ExitCode::bad_data;
  std::string what;
  // With not_found: what it is about is there, but nothing that is signed says what it was made
  // from.
  bool is_unsigned = false;
};

struct FolderDemands {
  const std::vector<TrustedKey>& trusted;
  int threads = 1;
  // Names of files that need not be in the statement, such as marks that users set.
  std::vector<std::string> unsigned_names = {};
  // A larger bundle is a fault, before any of it is read.
  std::int64_t most_bundle_bytes = kMostBundleBytes;
};

struct FolderCheck {
  std::filesystem::path folder;
  std::vector<SignedStatement> statements;  // of the bundle; none if there is none or it is damaged
  std::int64_t files = 0;                   // whose digests match
  std::int64_t bytes = 0;                   // that were read
  std::vector<EvidenceFault> faults;
  std::vector<std::string> notes;
};

// A folder that cannot be read is a fault, too.
FolderCheck check_folder(const std::filesystem::path& folder, const FolderDemands& demands);

// Appends a fault for each statement, from the number `first` on, that no trusted key has signed.
void check_signatures(const std::vector<SignedStatement>& statements, std::size_t first,
                      const std::string& origin, FolderCheck& check);

}  // namespace trireme
