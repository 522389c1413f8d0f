// What anybody can check of an encrypted file (sealed_text.h), without its keys: that it has the
// form of one and that its sections follow one another. Whoever changes a file on purpose can also
// fit these; only the keys show that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace trireme {

struct SealedForm {
  std::string previous;        // PREVIOUS of the first section
  std::string first_key;       // KEY of the first section
  std::set<std::string> keys;  // of all sections
  std::int64_t sections = 0;
  std::int64_t unfinished = 0;  // sections without an end
};

// Ignores what follows the last line end, which a crash has torn. Throws DataError that names
// `origin`, the line, and what was done to it.
SealedForm read_sealed_form(std::string_view file, const std::string& origin);

// A file begins with the section that follows the end of the log before it, if there is one. Throws
// DataError if it does not. previous: of its first section.
void check_first_section(std::string_view previous, const std::filesystem::path& path);

}  // namespace trireme
