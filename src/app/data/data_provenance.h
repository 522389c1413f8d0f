// DataProvenance signs which files a dataset was packed from, if the site has a key (audit.key). On
// rank 0 only.
#pragma once

#include <vector>

#include "io/data/input_files.h"
#include "io/data/packer.h"
#include "src/app/access/command_statement.h"

namespace trireme {

class DataProvenance {
 public:
  // Throws what SigningKey::load() throws. Does nothing if the site has no key.
  explicit DataProvenance(const PackOptions& options) : options_(options) {}

  // Warns of what the provenance of an encrypted dataset tells those who have no key. Does nothing
  // if there will be none.
  void warn_of_plain_names() const;
  // Writes the provenance of a dataset that pack() has just made from `inputs`: reads both again
  // for their digests. Throws DataError if an input was touched since it was listed, or if the
  // dataset is not what was packed. Only warns if an earlier call has made the dataset: nobody
  // knows then which files it has read.
  void sign(const PackReport& report, const std::vector<InputFile>& inputs) const;

 private:
  const PackOptions& options_;
  CommandStatement statement_;
};

}  // namespace trireme
