#include "slurm/agent/copy_sender.h"

#include <map>
#include <sstream>

#include <nlohmann/json.hpp>

#include "slurm/agent/copy_messages.h"
#include "src/base/digest.h"
#include "src/base/json_fields.h"
#include "src/base/keys_name.h"
#include "src/base/say.h"
#include "src/base/sealed_json.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr double kLookSeconds = 0.2;
constexpr double kSendPatienceSeconds =
    20;  // seconds for the partner to read a chunk, or to answer
constexpr std::int64_t kMostManifestBytes = std::int64_t{256} << 20;
constexpr std::int64_t kManifestVersion = 3;
constexpr std::string_view kWantsCopy = "WANTS_COPY";
constexpr std::string_view kCopied = "COPIED";
constexpr std::int64_t kMostListBytes = std::int64_t{1} << 20;

bool is_wanted(const fs::path& step) {
  std::error_code gone;
  return fs::exists(step / kWantsCopy, gone);
}

// The shards that the ranks have asked to be copied. The list comes from their request rather than
// from the folder, so that a missing shard is an error.
std::vector<std::string> shards_of(const fs::path& step) {
  std::istringstream lines(
      read_file(step / (is_wanted(step) ? kWantsCopy : kCopied), kMostListBytes));
  std::vector<std::string> shards;
  for (std::string line; std::getline(lines, line);) {
    if (!is_step_file_name(line)) {
      throw DataError(fmt::format(
          "{}: the list of files to copy names '{}', which is not a file of a checkpoint",
          step.string(), line));
    }
    shards.push_back(line);
  }
  return shards;
}

// Returns the newest of the steps that have been copied or are still to be copied.
fs::path newest_step(const fs::path& own) {
  fs::path newest;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(own, gone)) {
    const std::string name = entry.path().filename();
    if (is_memory_step_name(name) && age_of(name) > age_of(newest.filename().string()) &&
        (fs::exists(entry.path() / kWantsCopy, gone) || fs::exists(entry.path() / kCopied, gone))) {
      newest = entry.path();
    }
  }
  return newest;
}

}  // namespace

void CopySender::send_file(Connection& to, const fs::path& path, std::uint64_t digest) const {
  const File file = File::open_to_read(path);
  const std::int64_t bytes = file.size();
  to.send(to_json(CopyFile{path.filename(), bytes, digest}));
  std::string chunk;
  Xxh3 sent;
  for (std::int64_t at = 0; at < bytes; at += static_cast<std::int64_t>(chunk.size())) {
    chunk.resize(static_cast<std::size_t>(std::min(kCopyChunkBytes, bytes - at)));
    file.read_exactly_at(at, chunk.data(), static_cast<std::int64_t>(chunk.size()));
    sent.update(chunk.data(), static_cast<std::int64_t>(chunk.size()));
    to.send(chunk);
    drain(to);
  }
  if (sent.value() != digest) {
    throw DataError(fmt::format("{} does not match the digest in its manifest", path.string()));
  }
}

void CopySender::drain(Connection& to) const {
  double waited = 0;
  while (!to.drain(kLookSeconds)) {
    waited += kLookSeconds;
    if (waited > kSendPatienceSeconds || to.closed() || has_new_order()) {
      throw IoError("the partner stopped receiving");
    }
  }
}

std::optional<std::string> CopySender::answer_of(Connection& to) const {
  std::optional<std::string> answer;
  for (double waited = 0;
       !answer && waited < kSendPatienceSeconds && !to.closed() && !has_new_order();
       waited += kLookSeconds) {
    answer = to.receive_one(kLookSeconds);
  }
  return answer;
}

CopySender::CopySender(fs::path node_folder, std::string node, LaunchSecret secret)
    : own_(node_folder / "memory" / "own"),
      node_(std::move(node)),
      secret_(std::move(secret)),
      thread_([this] { work(); }) {}

CopySender::~CopySender() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    ++orders_;
  }
  changed_.notify_all();
  thread_.join();
}

void CopySender::set_partner(Partner partner) {
  const std::lock_guard lock(mutex_);
  if (partner.node != partner_.node || partner.port != partner_.port) {
    ++orders_;
  }
  partner_ = std::move(partner);
  changed_.notify_all();
}

