// ProductChoices sees to it that a run on CUDA devices has chosen an algorithm for each of its
// products of matrices before the first step, and that ranks that compute the same product have
// chosen the same one: otherwise they would compute different bits. The choices for training belong
// to the numerics fingerprint. Those for evaluations do not, because evaluations leave the weights
// alone. Owned by TrainingParts; the main thread uses it. Calls are collective unless they say
// otherwise, and do nothing on CPUs.
#pragma once

#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mpi/communicator.h"
#include "src/base/log.h"
#include "src/kernels/cuda_kernels.h"
#include "src/train/memory/step_memory.h"
#include "src/train/run/layout.h"

namespace trireme {

// Returns the choices of all ranks together. Throws ConfigError on all ranks alike if two ranks
// have chosen different algorithms for one product, and names both with their hosts and devices,
// unless `reproducibility` is "fast". device: describes this rank's device. Collective.
ProductTable agree_on_products(Communicator& world, const ProductTable& own,
                               const std::string& device, const std::string& reproducibility);

class ProductChoices {
 public:
  // What it refers to outlives it. device: where this rank computes.
  ProductChoices(const RunConfig& config, const Layout& layout, Communicator& world, Device device,
                 Log& log)
      : config_(config), layout_(layout), world_(world), device_(device), log_(log) {}

  // Chooses for training and adds the choices of all ranks to the numerics fingerprint. Throws
  // ConfigError if ranks differ, and DeviceError if the library has no exact algorithm.
  void add_to(nlohmann::json& numerics);
  // Chooses for evaluations of this many samples, in micro-batches as evaluate() divides them.
  void prepare_evaluations(std::int64_t samples);
  // Chooses for products that this rank computes for itself, whose results no other depends on. Not
  // collective.
  void prepare(const std::vector<Matmul>& products);
  // Ends choosing: a product that was not foreseen throws InternalError from now on.
  void close();

 private:
  ProductTable choose(const LibraryCalls& calls) const;

  const RunConfig& config_;
  const Layout& layout_;
  Communicator& world_;
  Device device_;
  Log& log_;
};

}  // namespace trireme
