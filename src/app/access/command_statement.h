// CommandStatement signs what a command has made, if the site has a key (audit.key). It adds to a
// statement (src/evidence/statement.h) what those of all commands say. On rank 0 only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/data/input_files.h"
#include "src/evidence/keys.h"
#include "src/evidence/statement.h"

namespace trireme {

class CommandStatement {
 public:
  // Begins with the command, whose start it states. Throws what SigningKey::load() throws.
  CommandStatement();

  bool has_key() const { return key_.has_value(); }
  // Adds the times, the host and the versions, and returns the text of the provenance file. There
  // must be a key.
  std::string bundle(Provenance provenance) const;

 private:
  std::optional<SigningKey> key_;
  std::string started_;
};

// Returns files that a command has read, as materials: reads them once more for their digests. An
// error message ends with `consequence`. Throws DataError if one was touched since it was listed,
// and IoError if one cannot be read.
std::vector<Material> input_materials(const std::vector<InputFile>& inputs,
                                      const std::string& consequence);

}  // namespace trireme
