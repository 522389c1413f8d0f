// How the files of a run are written and read: in plain, or encrypted. The classes that encrypt
// stand above this folder (src/keys/sealed_text.h, which draws the format); those who write and
// read files know only these interfaces.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace trireme {

// Every encrypted file begins with it, and so does every section of one. A digit and a blank
// follow.
inline constexpr std::string_view kSealedMark = "TRIREME-SEALED-";

// The folder in a run's folder that holds the wrapped keys of its encrypted files. It exists if
// files of the run are encrypted.
inline constexpr const char* kLogKeysFolder = "log-keys";

// TextSealer encrypts what one process appends to one file. Its output consists of whole lines.
// Used by one thread at a time.
class TextSealer {
 public:
  TextSealer() = default;
  TextSealer(const TextSealer&) = delete;
  TextSealer& operator=(const TextSealer&) = delete;
  virtual ~TextSealer() = default;

  // Returns the line that begins a section. last_line: of the file so far, without its line end;
  // empty if the file is empty.
  virtual std::string begin(std::string_view last_line) = 0;
  // Returns the next records of the section, which hold this text.
  virtual std::string seal(std::string_view text) = 0;
  // Returns the line that ends the section.
  virtual std::string end() = 0;
};

// RunSealer makes the sealers of a run's files. Immutable; any thread may use it.
class RunSealer {
 public:
  RunSealer() = default;
  RunSealer(const RunSealer&) = delete;
  RunSealer& operator=(const RunSealer&) = delete;
  virtual ~RunSealer() = default;

  // path: of a file in the run's folder.
  virtual std::unique_ptr<TextSealer> sealer(const std::filesystem::path& path) const = 0;
};

// TextReader reads the files of runs. This one reads plain files and refuses encrypted ones; a
// KeyedTextReader (src/keys) also opens these.
class TextReader {
 public:
  TextReader() = default;
  TextReader(const TextReader&) = delete;
  TextReader& operator=(const TextReader&) = delete;
  virtual ~TextReader() = default;

  // Returns the plain contents of a file. Throws what read_file() throws; PolicyError if it is
  // encrypted and no key opens it; and DataError if an encrypted file was changed, or if a plain
  // one stands where the run encrypts its files.
  std::string read(const std::filesystem::path& path, std::int64_t most_bytes = 1 << 30) const;

 private:
  // Returns the plain contents of an encrypted file, which is empty if nothing was written to it
  // or everything was cut off. text: all of it.
  virtual std::string open(const std::string& text, const std::filesystem::path& path) const;
};

// Returns one that has no keys.
const TextReader& plain_reader();

// RunText says how the files of one run are written and read. Both outlive who uses them.
struct RunText {
  std::shared_ptr<const RunSealer> sealer = nullptr;  // null: in plain
  const TextReader* reader = &plain_reader();
};

// Returns whether a file with this beginning is encrypted.
bool is_sealed_text(std::string_view text);
// Returns whether the file exists and begins like an encrypted one.
bool is_sealed_file(const std::filesystem::path& path);
// Returns the folder of the run to which a file belongs, if that has a folder log-keys, otherwise
// "". A file of a run lies directly in its folder, or in logs/, trace/ or tensorboard/.
std::filesystem::path run_with_log_keys(const std::filesystem::path& path);
// Replaces a file as write_file_durably() does, encrypted unless `sealer` is null.
void write_run_file(const std::filesystem::path& path, std::string_view contents,
                    const RunSealer* sealer);

}  // namespace trireme
