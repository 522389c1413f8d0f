#include "src/registry/model_registry.h"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/registry/record_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMark = "registry.json";
constexpr const char* kModels = "models";
constexpr const char* kVersions = "versions";
constexpr const char* kChanges = "changes";
constexpr std::string_view kGiven = ".number-";
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

fs::path records_of(const std::string& model, const char* kind) {
  check_registry_name("the model", model);
  return fs::path(kModels) / model / kind;
}

std::vector<std::string> names_in(const fs::path& root, const fs::path& folder) {
  const std::optional<RecordFolder> opened = RecordFolder::open(root, folder);
  return opened ? opened->names() : std::vector<std::string>();
}

// Returns the numbers of the records in a folder, which may be missing.
std::vector<std::int64_t> numbers_in(const fs::path& root, const fs::path& folder) {
  std::vector<std::int64_t> numbers;
  for (const std::string& name : names_in(root, folder)) {
    if (const std::int64_t number = number_in(name); number > 0) {
      numbers.push_back(number);
    }
  }
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::string record_name(std::int64_t number) { return fmt::format("{}.json", number); }
std::string mark_name(std::int64_t number) { return fmt::format("{}{}", kGiven, number); }

// Returns the number in the name of a mark ".number-12", or 0.
std::int64_t marked_number(const std::string& name) {
  return name.starts_with(kGiven) ? number_in(name.substr(kGiven.size()) + ".json") : 0;
}

// Marks a number as given, unless it is already. The marks of smaller numbers say nothing more.
bool take_number(const RecordFolder& folder, std::int64_t number) {
  if (!folder.add(mark_name(number), "")) {
    return false;
  }
  for (const std::string& name : folder.names()) {
    if (const std::int64_t old = marked_number(name); old > 0 && old < number) {
      folder.remove(name);
    }
  }
  return true;
}

std::string read_record(const fs::path& root, const fs::path& folder, std::int64_t number) {
  const std::optional<RecordFolder> opened = RecordFolder::open(root, folder);
  if (!opened) {
    throw NotFound(fmt::format("{} does not exist", printable((root / folder).string())));
  }
  return opened->read(record_name(number));
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

fs::path ModelRegistry::version_file(const std::string& model, std::int64_t number) const {
  return folder_ / records_of(model, kVersions) / record_name(number);
}

fs::path ModelRegistry::change_file(const std::string& model, std::int64_t number) const {
  return folder_ / records_of(model, kChanges) / record_name(number);
}

// Returns the highest number that a version of the model has had, or 0.
std::int64_t ModelRegistry::highest_number(const std::string& model) const {
  std::int64_t highest = 0;
  for (const std::string& name : names_in(folder_, records_of(model, kVersions))) {
    highest = std::max({highest, number_in(name), marked_number(name)});
  }
  return highest;
}

VersionRecord ModelRegistry::add(VersionRecord record) const {
  const RecordFolder versions =
      RecordFolder::open_or_make(folder_, records_of(record.model, kVersions));
  std::int64_t highest = highest_number(record.model);
  for (const std::int64_t number : numbers_in(folder_, records_of(record.model, kChanges))) {
    try {
      highest = std::max(highest, change(record.model, number).version);
    } catch (const DataError&) {  // check names it
    }
  }
  for (record.version = highest + 1;; ++record.version) {
    const std::string text = record_text(record);  // throws for one that is too long
    if (take_number(versions, record.version) && versions.add(record_name(record.version), text)) {
      return record;
    }
  }
}

ChangeRecord ModelRegistry::promote(ChangeRecord change) const {
  check_registry_name("the stage", change.stage);
  change.sha256 = version(change.model, change.version).sha256;
  const fs::path place = records_of(change.model, kChanges);
  const RecordFolder folder = RecordFolder::open_or_make(folder_, place);
  const std::vector<std::int64_t> numbers = numbers_in(folder_, place);
  change.number = numbers.empty() ? 1 : numbers.back() + 1;
  while (!folder.add(record_name(change.number), record_text(change))) {
    ++change.number;
  }
  return change;
}

ChangeRecord ModelRegistry::roll_back(ChangeRecord change) const {
  check_registry_name("the stage", change.stage);
  check_model_exists(change.model);
  change.is_rollback = true;
  const fs::path place = records_of(change.model, kChanges);
  const RecordFolder folder = RecordFolder::open_or_make(folder_, place);
  const std::vector<std::int64_t> numbers = numbers_in(folder_, place);
  // What others have changed meanwhile counts, since the number says what was before.
  for (change.number = numbers.empty() ? 1 : numbers.back() + 1;; ++change.number) {
    const std::vector<UsedVersion> used = versions_in_use(changes(change.model), change.stage);
    const std::optional<UsedVersion> before = version_before(used);
    if (!before) {
      throw NotFound(fmt::format("the stage {} of {} has had no version before {}", change.stage,
                                 change.model, used.empty() ? 1 : used.back().version));
    }
    change.version = before->version;
    change.sha256 = version(change.model, *before).sha256;
    if (folder.add(record_name(change.number), record_text(change))) {
      return change;
    }
  }
}

std::vector<std::string> ModelRegistry::models() const {
  std::vector<std::string> models;
  for (const std::string& name : names_in(folder_, kModels)) {
    if (is_registry_name(name) && !numbers_in(folder_, records_of(name, kVersions)).empty()) {
      models.push_back(name);
    }
  }
  return models;
}

void ModelRegistry::check_model_exists(const std::string& model) const {
  if (numbers_in(folder_, records_of(model, kVersions)).empty()) {
    throw NotFound(fmt::format("the registry {} has no model {}", printable(folder_.string()),
                               printable(model)));
  }
}

std::vector<std::int64_t> ModelRegistry::version_numbers(const std::string& model) const {
  check_model_exists(model);
  return numbers_in(folder_, records_of(model, kVersions));
}

std::vector<std::int64_t> ModelRegistry::change_numbers(const std::string& model) const {
  check_model_exists(model);
  return numbers_in(folder_, records_of(model, kChanges));
}

VersionRecord ModelRegistry::version(const std::string& model, std::int64_t number) const {
  const std::vector<std::int64_t> numbers = version_numbers(model);
  if (!std::binary_search(numbers.begin(), numbers.end(), number)) {
    throw NotFound(
        fmt::format("{} has no version {}; the newest is {}, and `trireme registry list "
                    "{}` shows all",
                    model, number, numbers.back(), model));
  }
  return parse_version(read_record(folder_, records_of(model, kVersions), number), model, number,
                       version_file(model, number).string());
}

VersionRecord ModelRegistry::version(const std::string& model, const UsedVersion& used) const {
  VersionRecord record = version(model, used.version);
  if (!used.sha256.empty() && used.sha256 != record.sha256) {
    throw DataError(fmt::format(
        "{}: it is of a model with the digest {}, but change {} of {} is about one with {}: the "
        "record was replaced; promote a version that you trust",
        printable(version_file(model, used.version).string()), record.sha256, used.change, model,
        used.sha256));
  }
  return record;
}

ChangeRecord ModelRegistry::change(const std::string& model, std::int64_t number) const {
  return parse_change(read_record(folder_, records_of(model, kChanges), number), model, number,
                      change_file(model, number).string());
}

std::vector<ChangeRecord> ModelRegistry::changes(const std::string& model) const {
  std::vector<ChangeRecord> result;
  for (const std::int64_t number : change_numbers(model)) {
    result.push_back(change(model, number));
  }
  return result;
}

std::vector<std::string> ModelRegistry::strays(const std::string& model) const {
  std::vector<std::string> strays;
  for (const char* const kind : {kVersions, kChanges}) {
    const fs::path folder = records_of(model, kind);
    for (const std::string& name : names_in(folder_, folder)) {
      if (number_in(name) == 0 && !name.starts_with('.')) {
        strays.push_back(fmt::format("{} has no name of a record, which is its number",
                                     printable((folder_ / folder / name).string())));
      }
    }
  }
  return strays;
}

std::vector<std::string> ModelRegistry::strays() const {
  std::vector<std::string> all;
  for (const std::string& name : names_in(folder_, kModels)) {
    if (is_registry_name(name)) {
      const std::vector<std::string> of_model = strays(name);
      all.insert(all.end(), of_model.begin(), of_model.end());
    } else if (!name.starts_with('.')) {
      all.push_back(
          fmt::format("{} has no name of a model", printable((folder_ / kModels / name).string())));
    }
  }
  return all;
}

std::vector<std::string> ModelRegistry::faults(const std::string& model) const {
  std::vector<std::string> faults = strays(model);
  const std::int64_t highest = highest_number(model);
  std::vector<ChangeRecord> readable;
  for (const std::int64_t number : change_numbers(model)) {
    try {
      readable.push_back(change(model, number));
      if (readable.back().version > highest) {
        faults.push_back(fmt::format("{} names version {}, which there never was",
                                     printable(change_file(model, number).string()),
                                     readable.back().version));
      }
    } catch (const DataError& error) {
      faults.emplace_back(error.what());
    }
  }
  std::set<std::string> stages;
  for (const ChangeRecord& change : readable) {
    stages.insert(change.stage);
  }
  for (const std::string& stage : stages) {
    try {
      const UsedVersion used = versions_in_use(readable, stage).back();
      if (used.version <= highest) {
        (void)version(model, used);
      }
    } catch (const Error& error) {
      faults.push_back(fmt::format("the stage {}: {}", stage, error.what()));
    }
  }
  return faults;
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
  const std::vector<UsedVersion> used = versions_in_use(changes(model), rest);
  if (used.empty()) {
    throw NotFound(
        fmt::format("{} has no version at the stage {}; put one there with `trireme "
                    "registry promote {} --stage {}`",
                    model, rest, model, rest));
  }
  return version(model, used.back());
}

std::vector<UsedVersion> versions_in_use(const std::vector<ChangeRecord>& changes,
                                         std::string_view stage) {
  std::vector<UsedVersion> used;
  for (const ChangeRecord& change : changes) {
    if (change.stage != stage) {
      continue;
    }
    if (!change.is_rollback) {
      used.push_back({change.version, change.sha256, change.number});
      continue;
    }
    const std::int64_t replaced = used.empty() ? 0 : used.back().version;
    if (!used.empty()) {
      used.pop_back();
    }
    // Earlier programs went back to the same version if it was promoted twice.
    while (!used.empty() && used.back().version == replaced && change.version != replaced) {
      used.pop_back();
    }
    if (used.empty() || used.back().version != change.version ||
        (!change.sha256.empty() && !used.back().sha256.empty() &&
         used.back().sha256 != change.sha256)) {
      throw DataError(
          fmt::format("change {} of {} rolls back to version {}, which the stage {} "
                      "did not have before",
                      change.number, change.model, change.version, stage));
    }
  }
  return used;
}

std::optional<UsedVersion> version_before(const std::vector<UsedVersion>& used) {
  for (auto each = used.rbegin(); each != used.rend(); ++each) {
    if (each->version != used.back().version) {
      return *each;
    }
  }
  return std::nullopt;
}

}  // namespace trireme
