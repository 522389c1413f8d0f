// A statement says which files exist and where they come from: an in-toto Statement v1
// (https://github.com/in-toto/attestation) whose predicate is SLSA Provenance v1
// (https://slsa.dev/spec/v1.0/provenance):
//
//   {"_type": "https://in-toto.io/Statement/v1",
//    "subject": [{"name": "manifest.json", "digest": {"sha256": "<64 digits>"}}, ...],
//    "predicateType": "https://slsa.dev/provenance/v1",
//    "predicate": {
//     "buildDefinition": {"buildType": "urn:trireme:train:1",
//      "externalParameters": {...}, "internalParameters": {...},
//      "resolvedDependencies": [
//       {"name": "data.train", "uri": "file:///...", "digest": {"sha256": "<64 digits>"}}, ...]},
//     "runDetails": {"builder": {"id": "..."},
//      "metadata": {"invocationId": "...", "startedOn": "...Z", "finishedOn": "...Z"}}}}
//
// It is the payload of an envelope (envelope.h). Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_value.h"

namespace trireme {

inline constexpr std::string_view kStatementType = "application/vnd.in-toto+json";
inline constexpr std::string_view kTrainBuildType = "urn:trireme:train:1";
inline constexpr std::string_view kImportBuildType = "urn:trireme:import:1";
inline constexpr std::string_view kSparsifyBuildType = "urn:trireme:sparsify:1";
inline constexpr std::string_view kPackBuildType = "urn:trireme:data-pack:1";

// The names of the material that is a model whose weights were taken, and of a file that was read.
inline constexpr const char* kBaseMaterial = "base";
inline constexpr const char* kInputMaterial = "input";

// What follows the name of the material of a dataset or model in the name of that of its
// provenance.
inline constexpr std::string_view kProvenanceSuffix = ".provenance";
// The value of "lineage" in the details of a checkpoint whose run could not read the provenance of
// the parent: then the lines of the ancestors are missing.
inline constexpr std::string_view kLineageUnreadable = "unreadable";

// The detail that says how many lines of ancestors follow the line of a checkpoint.
inline constexpr const char* kAncestorsDetail = "ancestors";

struct Subject {
  std::string name;    // path of a file, relative to the folder of the statement
  std::string sha256;  // 64 digits
};

struct Material {
  std::string name;    // "data.train", "data.validation", "base", "teacher", these with
                       // kProvenanceSuffix, "program", "sbom", "config", "parent", "input"
  std::string uri;     // where it was
  std::string sha256;  // 64 digits; empty if there is no file that could have a digest
};

struct Provenance {
  std::string build_type{kTrainBuildType};
  std::vector<Subject> subjects;
  std::vector<Material> materials;
  JsonValue parameters;  // what the user has chosen
  JsonValue details;     // what the program has found: hosts, versions
  std::string builder;
  std::string invocation;
  std::string started;
  std::string finished;

  // Return nullptr if there is none of that name.
  const Material* find(std::string_view name) const;
  const Subject* find_subject(std::string_view name) const;
};

// Returns whether what a build of this type makes is a checkpoint.
bool makes_checkpoint(std::string_view build_type);

std::string statement_text(const Provenance& provenance);
// Ignores unknown fields, as the specifications demand. Throws DataError if the text is not such a
// statement, or if a subject's name leads out of the folder.
Provenance parse_statement(std::string_view text);

// Returns the URI of a file.
std::string file_uri(const std::string& absolute_path);
// Returns the path of such a URI, or "" for any other URI.
std::string path_of_uri(std::string_view uri);

}  // namespace trireme
