// The tasks and gates of `trireme eval`: their options, and what is computed and judged.
#pragma once

#include <string>
#include <vector>

#include "mpi/communicator.h"
#include "src/app/model/tokenizer_choice.h"
#include "src/evaluation/eval_gates.h"
#include "src/evaluation/task_figures.h"

namespace trireme {

struct TaskOptions {
  std::vector<std::string> tasks;  // KIND:FILE or NAME=KIND:FILE
  TokenizerChoice tokenizer;
  std::string group_field = "group";
  std::string details;  // file for a line per example; empty for none
  std::int64_t task_tokens = 64;
  std::vector<std::string> stop;
  std::string gate, baseline;  // files; empty for none

  void add_to(CommandLine& command);
};

// Reads the files of all tasks on rank 0, for all ranks. Collective.
std::vector<EvalTask> read_tasks(const TaskOptions& options, Communicator& world);

// Runs the tasks, and writes the details on rank 0. window: the most tokens that predict another
// one. Throws DivergenceError if a log-likelihood is NaN. Collective.
std::vector<TaskFigures> run_tasks(const std::vector<EvalTask>& tasks, const TaskOptions& options,
                                   const LoadedModel& loaded, DeviceContext& device,
                                   std::int64_t window, Communicator& world);

// What the gates compare with. Read before anything is computed, on rank 0 for all; collective.
struct ReadGates {
  GateFile file;  // on rank 0; elsewhere empty
  EvalBaseline baseline;
};
ReadGates read_gates(const TaskOptions& options, Communicator& world);

}  // namespace trireme
