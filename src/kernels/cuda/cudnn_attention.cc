#include "src/kernels/cuda/cudnn_attention.h"

namespace trireme::cuda {
namespace {

// Builder holds the tensors that both graphs have. T: time, D: head dimension.
class Builder {
 public:
  Builder(CudnnGraph& graph, const CudnnAttentionKind& kind) : graph_(graph), kind_(kind) {}

  void forward();
  void backward();

 private:
  cudnnDataType_t type() const {
    return kind_.dtype == DType::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  }
  Extents scores() const { return {kind_.batch, kind_.heads, kind_.time, kind_.time}; }
  Extents per_row() const { return {kind_.batch, kind_.heads, kind_.time, 1}; }
  Extents rows(std::int64_t heads) const {
    return {kind_.batch, heads, kind_.time, kind_.head_dim};
  }
  Extents strides(std::int64_t token) const {
    return {kind_.time * token, kind_.head_dim, token, 1};
  }
  static Extents swapped(const Extents& e) { return {e[0], e[1], e[3], e[2]}; }

  // [B, heads, T, D] in memory, and the same transposed, [B, heads, D, T].
  CudnnTensor tensor(CudnnAttentionTensor id, std::int64_t heads, std::int64_t token) {
    return graph_.in_memory(id, rows(heads), strides(token), type());
  }
  CudnnTensor transposed(CudnnAttentionTensor id, std::int64_t heads, std::int64_t token) {
    return graph_.in_memory(id, swapped(rows(heads)), swapped(strides(token)), type());
  }
  std::int64_t out_stride() const { return kind_.heads * kind_.head_dim; }

  CudnnTensor pointwise(cudnnPointwiseMode_t mode, const std::vector<CudnnTensor>& operands,
                        const Extents& dims) {
    return graph_.pointwise(mode, operands, graph_.within(dims));
  }
  // Replaces the scores of later keys.
  CudnnTensor mask(const CudnnTensor& s) {
    const CudnnTensor row = graph_.index(2, s);
    const CudnnTensor column = graph_.index(3, s);
    const CudnnTensor is_kept =
        graph_.pointwise(CUDNN_POINTWISE_CMP_GE, {row, column},
                         graph_.within(s.dims, CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN);
    return pointwise(CUDNN_POINTWISE_BINARY_SELECT, {s, graph_.number(kTensorMasked), is_kept},
                     s.dims);
  }
  // Returns x, seen as [B, heads, T of keys, T of queries] in the type of the operands.
  CudnnTensor by_keys(const CudnnTensor& x) {
    const Extents dims = swapped(scores());
    const Extents dense = dense_strides(scores());
    return graph_.reshape(x, graph_.within(dims, swapped(dense), type()));
  }
  // Adds up p dy, [B, heads, T, D], over the query heads of each key/value head.
  void gradient_of_keys(CudnnAttentionTensor id, const CudnnTensor& p, const CudnnTensor& dy) {
    const CudnnTensor result = tensor(id, kind_.kv_heads, kind_.kv_stride);
    if (kind_.heads == kind_.kv_heads) {
      (void)graph_.matmul(p, dy, result);
      return;
    }
    const CudnnTensor of_heads = graph_.matmul(p, dy, graph_.within(rows(kind_.heads), type()));
    (void)graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, of_heads, result);
  }

