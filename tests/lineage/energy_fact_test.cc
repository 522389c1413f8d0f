#include "src/lineage/energy_fact.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace trireme {
namespace {

using nlohmann::json;

Provenance with_energy(const json& energy) {
  Provenance provenance;
  (*provenance.details)["energy"] = energy;
  return provenance;
}

TEST(EnergyFact, SaysWhatIsKnownAndWhatIsNot) {
  EXPECT_EQ(energy_fact(Provenance()), "");
  EXPECT_EQ(energy_fact(with_energy({{"cpu_joules", 812.5}, {"since", "2026-11-28T00:00:00Z"}})),
            "processors 812.5 J since 2026-11-28T00:00:00Z");
  EXPECT_EQ(energy_fact(with_energy({{"cpu_joules", 0}, {"gpu_joules", 1234567.25}})),
            "processors 0 J, GPUs 1234567.25 J");
  EXPECT_EQ(energy_fact(
                with_energy({{"cpu_joules", nullptr}, {"gpu_joules", 3}, {"unknown", "no RAPL"}})),
            "processors not known, GPUs 3 J: no RAPL");
}

TEST(EnergyFact, BelievesNoOtherForms) {
  for (const json& energy : {json(7), json("7 J"), json::array({7}), json()}) {
    EXPECT_EQ(energy_fact(with_energy(energy)), "");
  }
  for (const json& joules : {json(-1), json("7"), json::object(), json(true)}) {
    EXPECT_EQ(energy_fact(with_energy({{"cpu_joules", joules}, {"unknown", 3}})),
              "processors not known");
  }
}

std::vector<SignedStatement> chain(const std::vector<json>& energies) {
  std::vector<SignedStatement> statements;
  for (const json& energy : energies) {
    statements.push_back({"", with_energy(energy), {}, {}});
    statements.back().signature.state = SignatureState::trusted;
  }
  return statements;
}

TEST(EnergyWithAncestors, IsTheSumOfWhatEachHasUsed) {
  const json cpu = {{"cpu_joules", 10}};
  const json both = {{"cpu_joules", 2}, {"gpu_joules", 30.5}};
  EXPECT_EQ(energy_with_ancestors({}), "");
  EXPECT_EQ(energy_with_ancestors(chain({cpu})), "");
  EXPECT_EQ(energy_with_ancestors(chain({cpu, both})), "with that of 1 ancestor: 42.5 J");
  EXPECT_EQ(energy_with_ancestors(chain({cpu, cpu, cpu})), "with that of 2 ancestors: 30 J");
  EXPECT_EQ(energy_with_ancestors(chain({json(), cpu})), "");
}

TEST(EnergyWithAncestors, IsNotKnownIfAPartIsNot) {
  const json cpu = {{"cpu_joules", 10}};
  const std::string unknown = "with that of 1 ancestor: not known";
  EXPECT_EQ(energy_with_ancestors(chain({cpu, json()})), unknown);
  EXPECT_EQ(energy_with_ancestors(chain({cpu, {{"cpu_joules", nullptr}}})), unknown);
  EXPECT_EQ(energy_with_ancestors(chain({{{"cpu_joules", 1}, {"gpu_joules", nullptr}}, cpu})),
            unknown);
  std::vector<SignedStatement> untrusted = chain({cpu, cpu});
  untrusted.back().signature.state = SignatureState::none;
  EXPECT_EQ(energy_with_ancestors(untrusted), unknown);
  std::vector<SignedStatement> cut = chain({cpu, cpu});
  cut.back().provenance.materials = {{"parent", "file:///gone", ""}};
  EXPECT_EQ(energy_with_ancestors(cut), unknown);
}

}  // namespace
}  // namespace trireme
