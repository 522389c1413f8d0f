// A checkpoint with a label, three people with keys, and `trireme release`.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "src/app/evidence/release_check.h"
#include "src/app/evidence/release_command.h"
#include "src/base/file.h"
#include "src/evidence/keys.h"
#include "tests/app/command_run.h"
#include "tests/app/records/policy_site.h"
#include "tests/support/temp_folder.h"

namespace trireme {

class ReleaseCommand : public testing::Test {
 protected:
  ReleaseCommand() {
    save_labelled(path("checkpoints"), 1, {"classification=internal", "owner=health"});
    for (const char* const name : {"sara", "omar", "eve"}) {
      const SigningKey key = SigningKey::generate();
      key.save(path(std::string(name) + ".key"));
      write(std::string(name) + ".pem",
            "# " + std::string(name) + "\n" + key.public_key().to_pem());
    }
  }
  static CommandRun release(std::vector<std::string> words) {
    words.insert(words.begin(), "release");
    return run_command_line([](CommandLine& app, int&) { add_release_command(app); }, words);
  }
  CommandRun request(const std::string& out = "release.json") const {
    return release({"request", path("checkpoints"), "--out", path(out), "--recipient",
                    "University X", "--reason", "joint paper"});
  }
  CommandRun sign(const std::string& name) const {
    return release({"sign", path("release.json"), "--key", path(name + ".key")});
  }
  CommandRun show(const std::string& trust = "") const {
    std::vector<std::string> words = {"show", path("release.json")};
    if (!trust.empty()) {
      words.insert(words.end(), {"--trust", path(trust)});
    }
    return release(words);
  }
  // Requests a release and changes what it says before anybody signs it.
  void request_with(const std::string& field, const nlohmann::json& value) const {
    std::filesystem::remove(path("release.json"));
    request();
    const Envelope asked = parse_envelope(text_of("release.json"), "release.json");
    nlohmann::json payload = nlohmann::json::parse(asked.payload);
    payload[field] = value;
    write("release.json",
          to_text(make_envelope(asked.payload_type, payload.dump(), nullptr)) + "\n");
  }
  // Signs on a host that does not have the checkpoint.
  void sign_elsewhere(const std::string& name) const {
    std::filesystem::rename(path("checkpoints"), path("elsewhere"));
    EXPECT_EQ(sign(name).code, 0);
    std::filesystem::rename(path("elsewhere"), path("checkpoints"));
  }
  std::string text_of(const std::string& name) const { return read_file(path(name)); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TempFolder folder_;
};

}  // namespace trireme
