// AuditRecord holds what audit logs say about the checkpoints of some folders, and about encrypted
// logs: which steps were saved and deleted, and how the logs of each start ended. It takes the
// lines one by one while a log is checked (src/evidence/audit_check.h); a line of another form says
// nothing to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "src/keys/log_starts.h"

namespace trireme {

class AuditRecord {
 public:
  struct Save {
    std::string manifest_sha256;  // "" if the run did not know it
    std::string where;            // "line 12 of /var/log/audit.jsonl"
  };
  struct Step {
    std::vector<Save> saves;  // in the order of the log; not empty
    std::string deleted;      // where the log says so, unless it was saved again; or ""
    void take_deletion(const std::string& manifest_sha256, const std::string& where);
  };
  struct Steps {
    std::map<std::int64_t, Step> by_number;
    bool has_unnamed_deletions = false;  // `ckpt prune` names the first thousand only
  };
  struct Start {
    LogStart start;
    std::string where;          // that it has begun
    std::string closed_sha256;  // of the record of its ends; "" if there is none
  };
  // Returns where a folder is now that a log names.
  using PlaceNow = std::function<std::filesystem::path(const std::string&)>;

  AuditRecord() = default;
  // folders: those of checkpoints whose steps count, as canonical paths.
  AuditRecord(std::set<std::string> folders, PlaceNow place_now)
      : folders_(std::move(folders)), place_now_(std::move(place_now)) {}

  // log: its path. line: from 1.
  void take(const std::string& log, std::int64_t line, const nlohmann::json& event);
  // Return nullptr if the logs say nothing about it.
  const Steps* steps_of(const std::string& canonical_folder) const;
  const std::map<std::string, Start>& starts() const { return starts_; }  // by key

 private:
  struct Place {
    const std::string& log;
    std::int64_t line;
    std::string text() const;
  };
  std::string folder_now(const std::string& stated);
  void take_step(const Place& place, bool is_save, const nlohmann::json& details);
  void take_pruned(const Place& place, const nlohmann::json& details);
  void take_erased(const Place& place, const nlohmann::json& details);
  void take_start(const Place& place, bool begins, const nlohmann::json& details);

  std::set<std::string> folders_;
  PlaceNow place_now_;
  std::map<std::string, std::string> known_;  // what folder_now() has returned
  std::map<std::string, Steps> steps_;        // by canonical folder
  std::map<std::string, Start> starts_;
};

}  // namespace trireme
