#include "tests/golden/golden_case.h"
#include "tests/nn/tiny_model.h"

namespace trireme {

std::vector<std::string> golden_tables() { return kernel_tables(); }
std::vector<std::string> golden_f16_tables() { return {"reference"}; }

}  // namespace trireme
