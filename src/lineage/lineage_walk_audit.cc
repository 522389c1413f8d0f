// See lineage_walk.h.
#include <algorithm>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "io/checkpoint/names.h"
#include "io/checkpoint/run_lock.h"
#include "src/base/config_tree.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/file_digests.h"
#include "src/keys/closed_logs.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

std::string real_path_of(const fs::path& path) {
  std::error_code code;
  return fs::weakly_canonical(path, code).string();
}

// Returns the number in the name of a step's folder; the walk gets here with none other.
std::int64_t step_number_of(const fs::path& step) {
  return parse_step_folder_name(step.filename().string()).value_or(0);
}

}  // namespace

void LineageWalk::audit_logs(const fs::path& what) {
  const std::set<std::string> folders = {real_path_of(what), real_path_of(what.parent_path()),
                                         real_path_of(what / "checkpoints")};
  record_ = AuditRecord(folders, [this](const std::string& stated) { return place_now(stated); });
  has_audit_record_ = !options_.audit_logs.empty();
  for (const std::string& folder : folders) {
    note_live_run(folder);
  }
  for (const fs::path& log : options_.audit_logs) {
    audit_log(fs::absolute(log).lexically_normal());
  }
}

void LineageWalk::audit_log(const fs::path& log) {
  const std::size_t item = lineage.items.size();
  const std::size_t first = lineage.faults.size();
  add_item(0, "audit log", log.string());
  AuditDemands demands;
  demands.trusted = options_.trusted;
  demands.threads = options_.threads;
  demands.event = [&](std::int64_t line, const nlohmann::json& event) {
    record_.take(log.string(), line, event);
  };
  const AuditCheck check = check_audit_log(log, demands);
  for (const AuditFault& fault : check.faults) {
    add_fault(ExitCode::bad_data,
              fmt::format("{}: line {} {}", log.string(), fault.line, fault.what));
  }
  if (check.faults_not_listed > 0) {
    add_fault(ExitCode::bad_data,
              fmt::format("{}: {} more", log.string(), counted(check.faults_not_listed, "fault")));
  }
  if (check.lines == 0) {
    add_fault(ExitCode::bad_data, fmt::format("{}: the audit log is empty", log.string()));
  } else if (const std::string lack = lack_of_trust(check, demands); !lack.empty()) {
    add_fault(ExitCode::refused, fmt::format("{}: {}", log.string(), lack));
  }
  for (const std::string& note : check.notes) {
    lineage.notes.push_back(fmt::format("{}: {}", log.string(), note));
  }
  std::vector<std::string>& facts = lineage.items[item].facts;
  if (check.signed_lines > 0) {
    facts.push_back(fmt::format("signed up to line {} by {}", check.signed_lines, check.signer));
  }
  facts.push_back("head " + to_text(check.head));
  const bool is_good = lineage.faults.size() == first;
  end_item(item, first,
           fmt::format("{}{}", counted(check.lines, "line"),
                       is_good ? ", each continues the one before it" : ""));
  if (!is_good && std::exchange(has_audit_record_, false)) {
    lineage.notes.push_back(
        "nothing was compared with audit logs, because not all of them are whole and signed");
  }
}

// Remembers that a run writes to the folder, which records some of what it does a moment later. It
// may have ended by the time at which that is missed.
bool LineageWalk::note_live_run(const std::string& folder) {
  const std::optional<LockHolder> holder = lock_holder(folder);
  if (holder && holder->is_alive) {
    live_folders_.insert(folder);
  }
  return live_folders_.contains(folder);
}

// Returns nullptr if there is nothing to compare with. That the logs say nothing about the folder
// is a fault, since they are named to be compared with it; it is reported once.
const AuditRecord::Steps* LineageWalk::recorded_steps(const fs::path& folder) {
  if (!has_audit_record_) {
    return nullptr;
  }
  const std::string path = real_path_of(folder);
  const AuditRecord::Steps* const steps = record_.steps_of(path);
  if (steps == nullptr && seen_.insert("unrecorded:" + path).second) {
    if (note_live_run(path)) {
      lineage.notes.push_back(fmt::format(
          "no line of the audit log says yet that a checkpoint was saved in {}: its run "
          "has just begun",
          folder.string()));
      return nullptr;
    }
    add_fault(ExitCode::not_found,
              fmt::format("no line of the audit log says that a checkpoint was saved in {}: it is "
                          "that of other runs, or the run was moved (--moved)",
                          folder.string()));
  }
  return steps;
}

