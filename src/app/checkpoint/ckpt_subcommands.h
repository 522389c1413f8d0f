// Declares the subcommands of `trireme ckpt` and their common parts. Private to src/app.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/store.h"
#include "src/app/access/key_choice.h"
#include "src/app/checkpoint/ckpt_command.h"

namespace trireme {

struct CkptOptions {
  std::string folder;
  bool json = false;
  bool model = false;
  bool all = false;
  bool dry_run = false;
  std::string memory;  // a node folder
  KeyChoice keys;
  Retention retention;
};

// Adds a subcommand with the argument DIR, which `folder` describes.
CommandLine& add_ckpt_subcommand(
    CommandLine& ckpt, const char* name, const char* what, const char* example,
    const std::shared_ptr<CkptOptions>& options,
    const char* folder = "A checkpoint, or a folder of checkpoints: then its newest valid one");
void add_ckpt_verify(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options, int& exit_code,
                     const AccessSource& access);
void add_ckpt_digest(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options,
                     const AccessSource& access);
void add_ckpt_export(CommandLine& ckpt, AuditTrail& audit, const AccessSource& access);
void add_ckpt_prune(CommandLine& ckpt, const std::shared_ptr<CkptOptions>& options,
                    AuditTrail& audit, const AccessSource& access);

// Finds the checkpoint that DIR names: DIR itself, or the newest valid checkpoint in it. Prints to
// stderr why newer ones were skipped.
StepFolder chosen_step(const CkptOptions& options);
// Calls work() with the newest intact checkpoint of those that DIR names, opened with `keys`: one
// whose damage shows only when it is read is skipped for an older one (intact_step.h). Prints to
// stderr why newer ones were skipped. Throws what work() throws for an intact one, and DataError
// with advice if the only one is damaged.
void with_intact_step(const std::string& folder, const KeyOptions& keys,
                      const std::function<void(StepFolder&)>& work);
// Returns the path without a slash at its end.
std::filesystem::path clean_path(const CkptOptions& options);
// Returns the steps of a checkpoint folder, or the single step that DIR names. Throws NotFound if
// there are none.
std::vector<StepFolder> all_steps(const CkptOptions& options);

}  // namespace trireme
