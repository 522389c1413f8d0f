#include "src/kernels/cuda/cudnn_entries.h"

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "src/base/error.h"
#include "src/base/units.h"
#include "src/device/cuda/cuda_check.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/cudnn_attention.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda_kernels.h"

namespace trireme::cuda {
namespace {

constexpr std::int64_t kMostCudnnHeadDim = 128;
constexpr std::int64_t kHeadDimMultiple = 8;
constexpr std::uintptr_t kOperandAlignment = 16;
constexpr std::int64_t kAreaAlignment = 256;

bool is_aligned(const ConstView& view) {
  return reinterpret_cast<std::uintptr_t>(view.data) % kOperandAlignment == 0;
}

bool fits(const AttentionForward& p) {
  return (p.q.dtype == DType::bf16 || p.q.dtype == DType::f16) && p.time == p.kv_time &&
         p.kv_batch_rows == p.time && p.dropout.probability == 0 && p.slopes.empty() &&
         p.head_dim % kHeadDimMultiple == 0 && p.head_dim <= kMostCudnnHeadDim &&
         p.q_stride % kHeadDimMultiple == 0 && p.kv_stride % kHeadDimMultiple == 0 &&
         is_aligned(p.q) && is_aligned(p.k) && is_aligned(p.v) && is_aligned(p.out) &&
         is_aligned(p.lse);
}

bool fits(const AttentionBackward& p) {
  return fits(p.forward) && is_aligned(p.dout) && is_aligned(p.dq) && is_aligned(p.dk) &&
         is_aligned(p.dv);
}

CudnnAttentionKind attention_kind(const AttentionForward& p, bool backward) {
  return {.dtype = p.q.dtype,
          .batch = p.batch,
          .time = p.time,
          .heads = p.heads,
          .kv_heads = p.kv_heads,
          .head_dim = p.head_dim,
          .q_stride = p.q_stride,
          .kv_stride = p.kv_stride,
          .backward = backward};
}

std::int64_t padded(std::int64_t bytes) {
  return (bytes + kAreaAlignment - 1) / kAreaAlignment * kAreaAlignment;
}

std::int64_t row_bytes(const AttentionForward& p) {
  return padded(p.batch * p.heads * p.time * size_of(DType::f32));
}

// Address is a tensor of a graph and where it is: on the device, or on the host for a number.
struct Address {
  CudnnAttentionTensor tensor;
  const void* data;
};

// CudnnDevice holds the handle and the plans of one device.
class CudnnDevice {
 public:
  CudnnDevice() : calls_(cudnn_calls()) {
    cudnn_check(calls_, calls_.create(&handle_), "starting the library");
  }

  std::string choose(int device, const CudnnAttentionKind& kind) {
    const std::lock_guard lock(mutex_);
    is_closed_ = false;
    return fmt::format("cuDNN {}, engine {}", cudnn_version_text(calls_.version()),
                       plan_of(device, kind).engine);
  }
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
  }