void LineageWalk::compare_save(const fs::path& path, const Provenance& provenance) {
  const AuditRecord::Steps* const recorded = recorded_steps(path.parent_path());
  const Subject* const manifest = provenance.find_subject(kManifestSubject);
  if (recorded == nullptr || manifest == nullptr) {
    return;
  }
  const auto step = recorded->by_number.find(step_number_of(path));
  const auto is_this = [&](const AuditRecord::Save& save) {
    return save.manifest_sha256 == manifest->sha256;
  };
  if (step == recorded->by_number.end()) {
    lineage.notes.push_back(
        fmt::format("{} is signed, but the audit log does not say that it was saved: the run was "
                    "killed just then, or recorded elsewhere",
                    path.string()));
    return;
  }
  const std::vector<AuditRecord::Save>& saves = step->second.saves;
  const auto own = std::find_if(saves.rbegin(), saves.rend(), is_this);
  if (own == saves.rend()) {
    lineage.notes.push_back(
        fmt::format("{} is signed, but not what {} says was saved: the run was killed when it "
                    "saved the step once more, or recorded elsewhere",
                    path.string(), saves.back().where));
  } else if (own != saves.rbegin()) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} is what {} says was saved, but {} names a later save of this step: "
                          "the older one was put back",
                          path.string(), own->where, saves.back().where));
  } else if (!step->second.deleted.empty()) {
    add_fault(ExitCode::bad_data,
              fmt::format("{} was deleted, as {} says: somebody has put it back", path.string(),
                          step->second.deleted));
  }
}

// newest: number of the newest step that is there.
void LineageWalk::compare_steps(const fs::path& folder, std::int64_t newest) {
  const AuditRecord::Steps* const recorded = recorded_steps(folder);
  if (recorded == nullptr) {
    return;
  }
  const bool goes_on = note_live_run(real_path_of(folder));
  for (const auto& [number, step] : recorded->by_number) {
    const fs::path path = folder / step_folder_name(number);
    std::error_code code;
    if (!step.deleted.empty() || fs::exists(fs::symlink_status(path, code))) {
      continue;
    }
    if (number > newest) {
      add_fault(ExitCode::bad_data,
                fmt::format("{} was removed: {} says that it was saved, and nothing that it was "
                            "deleted. Step {} is the newest only because of that",
                            path.string(), step.saves.back().where, newest));
    } else if (goes_on) {
      lineage.notes.push_back(
          fmt::format("{} is gone, and the audit log does not say yet that it was deleted: the run "
                      "still goes on, which records that some steps later",
                      path.string()));
    } else if (!recorded->has_unnamed_deletions) {
      add_fault(ExitCode::not_found,
                fmt::format("{} is gone: {} says that it was saved, and nothing that it was "
                            "deleted. A run that is killed while it deletes an old step leaves "
                            "that, too",
                            path.string(), step.saves.back().where));
    }
  }
}

// Compares the starts whose logs are here, and the records of their ends, with what was recorded.
void LineageWalk::compare_starts(const RunLogsCheck& check, const fs::path& folder) {
  const std::vector<LogStart>& here = check.starts.all;
  if (!has_audit_record_ || here.empty() || here.back().run.empty()) {
    return;
  }
  for (const auto& [key, start] : record_.starts()) {
    if (start.start.run != here.back().run) {
      continue;
    }
    const bool is_here = std::any_of(here.begin(), here.end(),
                                     [&](const LogStart& each) { return each.key == key; });
    const fs::path record = closed_logs_file(folder, key);
    std::error_code code;
    if (!is_here && start.start.number > here.back().number) {
      add_fault(
          ExitCode::bad_data,
          fmt::format("{}: the key {} of start {} was removed, which {} names: an older state "
                      "of the logs was put back",
                      folder.string(), key, start.start.number, start.where));
    } else if (is_here && !start.closed_sha256.empty() && !fs::exists(record, code)) {
      add_fault(ExitCode::not_found,
                fmt::format("{} is gone, the record of how the logs of start {} ended",
                            record.string(), start.start.number));
    } else if (is_here && !start.closed_sha256.empty() &&
               digest_file(record).sha256 != start.closed_sha256) {
      add_fault(
          ExitCode::bad_data,
          fmt::format("{} was changed: the audit log has another SHA-256 of the record of how "
                      "the logs of start {} ended",
                      record.string(), start.start.number));
    }
  }
}

// Names the audit log of the run if it is not checked: the signed configuration has its place.
void LineageWalk::note_audit_log(const Provenance& provenance) {
  if (!options_.audit_logs.empty()) {
    return;
  }
  try {
    const nlohmann::json& parameters = *provenance.parameters;
    for (const ConfigEntry& entry : parse_config(text_field(parameters, "config"), "config")) {
      if (entry.key != "audit.log" || entry.value.kind != ConfigValue::Kind::scalar ||
          entry.value.items.front().empty()) {
        continue;
      }
      const std::string& log = entry.value.items.front();
      if (seen_.insert("audit:" + log).second) {
        lineage.notes.push_back(fmt::format(
            "the run was recorded in the audit log {}, which was not read: with --audit "
            "{}, it is checked, and removed or older steps are found",
            log, log));
      }
    }
  } catch (const Error&) {
    // Other checks report a configuration that is not the one that was signed.
  }
}

}  // namespace trireme
