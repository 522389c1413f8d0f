// Reads any bytes as a file of gates, which judge a result, and as the baseline of others.
#include <nlohmann/json.hpp>

#include "src/evaluation/eval_gates.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  static const std::map<std::string, double> result = {{"loss", 2},
                                                       {"tasks.t.acc", 0.5},
                                                       {"tasks.t.items", 4},
                                                       {"tasks.t.groups.a.acc", 0.4},
                                                       {"tasks.t.groups.a.items", 2},
                                                       {"tasks.t.groups.b.acc", 0.6},
                                                       {"tasks.t.groups.b.items", 2}};
  const MemoryFile file(text_of(data, bytes));
  refuses_only_with<ConfigError>([&] {
    const GateFile gates = load_gates(file.path());
    require(!gates.gates.empty());
    const std::vector<GateOutcome> outcomes = judge_gates(gates, result, result);
    require(outcomes.size() == gates.gates.size());
    require(gates_table(outcomes).find('\x1b') == std::string::npos);
    (void)gates_json(outcomes).dump(-1, ' ', false,
                                    nlohmann::ordered_json::error_handler_t::ignore);
  });
  refuses_only_with<DataError>([&] { (void)read_baseline(file.path()); });
  return 0;
}
