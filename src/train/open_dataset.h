// Opening a dataset on many ranks: rank 0 reads the manifest and looks at the files, the others get
// its text; nobody else asks the file system for anything before the first sample.
#pragma once

#include <filesystem>

#include "io/data/dataset.h"
#include "mpi/communicator.h"
#include "src/train/run/run_config.h"

namespace trireme {

// Collective; every rank throws what rank 0 met. vocab: of the model; DataError if the dataset's
// tokenizer has more.
Dataset open_dataset(const std::filesystem::path& folder, std::int64_t vocab, Communicator& comm);

// The validation set of a run that trains on `train`. Collective. Beyond what open_dataset()
// checks: DataError where the set holds no sample of data.sequence, or where the samples of an
// evaluation are damaged (rank 0 reads the first 64 MiB of them); ConfigError where another
// tokenizer made it.
Dataset open_validation(const RunConfig& config, const Dataset& train, Communicator& comm);

}  // namespace trireme
