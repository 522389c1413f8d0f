// ProductPlan is how cuBLASLt computes products of one kind: the description of the operation, the
// layouts and the algorithm. Plans are made once per kind and kept, so that the algorithm, and with
// it the bits of the result, does not change within a process. What is chosen depends on the kind,
// the device and the library alone. A run chooses for all of its products before the first step
// (choose_algorithm), because the choices belong to its numerics fingerprint; programs without a
// fingerprint choose when they meet a new kind. Split-K is not permitted. Before its
// first use, an algorithm must compute sums of ones exactly, because versions of cuBLASLt are known
// that lose the end of a sum (facebookexperimental/triton#2767).
//
// cuBLASLt's matrices are column-major. A row-major matrix is its transpose, so the plan computes
// C^T = op(B)^T op(A)^T: the library's first operand is B, and its rows are the columns of C.
#pragma once

#include <string>

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "src/device/stream.h"
#include "src/kernels/kernel_arguments.h"

namespace trireme::cuda {

// Every product may overwrite this much of its stream's scratch memory. It is enough for the best
// algorithms on Hopper, where the library's own default is as large.
inline constexpr std::int64_t kProductWorkspaceBytes = std::int64_t{32} << 20;
// Behind the workspace: the parts of sums (parts_of).
inline constexpr std::int64_t kProductPartBytes = std::int64_t{16} << 20;
inline constexpr std::int64_t kProductScratchBytes = kProductWorkspaceBytes + kProductPartBytes;

// The alignment in bytes beyond which addresses are treated alike: what loads of vectors and the
// tensor memory accelerator ask for. Memory for tensors is aligned to more than that, so that a
// kind depends on where an operand begins within a buffer and not on the buffer's address.
inline constexpr int kMostAlignment = 16;

// Plans differ in these properties of a product. Alignments are powers of two, in bytes, at most
// kMostAlignment.
struct ProductKind {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DType type = DType::f32;  // of the bias and aux; of A and B, too, unless they have a format
  Fp8Format a_format = Fp8Format::none;
  Fp8Format b_format = Fp8Format::none;
  DType c_type = DType::f32;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  bool bias = false;
  Epilogue epilogue = Epilogue::none;
  int device = 0;
  int alignment_a = 0;
  int alignment_b = 0;
  int alignment_c = 0;
  int alignment_bias = 0;
  int alignment_aux = 0;
  // Elements from one stored row to the next; 0: rows are dense.
  std::int64_t pitch_a = 0;
  std::int64_t pitch_b = 0;
  std::int64_t pitch_c = 0;
  // Products in a batch, each of k terms: the parts of a longer sum. A, B and C of each follow
  // those of the one before.
  int parts = 1;

  std::int64_t row_of_a() const { return pitch_a > 0 ? pitch_a : (transpose_a ? m : k); }
  std::int64_t row_of_b() const { return pitch_b > 0 ? pitch_b : (transpose_b ? k : n); }
  std::int64_t row_of_c() const { return pitch_c > 0 ? pitch_c : n; }
  friend auto operator<=>(const ProductKind&, const ProductKind&) = default;
};

// Operands holds the addresses of one product.
struct ProductOperands {
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  const void* bias = nullptr;
  void* aux = nullptr;
  // For 8-bit formats: the scales of A and B, in device memory.
  const float* a_scale = nullptr;
  const float* b_scale = nullptr;
};

// Returns into how many parts the sums of a product are cut, 1 for none. Gradients of small weights
// are long sums, but too few tiles to keep a GPU busy; its parts are computed side by side and
// added in order, which keeps the bits of a result fixed (cuBLASLt's own split-K may not).
int parts_of(const Matmul& p);

// Returns the kind of a product whose epilogue and bias may be left out.
ProductKind kind_of(const Matmul& p, int device, bool with_bias, bool with_epilogue);

// Enqueues the product, and returns whether cuBLASLt can compute products of this kind; if not,
// nothing was enqueued. Throws DeviceError if the library fails or no algorithm is exact, and
// InternalError if the kind is new after close_choices(). The first product of a kind waits for
// checks of its algorithm and must not be captured.
bool enqueue_product(Stream& stream, const ProductKind& kind, const ProductOperands& operands);

// Chooses the algorithm for a kind, unless that was done before, and returns its description; ""
// if cuBLASLt cannot compute products of this kind. Throws DeviceError as enqueue_product() does.
// Permits choices again after close_choices().
std::string choose_algorithm(const ProductKind& kind);
// Permits no further choices for the device, and frees the memory that checks of algorithms have
// taken, which waits for the whole device.
void close_choices(int device);

// Return the most device memory that products and attention take beside their operands, and what
// choosing takes in addition until close_choices() (cuda_kernels.h).
std::int64_t scratch_bytes(std::int64_t fp8_bytes, std::int64_t attention_bytes);
std::int64_t product_choice_bytes(std::int64_t longest_sum, std::int64_t element_bytes);

}  // namespace trireme::cuda
