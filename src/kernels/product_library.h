// Names the library that computes the products of the cpu tables, with its version, which is part
// of the numerics fingerprint because another version may add in another order.
#pragma once

#include <string>

namespace trireme {

// Returns, for example, "oneDNN 2.6.3".
std::string product_library();
// Returns, for example, "avx512_core_bf16": the richest instruction set that it uses in this
// process. The first call fixes the set.
std::string product_instructions();

}  // namespace trireme
