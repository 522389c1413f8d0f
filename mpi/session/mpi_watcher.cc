#include "mpi/session/mpi_watcher.h"

#include <charconv>
#include <list>
#include <utility>

#include <mpi.h>
#include <pthread.h>

#include "mpi/session/mpi_check.h"
#include "src/base/error.h"

namespace trireme {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kIdle{100};
constexpr std::chrono::milliseconds kBusy{1};
// No message of a watcher is as long as this.
constexpr int kMostBytes = 1 << 20;

// There are two kinds of messages. Their text is the asker's number of the inquiry, a newline, and
// JSON.
enum Tag : int { kQuestion = 1, kAnswer = 2 };

// A message that is being sent or received.
struct Message {
  MPI_Request request = MPI_REQUEST_NULL;
  int peer = 0;
  int tag = 0;
  std::string text = {};

  bool arrived() {
    int done = 0;
    mpi_check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
};

struct OpenInquiry {
  std::int64_t number = 0;
  FlightQuestion question = {};
  std::vector<std::optional<FlightReport>> answers = {};
  int missing = 0;
  bool sent = false;
};

// Returns number and body, or nothing for a text that no watcher wrote.
std::optional<std::pair<std::int64_t, std::string>> split_message(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at == end || *at != '\n') {
    return std::nullopt;
  }
  return std::pair(number, std::string(at + 1, end));
}

}  // namespace

class MpiWatcher::Listener {
 public:
  explicit Listener(FlightRecorder& recorder);
  ~Listener();
  std::vector<std::optional<FlightReport>> ask(const FlightQuestion& question,
                                               std::chrono::milliseconds patience);

 private:
  void run() noexcept;
  // Makes all the progress that is possible now.
  void round();
  void send_questions();
  void take_messages();
  void handle(const Message& message);
  void send(int to, Tag tag, std::int64_t number, const std::string& body);

  FlightRecorder& recorder_;
  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 0;
  std::list<Message> coming_;   // used by the thread; a list, because MPI keeps addresses in it
  std::list<Message> leaving_;  // used by the thread

  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::list<OpenInquiry> open_;
  std::int64_t next_number_ = 0;
  bool asked_ = false;  // whether a question is to be sent
  bool stopping_ = false;
  bool broken_ = false;
  std::thread thread_;
};

MpiWatcher::Listener::Listener(FlightRecorder& recorder) : recorder_(recorder) {
  mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
  mpi_check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  mpi_check(MPI_Comm_rank(comm_, &rank_), "MPI_Comm_rank");
  mpi_check(MPI_Comm_size(comm_, &size_), "MPI_Comm_size");
  thread_ = std::thread([this] { run(); });
}

// If messages have not been taken yet, MPI still uses their memory and the communicator, so neither
// is freed.
MpiWatcher::Listener::~Listener() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
  if (leaving_.empty() && coming_.empty()) {
    (void)MPI_Comm_free(&comm_);
    return;
  }
  (void)new std::list<Message>(std::move(leaving_));
  (void)new std::list<Message>(std::move(coming_));
}

std::vector<std::optional<FlightReport>> MpiWatcher::Listener::ask(
    const FlightQuestion& question, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto at = open_.insert(open_.end(), OpenInquiry{next_number_++, question});
  at->answers.resize(static_cast<std::size_t>(size_));
  at->missing = size_;
  asked_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, patience, [&] { return at->missing == 0 || broken_; });
  auto answers = std::move(at->answers);
  open_.erase(at);
  return answers;
}

void MpiWatcher::Listener::run() noexcept {
  ::pthread_setname_np(::pthread_self(), "trireme-watch");
  try {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      lock.unlock();
      round();
      lock.lock();
      const bool busy = !open_.empty() || !coming_.empty() || !leaving_.empty();
      changed_.wait_for(lock, busy ? kBusy : kIdle, [this] { return stopping_ || asked_; });
    }
  } catch (const std::exception&) {
    const std::lock_guard lock(mutex_);
    broken_ = true;
    changed_.notify_all();
  }
}

void MpiWatcher::Listener::round() {
  send_questions();
  take_messages();
  for (auto at = coming_.begin(); at != coming_.end();) {
    if (at->arrived()) {
      handle(*at);
      at = coming_.erase(at);
    } else {
      ++at;
    }
  }
  leaving_.remove_if([](Message& message) { return message.arrived(); });
}

// Sends to all ranks, including this one, so that there is only one way.
void MpiWatcher::Listener::send_questions() {
  std::vector<std::pair<std::int64_t, std::string>> questions;
  {
    const std::lock_guard lock(mutex_);
    asked_ = false;
    for (OpenInquiry& inquiry : open_) {
      if (!std::exchange(inquiry.sent, true)) {
        questions.emplace_back(inquiry.number, to_json(inquiry.question));
      }
    }
  }
  for (const auto& [number, text] : questions) {
    for (int rank = 0; rank < size_; ++rank) {
      send(rank, kQuestion, number, text);
    }
  }
}

void MpiWatcher::Listener::take_messages() {
  for (;;) {
    int found = 0;
    MPI_Message matched = MPI_MESSAGE_NULL;
    MPI_Status status;
    mpi_check(MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &found, &matched, &status),
              "MPI_Improbe");
    if (found == 0) {
      return;
    }
    int bytes = 0;
    mpi_check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes < 0 || bytes > kMostBytes) {
      throw CommError("a message between watchers is too long");
    }
    Message& message =
        coming_.emplace_back(Message{MPI_REQUEST_NULL, status.MPI_SOURCE, status.MPI_TAG,
                                     std::string(static_cast<std::size_t>(bytes), '\0')});
    mpi_check(MPI_Imrecv(message.text.data(), bytes, MPI_BYTE, &matched, &message.request),
              "MPI_Imrecv");
  }
}

// Drops a message that can't be parsed, since its sender waits no longer than its patience, and an
// answer to an inquiry that has ended.
void MpiWatcher::Listener::handle(const Message& message) {
  const auto parts = split_message(message.text);
  if (!parts) {
    return;
  }
  try {
    if (message.tag == kQuestion) {
      const FlightQuestion question = parse_flight_question(parts->second);
      recorder_.dump_in_background(question.why);
      send(message.peer, kAnswer, parts->first, to_json(recorder_.answer(question)));
      return;
    }
    FlightReport report = parse_flight_report(parts->second);
    const std::lock_guard lock(mutex_);
    for (OpenInquiry& inquiry : open_) {
      auto& slot = inquiry.answers[static_cast<std::size_t>(message.peer)];
      if (inquiry.number == parts->first && !slot && report.rank == message.peer) {
        slot = std::move(report);
        inquiry.missing -= 1;
        changed_.notify_all();
        return;
      }
    }
  } catch (const DataError&) {
  }
}

void MpiWatcher::Listener::send(int to, Tag tag, std::int64_t number, const std::string& body) {
  Message& message = leaving_.emplace_back(
      Message{MPI_REQUEST_NULL, to, tag, fmt::format("{}\n{}", number, body)});
  mpi_check(MPI_Isend(message.text.data(), static_cast<int>(message.text.size()), MPI_BYTE, to, tag,
                      comm_, &message.request),
            "MPI_Isend");
}

MpiWatcher::MpiWatcher(FlightRecorder& recorder)
    : listener_(std::make_unique<Listener>(recorder)) {}

MpiWatcher::~MpiWatcher() = default;

std::vector<std::optional<FlightReport>> MpiWatcher::ask(const FlightQuestion& question,
                                                         std::chrono::milliseconds patience) {
  return listener_->ask(question, patience);
}

}  // namespace trireme
