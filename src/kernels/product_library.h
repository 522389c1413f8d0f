// The library that computes the products of the cpu tables, with its version: part of the numerics
// fingerprint, since another version may add in another order.
#pragma once

#include <string>

namespace trireme {

// "oneDNN 2.6.3"
std::string product_library();
// "avx512_core_bf16": the richest instructions that it uses in this process. The first call fixes
// them.
std::string product_instructions();

}  // namespace trireme
