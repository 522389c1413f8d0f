#include "benchmarks/gemm/product_shapes.h"

namespace trireme {
namespace {

struct LinearShape {
  std::string name;
  std::int64_t in;
  std::int64_t out;
  bool transposed;  // the weight is stored [out,in]
};

void add_passes(std::vector<ProductShape>& shapes, const LinearShape& l, std::int64_t tokens) {
  shapes.push_back({l.name, "forward", tokens, l.out, l.in, false, l.transposed});
  shapes.push_back({l.name, "data_gradient", tokens, l.in, l.out, false, !l.transposed});
  shapes.push_back({l.name, "weight_gradient", l.transposed ? l.out : l.in,
                    l.transposed ? l.in : l.out, tokens, true, false});
}

}  // namespace

std::int64_t ProductShape::bytes(DType dtype) const {
  return size_of(dtype) * (m * k + k * n) + size_of(result(dtype)) * m * n;
}

ProductShape square_shape(std::int64_t size) {
  return {"square", "", size, size, size, false, false};
}

std::vector<ProductShape> model_shapes(const ModelConfig& model, std::int64_t tokens) {
  const bool transposed = model.family == Family::llama;
  const std::vector<LinearShape> layers = {
      {"qkv", model.hidden, model.qkv_width(), transposed},
      {"attention_out", model.attention_width(), model.hidden, transposed},
      {"mlp_up", model.hidden, model.ffn, transposed},
      {"mlp_down", model.ffn, model.hidden, transposed},
      {"head", model.hidden, model.vocab, true}};
  std::vector<ProductShape> shapes;
  for (const LinearShape& layer : layers) {
    add_passes(shapes, layer, tokens);
  }
  return shapes;
}

}  // namespace trireme
