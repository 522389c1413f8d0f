#include "src/kernels/cpu/product.h"

#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <unordered_map>

#include <dnnl.hpp>
#include <omp.h>
#include <sys/mman.h>

#include "src/base/check.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/units.h"
#include "src/kernels/cpu/scratch.h"
#include "src/kernels/cpu/team.h"

namespace trireme::cpu {
namespace {

using Type = dnnl::memory::data_type;

// With AMX, oneDNN 2.6 cuts the sum where the number of threads makes its parts fit into the L2
// cache (compute_blocking_heuristic_amx in its brgemm_matmul_utils.cpp), and adds the parts. With
// caches of 2 MiB, sums up to this length are whole for any number of threads.
constexpr std::int64_t kMostAmxDepth = 512;

// The most primitives that a thread keeps; a model uses a few dozen.
constexpr std::size_t kMostPrimitives = 512;

struct HashOfProduct {
  std::size_t operator()(const Product& p) const {
    std::uint64_t hash = 0;
    for (const std::int64_t x : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, std::int64_t{p.threads}}) {
      hash = mix64(hash ^ static_cast<std::uint64_t>(x));
    }
    return static_cast<std::size_t>(mix64(hash ^ (p.transpose_a ? 1U : 0U) ^
                                          (p.transpose_b ? 2U : 0U) ^ (p.bias ? 4U : 0U) ^
                                          (p.accumulate ? 8U : 0U)));
  }
};

struct Primitive {
  dnnl::matmul run;
  dnnl::memory::desc a, b, bias, c, scratchpad;
  bool keeps_order = false;
};

// Session holds the oneDNN objects that a thread owns.
struct Session {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  std::unordered_map<Product, Primitive, HashOfProduct> primitives;
};

// oneDNN generates code when it first runs a product of a type, and crashes if it gets no memory
// for it. It takes 6 MiB for f32 with AVX2.
constexpr std::size_t kCodeBytes = 16 << 20;

// Throws ResourceError if there is no memory for the code that oneDNN generates.
void check_room_for_code() {
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* const room = ::mmap(nullptr, kCodeBytes, PROT_READ | PROT_WRITE, kFlags, -1, 0);
  if (room == MAP_FAILED) {
    throw ResourceError(
        fmt::format("no memory is left for the code of products, which may take {} ({}): raise the "
                    "limits of this process (ulimit -v and -d) or of its job",
                    format_bytes(kCodeBytes), std::strerror(errno)));
  }
  ::munmap(room, kCodeBytes);
}

Session& session() {
  thread_local Session mine;
  return mine;
}

Type type_of(DType dtype) { return dtype == DType::bf16 ? Type::bf16 : Type::f32; }

dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, DType type, std::int64_t ld,
                          bool transposed) {
  const dnnl::memory::dims strides =
      transposed ? dnnl::memory::dims{1, ld} : dnnl::memory::dims{ld, 1};
  return {{rows, columns}, type_of(type), strides};
}

dnnl::matmul::primitive_desc describe(const Primitive& p, bool bias,
                                      const dnnl::primitive_attr& attr,
                                      const dnnl::engine& engine) {
#if DNNL_VERSION_MAJOR >= 3
  return bias ? dnnl::matmul::primitive_desc(engine, p.a, p.b, p.bias, p.c, attr)
              : dnnl::matmul::primitive_desc(engine, p.a, p.b, p.c, attr);
#else
  return {bias ? dnnl::matmul::desc(p.a, p.b, p.bias, p.c) : dnnl::matmul::desc(p.a, p.b, p.c),
          attr, engine};
#endif
}

