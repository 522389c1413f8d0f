// CheckpointProvenance says where the checkpoints of a run come from: for each save, a signed
// statement (src/evidence/statement.h) about the files of the step, the datasets, the program, the
// configuration and the parent. What this process has loaded is stated with the digests that it had
// then: another file may have its name by now. Rank 0 has it, owned by TrainingCheckpoints. The
// main thread calls the other functions while a thread in the background may call bundle().
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "io/checkpoint/load/resume.h"
#include "io/checkpoint/manifest.h"
#include "io/checkpoint/store.h"
#include "src/evidence/keys.h"
#include "src/evidence/statement.h"
#include "src/keys/log_starts.h"
#include "src/train/run/energy_used.h"
#include "src/train/run/run_config.h"
#include "src/train/run/used_dataset.h"

namespace trireme {

// RunOrigin holds what the process knows of this start of the run. It outlives the training.
struct RunOrigin {
  std::string config_yaml;  // the resolved configuration
  std::vector<std::string> arguments;
  JsonValue versions;  // of the program and its libraries
  std::vector<std::string> hosts;
  int ranks = 0;
  std::string job;                  // of Slurm; may be empty
  std::string invocation;           // identifies the start
  std::string started;              // "2026-01-31T12:00:00Z"
  std::filesystem::path bill = {};  // the bill of materials; empty if there is none
  std::string bill_sha256 = {};
  LogStart logs = {};  // of this start's encrypted logs; without a key if they are in plain
  std::optional<SigningKey> key = {};
};

// The SHA-256 of two files of a step.
struct StepDigests {
  std::string manifest;
  std::string provenance;
};

// Adds to the details of an event of the audit log the step's folder and the digests of its
// manifest and of its provenance, if it has one. Those that are not given are those of the files
// now.
void add_step_details(const std::filesystem::path& step_folder, const StepDigests& digests,
                      nlohmann::ordered_json& details);

class CheckpointProvenance {
 public:
  // Computes the digests of the program, of the validation sets' manifests and of the datasets'
  // provenance, and leaves out a validation set that cannot be read. origin.key must be set.
  // train: the datasets of data.train; may be empty.
  CheckpointProvenance(const RunConfig& config, const RunOrigin& origin,
                       const std::vector<UsedDataset>& train);

  // Replaces what is stated about the validation sets: these have been opened, and the run goes on
  // without the others.
  void opened_validation(const std::vector<UsedDataset>& sets);

  // Names the checkpoint whose weights this start takes, frozen or to begin with
  // (checkpoint.init_from). A start that resumes weights has a parent instead, whose provenance
  // names it.
  void took_weights(const StepFolder& base);
  // Makes the checkpoint from which the run resumes the parent of those that it saves from now on.
  // Returns a warning if the lineage of that checkpoint is lost, else "".
  std::string resumed(const Resumed& resumed);
  // Notes what the run had used when the save of a step began. Call it before bundle().
  void used(std::int64_t step, const EnergyUsed& energy);
  // Returns the contents of the provenance file for a step.
  std::string bundle(const Manifest& manifest, std::string_view manifest_text);
  // Returns the digests of the files for which bundle() was last called.
  StepDigests latest() const;

 private:
  const RunOrigin& origin_;
  mutable std::mutex mutex_;  // guards what follows
  Provenance common_;         // what all steps share
  StepDigests latest_;
  std::map<std::int64_t, EnergyUsed> energy_;  // by step, of the latest saves
  std::optional<Material> parent_;
  std::string ancestors_;               // lines of the parent's bundle
  bool is_lineage_unreadable_ = false;  // the parent has a bundle that cannot be read
};

}  // namespace trireme
