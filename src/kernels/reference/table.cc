#include "src/kernels/cpu/digest.h"
#include "src/kernels/reference/reference.h"

namespace trireme::reference {

const Kernels kTable = {
    .name = "reference",
    .matmul = matmul,
    .column_sum = column_sum,
    .embedding_forward = embedding_forward,
    .embedding_backward = embedding_backward,
    .layer_norm_forward = layer_norm_forward,
    .layer_norm_backward = layer_norm_backward,
    .rms_norm_forward = rms_norm_forward,
    .rms_norm_backward = rms_norm_backward,
    .rope = rope,
    .attention_forward = attention_forward,
    .attention_backward = attention_backward,
    .gelu_forward = gelu_forward,
    .gelu_backward = gelu_backward,
    .swiglu_forward = swiglu_forward,
    .swiglu_backward = swiglu_backward,
    .dropout = dropout,
    .cross_entropy = cross_entropy,
    .softmax_part = softmax_part,
    .cross_entropy_of_parts = cross_entropy_of_parts,
    .distillation = distillation,
    .adamw = adamw,
    .sgd = sgd,
    .moving_average = moving_average,
    .combine = combine,
    .normalize = normalize,
    .sums_of_squares = sums_of_squares,
    .sum = sum,
    .digest = cpu::digest,
    .add = add,
    .add_chain = add_chain,
    .zero_where_zero = zero_where_zero,
    .cast = cast,
    .fill = fill,
    .scale = scale,
};

}  // namespace trireme::reference
