// The training states whose checkpoints MLPerf Storage writes (Submission_guidelines.md, table 2,
// and configs/dlio/workload/llama3_*.yaml), scaled down, and which part of them each rank of a job
// saves. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trireme {

// StatePart is a range of one of the four flat tensors of a layer.
struct StatePart {
  std::string tensor;         // "layer.007.master"
  std::int64_t elements = 0;  // of the whole tensor
  std::int64_t first = 0;     // this rank's first element
  std::int64_t own = 0;       // this rank's number of elements, more than 0
  std::int64_t element_bytes = 0;
};

struct ModelState {
  std::string model;
  std::int64_t parameters = 0;
  std::int64_t layers = 0;
  // ZeRO: with 1, replicas share the optimizer's state, and the first of them saves the weights;
  // with 3, they share both.
  int zero = 0;
  int replicas = 1;  // data-parallel, in MLPerf Storage's job

  // Returns the bytes of the whole state: per parameter 2 for the weights, and 12 for the
  // optimizer, which has the weights and two moments in fp32.
  std::int64_t bytes() const { return 14 * parameters; }
  // Returns the number of replicas that `ranks` ranks play: all of them with ZeRO 3, and with ZeRO
  // 1 as many as in MLPerf Storage's job if that divides the ranks, otherwise 1.
  int replicas_of(int ranks) const;
  // Returns the parts that a rank saves of a state of about `bytes`. All ranks together save every
  // element once.
  std::vector<StatePart> parts(std::int64_t bytes, int rank, int ranks) const;
};

std::vector<std::string> model_state_names();
// Throws ConfigError for a name that is not in model_state_names().
ModelState find_model_state(const std::string& name);

}  // namespace trireme
