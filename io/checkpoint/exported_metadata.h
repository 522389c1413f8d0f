// What this program writes into the metadata of the models that it exports:
//
//   "trireme_manifest_sha256": "<64 digits>"                     of the checkpoint
//   "trireme_label": "{\"classification\": \"secret\", ...}"     if it has one; src/policy/label.h
//
// In GGUF files, whose keys have a prefix before a dot, they are trireme.manifest_sha256 and
// trireme.label. Other programs ignore them; `trireme import` reads the label of safetensors files.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/store.h"
#include "src/policy/label.h"

namespace trireme {

// Returns the fields without "trireme_". Precondition: the step has a manifest.
std::map<std::string, std::string> exported_facts(const StepFolder& step);
// Returns the metadata of a safetensors file, with the field "format" that other programs ask for.
std::map<std::string, std::string> exported_metadata(const StepFolder& step);
// Returns the label in the metadata of a file, or nothing if there is none. Throws DataError.
std::optional<Label> exported_label(const std::map<std::string, std::string>& metadata);

}  // namespace trireme
