// The manifest's own digest. The text begins
//
//   {"digest": "sha256:<64 digits>",\n
//
// and the digest is that of the whole text with the 64 digits replaced by '0': no byte of the file
// is left out.
#pragma once

#include <string>
#include <string_view>

namespace trireme {

inline constexpr std::string_view kManifestFormat = "trireme-checkpoint";

// The finished text of a manifest whose other fields (and closing brace) are `fields`.
std::string sealed(const std::string& fields);
// Whether the text is as sealed() made it.
bool is_sealed(std::string_view text);

}  // namespace trireme
