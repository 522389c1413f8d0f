#include "slurm/agent/copy_receiver.h"

#include <optional>

#include <poll.h>

#include "slurm/agent/copy_messages.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr int kReceiveLookMilliseconds = 200;
constexpr double kReceivePatienceSeconds = 20;

// Returns the next payload, or nullopt if the sender is gone or silent, or if the agent stops.
std::optional<std::string> next_payload(Connection& from, const std::atomic<bool>& stop) {
  constexpr double kLookSeconds = 0.2;
  for (double waited = 0; waited < kReceivePatienceSeconds && !stop && !from.closed();
       waited += kLookSeconds) {
    if (auto payload = from.receive_one(kLookSeconds)) {
      return payload;
    }
  }
  return std::nullopt;
}

// A copy that is being received into a temporary folder. The destructor removes the folder unless
// keep() has renamed it.
class Incoming {
 public:
  Incoming(const fs::path& partner, CopyBegin begin)
      : begin_(std::move(begin)),
        folder_(partner / begin_.node),
        draft_(folder_ / (".tmp-" + begin_.step)) {
    make_directories(folder_);
    fs::remove_all(draft_);
    make_directories(draft_);
  }
  ~Incoming() {
    std::error_code gone;
    fs::remove_all(draft_, gone);
  }
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  void take(const CopyFile& file, Connection& from, const std::atomic<bool>& stop) const {
    File out = File::create_new(draft_ / file.name);
    out.reserve(file.bytes);
    Xxh3 digest;
    for (std::int64_t at = 0; at < file.bytes;) {
      const auto chunk = next_payload(from, stop);
      if (!chunk || static_cast<std::int64_t>(chunk->size()) > file.bytes - at || chunk->empty()) {
        throw DataError(fmt::format("{} from {} ended after {} of {} bytes", file.name, begin_.node,
                                    at, file.bytes));
      }
      digest.update(chunk->data(), static_cast<std::int64_t>(chunk->size()));
      out.write(chunk->data(), static_cast<std::int64_t>(chunk->size()));
      at += static_cast<std::int64_t>(chunk->size());
    }
    out.close();
    if (digest.value() != file.digest) {
      throw DataError(fmt::format("{} from {} was changed on the way: its digest does not match",
                                  file.name, begin_.node));
    }
  }

  void keep() const {
    fs::remove_all(folder_ / begin_.step);
    fs::rename(draft_, folder_ / begin_.step);
    for (const auto& entry : fs::directory_iterator(folder_)) {
      const std::string name = entry.path().filename();
      if (is_memory_step_name(name) && age_of(name) < age_of(begin_.step)) {
        // Rename the old step first, so that a partly removed folder never looks like a step. The
        // ranks remove old copies, too, and may have been faster.
        const fs::path trash = folder_ / (".trash-" + name);
        std::error_code gone;
        fs::rename(entry.path(), trash, gone);
        fs::remove_all(trash, gone);
      }
    }
  }

 private:
  CopyBegin begin_;
  fs::path folder_;
  fs::path draft_;
};

void take_step(const fs::path& partner, const std::string& sender, Connection& from,
               const std::atomic<bool>& stop) {
  std::optional<Incoming> incoming;
  while (!stop) {
    const auto text = next_payload(from, stop);
    if (!text) {
      throw DataError("the sender closed the connection");
    }
    const CopyMessage message = parse_copy_message(*text);
    if (const auto* begin = std::get_if<CopyBegin>(&message); begin != nullptr && !incoming) {
      if (begin->node != sender) {
        throw DataError(fmt::format("{} sent a checkpoint of {}: a node may send only its own",
                                    sender, begin->node));
      }
      incoming.emplace(partner, *begin);
    } else if (const auto* file = std::get_if<CopyFile>(&message); file != nullptr && incoming) {
      incoming->take(*file, from, stop);
    } else if (std::holds_alternative<CopyEnd>(message) && incoming) {
      incoming->keep();
      return;
    } else {
      throw DataError("the messages of a copied checkpoint are out of order");
    }
  }
}

}  // namespace

CopyReceiver::CopyReceiver(fs::path node_folder, LaunchSecret secret, const std::string& address,
                           PortRange ports)
    : partner_(node_folder / "memory" / "partner"),
      gate_(address, ports, std::move(secret)),
      thread_([this] { work(); }) {}

CopyReceiver::~CopyReceiver() {
  stop_ = true;
  thread_.join();
}

void CopyReceiver::work() {
  while (!stop_) {
    std::vector<pollfd> waiting;
    gate_.add_to(waiting);
    ::poll(waiting.data(), waiting.size(), gate_.patience(kReceiveLookMilliseconds));
    for (Gate::Caller& caller : gate_.look()) {
      serve(std::move(caller));
    }
  }
}

void CopyReceiver::serve(Gate::Caller caller) const {
  constexpr double kPartSeconds = 3;
  if (caller.hello.role != "copy") {
    return;
  }
  Connection& connection = caller.connection;
  CopyDone done;
  try {
    connection.trust();
    connection.send(caller.welcome);
    take_step(partner_, caller.hello.node, connection, stop_);
    done.whole = true;
  } catch (const std::exception& error) {
    done.why = error.what();
  }
  connection.send(to_json(done));
  connection.part(kPartSeconds);
}

}  // namespace trireme
