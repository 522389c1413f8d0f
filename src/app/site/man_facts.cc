#include "src/app/site/man_facts.h"

#include <algorithm>

#include <fmt/core.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// A Fact is an entry and the commands on whose pages it appears; "*" means all of them.
struct Fact {
  ManEntry entry;
  std::vector<std::string_view> commands;
};

const std::vector<Fact>& variables() {
  static const std::vector<Fact> all = {
      {{"TRIREME_SECTION__KEY",
        "Overrides the configuration key section.key: TRIREME_TRAIN__STEPS=5 sets train.steps. The "
        "command line takes precedence."},
       {"", "train", "launch", "slurm", "doctor", "config"}},
      {{"TRIREME_SITE_DIR",
        "The folder of the site's configuration files (default: /etc/trireme)."},
       {"", "train", "launch", "slurm", "doctor", "config"}},
      {{"TRIREME_KERNELS",
        "The compute kernels: reference, baseline, avx2 or avx512 (default: the best that the "
        "processor supports)."},
       {"", "train", "eval", "generate", "import", "export", "bench", "health", "doctor"}},
      {{"TRIREME_START_DEADLINE",
        "Seconds after which a start that hangs in MPI is ended with exit code 85 (default: 600)."},
       {"train"}},
      {{"TRIREME_NODE_DIR",
        "The folder for checkpoints in this node's memory. trireme launch sets it."},
       {"train", "ckpt"}},
      {{"TRIREME_MTBF_HOURS",
        "Hours between failures of the run, for checkpoint.every: auto. trireme launch sets it."},
       {"train"}},
      {{"TRIREME_FAULTS",
        "Faults to inject, for tests and drills; trireme config faults lists them."},
       {"train", "config"}},
      {{"SLURM_*", "Inside a Slurm job: the job, its nodes and its end."},
       {"train", "launch", "doctor"}},
      {{"TMPDIR", "The folder for temporary files (default: /tmp)."}, {"health", "bench", "slurm"}},
      {{"SOURCE_DATE_EPOCH",
        "The time that --version --sbom prints, in seconds since 1970 (default: now)."},
       {""}},
      {{"NO_COLOR", "If set and not empty, messages are not coloured."}, {"*"}},
      {{"CLICOLOR_FORCE",
        "If set and not 0, warnings and errors are coloured even if standard error is not a "
        "terminal."},
       {"*"}},
  };
  return all;
}

const std::vector<Fact>& files() {
  static const std::vector<Fact> all = {
      {{"/etc/trireme/*.yaml", "The site's configuration, read before the run's file."},
       {"", "train", "launch", "slurm", "doctor", "config"}},
      {{"/etc/trireme/policy.yaml", "Who may do what with which data; only root can write it."},
       {"", "policy", "train", "data", "ckpt", "eval", "generate", "keys", "erase", "verify"}},
      {{"RUN/config.yaml", "The resolved configuration and where each value came from."},
       {"train"}},
      {{"RUN/metrics.jsonl", "The metrics of each logged step, one JSON object per line."},
       {"train", "plot", "compare"}},
      {{"RUN/logs/rank-NNNNN.jsonl", "The log of each rank, one JSON object per line."},
       {"train", "log"}},
      {{"RUN/log-keys/", "The wrapped keys of encrypted logs (encryption.logs)."},
       {"train", "log", "keys"}},
      {{"RUN/tensorboard/", "Event files for TensorBoard."}, {"train"}},
      {{"RUN/trace/", "The traced steps of each rank (run.trace)."}, {"train", "trace"}},
      {{"RUN/checkpoints/step-NNNNNNNN/", "A checkpoint: manifest.json and shards."},
       {"train", "ckpt", "eval", "generate", "import", "export"}},
      {{"RUN/journal.jsonl", "The events of every launch of the run."}, {"launch"}},
      {{"RUN/exit_reason.json", "Why the run ended early, written by the first rank that failed."},
       {"train", "launch"}},
      {{"RUN/DONE", "Written when the last step has been saved."}, {"train", "launch"}},
      {{"DATASET/manifest.json", "The shards of a dataset and their digests."}, {"data"}},
      {{"DATASET/shards/NNNNN.h5", "The tokens, as HDF5."}, {"data"}},
  };
  return all;
}

std::vector<ManEntry> chosen(const std::vector<Fact>& all, std::string_view command) {
  std::vector<ManEntry> entries;
  for (const Fact& fact : all) {
    const bool here = std::any_of(fact.commands.begin(), fact.commands.end(),
                                  [&](const auto& at) { return at == "*" || at == command; });
    if (here) {
      entries.push_back(fact.entry);
    }
  }
  return entries;
}

ManEntry status(ExitCode code, const char* text) {
  return {fmt::format("{}", static_cast<int>(code)), text};
}

}  // namespace

std::vector<ManEntry> environment_of(std::string_view command) {
  return chosen(variables(), command);
}

std::vector<ManEntry> files_of(std::string_view command) { return chosen(files(), command); }

// The table is that of docs/exit-codes.md.
const std::vector<ManEntry>& exit_statuses() {
  static const std::vector<ManEntry> all = {
      status(ExitCode::ok, "Success; a training run has finished."),
      status(ExitCode::usage, "Wrong usage or configuration."),
      status(ExitCode::diverged, "The training has diverged."),
      status(ExitCode::below_threshold, "A measurement is below its threshold, or warnings only."),
      status(ExitCode::bad_data, "Bad data: a dataset, or every checkpoint, is damaged."),
      status(ExitCode::not_found, "An input was not found."),
      status(ExitCode::io, "I/O error, for example a full disk."),
      status(ExitCode::requeue, "The run stopped early and saved a checkpoint; start it again."),
      status(ExitCode::device, "A device or a node failed, or memory ran out."),
      status(ExitCode::refused, "Refused by permissions or policy."),
      status(ExitCode::hang, "The run hung or lost a rank; start it again."),
      status(ExitCode::no_progress, "No progress in 3 relaunches; do not requeue."),
      {"128+N",
       "A second signal N ended the run at once, without a save: under trireme launch any signal "
       "that stops it, under trireme train only SIGINT (130)."},
  };
  return all;
}

}  // namespace trireme
