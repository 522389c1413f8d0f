#include "slurm/launch/fleet.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>

#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/say.h"

namespace trireme {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string joined_addresses() { return fmt::format("{}", fmt::join(own_addresses(), ",")); }

// Returns the words that give the setting to agents and deputies.
std::vector<std::string> words_of(const TlsSetting& tls) {
  if (!tls.is_on) {
    return {"--plain"};
  }
  return tls.uses_certificates()
             ? std::vector<std::string>{"--tls-certificate", tls.certificate, "--tls-key", tls.key,
                                        "--tls-ca",          tls.ca}
             : std::vector<std::string>{};
}

bool ended(const std::unique_ptr<Child>& child) { return child && child->poll(); }

}  // namespace

Fleet::Fleet(LaunchSetting setting, std::string secret, std::string health)
    : setting_(std::move(setting)),
      secret_(std::move(secret)),
      health_(std::move(health)),
      gate_(setting_.reach == Reach::local ? "127.0.0.1" : "0.0.0.0", setting_.ports,
            {secret_, setting_.tls}) {}

Fleet::~Fleet() = default;

std::vector<std::string> Fleet::agent_words(const std::string& node, bool check_health) const {
  std::vector<std::string> words = {
      "launch",      "agent",
      "--launch",    setting_.launch,
      "--node",      node,
      "--port",      fmt::format("{}", gate_.port()),
      "--addresses", setting_.reach == Reach::local ? "127.0.0.1" : joined_addresses()};
  if (setting_.ports.first > 0) {
    words.insert(words.end(),
                 {"--ports", fmt::format("{}-{}", setting_.ports.first, setting_.ports.last)});
  }
  const std::vector<std::string> tls = words_of(setting_.tls);
  words.insert(words.end(), tls.begin(), tls.end());
  if (check_health && !health_.empty()) {
    words.insert(words.end(), {"--health", health_});
  }
  return words;
}

// The agent may outlive the supervisor, because it cleans up after it.
std::unique_ptr<Child> Fleet::start(const std::string& node,
                                    const std::vector<std::string>& words) {
  const Command command = on_node(setting_, node, words);
  return std::make_unique<Child>(ChildPlan{.argv = command.argv,
                                           .environment = command.environment,
                                           .input = secret_ + "\n",
                                           .own_group = true,
                                           .dies_with_us = false});
}

void Fleet::start_agent(const std::string& node, bool check_health) {
  Member& member = members_[node];
  const bool had_partner = member.wants_partner;
  const std::string partner = member.partner;
  member = Member{};
  member.wants_partner = had_partner;
  member.partner = partner;
  try {
    member.starter = start(node, agent_words(node, check_health));
  } catch (const Error& error) {
    failures_.push_back({node, std::nullopt, error.what()});
  }
}

void Fleet::drop(const std::string& node) {
  constexpr double kCleanUpSeconds = 15;
  if (deputy_node_ == node) {
    dismiss_deputy();  // a node that is cut off would otherwise keep the deputy's place for long
  }
  const auto found = members_.find(node);
  if (found == members_.end()) {
    return;
  }
  Member& member = found->second;
  if (member.connection) {
    member.connection->send(to_json(Order{.kind = Order::Kind::bye}));
    if (member.starter) {
      leaving_.emplace_back(std::move(member.starter), now() + kCleanUpSeconds);
    }
  }
  members_.erase(found);
}

void Fleet::order(const std::string& node, const Order& order) {
  const auto found = members_.find(node);
  if (found != members_.end() && found->second.connection) {
    found->second.connection->send(to_json(order));
  }
}

void Fleet::set_partner(const std::string& node, const std::string& partner) {
  const auto found = members_.find(node);
  if (found != members_.end()) {
    found->second.partner = partner;
    found->second.wants_partner = true;
    send_partner(node);
  }
}

void Fleet::send_partner(const std::string& node) {
  const Member& member = members_.at(node);
  const auto found = members_.find(member.partner);
  Order message{.kind = Order::Kind::partner};
  if (found != members_.end() && found->second.connection) {
    message.node = member.partner;
    message.port = found->second.hello.port;
    message.addresses = found->second.hello.addresses;
  }
  order(node, message);
}

void Fleet::ping_all() {
  for (auto& [node, member] : members_) {
    order(node, {});
  }
  if (deputy_.connection) {
    deputy_.connection->send(to_json(Order{}));
  }
}

// Says goodbye first: a deputy that only lost its connection would requeue the job.
void Fleet::dismiss_deputy() {
  if (deputy_.connection) {
    deputy_.connection->send(to_json(Order{.kind = Order::Kind::bye}));
  }
  deputy_ = Member{};
  deputy_node_.clear();
}

