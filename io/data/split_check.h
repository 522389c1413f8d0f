// Checks, before anything is written, that a split gives both sides a document. One rank calls it;
// it reads the beginnings of the files.
#pragma once

#include <vector>

#include "io/data/input_files.h"

namespace trireme {

// Throws ConfigError if a split at `validation_fraction`, which is above 0, would leave train or
// validation without a document. Passes if there is a .jsonl file or an archive, whose documents
// are known only when it is read.
void check_split(const std::vector<InputFile>& files, double validation_fraction);

}  // namespace trireme
