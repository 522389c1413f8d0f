// cuDNN's graph interface over the simulated device. It has one engine for forward and backward
// attention each, with the numbers and the workspace that cuDNN 9.19 has on an H100; with a fault
// (fault.h), its first proposal is an engine that is not deterministic. TRIREME_SIM_CUDNN sets the
// version.
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>

#include <cudnn.h>

#include "src/device/sim/cudnn_functions.h"
#include "src/device/sim/cudnn_graph.h"
#include "src/device/sim/environment.h"
#include "src/device/sim/fault.h"
#include "src/device/sim/machine.h"
#include "src/device/sim/ranges.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using sim::Descriptor;

constexpr std::int64_t kForwardEngine = 2;
constexpr std::int64_t kBackwardEngine = 6;
constexpr std::int64_t kRandomEngine = 5;  // which is not deterministic

// What the descriptors of engines and plans hold beside their values.
struct Engine {
  std::shared_ptr<const sim::OperationGraph> graph;
  std::int64_t number = 0;
  std::int64_t workspace_bytes = 0;
};

struct Object : Descriptor {
  using Descriptor::Descriptor;
  Engine engine;
};

Object& object(cudnnBackendDescriptor_t descriptor) { return *static_cast<Object*>(descriptor); }

bool is_backward(const sim::OperationGraph& graph) {
  for (const sim::GraphOperation& each : graph.operations) {
    if (each.kind == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) {
      return true;
    }
  }
  return false;
}

// Finds out whether there is an engine for the graph.
cudnnStatus_t finalize_heuristic(Object& heuristic) {
  const Descriptor& descriptor = *heuristic.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  auto graph = std::make_shared<sim::OperationGraph>();
  const cudnnStatus_t status = sim::read_graph(descriptor, *graph);
  if (status == CUDNN_STATUS_SUCCESS) {
    heuristic.engine = {graph, is_backward(*graph) ? kBackwardEngine : kForwardEngine,
                        graph->workspace_bytes()};
  }
  return status;
}

