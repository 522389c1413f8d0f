// Checks, before anything is written, that a split leaves both sides a document. Reads the
// beginnings of files; one rank calls it.
#pragma once

#include <vector>

#include "io/data/input_files.h"

namespace trireme {

// ConfigError when a split at this fraction, above 0, would leave train or validation without a
// document. The documents of .jsonl files are known only when they are read: with those it passes.
void check_split(const std::vector<InputFile>& files, double validation_fraction);

}  // namespace trireme
