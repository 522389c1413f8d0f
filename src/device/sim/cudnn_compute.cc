#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "src/device/sim/cudnn_graph.h"

namespace sim {
namespace {

using Values = std::vector<float>;  // row-major

float rounded_to(float value, cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return __bfloat162float(__float2bfloat16(value));
    case CUDNN_DATA_HALF:
      return __half2float(__float2half(value));
    default:
      return value;
  }
}

// Calls work(index, number) for each element, in row-major order.
template <class Work>
void each_element(const Extents& dims, Work work) {
  Extents at = {};
  std::size_t number = 0;
  for (at[0] = 0; at[0] < dims[0]; ++at[0]) {
    for (at[1] = 0; at[1] < dims[1]; ++at[1]) {
      for (at[2] = 0; at[2] < dims[2]; ++at[2]) {
        for (at[3] = 0; at[3] < dims[3]; ++at[3]) {
          work(at, number++);
        }
      }
    }
  }
}

// Returns the position of an element of a larger tensor in one that has fewer heads, which each
// serve a group of them, or that has one element where the larger one has several.
std::size_t place_in(const Extents& dims, const Extents& at, const Extents& of) {
  std::int64_t place = 0;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    const std::int64_t step = of[axis] / dims[axis];
    place = place * dims[axis] + (dims[axis] == 1 ? 0 : at[axis] / step);
  }
  return static_cast<std::size_t>(place);
}

Values product(const GraphOperation& o, const Values& a, const Values& b) {
  const Extents& a_dims = o.operands[0].dims;
  const Extents& b_dims = o.operands[1].dims;
  Values y(static_cast<std::size_t>(o.result.elements()));
  each_element(o.result.dims, [&](const Extents& at, std::size_t number) {
    const std::int64_t group = o.result.dims[1] / b_dims[1];
    const std::int64_t row = (at[0] * a_dims[1] + at[1]) * a_dims[2] + at[2];
    const std::int64_t batch = b_dims[0] == 1 ? 0 : at[0];
    const std::int64_t matrix = batch * b_dims[1] + at[1] / group;
    float sum = 0;
    for (std::int64_t k = 0; k < a_dims[3]; ++k) {
      sum += a[static_cast<std::size_t>(row * a_dims[3] + k)] *
             b[static_cast<std::size_t>((matrix * b_dims[2] + k) * b_dims[3] + at[3])];
    }
    y[number] = sum;
  });
  return y;
}

