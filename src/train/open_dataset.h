// Opening a dataset on many ranks: rank 0 reads the manifest and looks at the files, the others get
// its text; nobody else asks the file system for anything before the first sample.
#pragma once

#include <filesystem>

#include "io/data/dataset.h"
#include "mpi/communicator.h"

namespace trireme {

// Collective; every rank throws what rank 0 met. vocab: of the model; DataError if the dataset's
// tokenizer has more.
Dataset open_dataset(const std::filesystem::path& folder, std::int64_t vocab, Communicator& comm);

}  // namespace trireme
