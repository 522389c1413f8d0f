// The library that computes the products of the cpu tables, with its version: part of the numerics
// fingerprint, since another version may add in another order.
#pragma once

#include <string>

namespace trireme {

// "oneDNN 2.6.3"
std::string product_library();

}  // namespace trireme
