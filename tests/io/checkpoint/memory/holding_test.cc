#include "io/checkpoint/memory/holding.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

HeldStep held(std::int64_t step, const char* flags) {
  HeldStep h;
  h.name = {step, 1};
  for (const char* flag = flags; *flag != '\0'; ++flag) {
    h.is_whole |= *flag == 'w' || *flag == 'c';
    h.is_copied |= *flag == 'c';
    h.is_pinned |= *flag == 'p';
  }
  return h;
}

struct Case {
  std::vector<const char*> flags;  // w: whole, c: whole and copied, p: pinned; the oldest first
  int given_up;                    // -1: none
};

TEST(Holding, GivesUpWhatNobodyNeeds) {
  const std::vector<Case> cases = {
      {{}, -1},
      {{"w"}, -1},
      {{""}, 0},
      {{"w", "w", "w"}, 0},
      {{"c", "w", "w"}, 1},  // the only one that partners have stays
      {{"c", "c", "w"}, 0},
      {{"w", "c", "w"}, 0},
      {{"w", "w", ""}, 2},  // a failed attempt goes first
      {{"", "w", "w"}, 0},
      {{"wp", "w", "w"}, 1},  // still being read
      {{"cp", "w", "w"}, 1},
      {{"c", "wp", "w"}, -1},  // copied, pinned, newest: each is needed
      {{"c", "w", "wp"}, 1},
      {{"p", "w", "w"}, 1},
      {{"p", "c", "w"}, -1},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::vector<HeldStep> steps;
    for (const char* flags : cases[i].flags) {
      steps.push_back(held(static_cast<std::int64_t>(steps.size()), flags));
    }
    const auto given_up = step_to_give_up(steps);
    EXPECT_EQ(given_up ? static_cast<int>(*given_up) : -1, cases[i].given_up) << "case " << i;
  }
}

// Whatever happens, the newest whole step and the newest copied one are never given up.
TEST(Holding, NeverTheNewest) {
  const std::vector<const char*> all = {"", "p", "w", "wp", "c", "cp"};
  for (std::size_t n = 0; n < 216; ++n) {
    const std::vector<HeldStep> steps = {held(1, all[n % 6]), held(2, all[n / 6 % 6]),
                                         held(3, all[n / 36])};
    const auto given_up = step_to_give_up(steps);
    if (!given_up) {
      continue;
    }
    EXPECT_FALSE(steps[*given_up].is_pinned);
    if (!steps[*given_up].is_whole) {
      continue;
    }
    bool newer_whole = false;
    bool newer_copied = false;
    for (std::size_t i = *given_up + 1; i < steps.size(); ++i) {
      newer_whole |= steps[i].is_whole;
      newer_copied |= steps[i].is_copied;
    }
    EXPECT_TRUE(newer_whole) << n;
    EXPECT_TRUE(newer_copied || !steps[*given_up].is_copied) << n;
  }
}

}  // namespace
}  // namespace trireme
