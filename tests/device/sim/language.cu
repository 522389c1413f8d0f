// Uses every word of the language of kernels once. It must compile for the simulated device and,
// where there is nvcc, for real ones.
#include <cuda_fp16.h>
#include <cuda_language.h>
#include <cuda_warpgroup.h>

namespace trireme::cuda {
namespace {

constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

struct WordArguments {
  float* numbers;
  int* counts;
  unsigned* bits;
  __nv_bfloat16* halves;
};

__device__ float use_shuffles(float x) {
  const int lane = static_cast<int>(threadIdx.x) % warpSize;
  x += __shfl_sync(kWholeWarp, x, 3) + __shfl_sync(kWholeWarp, x, 3, 8);
  x += __shfl_xor_sync(kWholeWarp, x, 16) + __shfl_down_sync(kWholeWarp, x, 1);
  x += __shfl_up_sync(kWholeWarp, x, 1);
  const unsigned odd = __ballot_sync(kWholeWarp, lane & 1);
  const int all = __all_sync(kWholeWarp, lane < 32) + __any_sync(kWholeWarp, lane == 0);
  __syncwarp();
  return x + static_cast<float>(__popc(odd) + all);
}

__device__ __forceinline__ float use_math(float x) {
  x = rsqrtf(fmaxf(x, 1.0F)) + sqrtf(fabsf(x)) + __expf(-fabsf(x)) + expf(-fabsf(x));
  x += __logf(fmaxf(x, 1.0F)) + tanhf(x) + erff(x) + exp2f(fminf(x, 0.0F)) + __fdividef(x, 2.0F);
  x += __fadd_rn(x, 1.0F) + __fmul_rn(x, 0.5F) + __fdiv_rn(x, 3.0F) + __fmaf_rn(x, x, 1.0F);
  x += __fsqrt_rn(fabsf(x)) + __frcp_rn(fabsf(x) + 1.0F) + cosf(x) + sinf(x) + powf(2.0F, x);
  x += __uint_as_float(__float_as_uint(x)) + __int_as_float(__float_as_int(x));
  return min(max(x, -1.0F), 1.0F) + static_cast<float>(__umulhi(7u, 1u << 31) + min(1u, 2u));
}

__device__ __noinline__ void use_memory(const WordArguments& a) {
  const auto* wide = reinterpret_cast<const float4*>(a.numbers);
  float4 four = __ldg(wide);
  four.x += __ldcs(wide + 1).y + __ldcg(wide + 2).z + __ldca(wide + 3).w;
  __stcs(reinterpret_cast<float4*>(a.numbers), four);
  __stcg(reinterpret_cast<float4*>(a.numbers) + 1, make_float4(1, 2, 3, 4));
  atomicAdd(a.counts, 1);
  atomicMax(a.counts + 1, static_cast<int>(threadIdx.x));
  atomicMin(a.counts + 2, -1);
  atomicExch(a.counts + 3, 5);
  atomicCAS(a.counts + 3, 5, 6);
  atomicOr(a.bits, 1u);
  atomicAnd(a.bits + 1, 3u);
  atomicXor(a.bits + 2, 3u);
  __threadfence();
}

__device__ void use_halves(const WordArguments& a) {
  a.halves[0] = __float2bfloat16_rn(__bfloat162float(a.halves[1]) + 1.0F);
  const __nv_bfloat162 pair = __floats2bfloat162_rn(1.0F, 2.0F);
  const float2 wide = __bfloat1622float2(pair);
  a.halves[2] = __ushort_as_bfloat16(__bfloat16_as_ushort(pair.y));
  const __half2 other = __floats2half2_rn(wide.x, wide.y);
  a.numbers[64] = __half22float2(other).y + __half2float(__float2half_rn(0.5F));
}

// Needs four warps.
__device__ float use_warpgroup(unsigned char* tile) {
  float d[8][4];
  std::uint32_t fragment[1][4] = {};
  show_to_products();
  __syncthreads();
  start_products(d, fragment);
  const TileOperand operand = tile_operand(tile);
  WarpgroupProduct<__nv_bfloat16, 64>::of_tiles<false>(d, operand, operand + 32, 0);
  WarpgroupProduct<__nv_bfloat16, 64>::of_fragment<true>(d, fragment[0], operand, 1);
  commit_products();
  wait_products<0>(d, fragment);
  return d[0][0];
}

template <int kThreads>
__global__ void __launch_bounds__(kThreads) use_words(const __grid_constant__ WordArguments a) {
  __shared__ __align__(16) float fixed[kThreads];
  auto* tiles = dynamic_shared<__nv_bfloat16>();
  fixed[threadIdx.x] = use_shuffles(use_math(static_cast<float>(threadIdx.x)));
  copy_async_16(tiles + threadIdx.x * 8, a.numbers);
  commit_copies();
  wait_copies<0>();
  __syncthreads();
  std::uint32_t left[4];
  std::uint32_t right[4];
  ldmatrix(left, tiles + threadIdx.x % 32 * 8);
  ldmatrix_transposed(right, tiles + threadIdx.x % 32 * 8);
  float sums[4] = {fixed[0], 0, 0, 0};
  const std::uint32_t half_of_right[2] = {right[0], right[1]};
  mma<__nv_bfloat16>(sums, left, half_of_right);
  copy_async_16_or_zero(tiles, a.numbers, threadIdx.x == 0);
  commit_copies();
  wait_copies<0>();
  if constexpr (kHasWarpgroups) {
    sums[0] += use_warpgroup(reinterpret_cast<unsigned char*>(tiles) + swizzled_chunk(0, 0));
  }
  if (threadIdx.x == 0) {
    use_memory(a);
    use_halves(a);
    a.numbers[65] = sums[0];
  }
}

}  // namespace

void launch_every_word(cudaStream_t stream, float* numbers, int* counts, unsigned* bits,
                       void* halves) {
  const WordArguments arguments{numbers, counts, bits, static_cast<__nv_bfloat16*>(halves)};
  allow_shared(kernel_of<use_words<128>>, 128 * 64);
  launch(kernel_of<use_words<128>>, dim3(2), dim3(128), 128 * 64, stream, arguments);
}

}  // namespace trireme::cuda
