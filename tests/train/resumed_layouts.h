// What tests of resuming share: that a run goes on with the same bits in another layout.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/train/thread_run.h"

namespace trireme {

struct RunLayout {
  int ranks = 1;
  std::vector<std::string> keys;
};

// Trains three steps in each of the layouts and three more in the next one, and expects the bits of
// six steps without a break. keys_with: returns the run's keys, with more of them.
inline void expect_same_bits_after_resuming(
    const std::vector<RunLayout>& layouts,
    const std::function<std::vector<std::string>(std::vector<std::string>)>& keys_with) {
  ThreadRun whole;
  whole.train(keys_with({}));
  const std::string expected = whole.digest();
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const RunLayout& first = layouts[i];
    const RunLayout& second = layouts[(i + 1) % layouts.size()];
    ThreadRun run;
    std::vector<std::string> half = first.keys;
    half.insert(half.end(), {"train.steps=3", "optimizer.schedule.steps=6"});
    run.train(keys_with(half), first.ranks);
    run.train(keys_with(second.keys), second.ranks);
    EXPECT_EQ(run.digest(), expected) << testing::PrintToString(first.keys);
  }
}

}  // namespace trireme
