// Makes certificates for tests, each of which lies as PEM in a file, with its key beside it.
#pragma once

#include <filesystem>
#include <string>

namespace trireme {

struct TestCertificate {
  std::filesystem::path certificate;
  std::filesystem::path key;
};

// Makes <folder>/<name>.pem and <name>.key, which are valid from an hour ago until `seconds` from
// now. issuer: null for a certificate authority, which signs itself.
TestCertificate make_certificate(const std::filesystem::path& folder, const std::string& name,
                                 long seconds, const TestCertificate* issuer = nullptr);

}  // namespace trireme
