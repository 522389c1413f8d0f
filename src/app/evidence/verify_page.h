// The page that `trireme verify` prints, as text and as a part of a report.
#pragma once

#include <string>
#include <string_view>

#include "src/lineage/lineage.h"
#include "src/report/document.h"

namespace trireme {

// Returns what an item or a finding with this code is called: "ok", "BAD", "GONE", ...
// is_unsigned: as in EvidenceFault.
std::string_view word_of(ExitCode code, bool is_unsigned);
// Returns the sentence that sums the page up. is_accepted: what is gone was declared to be no
// fault.
std::string conclusion_of(const Lineage& lineage, bool is_accepted);

inline constexpr const char* kWhatAPageShows =
    "This page helps demonstrate where the files come from. It shows who had the key, not that "
    "what was signed was right.";

// Checks the checkpoints of a run against the keys in a trust file, and returns what `trireme
// verify` says about them. A run without checkpoints has a remark. logs: opens the run's encrypted
// logs; null to check them without keys. Throws what load_trusted_keys() throws.
DocSection evidence_part(const std::filesystem::path& run, const std::string& trust_file,
                         const KeyedTextReader* logs);

}  // namespace trireme