std::string CopySender::trouble() const {
  const std::lock_guard lock(mutex_);
  return trouble_;
}

void CopySender::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const Partner partner = partner_;
    followed_ = orders_;
    if (!partner.node.empty()) {
      lock.unlock();
      std::string trouble;
      try {
        copy_newest(partner);
      } catch (const std::exception& error) {
        trouble = error.what();
      }
      // A new order may have interrupted the copy, so its failure says nothing about the partner.
      const bool counts = !has_new_order();
      if (counts) {
        report(trouble, partner);
      }
      lock.lock();
      trouble_ = counts ? trouble : trouble_;
    }
    changed_.wait_for(lock, std::chrono::duration<double>(kLookSeconds), [this] { return stop_; });
  }
}

// Reports the first of several failed copies in a row, and the first success after them.
void CopySender::report(const std::string& trouble, const Partner& partner) {
  if (trouble.empty() == reported_) {
    reported_ = !reported_;
    const std::string text =
        trouble.empty()
            ? fmt::format("{} has a copy of the newest checkpoint in memory again", partner.node)
            : fmt::format("cannot copy the newest checkpoint in memory to {}: {}", partner.node,
                          trouble);
    say(fmt::format("trireme launch agent on {}: {}", node_, text));
  }
}

void CopySender::copy_newest(const Partner& partner) {
  const fs::path step = newest_step(own_);
  const bool is_done = step.filename() == done_step_ && partner.node == done_partner_ &&
                       partner.port == done_port_ && !is_wanted(step);
  if (step.empty() || is_done) {
    return;
  }
  copy(step, partner);
  done_step_ = step.filename();
  done_partner_ = partner.node;
  done_port_ = partner.port;
  // The rename fails harmlessly if a newer step has replaced the folder meanwhile.
  std::error_code gone;
  fs::rename(step / kWantsCopy, step / kCopied, gone);
}

void CopySender::copy(const fs::path& step, const Partner& partner) const {
  constexpr double kConnectSeconds = 3;
  const std::string text = read_file(step / "manifest.json", kMostManifestBytes);
  const nlohmann::json manifest = unseal_json(text, kManifestVersion);
  const std::vector<std::string> shards = shards_of(step);
  std::map<std::string, std::uint64_t> digests;
  for (const nlohmann::json& shard : array_field(manifest, "shards")) {
    digests[text_field(shard, "file")] = parse_hex64(text_field(shard, "xxh3"));
  }
  Refusal refusal;
  auto connection = call(partner.addresses, partner.port, secret_, {.role = "copy", .node = node_},
                         kConnectSeconds, &refusal);
  if (!connection) {
    throw IoError(fmt::format("the agent on {} does not answer{}{}", partner.node,
                              refusal.why.empty() ? "" : ": ", refusal.why));
  }
  connection->send(to_json(CopyBegin{node_, step.filename()}));
  for (const std::string& name : shards) {
    const auto entry = digests.find(name);
    if (entry == digests.end()) {
      throw DataError(fmt::format("the manifest of {} does not list {}", step.string(), name));
    }
    send_file(*connection, step / name, entry->second);
  }
  if (manifest.contains("encryption")) {
    const std::string keys = read_file(step / kKeysFileName, kMostManifestBytes);
    send_file(*connection, step / kKeysFileName,
              xxh3(keys.data(), static_cast<std::int64_t>(keys.size())));
  }
  send_file(*connection, step / "manifest.json",
            xxh3(text.data(), static_cast<std::int64_t>(text.size())));
  connection->send(to_json(CopyEnd{}));
  drain(*connection);
  const auto answer = answer_of(*connection);
  const CopyMessage done = answer ? parse_copy_message(*answer) : CopyDone{false, "no answer"};
  if (!std::holds_alternative<CopyDone>(done) || !std::get<CopyDone>(done).whole) {
    throw IoError(fmt::format("{} did not store {}: {}", partner.node, step.filename().string(),
                              std::holds_alternative<CopyDone>(done) ? std::get<CopyDone>(done).why
                                                                     : "an unexpected answer"));
  }
}

}  // namespace trireme
