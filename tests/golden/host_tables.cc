#include "tests/golden/golden_case.h"
#include "tests/nn/tiny_model.h"

namespace trireme {

std::vector<std::string> golden_tables() { return kernel_tables(); }

}  // namespace trireme
