// The tokenizer that travels with a dataset.
#pragma once

#include <filesystem>
#include <memory>

#include "io/data/dataset_manifest.h"
#include "io/data/tokenizer.h"

namespace trireme {

// Opens the tokenizer of FOLDER/tokenizer, or "bytes". Returns null if the dataset has none with
// it. Throws DataError unless its digest is the one in the manifest.
std::unique_ptr<Tokenizer> open_tokenizer_of(const std::filesystem::path& folder,
                                             const DatasetManifest& manifest);

}  // namespace trireme
