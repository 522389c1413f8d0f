// Matrix products by cuBLASLt. What the library does not offer for a shape or type as an epilogue
// is done by a kernel after the product, at the price of rounding the product to C's type first.
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/product_kernels.h"
#include "src/kernels/cuda/product_plan.h"

namespace trireme::cuda {
namespace {

// Enqueues the product with as many of its parts as asked for; returns whether the library can.
bool enqueue(Stream& stream, const Matmul& p, bool with_bias, bool with_epilogue) {
  const ProductKind kind = kind_of(p, stream.device().index, with_bias, with_epilogue);
  return enqueue_product(cuda_stream(stream), kind,
                         {.a = p.a.data,
                          .b = p.b.data,
                          .c = p.c.data,
                          .bias = kind.bias ? p.bias.data : nullptr,
                          .aux = kind.epilogue == Epilogue::none ? nullptr : p.aux.data});
}

// Enqueues C = op(A) op(B) (+ bias) (+ C).
void enqueue_sum(Stream& stream, const Matmul& p) {
  if (enqueue(stream, p, true, false)) {
    return;
  }
  check(!p.bias.empty() && enqueue(stream, p, false, false),
        "cuBLASLt has an algorithm for every product");
  add_bias(cuda_stream(stream), p.c, p.bias, p.m, p.n);
}

void check_operands(const Matmul& p) {
  for (const ConstView& view : {p.a, p.b, ConstView(p.c), p.bias, ConstView(p.aux)}) {
    check(view.empty() || view.device.kind == DeviceKind::cuda,
          "CUDA kernels access device memory");
  }
  check(p.a.dtype == p.b.dtype && (p.bias.empty() || p.bias.dtype == p.a.dtype),
        "a product's operands have one type");
  check(p.epilogue == Epilogue::none ||
            (p.aux.dtype == p.a.dtype && p.c.dtype == p.a.dtype && !p.accumulate),
        "GELU's input and output have the type of the operands");
}

}  // namespace

void matmul(Stream& stream, const Matmul& p) {
  check_operands(p);
  if (p.m == 0 || p.n == 0) {
    return;
  }
  if (p.epilogue == Epilogue::none) {
    enqueue_sum(stream, p);
    return;
  }
  // The library's GELU has other bits than gelu_forward, with which recomputation repeats it.
  if (p.epilogue != Epilogue::gelu && enqueue(stream, p, true, true)) {
    return;
  }
  Matmul plain = p;
  plain.epilogue = Epilogue::none;
  if (p.epilogue == Epilogue::gelu) {
    plain.c = p.aux;
    enqueue_sum(stream, plain);
    gelu_forward(stream, p.c, p.aux);
  } else {
    enqueue_sum(stream, plain);
    gelu_backward(stream, p.c, p.c, p.aux);
  }
}

}  // namespace trireme::cuda
