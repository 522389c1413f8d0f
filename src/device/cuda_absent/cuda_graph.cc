#include "src/device/cuda_graph.h"

#include "src/base/error.h"

namespace trireme::cuda {
namespace {

constexpr const char* kNoGraphs =
    "this program was built without CUDA: configure with the preset 'cuda'";

}  // namespace

void begin_graph(Stream&) { throw ConfigError(kNoGraphs); }

std::unique_ptr<Graph> end_graph(Stream&) { throw ConfigError(kNoGraphs); }

void abandon_graph(Stream&) noexcept {}

}  // namespace trireme::cuda
