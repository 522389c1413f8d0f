#include "src/kernels/cuda/cudnn_entries.h"
#include "src/kernels/cuda/cudnn_library.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda_kernels.h"

namespace trireme {

namespace {

const Kernels& own_kernels() {
  static const Kernels table = {
      .name = "cuda",
      .matmul = cuda::matmul,
      .column_sum = cuda::column_sum,
      .embedding_forward = cuda::embedding_forward,
      .embedding_backward = cuda::embedding_backward,
      .layer_norm_forward = cuda::layer_norm_forward,
      .layer_norm_backward = cuda::layer_norm_backward,
      .rms_norm_forward = cuda::rms_norm_forward,
      .rms_norm_backward = cuda::rms_norm_backward,
      .rope = cuda::rope,
      .attention_forward = cuda::attention_forward,
      .attention_backward = cuda::attention_backward,
      .gelu_forward = cuda::gelu_forward,
      .gelu_backward = cuda::gelu_backward,
      .swiglu_forward = cuda::swiglu_forward,
      .swiglu_backward = cuda::swiglu_backward,
      .dropout = cuda::dropout,
      .cross_entropy = cuda::cross_entropy,
      .softmax_part = cuda::softmax_part,
      .cross_entropy_of_parts = cuda::cross_entropy_of_parts,
      .distillation = cuda::distillation,
      .adamw = cuda::adamw,
      .sgd = cuda::sgd,
      .moving_average = cuda::moving_average,
      .combine = cuda::combine,
      .normalize = cuda::normalize,
      .sums_of_squares = cuda::sums_of_squares,
      .sum = cuda::sum,
      .digest = cuda::digest,
      .add = cuda::add,
      .add_chain = cuda::add_chain,
      .zero_where_zero = cuda::zero_where_zero,
      .cast = cuda::cast,
      .fill = cuda::fill,
      .scale = cuda::scale,
  };
  return table;
}

Kernels with_cudnn(Kernels table) {
  table.attention_forward = cuda::attention_forward_by_cudnn;
  table.attention_backward = cuda::attention_backward_by_cudnn;
  return table;
}

}  // namespace

const Kernels& cuda_kernels(CudaAttention attention) {
  static const Kernels by_cudnn = with_cudnn(own_kernels());
  if (attention == CudaAttention::own) {
    return own_kernels();
  }
  (void)cuda::cudnn_calls();
  return by_cudnn;
}

}  // namespace trireme
