#include "src/base/run_text.h"

#include <array>
#include <system_error>

#include "src/base/base64.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Returns whether the file begins with what only stands within a section: a record, which is base64
// of some bytes and a tag. No line of a plain file of a run is that.
bool begins_with_record(std::string_view text) {
  constexpr std::size_t kLeastBytes = 16;
  try {
    return from_base64(text.substr(0, text.find('\n'))).size() >= kLeastBytes;
  } catch (const DataError&) {
    return false;
  }
}

}  // namespace

bool is_sealed_text(std::string_view text) { return text.starts_with(kSealedMark); }

bool is_sealed_file(const fs::path& path) {
  std::error_code gone;
  if (!fs::is_regular_file(path, gone)) {
    return false;
  }
  const File file = File::open_to_read(path);
  std::array<char, kSealedMark.size()> head{};
  const std::int64_t got = file.read_at(0, head.data(), std::ssize(head));
  return is_sealed_text({head.data(), static_cast<std::size_t>(got)});
}

fs::path run_with_log_keys(const fs::path& path) {
  std::error_code none;
  fs::path run = fs::absolute(path, none).lexically_normal().parent_path();
  const std::string name = run.filename().string();
  if (name == "logs" || name == "trace" || name == "tensorboard") {
    run = run.parent_path();
  }
  return fs::is_directory(run / kLogKeysFolder, none) ? run : fs::path();
}

std::string TextReader::read(const fs::path& path, std::int64_t most_bytes) const {
  std::string text = read_file(path, most_bytes);
  if (is_sealed_text(text)) {
    return open(text, path);
  }
  if (run_with_log_keys(path).empty()) {
    return text;
  }
  if (text.empty()) {
    return open(text, path);
  }
  if (begins_with_record(text)) {
    throw DataError(
        fmt::format("{}, line 1: this encrypted record stands in no section: lines before it were "
                    "removed",
                    printable(path.string())));
  }
  throw DataError(
      fmt::format("{} is not encrypted, although its run encrypts its files ({} exists): somebody "
                  "else put it there, or a start was interrupted, which the next one repairs",
                  printable(path.string()), kLogKeysFolder));
}

std::string TextReader::open(const std::string& text, const fs::path& path) const {
  if (text.empty()) {
    return "";
  }
  throw PolicyError(fmt::format(
      "{} is encrypted, and no key was given: name one in encryption.keys or with --key",
      printable(path.string())));
}

const TextReader& plain_reader() {
  static const TextReader reader;
  return reader;
}

void write_run_file(const fs::path& path, std::string_view contents, const RunSealer* sealer) {
  if (sealer == nullptr) {
    write_file_durably(path, contents);
    return;
  }
  const std::unique_ptr<TextSealer> section = sealer->sealer(path);
  std::string text = section->begin("");
  text += section->seal(contents);
  text += section->end();
  write_file_durably(path, text);
}

}  // namespace trireme
