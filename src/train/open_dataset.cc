#include "src/train/open_dataset.h"

#include "mpi/agreement.h"
#include "src/base/fault.h"

namespace trireme {

Dataset open_dataset(const std::filesystem::path& folder, std::int64_t vocab, Communicator& comm) {
  const std::string text = run_on_root(comm, [&] {
    std::string manifest = read_manifest_text(folder);
    Dataset(folder, manifest).check_sizes();
    return manifest;
  });
  fault("data.open");
  Dataset dataset(folder, text);
  if (dataset.manifest().vocab > vocab) {
    throw DataError(fmt::format(
        "{} was packed with the tokenizer '{}' of {} ids, the model has model.vocab {}: raise "
        "model.vocab to {} or pack with another tokenizer",
        folder.string(), dataset.manifest().tokenizer, dataset.manifest().vocab, vocab,
        dataset.manifest().vocab));
  }
  return dataset;
}

}  // namespace trireme
