#include "src/nn/model_slice.h"

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

std::string degrees_that_work(const ModelConfig& c) {
  std::vector<std::int64_t> degrees;
  for (std::int64_t n = 1; n <= c.heads; ++n) {
    if (tensor_degree_works(c, n)) {
      degrees.push_back(n);
    }
  }
  return fmt::format("{}", fmt::join(degrees, ", "));
}

}  // namespace

bool tensor_degree_works(const ModelConfig& c, std::int64_t ranks) {
  return c.heads % ranks == 0 && (c.kv_heads % ranks == 0 || ranks % c.kv_heads == 0) &&
         c.ffn >= ranks && c.vocab >= ranks;
}

TensorShare tensor_share(const ModelConfig& c, int rank, int ranks) {
  if (c.heads % ranks != 0) {
    throw ConfigError(fmt::format(
        "model.heads {} is not a multiple of parallel.tp {} (remainder {}), but every rank of a "
        "tensor-parallel group holds the same number of heads; values of tp that work here: {}",
        c.heads, ranks, c.heads % ranks, degrees_that_work(c)));
  }
  if (c.kv_heads % ranks != 0 && ranks % c.kv_heads != 0) {
    throw ConfigError(
        fmt::format("model.kv_heads {} cannot be divided by parallel.tp {}: one must be a multiple "
                    "of the other; values of tp that work here: {}",
                    c.kv_heads, ranks, degrees_that_work(c)));
  }
  if (!tensor_degree_works(c, ranks)) {
    throw ConfigError(
        fmt::format("model.ffn {} or model.vocab {} is less than parallel.tp {}, but every rank of "
                    "a tensor-parallel group holds a part of both; values of tp that work here: {}",
                    c.ffn, c.vocab, ranks, degrees_that_work(c)));
  }
  TensorShare share;
  share.rank = rank;
  share.heads = share_of(c.heads, rank, ranks);
  share.kv_copies = ranks > c.kv_heads ? static_cast<int>(ranks / c.kv_heads) : 1;
  share.kv_heads = share_of(c.kv_heads, rank / share.kv_copies, ranks / share.kv_copies);
  share.ffn = share_of(c.ffn, rank, ranks);
  share.vocabulary = share_of(c.vocab, rank, ranks);
  return share;
}

}  // namespace trireme
