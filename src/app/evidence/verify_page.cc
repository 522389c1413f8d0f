#include "src/app/evidence/verify_page.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "io/checkpoint/workers.h"
#include "src/base/error.h"
#include "src/base/units.h"
#include "src/evidence/trust_file.h"

namespace trireme {

std::string_view word_of(ExitCode code, bool is_unsigned) {
  switch (code) {
    case ExitCode::ok:
      return "ok";
    case ExitCode::not_found:
      return is_unsigned ? "UNSIGNED" : "GONE";
    case ExitCode::refused:
      return "UNTRUSTED";
    case ExitCode::io:
      return "UNREAD";
    default:
      return "BAD";
  }
}

std::string conclusion_of(const Lineage& lineage, bool is_accepted) {
  const std::string checked =
      fmt::format("{}, {} read", counted(lineage.files, "file"), format_bytes(lineage.bytes));
  if (lineage.faults.empty()) {
    return fmt::format("Everything that was signed was checked and is unchanged: {}.", checked);
  }
  const std::string faults = counted(static_cast<std::int64_t>(lineage.faults.size()), "finding");
  const bool has_unsigned =
      std::any_of(lineage.faults.begin(), lineage.faults.end(),
                  [](const EvidenceFault& fault) { return fault.is_unsigned; });
  return is_accepted ? fmt::format("What is here is unchanged: {}. {} about files that are {}.",
                                   checked, faults, has_unsigned ? "gone or not signed" : "gone")
                     : fmt::format("NOT verified: {}; {} as signed.", faults, checked);
}

DocSection evidence_part(const std::filesystem::path& run, const std::string& trust_file,
                         const KeyedTextReader* logs) {
  LineageOptions options{load_trusted_keys(trust_file), available_processors(), {}, logs};
  DocSection section;
  section.heading = "Evidence";
  Lineage lineage;
  try {
    lineage = walk_lineage(run, std::move(options));
  } catch (const Error& error) {
    section.remarks.push_back(fmt::format("Nothing could be verified: {}", error.what()));
    return section;
  }
  section.paragraphs = {conclusion_of(lineage, false), kWhatAPageShows};
  DocTable table{fmt::format("What trireme verify found with the keys of {}", trust_file),
                 {"state", "what", "where", "found"},
                 {}};
  for (const LineageItem& item : lineage.items) {
    table.rows.push_back(
        {std::string(word_of(item.code, item.is_unsigned)), item.role, item.place, item.summary});
  }
  section.tables.push_back(std::move(table));
  for (const EvidenceFault& fault : lineage.faults) {
    section.remarks.push_back(
        fmt::format("{}: {}", word_of(fault.code, fault.is_unsigned), fault.what));
  }
  for (const std::string& note : lineage.notes) {
    section.remarks.push_back("Note: " + note);
  }
  return section;
}

}  // namespace trireme