// Fills as many configurations as there are engines: one, or two with a fault.
cudnnStatus_t get_engines(const Object& heuristic, std::int64_t most, std::int64_t* count,
                          void* values) {
  auto* const configurations = static_cast<cudnnBackendDescriptor_t*>(values);
  const sim::Fault fault = sim::take_fault("cudnnHeuristic");
  const bool has_random = fault.other || fault.error != 0;
  *count = fault.other ? 2 : 1;
  if (most < *count) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  for (std::int64_t i = 0; i < *count; ++i) {
    object(configurations[i]).engine = heuristic.engine;
    object(configurations[i]).engine.workspace_bytes += fault.wrong ? 1 : 0;
    if (has_random && i == 0) {
      object(configurations[i]).engine.number = kRandomEngine;
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get_notes(const Engine& engine, std::int64_t most, std::int64_t* count,
                        void* values) {
  *count = engine.number == kRandomEngine ? 1 : 0;
  if (*count > most) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  if (*count > 0) {
    *static_cast<cudnnBackendNumericalNote_t*>(values) = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t get_number(std::int64_t number, std::int64_t most, std::int64_t* count,
                         void* values) {
  if (most < 1) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  *count = 1;
  *static_cast<std::int64_t*>(values) = number;
  return CUDNN_STATUS_SUCCESS;
}

// Run holds the addresses of one execution.
struct Run {
  std::map<std::int64_t, void*> data;
  std::map<std::int64_t, float> numbers;
  void* workspace = nullptr;
};

// Reads the addresses, and checks what cuDNN checks and what it would get wrong.
cudnnStatus_t read_run(const sim::OperationGraph& graph, const Descriptor& pack, Run& run) {
  const auto ids = pack.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  run.workspace = pack.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (ids.size() != pointers.size()) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    run.data[ids[i]] = pointers[i];
  }
  for (const auto& [id, tensor] : graph.in_memory) {
    void* const address = run.data.contains(id) ? run.data[id] : nullptr;
    if (address == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    }
    if (tensor.is_by_value) {
      run.numbers[id] = *static_cast<const float*>(address);
      continue;
    }
    if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::size_t>(tensor.alignment) !=
        0) {
      return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    }
    sim::check_in_allocation("a tensor of cuDNN", address, tensor.span_bytes());
  }
  return CUDNN_STATUS_SUCCESS;
}

void check_workspace(const sim::OperationGraph& graph, const Run& run, std::size_t bytes) {
  sim::check_in_allocation("cuDNN's workspace", run.workspace, bytes);
  const auto* const begin = static_cast<const std::byte*>(run.workspace);
  for (const auto& [id, tensor] : graph.in_memory) {
    const auto* const data = static_cast<const std::byte*>(run.data.at(id));
    if (!tensor.is_by_value && begin < data + tensor.span_bytes() && data < begin + bytes) {
      sim::die("cuDNN's workspace overlaps a tensor");
    }
  }
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() { return static_cast<std::size_t>(sim::environment().cudnn_version); }
const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_SUPPORTED_SHAPE:
      return "CUDNN_STATUS_NOT_SUPPORTED_SHAPE";
    case CUDNN_STATUS_EXECUTION_FAILED:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_BAD_PARAM";
  }
}
void cudnnGetLastErrorString(char* message, std::size_t most) {
  std::snprintf(message, most, "the simulated device keeps no messages");
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new Object(type);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &object(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t count,
                                       const void* values) {
  return object(descriptor).set(name, type, count, values);
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Object& final = object(descriptor);
  // A configuration comes from a heuristic, which has made it final.
  if (final.type() == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
    const auto* const configuration =
        static_cast<const Object*>(final.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
    if (configuration == nullptr || configuration->engine.graph == nullptr) {
      return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    }
    final.engine = configuration->engine;
    return CUDNN_STATUS_SUCCESS;
  }
  const cudnnStatus_t status = final.finalize();
  return status == CUDNN_STATUS_SUCCESS && final.type() == CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR
             ? finalize_heuristic(final)
             : status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, std::int64_t most,
                                       std::int64_t* count, void* values) {
  const Object& from = object(descriptor);
  const bool is_engine = type == CUDNN_TYPE_BACKEND_DESCRIPTOR;
  if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && is_engine && from.is_final()) {
    return get_engines(from, most, count, values);
  }
  if (from.engine.graph == nullptr) {
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  }
  if (name == CUDNN_ATTR_ENGINECFG_ENGINE && is_engine && most > 0) {
    *count = 1;
    object(*static_cast<cudnnBackendDescriptor_t*>(values)).engine = from.engine;
    return CUDNN_STATUS_SUCCESS;
  }
  if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE) {
    return get_notes(from.engine, most, count, values);
  }
  if (name == CUDNN_ATTR_ENGINE_GLOBAL_INDEX && type == CUDNN_TYPE_INT64) {
    return get_number(from.engine.number, most, count, values);
  }
  if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64) {
    return get_number(from.engine.workspace_bytes, most, count, values);
  }
  return CUDNN_STATUS_BAD_PARAM;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t variants) {
  const sim::Fault fault = sim::take_fault("cudnnBackendExecute");
  if (fault.error != 0) {
    return CUDNN_STATUS_EXECUTION_FAILED;
  }
  const Engine& engine = object(plan).engine;
  const auto graph = engine.graph;
  if (graph == nullptr || !object(variants).is_final()) {
    return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  }
  Run run;
  if (const cudnnStatus_t status = read_run(*graph, object(variants), run);
      status != CUDNN_STATUS_SUCCESS) {
    return status;
  }
  const auto bytes = static_cast<std::size_t>(engine.workspace_bytes);
  if (run.workspace == nullptr) {
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  }
  check_workspace(*graph, run, bytes);
  const cudaError_t error = sim::machine().enqueue(handle->stream, [graph, run, bytes] {
    std::memset(sim::accessible(run.workspace), 0xFF, bytes);
    std::map<std::int64_t, std::byte*> data;
    for (const auto& [id, tensor] : graph->in_memory) {
      if (!tensor.is_by_value) {
        data[id] = sim::accessible(run.data.at(id));
      }
    }
    sim::compute_graph(*graph, data, run.numbers);
    return true;
  });
  return error == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
}

namespace sim {

void* cudnn_function(std::string_view name, std::string& why) {
  if (environment().cudnn_version == 0) {
    why = "the simulated device has none: TRIREME_SIM_CUDNN is 0";
    return nullptr;
  }
  static const std::map<std::string_view, void*> functions = {
      {"cudnnGetVersion", reinterpret_cast<void*>(&cudnnGetVersion)},
      {"cudnnGetErrorString", reinterpret_cast<void*>(&cudnnGetErrorString)},
      {"cudnnGetLastErrorString", reinterpret_cast<void*>(&cudnnGetLastErrorString)},
      {"cudnnCreate", reinterpret_cast<void*>(&cudnnCreate)},
      {"cudnnSetStream", reinterpret_cast<void*>(&cudnnSetStream)},
      {"cudnnBackendCreateDescriptor", reinterpret_cast<void*>(&cudnnBackendCreateDescriptor)},
      {"cudnnBackendDestroyDescriptor", reinterpret_cast<void*>(&cudnnBackendDestroyDescriptor)},
      {"cudnnBackendFinalize", reinterpret_cast<void*>(&cudnnBackendFinalize)},
      {"cudnnBackendSetAttribute", reinterpret_cast<void*>(&cudnnBackendSetAttribute)},
      {"cudnnBackendGetAttribute", reinterpret_cast<void*>(&cudnnBackendGetAttribute)},
      {"cudnnBackendExecute", reinterpret_cast<void*>(&cudnnBackendExecute)}};
  const auto found = functions.find(name);
  why = found == functions.end() ? "the simulated cuDNN lacks a function" : "";
  return found == functions.end() ? nullptr : found->second;
}

}  // namespace sim