void Fleet::want_deputy(const std::string& node, const std::string& job) {
  dismiss_deputy();
  deputy_node_ = node;
  std::vector<std::string> words = {
      "launch",      "deputy",           "--job",  job, "--port", fmt::format("{}", gate_.port()),
      "--addresses", joined_addresses(), "--node", node};
  const std::vector<std::string> tls = words_of(setting_.tls);
  words.insert(words.end(), tls.begin(), tls.end());
  try {
    deputy_.starter = start(node, words);
  } catch (const Error&) {
    // The supervisor will try the next node.
  }
}

void Fleet::add_to(std::vector<pollfd>& waiting) const {
  const auto add = [&](const Connection& connection) {
    const int events = POLLIN | (connection.wants_to_write() ? POLLOUT : 0);
    waiting.push_back({connection.fd(), static_cast<short>(events), 0});
  };
  gate_.add_to(waiting);
  for (const auto& [node, member] : members_) {
    if (member.connection) {
      add(*member.connection);
    }
  }
  if (deputy_.connection) {
    add(*deputy_.connection);
  }
}

std::vector<FleetNews> Fleet::look() {
  std::vector<FleetNews> news = std::exchange(failures_, {});
  for (Gate::Caller& caller : gate_.look()) {
    admit(std::move(caller));
  }
  for (auto& [node, member] : members_) {
    hear(node, member, news);
  }
  hear_deputy();
  std::erase_if(leaving_, [](const auto& one) { return ended(one.first) || now() > one.second; });
  return news;
}

void Fleet::admit(Gate::Caller caller) {
  const Hello& hello = caller.hello;
  const auto found = members_.find(hello.node);
  Member* const member = hello.role == "deputy"                             ? &deputy_
                         : hello.role == "agent" && found != members_.end() ? &found->second
                                                                            : nullptr;
  if (member == nullptr) {
    say(fmt::format("trireme launch: refused the {} on {}: this launch does not use that node",
                    hello.role, hello.node));
    return;
  }
  if (hello.role == "deputy" && (hello.node != deputy_node_ || deputy_.connection)) {
    caller.connection.send(caller.welcome);
    caller.connection.send(to_json(Order{.kind = Order::Kind::bye}));
    return;  // another deputy has taken its place meanwhile
  }
  member->connection = std::make_unique<Connection>(std::move(caller.connection));
  member->connection->trust();
  member->connection->send(caller.welcome);
  member->hello = hello;
  if (hello.role == "agent") {
    // Send the new agent its own order, and repeat the orders of the nodes that copy to it, since
    // its port has changed.
    for (const auto& [node, other] : members_) {
      if (other.wants_partner && (node == hello.node || other.partner == hello.node)) {
        send_partner(node);
      }
    }
  }
}

void Fleet::hear(const std::string& node, Member& member, std::vector<FleetNews>& news) {
  if (!member.connection) {
    if (ended(member.starter)) {
      news.push_back(
          {node, std::nullopt,
           fmt::format("its process exited with code {}", member.starter->poll().value_or(0))});
      member.starter.reset();
    }
    return;
  }
  try {
    for (const std::string& text : member.connection->receive()) {
      news.push_back({node, parse_agent_report(text), ""});
    }
    member.connection->flush();
  } catch (const DataError& error) {
    news.push_back({node, std::nullopt, error.what()});
    member.connection.reset();
    return;
  }
  if (member.connection->closed()) {
    const std::string why = member.connection->trouble().why;
    member.connection.reset();
    member.starter.reset();
    news.push_back(
        {node, std::nullopt, "its connection was closed" + (why.empty() ? "" : ": " + why)});
  }
}

void Fleet::hear_deputy() {
  try {
    if (deputy_.connection) {
      (void)deputy_.connection->receive();
      deputy_.connection->flush();
    }
  } catch (const DataError&) {
    deputy_ = Member{};
  }
  if ((deputy_.connection && deputy_.connection->closed()) ||
      (!deputy_.connection && ended(deputy_.starter))) {
    deputy_ = Member{};
  }
}

void Fleet::dismiss(double seconds) {
  const double end = now() + seconds;
  const auto say = [](Member& member) {
    if (member.connection && !member.dismissed) {
      member.connection->send(to_json(Order{.kind = Order::Kind::bye, .attempt = 1}));
      member.dismissed = true;
    }
    return member.connection || (member.starter && !member.starter->poll());
  };
  std::set<std::string> restarted;  // an agent that cannot start is not tried for ever
  bool waiting = true;
  while (waiting && now() < end) {
    waiting = say(deputy_) || !leaving_.empty();
    for (auto& [node, member] : members_) {
      waiting = say(member) || waiting;
    }
    for (const FleetNews& news : look()) {
      const auto found = members_.find(news.node);
      if (!news.report && found != members_.end() && !found->second.dismissed &&
          restarted.insert(news.node).second) {
        start_agent(news.node, false);
        waiting = true;
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(waiting ? 10 : 0));
  }
  members_.clear();
  deputy_ = Member{};
  leaving_.clear();
}

}  // namespace trireme
