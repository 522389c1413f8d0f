#include "tests/kernels/tables.h"

#include <cctype>

#include "src/compute/kernel_choice.h"

namespace trireme::testing {

std::vector<const Kernels*> tables_and_reference() {
  std::vector<const Kernels*> all = {&kernels_named("reference")};
  for (const Kernels* table : tables_under_test()) {
    all.push_back(table);
  }
  return all;
}

std::vector<DType> half_types() {
  std::vector<DType> types = activation_types();
  std::erase(types, DType::f32);
  return types;
}

std::string test_name(const Kernels& table) {
  std::string name(table.name);
  for (char& c : name) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

}  // namespace trireme::testing
