#include "src/lineage/audit_record.h"

#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "src/base/json_fields.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

using nlohmann::json;

std::string text_or_nothing(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string AuditRecord::Place::text() const { return fmt::format("line {} of {}", line, log); }

void AuditRecord::take(const std::string& log, std::int64_t line, const json& event) {
  const Place place{log, line};
  try {
    const std::string& name = text_field(event, "event");
    if (!event.contains("details")) {
      return;
    }
    const json& details = object_field(event, "details");
    if (name == "checkpoint.saved" || name == "checkpoint.deleted") {
      take_step(place, name == "checkpoint.saved", details);
    } else if (name == "ckpt.prune.end") {
      take_pruned(place, details);
    } else if (name == "checkpoint.erased") {
      take_erased(place, details);
    } else if (name == "logs.begun" || name == "logs.closed") {
      take_start(place, name == "logs.begun", details);
    }
  } catch (const DataError&) {
    // Details may have been replaced by their digest, because they were too long.
  }
}

const AuditRecord::Steps* AuditRecord::steps_of(const std::string& canonical_folder) const {
  const auto found = steps_.find(canonical_folder);
  return found == steps_.end() ? nullptr : &found->second;
}

// A step may have been saved anew before the deletion of its older state was recorded.
void AuditRecord::Step::take_deletion(const std::string& manifest_sha256,
                                      const std::string& where) {
  const std::string& latest = saves.back().manifest_sha256;
  if (manifest_sha256 == latest || manifest_sha256.empty() || latest.empty()) {
    deleted = where;
  }
}

// Returns the canonical path of a folder of checkpoints, or "" if its steps do not count.
std::string AuditRecord::folder_now(const std::string& stated) {
  const auto [known, is_new] = known_.try_emplace(stated);
  if (is_new && place_now_) {
    std::error_code code;
    const std::string now = fs::weakly_canonical(place_now_(stated), code).string();
    known->second = folders_.contains(now) ? now : "";
  }
  return known->second;
}

void AuditRecord::take_step(const Place& place, bool is_save, const json& details) {
  const fs::path path = text_field(details, "folder");
  const auto number = parse_step_folder_name(path.filename().string());
  const std::string folder = folder_now(path.parent_path().string());
  if (!number || folder.empty()) {
    return;
  }
  std::map<std::int64_t, Step>& steps = steps_[folder].by_number;
  if (is_save) {
    Step& step = steps[*number];
    step.saves.push_back({text_or_nothing(details, "manifest_sha256"), place.text()});
    step.deleted.clear();
  } else if (const auto step = steps.find(*number); step != steps.end()) {
    step->second.take_deletion(text_or_nothing(details, "manifest_sha256"), place.text());
  }
}

void AuditRecord::take_pruned(const Place& place, const json& details) {
  const std::string folder = folder_now(text_field(details, "folder"));
  if (folder.empty()) {
    return;
  }
  Steps& steps = steps_[folder];
  const json& named = array_field(details, "steps");
  for (const json& each : named) {
    const auto step = steps.by_number.find(count_field(each, "step"));
    if (step != steps.by_number.end()) {
      step->second.take_deletion(text_or_nothing(each, "manifest_sha256"), place.text());
    }
  }
  steps.has_unnamed_deletions =
      steps.has_unnamed_deletions ||
      count_field(details, "deleted") > static_cast<std::int64_t>(named.size());
}

// What was erased is a step, or a folder of them.
void AuditRecord::take_erased(const Place& place, const json& details) {
  const fs::path path = text_field(details, "folder");
  const auto number = parse_step_folder_name(path.filename().string());
  const std::string folder = folder_now((number ? path.parent_path() : path).string());
  const auto steps = steps_.find(folder);
  if (steps == steps_.end()) {
    return;
  }
  for (auto& [each, step] : steps->second.by_number) {
    if (!number || each == *number) {
      step.deleted = place.text();
    }
  }
}

void AuditRecord::take_start(const Place& place, bool begins, const json& details) {
  const std::string& key = text_field(details, "key");
  if (begins) {
    starts_[key] = {
        {key, text_field(details, "logs"), count_field(details, "start")}, place.text(), ""};
  } else if (const auto start = starts_.find(key); start != starts_.end()) {
    start->second.closed_sha256 = text_field(details, "sha256");
  }
}

}  // namespace trireme
