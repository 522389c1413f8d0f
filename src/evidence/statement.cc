#include "src/evidence/statement.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/evidence/subject_json.h"

namespace trireme {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kPredicateType = "https://slsa.dev/provenance/v1";
constexpr std::string_view kFileScheme = "file://";
constexpr std::string_view kPlainInUri =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";

std::string optional_text(const json& object, const char* name) {
  return object.contains(name) ? text_field(object, name) : std::string();
}

Material parse_material(const json& object) {
  Material material{text_field(object, "name"), optional_text(object, "uri"), ""};
  if (object.contains("digest")) {
    material.sha256 = sha256_field(object, material.name);
  }
  return material;
}

ordered_json to_json(const Material& material) {
  ordered_json object = {{"name", material.name}, {"uri", material.uri}};
  if (!material.sha256.empty()) {
    object["digest"] = {{"sha256", material.sha256}};
  }
  return object;
}

ordered_json to_json(const std::vector<Material>& materials) {
  ordered_json array = ordered_json::array();
  for (const Material& material : materials) {
    array.push_back(to_json(material));
  }
  return array;
}

void parse_predicate(const json& predicate, Provenance& provenance) {
  const json& definition = object_field(predicate, "buildDefinition");
  provenance.build_type = text_field(definition, "buildType");
  provenance.parameters = JsonValue(object_field(definition, "externalParameters"));
  if (definition.contains("internalParameters")) {
    provenance.details = JsonValue(object_field(definition, "internalParameters"));
  }
  if (definition.contains("resolvedDependencies")) {
    for (const json& each : array_field(definition, "resolvedDependencies")) {
      provenance.materials.push_back(parse_material(each));
    }
  }
  const json& run = object_field(predicate, "runDetails");
  provenance.builder = text_field(object_field(run, "builder"), "id");
  if (run.contains("metadata")) {
    const json& metadata = object_field(run, "metadata");
    provenance.invocation = optional_text(metadata, "invocationId");
    provenance.started = optional_text(metadata, "startedOn");
    provenance.finished = optional_text(metadata, "finishedOn");
  }
}

}  // namespace

const Material* Provenance::find(std::string_view name) const {
  const auto at = std::find_if(materials.begin(), materials.end(),
                               [&](const Material& each) { return each.name == name; });
  return at == materials.end() ? nullptr : &*at;
}

const Subject* Provenance::find_subject(std::string_view name) const {
  const auto at = std::find_if(subjects.begin(), subjects.end(),
                               [&](const Subject& each) { return each.name == name; });
  return at == subjects.end() ? nullptr : &*at;
}

bool makes_checkpoint(std::string_view build_type) {
  return build_type == kTrainBuildType || build_type == kImportBuildType ||
         build_type == kSparsifyBuildType;
}

std::string statement_text(const Provenance& provenance) {
  const ordered_json definition = {{"buildType", provenance.build_type},
                                   {"externalParameters", *provenance.parameters},
                                   {"internalParameters", *provenance.details},
                                   {"resolvedDependencies", to_json(provenance.materials)}};
  const ordered_json run = {{"builder", {{"id", provenance.builder}}},
                            {"metadata",
                             {{"invocationId", provenance.invocation},
                              {"startedOn", provenance.started},
                              {"finishedOn", provenance.finished}}}};
  const ordered_json statement = {
      {"_type", kStatementForm},
      {"subject", subjects_json(provenance.subjects)},
      {"predicateType", kPredicateType},
      {"predicate", {{"buildDefinition", definition}, {"runDetails", run}}}};
  return statement.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

Provenance parse_statement(std::string_view text) {
  const json statement = parse_json(text);
  Provenance provenance;
  provenance.subjects = parse_subjects(statement, kPredicateType);
  parse_predicate(object_field(statement, "predicate"), provenance);
  return provenance;
}

std::string file_uri(const std::string& absolute_path) {
  std::string uri(kFileScheme);
  for (const char c : absolute_path) {
    if (kPlainInUri.find(c) == std::string_view::npos) {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    } else {
      uri += c;
    }
  }
  return uri;
}

std::string path_of_uri(std::string_view uri) {
  std::string path;
  if (!uri.starts_with(kFileScheme)) {
    return path;
  }
  uri.remove_prefix(kFileScheme.size());
  for (std::size_t at = 0; at < uri.size(); ++at) {
    if (uri[at] != '%') {
      path += uri[at];
      continue;
    }
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    const std::size_t high = at + 2 < uri.size() ? kDigits.find(uri[at + 1]) : std::string::npos;
    const std::size_t low = at + 2 < uri.size() ? kDigits.find(uri[at + 2]) : std::string::npos;
    if (high == std::string::npos || low == std::string::npos || (high == 0 && low == 0)) {
      return "";
    }
    path += static_cast<char>(static_cast<unsigned char>(16 * high + low));
    at += 2;
  }
  return path;
}

}  // namespace trireme
