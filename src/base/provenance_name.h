// Names the file with the signed provenance of a checkpoint or dataset (src/evidence/bundle.h),
// which lies beside the files that it is about.
#pragma once

#include <string_view>

namespace trireme {

inline constexpr std::string_view kProvenanceName = "provenance.intoto.jsonl";

}  // namespace trireme
