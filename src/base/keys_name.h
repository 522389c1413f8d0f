// Names the file with the wrapped key of an encrypted checkpoint or dataset
// (src/keys/wrapped_keys.h), which lies beside the manifest.
#pragma once

#include <string_view>

namespace trireme {

inline constexpr std::string_view kKeysFileName = "keys.json";
// The number of the process follows in the names of drafts, which are renamed to keys.json
// (write_file_durably()).
inline constexpr std::string_view kKeysDraftStart = "keys.json.tmp-";

}  // namespace trireme
