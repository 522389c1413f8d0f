// ModelRegistry is a folder that says which versions of a model there are, where their files lie,
// and which of them is in use at each stage, such as production:
//
//   registry.json                  {"schema": 1}
//   models/NAME/versions/N.json    a version (registry_record.h)
//   models/NAME/changes/N.json     a stage got another version
//   index.sqlite                   what `list` needs of all of them (registry_index.h)
//
// The records are the truth; the index can be deleted at any time. A record is written durably
// under a hidden name and then gets its number unless another writer was faster, so that any number
// of programs on any number of hosts may write at once without a lock. A number is never given
// twice, even if the record is removed: versions/.number-N stays, and changes count, too. Models
// are not copied. No symbolic link in the registry is followed (record_folder.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/registry/registry_record.h"

namespace trireme {

// A version as a change has named it.
struct UsedVersion {
  std::int64_t version = 0;
  std::string sha256;       // empty if the change does not say
  std::int64_t change = 0;  // the number of the change
  friend bool operator==(const UsedVersion&, const UsedVersion&) = default;
};

class ModelRegistry {
 public:
  // Opens a registry. Throws NotFound if the folder is none, DataError if it is of a newer program.
  static ModelRegistry open(const std::filesystem::path& folder);
  // Does the same, but makes one if the folder is missing or empty. Throws PolicyError if it holds
  // something else.
  static ModelRegistry open_or_make(const std::filesystem::path& folder);

  // Writes the record of a new version, whose number it sets and returns.
  VersionRecord add(VersionRecord record) const;
  // Writes a change, whose number and digest it sets and returns. The version must exist.
  ChangeRecord promote(ChangeRecord change) const;
  // Gives a stage the version that it had before the one it has, as if that had never been
  // promoted; again for the one before that. Sets number, version and digest. Throws NotFound if
  // there is none.
  ChangeRecord roll_back(ChangeRecord change) const;

  std::vector<std::string> models() const;  // sorted
  // Returns the numbers of a model's records in order. Throws NotFound for an unknown model.
  std::vector<std::int64_t> version_numbers(const std::string& model) const;
  std::vector<std::int64_t> change_numbers(const std::string& model) const;
  VersionRecord version(const std::string& model, std::int64_t number) const;
  ChangeRecord change(const std::string& model, std::int64_t number) const;
  std::vector<ChangeRecord> changes(const std::string& model) const;
  // Returns the record of a version that a stage has or had. Throws NotFound if it was removed, and
  // DataError if it is not the one that was promoted.
  VersionRecord version(const std::string& model, const UsedVersion& used) const;
  // Return what no command reads, a sentence each: of a model, files among its records whose names
  // are no numbers; of all models, these, and folders whose names are none of a model. Hidden names
  // are left out.
  std::vector<std::string> strays(const std::string& model) const;
  std::vector<std::string> strays() const;
  // Returns what is wrong with the records of a model, a sentence each: damaged changes, strays(),
  // and changes to versions that there never were or that are gone
  // although they are in use.
  std::vector<std::string> faults(const std::string& model) const;
  // reference: NAME for the newest version, NAME:N, or NAME@STAGE. Throws ConfigError if it is none
  // of these, NotFound if there is no such version.
  VersionRecord find(std::string_view reference) const;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path version_file(const std::string& model, std::int64_t number) const;
  std::filesystem::path change_file(const std::string& model, std::int64_t number) const;

 private:
  explicit ModelRegistry(std::filesystem::path folder) : folder_(std::move(folder)) {}
  void check_model_exists(const std::string& model) const;
  std::int64_t highest_number(const std::string& model) const;

  std::filesystem::path folder_;
};

// Returns the versions that a stage had, the one in use last, without those that were rolled back;
// empty if it has none. A version that was promoted several times in a row is there as often.
// Throws DataError for a rollback without a promotion before it.
std::vector<UsedVersion> versions_in_use(const std::vector<ChangeRecord>& changes,
                                         std::string_view stage);
// Returns the version to which a rollback goes: the last one that differs from that in use.
std::optional<UsedVersion> version_before(const std::vector<UsedVersion>& used);

}  // namespace trireme
