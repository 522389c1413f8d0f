// ArchiveBundle collects the texts of a folder that an archive for a vendor takes, and removes
// secrets and names from them: those that it finds, or all that is no record of this program. One
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/study/redaction/hidden_texts.h"

namespace trireme {

struct Collected {
  std::filesystem::path path;
  std::string name;  // in the archive
  std::string text;
  std::int64_t time = 0;
  std::int64_t removed = 0;  // secrets, or with --strict all that KnownRecords counts
};

struct LeftOut {
  std::string name;
  std::string why;
  bool could_not_be_read = false;  // although it would belong into the archive
};

class ArchiveBundle {
 public:
  // list: a file of texts to hide, which no archive takes, or "".
  explicit ArchiveBundle(const std::string& list);

  void add(const std::filesystem::path& path, const std::string& name);
  // Does the same with a file that a person has named. Throws ConfigError if it is left out.
  void add_named(const std::filesystem::path& path);
  void add_folder(const std::filesystem::path& folder, const std::string& name, int depth = 0);
  // Removes secrets, and then the listed texts.
  void redact_all();
  // Returns a name without listed texts and secrets.
  std::string redacted_name(const std::string& name) const;
  void make_anonymous(const std::filesystem::path& folder);
  // In the place of redact_all() and make_anonymous(): keeps only what KnownRecords does, and then
  // removes the listed texts. Throws ConfigError if a file of add_named() has nothing of it.
  void keep_known_records();
  // Returns the whole archive, with its manifest as the first file. root: its folder in the
  // archive.
  std::string to_tar(const std::string& root, bool anonymous);
  const std::vector<Collected>& files() const { return files_; }
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  std::int64_t removed() const;

 private:
  void leave_out(const std::string& name, const std::string& why, bool could_not_be_read = false) {
    left_out_.push_back({name, why, could_not_be_read});
  }
  nlohmann::ordered_json manifest(bool anonymous) const;

  HiddenTexts hidden_;
  std::filesystem::path list_;
  bool is_strict_ = false;
  std::vector<Collected> files_;
  std::vector<LeftOut> left_out_;
  std::int64_t bytes_ = 0;
};

}  // namespace trireme
