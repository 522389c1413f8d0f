// A policy of a site for tests, in a folder that only root can change, and checkpoints with labels.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "src/policy/access.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {

class PolicySite {
 public:
  PolicySite() {
    std::string path = "/var/lib/trireme-test-XXXXXX";
    if (::geteuid() == 0 && ::mkdtemp(path.data()) != nullptr) {
      folder_ = path;
      ::chmod(path.c_str(), 0755);
    }
  }
  ~PolicySite() {
    std::error_code ignored;
    if (is_possible()) {
      std::filesystem::remove_all(folder_, ignored);
    }
  }
  PolicySite(const PolicySite&) = delete;
  PolicySite& operator=(const PolicySite&) = delete;

  // False unless the test runs as root; it then prints that and skips.
  bool is_possible() const { return !folder_.empty(); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    ::chmod(path(name).c_str(), 0644);
  }
  // rules: the sections after those about the site itself.
  Access access(const std::string& rules) const {
    write("policy.yaml",
          "version: 1\nsite: {name: north, jurisdiction: AE}\n"
          "classifications: [public, internal, secret]\n" +
              rules);
    return Access::of_this_host(path("policy.yaml"));
  }

 private:
  std::filesystem::path folder_;
};

// Saves a checkpoint with the label that `--label WORD...` would give to a dataset.
inline void save_labelled(const std::filesystem::path& folder, std::int64_t step,
                          const std::vector<std::string>& words, std::uint64_t seed = 1) {
  ThreadWorld(1).run([&](Communicator& comm) {
    const State state = small_state(seed);
    const Blocks blocks = cut_state(state, cut_nothing, 0, 1);
    DiskTarget target(comm, options_for(folder));
    CheckpointWriter writer(comm, target);
    CheckpointMeta meta = meta_of(step);
    meta.label = parse_label(words);
    writer.save(meta, blocks.list);
    ASSERT_TRUE(writer.finish().value().durable);
  });
}

}  // namespace trireme
