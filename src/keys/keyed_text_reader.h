// KeyedTextReader opens the encrypted files of runs with wrapping keys. It looks for the data keys
// beside the files, in the folder log-keys of their run (log_keys.h), and keeps them. Used by one
// thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/base/run_text.h"
#include "src/keys/key_ring.h"
#include "src/keys/sealed_text.h"

namespace trireme {

class KeyedTextReader : public TextReader {
 public:
  // uris: returns those of the wrapping keys (key_uri.h), which are opened when the first encrypted
  // file is read.
  explicit KeyedTextReader(std::function<std::vector<std::string>()> uris)
      : uris_(std::move(uris)) {}
  // ring: outlives this object.
  explicit KeyedTextReader(const KeyRing& ring) : ring_(&ring) {}

  // Opens the text of an encrypted file. Throws what TextReader::read() throws.
  OpenedText open_sections(const std::string& text, const std::filesystem::path& path) const;

 private:
  std::string open(const std::string& text, const std::filesystem::path& path) const override;
  const KeyRing& ring() const;
  const DataKey& key_of(const std::filesystem::path& run, const std::string& id) const;

  std::function<std::vector<std::string>()> uris_;
  mutable std::unique_ptr<const KeyRing> own_;
  mutable const KeyRing* ring_ = nullptr;
  mutable std::map<std::filesystem::path, DataKey> keys_;  // by keys.json
};

}  // namespace trireme
