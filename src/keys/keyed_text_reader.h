// KeyedTextReader opens the encrypted files of runs with wrapping keys. It looks for the data keys
// beside the files, in the folder log-keys of their run (log_keys.h), and keeps them. Used by one
// thread at a time.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/base/run_text.h"
#include "src/keys/closed_logs.h"
#include "src/keys/key_ring.h"
#include "src/keys/sealed_text.h"

namespace trireme {

class KeyedTextReader : public TextReader {
 public:
  // Called with the folder of the run in which a file really lies, after all symbolic links, and
  // the label of each start (LogStart) that has encrypted some of it, before the key of that start
  // is opened, which authenticates the label. Throws what keeps it from being read.
  using Admit = std::function<void(const std::filesystem::path& folder, const std::string& label)>;

  // uris: returns those of the wrapping keys (key_uri.h), which are opened when the first encrypted
  // file is read. admit: may be empty.
  explicit KeyedTextReader(std::function<std::vector<std::string>()> uris, Admit admit = {})
      : uris_(std::move(uris)), admit_(std::move(admit)) {}
  // ring: outlives this object.
  explicit KeyedTextReader(const KeyRing& ring) : ring_(&ring) {}

  // Opens the text of an encrypted file. Throws what TextReader::read() throws, which includes
  // DataError if it lacks lines that the last start with a closing record (closed_logs.h) has left.
  OpenedText open_sections(const std::string& text, const std::filesystem::path& path) const;
  // Opens the key of a start of a run. Throws what open_sections() throws if it, or the record that
  // the start has left, was changed.
  void check_start(const std::filesystem::path& run, const LogStart& start) const;

 private:
  std::string open(const std::string& text, const std::filesystem::path& path) const override;
  const KeyRing& ring() const;
  // A data key, and the start to which keys.json binds it.
  struct KeyOfStart {
    DataKey key;
    LogStart start;
  };
  // place: folder with which to call admit_.
  const KeyOfStart& key_of(const std::filesystem::path& run, const std::string& id,
                           const std::filesystem::path& place) const;
  void check_end(const std::string& text, const OpenedText& opened,
                 const std::filesystem::path& run, const std::filesystem::path& path,
                 const std::filesystem::path& place) const;

  std::function<std::vector<std::string>()> uris_;
  Admit admit_;
  mutable std::set<std::pair<std::filesystem::path, std::string>> admitted_;  // folder and key
  mutable std::unique_ptr<const KeyRing> own_;
  mutable const KeyRing* ring_ = nullptr;
  mutable std::map<std::filesystem::path, KeyOfStart> keys_;  // by keys.json
};

}  // namespace trireme
