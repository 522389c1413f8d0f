#include "src/nn/lora_config.h"

#include <algorithm>

namespace trireme {

bool LoraConfig::adapts(std::string_view product) const {
  return std::find(products.begin(), products.end(), product) != products.end();
}

}  // namespace trireme
