// Streams, events and graphs of the runtime's interface.
#include <utility>

#include <cuda_runtime.h>

#include "src/device/sim/call.h"
#include "src/device/sim/capture.h"
#include "src/device/sim/machine.h"

using sim::begin_call;
using sim::end_call;
using sim::machine;

extern "C" {

cudaError_t cudaDeviceSynchronize() {
  cudaError_t error = begin_call("cudaDeviceSynchronize");
  if (error == cudaSuccess) {
    error = end_call(sim::refuse_during_capture());
  }
  return error != cudaSuccess ? error
                              : end_call(machine().synchronize_device(sim::current_device()));
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  const cudaError_t error = begin_call("cudaStreamCreateWithFlags");
  if (error == cudaSuccess) {
    *stream = machine().make_stream(sim::current_device(), (flags & cudaStreamNonBlocking) == 0);
  }
  return error;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaStreamDestroy");
  return error != cudaSuccess ? error : end_call(machine().destroy(stream));
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaStreamSynchronize");
  return error != cudaSuccess ? error : end_call(machine().synchronize(stream));
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaStreamQuery");
  return error != cudaSuccess ? error : end_call(machine().query(stream));
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  const cudaError_t error = begin_call("cudaLaunchHostFunc");
  if (error != cudaSuccess) {
    return error;
  }
  return end_call(machine().enqueue(stream, [=] {
    {
      const std::lock_guard lock(machine().mutex);  // the check reads what cudaMalloc changes
      machine().close_memory();
    }
    function(argument);
    return true;
  }));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (const cudaError_t error = begin_call("cudaStreamWaitEvent"); error != cudaSuccess) {
    return error;
  }
  sim::Operation wait;
  {
    const std::lock_guard lock(machine().mutex);
    CUstream_st* from = machine().resolve(stream);
    if (from == nullptr || event == nullptr) {
      return end_call(cudaErrorInvalidResourceHandle);
    }
    if (from->capture != nullptr || event->capture != nullptr) {
      return end_call(sim::capture_wait(*from, *event));
    }
    wait.kind = sim::Operation::Kind::wait;
    wait.event = event->state;
    wait.number = event->state->recorded;
  }
  return end_call(machine().enqueue(stream, std::move(wait)));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  const cudaError_t error = begin_call("cudaEventCreateWithFlags");
  if (error == cudaSuccess) {
    *event = new CUevent_st;
    (*event)->has_time = (flags & cudaEventDisableTiming) == 0;
  }
  return error;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const cudaError_t error = begin_call("cudaEventDestroy");
  delete event;
  return error;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (const cudaError_t error = begin_call("cudaEventRecord"); error != cudaSuccess) {
    return error;
  }
  sim::Operation record;
  {
    const std::lock_guard lock(machine().mutex);
    const CUstream_st* from = machine().resolve(stream);
    if (from == nullptr || event == nullptr) {
      return end_call(cudaErrorInvalidResourceHandle);
    }
    event->capture = from->capture;
    event->tail = from->tail;
    if (from->capture != nullptr) {
      return cudaSuccess;
    }
    record.kind = sim::Operation::Kind::record;
    record.event = event->state;
    record.number = ++event->state->recorded;
  }
  return end_call(machine().enqueue(stream, std::move(record)));
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (const cudaError_t error = begin_call("cudaEventQuery"); error != cudaSuccess) {
    return error;
  }
  {
    const std::lock_guard lock(machine().mutex);
    if (event->capture != nullptr) {
      event->capture->is_valid = false;
      return end_call(cudaErrorCapturedEvent);
    }
  }
  return end_call(machine().query(event->state));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (const cudaError_t error = begin_call("cudaEventSynchronize"); error != cudaSuccess) {
    return error;
  }
  {
    const std::lock_guard lock(machine().mutex);
    if (event->capture != nullptr) {
      event->capture->is_valid = false;
      return end_call(cudaErrorCapturedEvent);
    }
  }
  return end_call(machine().synchronize(event->state));
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (const cudaError_t error = begin_call("cudaEventElapsedTime"); error != cudaSuccess) {
    return error;
  }
  const std::lock_guard lock(machine().mutex);
  for (const CUevent_st* event : {start, end}) {
    if (event->capture != nullptr) {
      return end_call(cudaErrorCapturedEvent);
    }
    if (!event->has_time || event->state->recorded == 0) {
      return end_call(cudaErrorInvalidResourceHandle);
    }
    if (event->state->reached < event->state->recorded) {
      return cudaErrorNotReady;
    }
  }
  const auto between = end->state->time - start->state->time;
  *milliseconds = std::chrono::duration<float, std::milli>(between).count();
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (const cudaError_t error = begin_call("cudaStreamBeginCapture"); error != cudaSuccess) {
    return error;
  }
  const std::lock_guard lock(machine().mutex);
  CUstream_st* origin = stream == nullptr ? nullptr : machine().resolve(stream);
  if (origin == nullptr || origin->capture != nullptr) {
    return end_call(cudaErrorStreamCaptureUnsupported);
  }
  origin->capture = std::make_shared<sim::Capture>();
  origin->capture->origin = origin;
  origin->capture->mode = mode;
  origin->tail.clear();
  machine().captures.push_back(origin->capture);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const cudaError_t error = begin_call("cudaStreamIsCapturing");
  const std::lock_guard lock(machine().mutex);
  const CUstream_st* from = machine().resolve(stream);
  *status = from == nullptr || from->capture == nullptr ? cudaStreamCaptureStatusNone
            : from->capture->is_valid                   ? cudaStreamCaptureStatusActive
                                                        : cudaStreamCaptureStatusInvalidated;
  return error;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (const cudaError_t error = begin_call("cudaStreamEndCapture"); error != cudaSuccess) {
    return error;
  }
  *graph = nullptr;
  const std::lock_guard lock(machine().mutex);
  const CUstream_st* origin = machine().resolve(stream);
  if (origin == nullptr || origin->capture == nullptr || origin->capture->origin != origin) {
    return end_call(cudaErrorStreamCaptureUnmatched);
  }
  const std::shared_ptr<sim::Capture> capture = origin->capture;
  if (capture->mode != cudaStreamCaptureModeRelaxed &&
      capture->thread != std::this_thread::get_id()) {
    return end_call(cudaErrorStreamCaptureWrongThread);
  }
  const bool joined = sim::are_joined(capture->nodes, origin->tail);
  machine().end_capture(capture);
  if (!capture->is_valid) {
    return end_call(cudaErrorStreamCaptureInvalidated);
  }
  if (!joined) {
    return end_call(cudaErrorStreamCaptureUnjoined);
  }
  *graph = new CUgraph_st{std::move(capture->nodes)};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  const cudaError_t error = begin_call("cudaGraphInstantiate");
  if (error == cudaSuccess) {
    *executable = new CUgraphExec_st{graph->nodes};
  }
  return error;
}
// With an array, its first *count elements would be the nodes' handles, which nobody needs here.
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count) {
  const cudaError_t error = begin_call("cudaGraphGetNodes");
  if (error != cudaSuccess) {
    return error;
  }
  if (nodes != nullptr) {
    return end_call(cudaErrorInvalidValue);
  }
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const cudaError_t error = begin_call("cudaGraphLaunch");
  return error != cudaSuccess
             ? error
             : end_call(machine().enqueue(stream, sim::launch_of(executable->nodes)));
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return begin_call("cudaGraphDestroy");
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return begin_call("cudaGraphExecDestroy");
}
}
