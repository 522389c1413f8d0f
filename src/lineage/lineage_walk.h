// LineageWalk is the walk behind walk_lineage(): it fills a Lineage, item by item. Private to this
// folder. lineage_walk_list.cc has what concerns lists of digests, lineage_walk_model.cc exported
// models, lineage_walk_run.cc the logs of a run, lineage_walk_audit.cc audit logs,
// lineage_walk_steps.cc the steps of a folder, lineage_walk_parents.cc the checkpoints from which
// they were resumed, and lineage_walk_materials.cc what else they were made from.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "src/keys/run_logs_check.h"
#include "src/lineage/audit_record.h"
#include "src/lineage/lineage.h"

namespace trireme {

class LineageWalk {
 public:
  explicit LineageWalk(LineageOptions options) : options_(std::move(options)) {}

  // Checks the audit logs, before anything that is compared with them: what a run records meanwhile
  // is no fault then. what: the path that the user has named.
  void audit_logs(const std::filesystem::path& what);
  // A signed list of digests, and the files that it names.
  void digest_list(const std::filesystem::path& path);
  // An exported model with its signature (src/evidence/model_signature.h).
  void model(const std::filesystem::path& folder);
  // The checkpoints of a run, and its encrypted logs.
  void run(const std::filesystem::path& folder);
  void steps_of(const std::filesystem::path& folder);
  // Returns false, and reports nothing, if the step has been deleted meanwhile.
  bool step(const std::filesystem::path& path, int depth, const std::string& role);
  void dataset(const std::filesystem::path& path, int depth, const std::string& role);

  // Adds a note for each of LineageOptions::moved that has found nothing.
  void note_unused_moves();

  Lineage lineage;

 private:
  // The start whose logs the run has encrypted, as a signed step states it.
  struct StatedLogs {
    std::string step;  // path of its folder
    LogStart start;
  };
  void logs(const std::filesystem::path& folder);
  std::vector<std::string> facts_of_logs(const RunLogsCheck& check) const;
  std::vector<StatedLogs> stated_logs(const std::filesystem::path& folder);
  void compare_logs(const std::vector<StatedLogs>& stated, const RunLogsCheck& check,
                    const std::filesystem::path& folder);
  void audit_log(const std::filesystem::path& log);
  bool note_live_run(const std::string& folder);
  const AuditRecord::Steps* recorded_steps(const std::filesystem::path& folder);
  void compare_save(const std::filesystem::path& path, const Provenance& provenance);
  void compare_steps(const std::filesystem::path& folder, std::int64_t newest);
  void compare_starts(const RunLogsCheck& check, const std::filesystem::path& folder);
  void note_audit_log(const Provenance& provenance);
  void logs_are_gone(const StatedLogs& stated, const std::filesystem::path& folder);
  void stray(const std::filesystem::path& path);
  std::optional<FolderCheck> check_step(const std::filesystem::path& path) const;
  void check_home(const std::filesystem::path& path, const Provenance& provenance);
  void generation_is_gone(const std::filesystem::path& file, const Provenance& provenance);
  void check_generation(const std::filesystem::path& path, const Provenance& provenance);
  LineageItem& add_item(int depth, const std::string& role, const std::string& place);
  void add_fault(ExitCode code, const std::string& what);
  void add_unsigned(const std::string& what);
  void check_shards(const std::filesystem::path& step);
  void end_item(std::size_t item, std::size_t first_fault, const std::string& summary);
  void take(const FolderCheck& check);
  std::filesystem::path place_of(const Material& material);
  std::filesystem::path place_now(const std::string& stated);
  using Statements = std::shared_ptr<const std::vector<SignedStatement>>;
  // What a statement names, as far as it was not followed yet.
  struct Branch {
    Statements statements;
    std::size_t number;  // of the statement
    std::filesystem::path folder;
    int depth;
    std::size_t next = 0;  // of the statement's materials
  };
  bool visit_step(const std::filesystem::path& path, int depth, const std::string& role);
  void visit_dataset(const std::filesystem::path& path, int depth, const std::string& role);
  void follow_branches();
  bool follow_next(Branch& branch);
  void follow(const Material& material, const Provenance& provenance, int depth);
  void materials(Statements statements, std::size_t number, const std::filesystem::path& folder,
                 int depth);
  bool is_too_far(const Material& material, int depth);
  void parent(const Statements& statements, std::size_t number, const std::filesystem::path& folder,
              int depth);
  std::optional<std::filesystem::path> find_parent(const Material& material,
                                                   const std::filesystem::path& folder);
  void check_ancestor_count(const std::vector<SignedStatement>& statements,
                            const std::filesystem::path& folder);
  // A parent whose files are not there.
  struct Gone {
    const std::filesystem::path& child;  // the folder of the checkpoint that names it
    std::size_t first_fault;             // of those that say so
    int depth;
  };
  void gone_parent(const Statements& statements, std::size_t number, const Gone& gone);
  void check_ancestors(const std::vector<SignedStatement>& statements, std::size_t number,
                       const std::filesystem::path& parent);
  void other_model(const Material& material, int depth);
  void dataset_of(const Material& material, int depth);
  void dataset_provenance(const Material& material, int depth);
  void unsigned_dataset(const std::filesystem::path& path);
  void program(const Material& material, int depth);
  void bill(const Material& material, int depth);
  void configuration(const Material& material, const Provenance& provenance, int depth);
  void inputs(const std::vector<const Material*>& materials, int depth);

  LineageOptions options_;
  AuditRecord record_;                  // what the audit logs say
  std::set<std::string> live_folders_;  // of checkpoints, to which a run writes, or just did
  bool has_audit_record_ = false;       // whether there are such logs, and all are whole and signed
  bool is_whole_folder_ = false;  // whether all steps of a folder are verified, not a single one
  std::set<std::size_t> used_moves_;                                     // by number
  std::set<std::string> seen_;                                           // folders and materials
  std::map<std::string, std::optional<std::filesystem::path>> parents_;  // by URI and digest
  std::map<std::string, Statements> bundles_;                            // by folder
  std::vector<Branch> branches_;  // the next one last: a chain of models may be long
};

// Returns the more severe of two codes: damage, then a lack of trust, then files that cannot be
// read, then files that are gone.
ExitCode worse_of(ExitCode one, ExitCode other);
// Returns a field of the statement's details as text, or "" if there is none.
std::string detail_of(const Provenance& provenance, const char* name);

// Returns a path without links, or just without dots if a live run deletes what it names meanwhile.
std::filesystem::path without_links(const std::filesystem::path& path);
// Returns what a statement says, for people.
std::vector<std::string> facts_of(const SignedStatement& statement);

}  // namespace trireme
