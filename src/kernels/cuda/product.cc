// Matrix products by cuBLASLt. What the library does not offer for a shape or type as an epilogue
// is done by a kernel after the product, at the price of rounding the product to C's type first.
#include <fmt/format.h>

#include "src/base/error.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/kernels/cuda/cudnn_entries.h"
#include "src/kernels/cuda/entries.h"
#include "src/kernels/cuda/fp8.h"
#include "src/kernels/cuda/product_kernels.h"
#include "src/kernels/cuda/product_plan.h"
#include "src/kernels/cuda/product_text.h"
#include "src/kernels/cuda/scratch.h"
#include "src/kernels/cuda_kernels.h"

namespace trireme::cuda {
namespace {

// Remainder is what kernels do after the library's product.
struct Remainder {
  bool bias = false;
  Epilogue epilogue = Epilogue::none;
};

// Returns the product that the library computes when kernels apply the epilogue.
Matmul without_epilogue(const Matmul& p) {
  Matmul plain = p;
  plain.epilogue = Epilogue::none;
  if (p.epilogue == Epilogue::gelu) {
    plain.c = p.aux;
  }
  return plain;
}

[[noreturn]] void throw_no_algorithm(const Matmul& p) {
  throw DeviceError(
      fmt::format("cuBLASLt {} has no algorithm that runs on device {} for the product {}: check "
                  "the device with 'trireme health', and use another version of the library if "
                  "that finds nothing",
                  cublasLtGetVersion(), p.c.device.index,
                  describe(kind_of(p, p.c.device.index, false, false))));
}

// Lets the library do as much of a product as it can, and returns the rest. attempt: takes a
// product, whether to include its bias, and whether to include its epilogue; returns whether the
// library can do that.
template <class Attempt>
Remainder divide(const Matmul& p, Attempt attempt) {
  // The library's GELU has other bits than gelu_forward, with which recomputation repeats it, and
  // its gradient takes an approximate tanh that is too coarse for f32.
  if (p.epilogue == Epilogue::gelu_backward && p.a.dtype != DType::f32 && attempt(p, true, true)) {
    return {};
  }
  const Matmul plain = without_epilogue(p);
  if (attempt(plain, true, false)) {
    return {.bias = false, .epilogue = p.epilogue};
  }
  if (p.bias.empty() || !attempt(plain, false, false)) {
    throw_no_algorithm(plain);
  }
  return {.bias = true, .epilogue = p.epilogue};
}

bool is_in_fp8(const Matmul& p) { return p.fp8_a.format != Fp8Format::none; }

// Returns the product of the rounded operands: the index along the sum is the inner one of both.
// Without addresses, those of the operands count as aligned.
Matmul of_rounded(const Matmul& p, const Fp8Operands& operands) {
  Matmul rounded = p;
  rounded.a.data = operands.a;
  rounded.b.data = operands.b;
  rounded.transpose_a = false;
  rounded.transpose_b = true;
  rounded.pitch_a = 0;
  rounded.pitch_b = 0;
  return rounded;
}

// Enqueues the product with as many of its parts as asked for; returns whether the library can.
// rounded: has the scales of operands that are in fp8.
bool enqueue(Stream& stream, const Matmul& p, const Fp8Operands& rounded, bool with_bias,
             bool with_epilogue) {
  const ProductKind kind = kind_of(p, stream.device().index, with_bias, with_epilogue);
  return enqueue_product(stream, kind,
                         {.a = p.a.data,
                          .b = p.b.data,
                          .c = p.c.data,
                          .bias = kind.bias ? p.bias.data : nullptr,
                          .aux = kind.epilogue == Epilogue::none ? nullptr : p.aux.data,
                          .a_scale = rounded.a_scale,
                          .b_scale = rounded.b_scale});
}

// Returns the kind of the products that compute the parts of sums.
ProductKind kind_of_parts(const Matmul& p, int device, int parts) {
  Matmul part = p;
  part.k = p.k / parts;
  part.accumulate = false;
  ProductKind kind = kind_of(part, device, false, false);
  kind.parts = parts;
  kind.alignment_c = kMostAlignment;
  return kind;
}

// Enqueues the product as parts of its sums and their addition; returns whether the library can.
bool enqueue_parts(Stream& stream, const Matmul& p, int parts) {
  auto* const area = scratch_of<char>(stream, kProductScratchBytes) + kProductWorkspaceBytes;
  const ProductKind kind = kind_of_parts(p, stream.device().index, parts);
  if (!enqueue_product(stream, kind, {.a = p.a.data, .b = p.b.data, .c = area})) {
    return false;
  }
  add_parts(stream, p.c, reinterpret_cast<const float*>(area), parts, p.accumulate);
  return true;
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
  check(p.pitch_c == 0 || (p.bias.empty() && p.epilogue == Epilogue::none),
        "results with a bias or an epilogue are dense");
  check(p.fp8_a.format == Fp8Format::none || (p.row_of_a() == (p.transpose_a ? p.m : p.k) &&
                                              p.row_of_b() == (p.transpose_b ? p.k : p.n)),
        "operands that are rounded to 8 bits are dense");
  check((p.fp8_a.format == Fp8Format::none) == (p.fp8_b.format == Fp8Format::none),
        "both operands of a product are rounded to 8 bits, or neither");
}

bool has_elements(const Matmul& p) { return p.m > 0 && p.n > 0; }

}  // namespace

void matmul(Stream& stream, const Matmul& p) {
  check_operands(p);
  if (!has_elements(p)) {
    return;
  }
  if (const int parts = parts_of(p); parts > 1 && enqueue_parts(stream, p, parts)) {
    return;
  }
  Fp8Operands operands;
  Matmul product = p;
  if (is_in_fp8(p)) {
    operands = round_operands(stream, p);
    product = of_rounded(p, operands);
  }
  const Remainder left =
      divide(product, [&](const Matmul& part, bool with_bias, bool with_epilogue) {
        return enqueue(stream, part, operands, with_bias, with_epilogue);
      });
  if (left.bias) {
    add_bias(cuda_stream(stream), without_epilogue(p).c, p.bias, p.m, p.n);
  }
  if (left.epilogue == Epilogue::gelu) {
    gelu_forward(stream, p.c, p.aux);
  } else if (left.epilogue == Epilogue::gelu_backward) {
    gelu_backward(stream, p.c, p.c, p.aux);
  }
}

}  // namespace trireme::cuda

namespace trireme {

ProductTable choose_cuda_products(int device, const std::vector<Matmul>& products) {
  ProductTable table;
  for (const Matmul& p : products) {
    if (!cuda::has_elements(p)) {
      continue;
    }
    const auto choose = [&](const cuda::ProductKind& kind) {
      const std::string algorithm = cuda::choose_algorithm(kind);
      table[cuda::describe(kind)] = algorithm.empty() ? "not offered" : algorithm;
      return !algorithm.empty();
    };
    if (const int parts = cuda::parts_of(p);
        parts > 1 && choose(cuda::kind_of_parts(p, device, parts))) {
      continue;
    }
    const Matmul product = cuda::is_in_fp8(p) ? cuda::of_rounded(p, {}) : p;
    (void)cuda::divide(product, [&](const Matmul& part, bool with_bias, bool with_epilogue) {
      return choose(cuda::kind_of(part, device, with_bias, with_epilogue));
    });
  }
  return table;
}

void close_cuda_choices(int device) {
  cuda::close_choices(device);
  cuda::close_attention_choices(device);
}

}  // namespace trireme