float by_element(int mode, float x, float b, float t) {
  switch (mode) {
    case CUDNN_POINTWISE_ADD:
      return x + b;
    case CUDNN_POINTWISE_MUL:
      return x * b;
    case CUDNN_POINTWISE_DIV:
      return x / b;
    case CUDNN_POINTWISE_SUB:
      return x - b;
    case CUDNN_POINTWISE_EXP:
      return std::exp(x);
    case CUDNN_POINTWISE_LOG:
      return std::log(x);
    case CUDNN_POINTWISE_CMP_GE:
      return x >= b ? 1.0F : 0.0F;
    case CUDNN_POINTWISE_BINARY_SELECT:
      return t != 0 ? x : b;
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

Values pointwise(const GraphOperation& o, const std::vector<const Values*>& operands) {
  Values y(static_cast<std::size_t>(o.result.elements()));
  each_element(o.result.dims, [&](const Extents& at, std::size_t number) {
    if (o.mode == CUDNN_POINTWISE_GEN_INDEX) {
      y[number] = static_cast<float>(at[static_cast<std::size_t>(o.axis)]);
      return;
    }
    float x[3] = {};
    for (std::size_t i = 0; i < operands.size(); ++i) {
      x[i] = (*operands[i])[place_in(o.operands[i].dims, at, o.result.dims)];
    }
    y[number] = by_element(o.mode, x[0], x[1], x[2]);
  });
  return y;
}

Values reduction(const GraphOperation& o, const Values& x) {
  const bool is_sum = o.mode == CUDNN_REDUCE_TENSOR_ADD;
  Values y(static_cast<std::size_t>(o.result.elements()),
           is_sum ? 0 : -std::numeric_limits<float>::infinity());
  each_element(o.operands[0].dims, [&](const Extents& at, std::size_t number) {
    float& to = y[place_in(o.result.dims, at, o.operands[0].dims)];
    to = is_sum ? to + x[number] : std::max(to, x[number]);
  });
  return y;
}

Values reordered(const GraphOperation& o, const Values& x) {
  const std::vector<std::size_t> axes = axes_of(o.result, o.operands[0]);
  Values y(x.size());
  each_element(o.result.dims, [&](const Extents& at, std::size_t number) {
    Extents from = {};
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      from[axes[axis]] = at[axis];
    }
    y[number] = x[place_in(o.operands[0].dims, from, o.operands[0].dims)];
  });
  return y;
}

Values result_of(const GraphOperation& o, const std::vector<const Values*>& operands) {
  switch (o.kind) {
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
      return product(o, *operands[0], *operands[1]);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return pointwise(o, operands);
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
      return reduction(o, *operands[0]);
    default:
      return reordered(o, *operands[0]);
  }
}

float element_at(cudnnDataType_t type, const std::byte* data, std::int64_t from) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      return __bfloat162float(reinterpret_cast<const __nv_bfloat16*>(data)[from]);
    case CUDNN_DATA_HALF:
      return __half2float(reinterpret_cast<const __half*>(data)[from]);
    default:
      return reinterpret_cast<const float*>(data)[from];
  }
}

void set_element(cudnnDataType_t type, float value, std::byte* data, std::int64_t to) {
  switch (type) {
    case CUDNN_DATA_BFLOAT16:
      reinterpret_cast<__nv_bfloat16*>(data)[to] = __float2bfloat16(value);
      break;
    case CUDNN_DATA_HALF:
      reinterpret_cast<__half*>(data)[to] = __float2half(value);
      break;
    default:
      reinterpret_cast<float*>(data)[to] = value;
  }
}

Values read(const GraphTensor& tensor, const std::byte* data) {
  Values values(static_cast<std::size_t>(tensor.elements()));
  each_element(tensor.dims, [&](const Extents& at, std::size_t number) {
    const std::int64_t from = offset_of(at, tensor.strides);
    values[number] = element_at(tensor.type, data, from);
  });
  return values;
}

void write(const GraphTensor& tensor, const Values& values, std::byte* data) {
  each_element(tensor.dims, [&](const Extents& at, std::size_t number) {
    const std::int64_t to = offset_of(at, tensor.strides);
    set_element(tensor.type, values[number], data, to);
  });
}

}  // namespace

void compute_graph(const OperationGraph& graph, const std::map<std::int64_t, std::byte*>& data,
                   const std::map<std::int64_t, float>& numbers) {
  std::map<std::int64_t, Values> known;
  for (const auto& [id, number] : numbers) {
    known[id] = {number};
  }
  for (const GraphOperation& operation : graph.operations) {
    std::vector<Values> read_here;  // a tensor may be read with its axes in another order
    read_here.reserve(operation.operands.size());
    std::vector<const Values*> operands;
    for (const GraphTensor& operand : operation.operands) {
      if (const auto found = known.find(operand.id); found != known.end()) {
        operands.push_back(&found->second);
        continue;
      }
      read_here.push_back(read(operand, data.at(operand.id)));
      operands.push_back(&read_here.back());
    }
    Values result = result_of(operation, operands);
    for (float& value : result) {
      value = rounded_to(value, operation.result.type);
    }
    if (!operation.result.is_virtual) {
      write(operation.result, result, data.at(operation.result.id));
    }
    known[operation.result.id] = std::move(result);
  }
}

}  // namespace sim
