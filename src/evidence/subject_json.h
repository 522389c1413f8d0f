// Reads and writes the subjects of in-toto statements; private to src/evidence.
#pragma once

#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/evidence/statement.h"

namespace trireme {

inline constexpr std::string_view kStatementForm = "https://in-toto.io/Statement/v1";

// Returns whether the text is 64 lowercase hexadecimal digits.
bool is_sha256(std::string_view text);
// Returns whether the path has only plain names, so that it stays within its folder.
bool stays_inside(std::string_view path);

nlohmann::ordered_json subjects_json(const std::vector<Subject>& subjects);
// Returns the subjects of a statement. Throws DataError if it is not one in the form above with the
// predicate type, if it is about no file, or if a name leads out of the folder.
std::vector<Subject> parse_subjects(const nlohmann::json& statement,
                                    std::string_view predicate_type);
// Returns the SHA-256 in the field `digest`. Throws DataError that names `name`.
std::string sha256_field(const nlohmann::json& object, const std::string& name);

}  // namespace trireme
