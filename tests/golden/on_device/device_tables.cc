#include "tests/golden/golden_case.h"

namespace trireme {

std::vector<std::string> golden_tables() { return {"cuda"}; }
std::vector<std::string> golden_f16_tables() { return {"cuda"}; }

}  // namespace trireme
