// DataProvenance signs which files a dataset was packed from, if the site has a key (audit.key). On
// rank 0 only.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "io/data/input_files.h"
#include "io/data/packer.h"
#include "src/evidence/keys.h"

namespace trireme {

class DataProvenance {
 public:
  // Lists the inputs, before they are packed. Throws what SigningKey::load() throws. Does nothing
  // if the site has no key.
  explicit DataProvenance(const PackOptions& options);

  // Writes the provenance of a finished dataset, unless it is there: reads the inputs and the
  // dataset again for their digests. Throws DataError if an input has changed since it was listed.
  void sign(const PackReport& report) const;

 private:
  const PackOptions& options_;
  std::optional<SigningKey> key_;
  InputFiles inputs_;
  std::string started_;
};

}  // namespace trireme
