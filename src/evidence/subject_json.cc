#include "src/evidence/subject_json.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

Subject parse_subject(const json& object) {
  const std::string& name = text_field(object, "name");
  if (!stays_inside(name)) {
    throw DataError(fmt::format("'{}' is not the name of a file in this folder", printable(name)));
  }
  return {name, sha256_field(object, name)};
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool stays_inside(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) {
    return false;
  }
  while (true) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == "..") {
      return false;
    }
    if (slash == std::string_view::npos) {
      return true;
    }
    path.remove_prefix(slash + 1);
  }
}

std::string sha256_field(const json& object, const std::string& name) {
  const std::string& digest = text_field(object_field(object, "digest"), "sha256");
  if (!is_sha256(digest)) {
    throw DataError(fmt::format("{}: '{}' is not a SHA-256", printable(name), printable(digest)));
  }
  return digest;
}

ordered_json subjects_json(const std::vector<Subject>& subjects) {
  ordered_json array = ordered_json::array();
  for (const Subject& each : subjects) {
    array.push_back({{"name", each.name}, {"digest", {{"sha256", each.sha256}}}});
  }
  return array;
}

std::vector<Subject> parse_subjects(const json& statement, std::string_view predicate_type) {
  if (text_field(statement, "_type") != kStatementForm ||
      text_field(statement, "predicateType") != predicate_type) {
    throw DataError(fmt::format("not an in-toto statement with {}, but '{}' with '{}'",
                                predicate_type, printable(text_field(statement, "_type")),
                                printable(text_field(statement, "predicateType"))));
  }
  std::vector<Subject> subjects;
  for (const json& each : array_field(statement, "subject")) {
    subjects.push_back(parse_subject(each));
  }
  if (subjects.empty()) {
    throw DataError("the statement is about no file");
  }
  return subjects;
}

}  // namespace trireme
