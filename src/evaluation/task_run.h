// Runs a task with a model: scores every example. The ranks of a group divide the examples, each of
// which is computed by one rank on its own, so that every number of ranks gives the same bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/data/tokenizer.h"
#include "mpi/communicator.h"
#include "src/evaluation/scorer.h"
#include "src/evaluation/task_file.h"

namespace trireme {

// What an example has given.
struct ItemResult {
  // By the kind of the task: the log-likelihood of each continuation (hellaswag, arc) or of the
  // text (lambada, perplexity); none for exact.
  std::vector<double> log_likelihoods;
  bool correct = false;     // lambada: the word was the most likely one; exact: the answer is right
  std::int64_t tokens = 0;  // scored or generated
  std::string answer;       // exact: the generated text
};

struct TaskPlan {
  std::int64_t most_tokens = 64;        // of a generated answer
  std::vector<std::string> stop;        // texts that end an answer; empty for the end of the line
  std::vector<std::int32_t> ends = {};  // tokens that end it, beside the one that ends a document
};

// Called after each example of this rank.
using TaskProgress = std::function<void(std::int64_t done)>;

// Returns the result of each item, on all ranks. Throws ConfigError or DataError, on all ranks
// alike, if an example cannot be scored. Collective.
std::vector<ItemResult> run_task(const EvalTask& task, const TaskPlan& plan, Scorer& scorer,
                                 const Tokenizer& tokenizer, Communicator& world,
                                 const TaskProgress& progress);

// Returns the tokens of a context and of what continues it, as the harness divides them: blanks at
// the end of the context belong to the continuation, and both are encoded together. An empty
// context is the token that ends a document.
struct ContextTokens {
  std::vector<std::int32_t> context, continuation;
};
ContextTokens encode_pair(const Tokenizer& tokenizer, std::string_view context,
                          std::string_view continuation);

}  // namespace trireme
