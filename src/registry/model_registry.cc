#include "src/registry/model_registry.h"

#include <algorithm>
#include <charconv>
#include <functional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/log.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "registry.json";
constexpr std::int64_t kSchema = 1;

// Returns the number in a file name "12.json", or 0.
std::int64_t number_in(const std::string& name) {
  constexpr std::string_view kSuffix = ".json";
  if (!name.ends_with(kSuffix)) {
    return 0;
  }
  std::int64_t number = 0;
  const char* const end = name.data() + name.size() - kSuffix.size();
  const auto [stop, error] = std::from_chars(name.data(), end, number);
  const bool is_plain = error == std::errc() && stop == end && number >= 1 &&
                        number <= kMostRecordNumber && std::to_string(number) + ".json" == name;
  return is_plain ? number : 0;
}

// Returns the numbers of the records in a folder, which may be missing.
std::vector<std::int64_t> numbers_in(const fs::path& folder) {
  std::vector<std::int64_t> numbers;
  try {
    if (!fs::exists(folder)) {
      return numbers;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (const std::int64_t number = number_in(entry.path().filename().string()); number > 0) {
        numbers.push_back(number);
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw_as_error(error);
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

// DraftRecord is a file beside the records until one of their names is free for it.
class DraftRecord {
 public:
  explicit DraftRecord(const fs::path& folder)
      : path_(folder / fmt::format(".draft-{}-{}", host_name(), ::getpid())) {}
  ~DraftRecord() {
    std::error_code none;
    fs::remove(path_, none);
  }
  DraftRecord(const DraftRecord&) = delete;
  DraftRecord& operator=(const DraftRecord&) = delete;

  void write(const std::string& text) const { write_file_durably(path_, text); }
  // Returns false if the name is taken.
  bool take_name(const fs::path& file) const {
    if (is_there(file)) {
      return false;
    }
    try {
      rename_durably(path_, file);
    } catch (const Error&) {
      if (!is_there(file)) {
        throw;  // nobody was faster: the file system failed
      }
      return false;
    }
    return true;
  }

 private:
  static bool is_there(const fs::path& file) { return fs::exists(fs::symlink_status(file)); }

  fs::path path_;
};

// Writes a record under the next free number of its folder. text_of: makes the text for a number,
// for which all smaller ones are taken.
void write_next(const fs::path& folder, const std::function<std::string(std::int64_t)>& text_of) {
  make_directories(folder);
  const std::vector<std::int64_t> numbers = numbers_in(folder);
  const DraftRecord draft(folder);
  for (std::int64_t number = numbers.empty() ? 1 : numbers.back() + 1;; ++number) {
    draft.write(text_of(number));
    if (draft.take_name(folder / fmt::format("{}.json", number))) {
      return;
    }
  }
}

}  // namespace

ModelRegistry ModelRegistry::open(const fs::path& folder) {
  const fs::path mark = folder / kMark;
  std::error_code none;
  if (!fs::exists(mark, none)) {
    throw NotFound(fmt::format("{} is no registry: it has no {}; `trireme registry add` makes one",
                               printable(folder.string()), kMark));
  }
  try {
    const auto json = parse_json(read_file(mark, kMostRecordBytes));
    const std::int64_t schema = count_field(json, "schema", 1);
    if (schema != kSchema) {
      throw DataError(fmt::format("it has schema {}; this program reads {}", schema, kSchema));
    }
  } catch (const DataError& error) {
    throw data_error_in(mark.string(), error);
  }
  return ModelRegistry(folder);
}

ModelRegistry ModelRegistry::open_or_make(const fs::path& folder) {
  std::error_code none;
  if (!fs::exists(folder / kMark, none)) {
    make_directories(folder);
    if (!fs::is_empty(folder)) {
      throw PolicyError(fmt::format("{} holds something, but no registry; name an empty folder",
                                    printable(folder.string())));
    }
    write_file_durably(folder / kMark, fmt::format("{{\"schema\": {}}}\n", kSchema));
  }
  return open(folder);
}

fs::path ModelRegistry::model_folder(const std::string& model) const {
  check_registry_name("the model", model);
  return folder_ / "models" / model;
}

fs::path ModelRegistry::version_file(const std::string& model, std::int64_t number) const {
  return model_folder(model) / "versions" / fmt::format("{}.json", number);
}

fs::path ModelRegistry::change_file(const std::string& model, std::int64_t number) const {
  return model_folder(model) / "changes" / fmt::format("{}.json", number);
}

VersionRecord ModelRegistry::add(VersionRecord record) const {
  write_next(model_folder(record.model) / "versions", [&](std::int64_t number) {
    record.version = number;
    return record_text(record);
  });
  return record;
}

ChangeRecord ModelRegistry::promote(ChangeRecord change) const {
  check_registry_name("the stage", change.stage);
  (void)version(change.model, change.version);
  write_next(model_folder(change.model) / "changes", [&](std::int64_t number) {
    change.number = number;
    return record_text(change);
  });
  return change;
}

ChangeRecord ModelRegistry::roll_back(ChangeRecord change) const {
  check_registry_name("the stage", change.stage);
  check_model_exists(change.model);
  change.is_rollback = true;
  // What others have changed meanwhile counts, since the number says what was before.
  write_next(model_folder(change.model) / "changes", [&](std::int64_t number) {
    const std::vector<std::int64_t> used = versions_in_use(changes(change.model), change.stage);
    if (used.size() < 2) {
      throw NotFound(fmt::format("the stage {} of {} has had no version before {}", change.stage,
                                 change.model, used.empty() ? 1 : used.back()));
    }
    change.number = number;
    change.version = used[used.size() - 2];
    return record_text(change);
  });
  return change;
}

std::vector<std::string> ModelRegistry::models() const {
  std::vector<std::string> names;
  try {
    if (!fs::exists(folder_ / "models")) {
      return names;
    }
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_ / "models")) {
      if (!numbers_in(entry.path() / "versions").empty()) {
        names.push_back(entry.path().filename().string());
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw_as_error(error);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void ModelRegistry::check_model_exists(const std::string& model) const {
  if (numbers_in(model_folder(model) / "versions").empty()) {
    throw NotFound(fmt::format("the registry {} has no model {}", printable(folder_.string()),
                               printable(model)));
  }
}

std::vector<std::int64_t> ModelRegistry::version_numbers(const std::string& model) const {
  check_model_exists(model);
  return numbers_in(model_folder(model) / "versions");
}

std::vector<std::int64_t> ModelRegistry::change_numbers(const std::string& model) const {
  check_model_exists(model);
  return numbers_in(model_folder(model) / "changes");
}

VersionRecord ModelRegistry::version(const std::string& model, std::int64_t number) const {
  check_model_exists(model);
  const fs::path file = version_file(model, number);
  std::error_code none;
  if (!fs::exists(file, none)) {
    throw NotFound(fmt::format("{} has no version {}; it has 1 to {}", model, number,
                               version_numbers(model).back()));
  }
  return parse_version(read_file(file, kMostRecordBytes), model, number, file.string());
}

ChangeRecord ModelRegistry::change(const std::string& model, std::int64_t number) const {
  const fs::path file = change_file(model, number);
  return parse_change(read_file(file, kMostRecordBytes), model, number, file.string());
}

std::vector<ChangeRecord> ModelRegistry::changes(const std::string& model) const {
  std::vector<ChangeRecord> result;
  for (const std::int64_t number : change_numbers(model)) {
    result.push_back(change(model, number));
  }
  return result;
}

VersionRecord ModelRegistry::find(std::string_view reference) const {
  const std::size_t mark = reference.find_first_of(":@");
  const std::string model(reference.substr(0, mark));
  check_registry_name("the model", model);
  if (mark == std::string_view::npos) {
    return version(model, version_numbers(model).back());
  }
  const std::string rest(reference.substr(mark + 1));
  if (reference[mark] == ':') {
    const std::int64_t number = number_in(rest + ".json");
    if (number == 0) {
      throw ConfigError(fmt::format("'{}': a version is a number from 1", printable(reference)));
    }
    return version(model, number);
  }
  check_registry_name("the stage", rest);
  const std::vector<std::int64_t> used = versions_in_use(changes(model), rest);
  if (used.empty()) {
    throw NotFound(fmt::format("{} has no version at the stage {}", model, rest));
  }
  return version(model, used.back());
}

std::vector<std::int64_t> versions_in_use(const std::vector<ChangeRecord>& changes,
                                          std::string_view stage) {
  std::vector<std::int64_t> used;
  for (const ChangeRecord& change : changes) {
    if (change.stage != stage) {
      continue;
    }
    if (!change.is_rollback) {
      used.push_back(change.version);
      continue;
    }
    if (!used.empty()) {
      used.pop_back();
    }
    if (used.empty() || used.back() != change.version) {
      throw DataError(
          fmt::format("change {} of {} rolls back to version {}, which the stage {} "
                      "did not have before",
                      change.number, change.model, change.version, stage));
    }
  }
  return used;
}

}  // namespace trireme