  // Enqueues a plan. scale: of the scores. workspace: attention_workspace_bytes(kind).
  void enqueue(Stream& stream, const CudnnAttentionKind& kind, float scale,
               std::vector<Address> addresses, void* workspace) {
    const std::lock_guard lock(mutex_);
    const CudnnPlan& plan = plan_of(stream.device().index, kind);
    constexpr float kMasked = -std::numeric_limits<float>::infinity();
    constexpr float kOne = 1;
    addresses.push_back({kTensorScale, &scale});
    addresses.push_back({kTensorMasked, &kMasked});
    if (kind.backward) {
      addresses.push_back({kTensorOne, &kOne});
    }
    std::vector<std::int64_t> ids;
    std::vector<const void*> data;
    for (const Address& each : addresses) {
      ids.push_back(each.tensor);
      data.push_back(each.data);
    }
    CudnnDescriptor pack(calls_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    const auto count = static_cast<std::int64_t>(ids.size());
    pack.set_many(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
    pack.set_many(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, data.data());
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    pack.finalize("passing addresses");
    cudnn_check(calls_, calls_.set_stream(handle_, cuda_stream(stream)), "choosing a stream");
    cudnn_check(calls_, calls_.execute(handle_, plan.plan->get(), pack.get()), "attention");
  }

 private:
  const CudnnPlan& plan_of(int device, const CudnnAttentionKind& kind) {
    std::unique_ptr<CudnnPlan>& plan = plans_[kind];
    if (plan == nullptr) {
      if (is_closed_) {
        throw InternalError("no engine was chosen before the first step for a call of attention");
      }
      plan = make_plan(device, kind);
    }
    return *plan;
  }

  std::unique_ptr<CudnnPlan> make_plan(int device, const CudnnAttentionKind& kind) {
    CudnnGraph graph(calls_, handle_);
    build_attention(graph, kind);
    std::string why;
    std::unique_ptr<CudnnPlan> plan = graph.make_plan(why);
    const std::int64_t expected = attention_workspace_bytes(kind);
    if (plan != nullptr && plan->workspace_bytes > expected) {
      why = fmt::format("engine {} wants {} of workspace, more than the {} that were planned",
                        plan->engine, format_bytes(plan->workspace_bytes), format_bytes(expected));
      plan = nullptr;
    }
    if (plan == nullptr) {
      throw ConfigError(fmt::format(
          "cuDNN {} has no deterministic engine for attention of {} x {} tokens with {} heads of "
          "{} and {} for keys on {}: {}; set train.attention=own, or use another version",
          cudnn_version_text(calls_.version()), kind.batch, kind.time, kind.heads, kind.head_dim,
          kind.kv_heads, device_identity(device).name, why));
    }
    return plan;
  }

  const CudnnCalls& calls_;
  cudnnHandle_t handle_ = nullptr;
  std::mutex mutex_;  // guards the members below
  bool is_closed_ = false;
  std::map<CudnnAttentionKind, std::unique_ptr<CudnnPlan>> plans_;
};

// Never destroyed: at exit, the device may be gone before static objects are.
struct CudnnDevices {
  std::mutex mutex;  // guards the map
  std::map<int, CudnnDevice> of;
};

CudnnDevices& cudnn_devices() {
  static auto& devices = *new CudnnDevices;
  return devices;
}

CudnnDevice& cudnn_of(int device) {
  CudnnDevices& devices = cudnn_devices();
  const std::lock_guard lock(devices.mutex);
  return devices.of[device];
}

}  // namespace

void attention_forward_by_cudnn(Stream& stream, const AttentionForward& p) {
  if (!fits(p) || p.batch * p.time == 0) {
    attention_forward(stream, p);
    return;
  }
  const CudnnAttentionKind kind = attention_kind(p, false);
  const std::int64_t workspace = padded(attention_workspace_bytes(kind));
  // An evaluation does not keep the log-sum-exp, but the graph always returns it.
  auto* const area =
      static_cast<char*>(cuda_scratch(stream).take(workspace + (p.lse.empty() ? row_bytes(p) : 0)));
  cudnn_of(stream.device().index)
      .enqueue(stream, kind, static_cast<float>(p.score_scale()),
               {{kTensorQ, p.q.data},
                {kTensorK, p.k.data},
                {kTensorV, p.v.data},
                {kTensorOut, p.out.data},
                {kTensorLse, p.lse.empty() ? area + workspace : p.lse.data}},
               area);
}

void attention_backward_by_cudnn(Stream& stream, const AttentionBackward& p) {
  const AttentionForward& forward = p.forward;
  if (!fits(p) || forward.batch * forward.time == 0) {
    attention_backward(stream, p);
    return;
  }
  const CudnnAttentionKind kind = attention_kind(forward, true);
  const std::int64_t workspace = padded(attention_workspace_bytes(kind));
  auto* const area = static_cast<char*>(cuda_scratch(stream).take(workspace + row_bytes(forward)));
  cudnn_of(stream.device().index)
      .enqueue(stream, kind, static_cast<float>(forward.score_scale()),
               {{kTensorQ, forward.q.data},
                {kTensorK, forward.k.data},
                {kTensorV, forward.v.data},
                {kTensorOut, forward.out.data},
                {kTensorLse, forward.lse.data},
                {kTensorDOut, p.dout.data},
                {kTensorDQ, p.dq.data},
                {kTensorDK, p.dk.data},
                {kTensorDV, p.dv.data},
                {kTensorDelta, area + workspace}},
               area);
}

std::string describe(const AttentionForward& p, bool backward) {
  return fmt::format("{} {}x{} {}, {} of {}, {} for keys{}",
                     backward ? "attention's gradient" : "attention", p.batch, p.time,
                     dtype_name(p.q.dtype), counted(p.heads, "head"), p.head_dim, p.kv_heads,
                     p.kv_time == p.time ? "" : fmt::format(", {} keys", p.kv_time));
}

std::string choose_attention(int device, const AttentionForward& p, bool backward) {
  if (!fits(p)) {
    return "own";
  }
  use_device(device);
  return cudnn_of(device).choose(device, attention_kind(p, backward));
}

void close_attention_choices(int device) {
  CudnnDevices& devices = cudnn_devices();
  const std::lock_guard lock(devices.mutex);
  if (const auto found = devices.of.find(device); found != devices.of.end()) {
    found->second.close();
  }
}

}  // namespace trireme::cuda

namespace trireme {

ProductTable choose_cuda_attention(int device, const AttentionCalls& calls) {
  ProductTable table;
  for (const AttentionForward& p : calls.forward) {
    table[cuda::describe(p, false)] = cuda::choose_attention(device, p, false);
  }
  for (const AttentionForward& p : calls.backward) {
    table[cuda::describe(p, true)] = cuda::choose_attention(device, p, true);
  }
  return table;
}

std::int64_t cuda_attention_bytes(const AttentionForward& p) {
  const cuda::CudnnAttentionKind kind = cuda::attention_kind(p, true);
  return cuda::padded(cuda::attention_workspace_bytes(kind)) + cuda::row_bytes(p);
}

}  // namespace trireme