  CudnnGraph& graph_;
  const CudnnAttentionKind& kind_;
};

// Softmax as in "Online normalizer calculation for softmax" (Milakov and Gimelshein, 2018), which
// cuDNN's engine makes of it; lse = max + log(sum of exponentials).
void Builder::forward() {
  const CudnnTensor q = tensor(kTensorQ, kind_.heads, kind_.q_stride);
  const CudnnTensor k = transposed(kTensorK, kind_.kv_heads, kind_.kv_stride);
  const CudnnTensor v = tensor(kTensorV, kind_.kv_heads, kind_.kv_stride);
  const CudnnTensor product = graph_.matmul(q, k, graph_.within(scores()));
  const CudnnTensor scaled =
      pointwise(CUDNN_POINTWISE_MUL, {product, graph_.number(kTensorScale)}, scores());
  const CudnnTensor s = mask(scaled);
  const CudnnTensor most = graph_.reduce(CUDNN_REDUCE_TENSOR_MAX, s, graph_.within(per_row()));
  const CudnnTensor shifted = pointwise(CUDNN_POINTWISE_SUB, {s, most}, scores());
  const CudnnTensor exponential = pointwise(CUDNN_POINTWISE_EXP, {shifted}, scores());
  const CudnnTensor sum =
      graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, graph_.within(per_row()));
  const CudnnTensor log = pointwise(CUDNN_POINTWISE_LOG, {sum}, per_row());
  (void)graph_.pointwise(
      CUDNN_POINTWISE_ADD, {most, log},
      graph_.in_memory(kTensorLse, per_row(), dense_strides(per_row()), CUDNN_DATA_FLOAT));
  const CudnnTensor p =
      graph_.pointwise(CUDNN_POINTWISE_DIV, {exponential, sum}, graph_.within(scores(), type()));
  (void)graph_.matmul(p, v, tensor(kTensorOut, kind_.heads, out_stride()));
}

// The backward pass of "FlashAttention-2" (Dao, 2023), with delta = rowsum(dout out):
//   P = exp(S - lse), dV = P^T dout, dS = P (dout V^T - delta) scale, dK = dS^T Q, dQ = dS K
void Builder::backward() {
  const CudnnTensor q = tensor(kTensorQ, kind_.heads, kind_.q_stride);
  const CudnnTensor k = transposed(kTensorK, kind_.kv_heads, kind_.kv_stride);
  const CudnnTensor v = transposed(kTensorV, kind_.kv_heads, kind_.kv_stride);
  const CudnnTensor out = tensor(kTensorOut, kind_.heads, out_stride());
  const CudnnTensor dout = tensor(kTensorDOut, kind_.heads, out_stride());
  const CudnnTensor lse =
      graph_.in_memory(kTensorLse, per_row(), dense_strides(per_row()), CUDNN_DATA_FLOAT);
  const CudnnTensor scale = graph_.number(kTensorScale);

  const CudnnTensor products =
      graph_.pointwise(CUDNN_POINTWISE_MUL, {dout, out},
                       graph_.within(rows(kind_.heads), strides(out_stride()), CUDNN_DATA_FLOAT));
  const CudnnTensor sums =
      graph_.reduce(CUDNN_REDUCE_TENSOR_ADD, products, graph_.within(per_row()));
  const CudnnTensor delta = graph_.pointwise(
      CUDNN_POINTWISE_MUL, {sums, graph_.number(kTensorOne)},
      graph_.in_memory(kTensorDelta, per_row(), dense_strides(per_row()), CUDNN_DATA_FLOAT));

  const CudnnTensor product = graph_.matmul(q, k, graph_.within(scores()));
  const CudnnTensor scaled = pointwise(CUDNN_POINTWISE_MUL, {product, scale}, scores());
  const CudnnTensor shifted = pointwise(CUDNN_POINTWISE_SUB, {scaled, lse}, scores());
  const CudnnTensor p = pointwise(CUDNN_POINTWISE_EXP, {mask(shifted)}, scores());
  gradient_of_keys(kTensorDV, by_keys(p), dout);

  const CudnnTensor dp = graph_.matmul(dout, v, graph_.within(scores()));
  const CudnnTensor centred = pointwise(CUDNN_POINTWISE_SUB, {dp, delta}, scores());
  const CudnnTensor weighted = pointwise(CUDNN_POINTWISE_MUL, {centred, p}, scores());
  const CudnnTensor ds = pointwise(CUDNN_POINTWISE_MUL, {weighted, scale}, scores());
  gradient_of_keys(kTensorDK, by_keys(ds), q);

  const CudnnTensor rows_of_k = graph_.reshape(
      k, graph_.within(rows(kind_.kv_heads), strides(kind_.kv_stride), CUDNN_DATA_FLOAT));
  (void)graph_.matmul(ds, rows_of_k, tensor(kTensorDQ, kind_.heads, kind_.q_stride));
}

}  // namespace

void build_attention(CudnnGraph& graph, const CudnnAttentionKind& kind) {
  Builder builder(graph, kind);
  if (kind.backward) {
    builder.backward();
  } else {
    builder.forward();
  }
}

std::int64_t attention_workspace_bytes(const CudnnAttentionKind& kind) {
  constexpr std::int64_t kBf16 = 2;
  constexpr std::int64_t kLeast = 256;
  const auto padded = [&](std::int64_t block) { return (kind.time + block - 1) / block * block; };
  const std::int64_t scores = kind.batch * kind.heads * padded(64) * padded(128) * kBf16;
  const std::int64_t rows = kind.batch * kind.heads * kind.time;
  const std::int64_t of_heads = kind.heads == kind.kv_heads ? 0 : 2 * rows * kind.head_dim * kBf16;
  return kLeast + (kind.backward ? scores + of_heads : 0);
}

}  // namespace trireme::cuda