Primitive make_primitive(const Product& p, const dnnl::engine& engine) {
  Primitive made;
  made.a = matrix(p.m, p.k, p.type, p.lda, p.transpose_a);
  made.b = matrix(p.k, p.n, p.type, p.ldb, p.transpose_b);
  made.bias = {{1, p.n}, type_of(p.type), dnnl::memory::dims{p.n, 1}};
  made.c = matrix(p.m, p.n, p.out, p.ldc, false);
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  attr.set_fpmath_mode(dnnl::fpmath_mode::strict);  // independent of ONEDNN_DEFAULT_FPMATH_MODE
  if (p.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0F);
    attr.set_post_ops(sum);
  }
  const auto description = describe(made, p.bias, attr, engine);
  made.run = dnnl::matmul(description);
  made.scratchpad = description.scratchpad_desc();
  const std::string_view name = description.impl_info_str();
  made.keeps_order =
      name.starts_with("brg") && (name.find("amx") == name.npos || p.k <= kMostAmxDepth);
  return made;
}

// A primitive is made for a number of threads and divides its work by that number, even if fewer
// threads run it. It is therefore made for the team that OpenMP will really give; the bits do not
// depend on it.
const Primitive& primitive_for(const Product& asked) {
  Product p = asked;
  p.threads = team_for(asked.threads);
  omp_set_num_threads(p.threads);
  Session& mine = session();
  if (const auto found = mine.primitives.find(p); found != mine.primitives.end()) {
    return found->second;
  }
  if (mine.primitives.size() >= kMostPrimitives) {
    mine.primitives.clear();
  }
  check_room_for_code();
  try {
    return mine.primitives.emplace(p, make_primitive(p, mine.engine)).first->second;
  } catch (const dnnl::error& error) {
    if (error.status == dnnl_out_of_memory) {
      throw std::bad_alloc();
    }
    throw InternalError(fmt::format("oneDNN refuses a {} product of {} x {} x {}: {}",
                                    dtype_name(p.type), p.m, p.n, p.k, error.what()));
  }
}

struct Operands {
  const char* a;
  const char* b;
  const char* bias;
  char* c;
};

void execute(const Primitive& primitive, const Operands& at, void* scratchpad) {
  Session& mine = session();
  const auto memory = [&](const dnnl::memory::desc& desc, const void* data) {
    return dnnl::memory(desc, mine.engine, const_cast<void*>(data));
  };
  std::unordered_map<int, dnnl::memory> arguments = {
      {DNNL_ARG_SRC, memory(primitive.a, at.a)},
      {DNNL_ARG_WEIGHTS, memory(primitive.b, at.b)},
      {DNNL_ARG_DST, memory(primitive.c, at.c)},
      {DNNL_ARG_SCRATCHPAD, memory(primitive.scratchpad, scratchpad)}};
  if (at.bias != nullptr) {
    arguments.emplace(DNNL_ARG_BIAS, memory(primitive.bias, at.bias));
  }
  primitive.run.execute(mine.stream, arguments);
}

}  // namespace

bool has_product(DType type) {
  if (type == DType::f32) {
    return true;
  }
  static const bool has = [] {
    const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
    try {
      Primitive p;
      p.a = p.b = p.c = matrix(64, 64, DType::bf16, 64, false);
      const auto description = describe(p, false, {}, engine);
      return !std::string_view(description.impl_info_str()).starts_with("ref");
    } catch (const dnnl::error&) {
      return false;
    }
  }();
  return type == DType::bf16 && has;
}

bool keeps_order(const Product& product) { return primitive_for(product).keeps_order; }

void run_product(const Product& product, const void* a, const void* b, const void* bias, void* c) {
  const Primitive& primitive = primitive_for(product);
  const auto bytes = static_cast<std::int64_t>(primitive.scratchpad.get_size());
  execute(primitive,
          {static_cast<const char*>(a), static_cast<const char*>(b), static_cast<const char*>(bias),
           static_cast<char*>(c)},
          scratch(Scratch::onednn, bytes));
}

bool limit_product_instructions(std::string_view isa) {
  const auto most = isa == "avx512" ? dnnl::cpu_isa::avx512_core_bf16
                    : isa == "avx2" ? dnnl::cpu_isa::avx2
                                    : dnnl::cpu_isa::sse41;
  return dnnl::set_max_cpu_isa(most) == dnnl::status::success;
}

}  // namespace trireme::cpu
