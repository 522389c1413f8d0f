// Checks a certificate of deletion for `trireme verify`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/lineage/lineage.h"

namespace trireme {

// Returns whether the path is a file that begins like a certificate.
bool looks_like_certificate(const std::filesystem::path& file);

// Says what the certificate states and who signed it. That a file it names is still there with the
// same contents is a fault; that something else is there now is a note. Throws DataError if the
// file is no certificate.
Lineage check_certificate(const std::filesystem::path& file,
                          const std::vector<TrustedKey>& trusted);

}  // namespace trireme
