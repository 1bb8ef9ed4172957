#include "pilot/services/services.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/policy/verdict.hpp"
#include "pilot/processes/prepare.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/processes/spawn.hpp"
#include "pilot/services/service_socket.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace hpcbatch::pilot {
namespace {

using namespace std::chrono_literals;

constexpr Duration kMeasureServices = 1s;
// What starts faster never comes near its time.
constexpr Duration kWorthKnowing = 10s;
constexpr Duration kServiceFarewell = 2s;  // between TERM and KILL
// So soon after its descriptors a process that ends is reaped.
constexpr Duration kServiceDoubt = 100ms;
// Every pilot on this node sees it.
constexpr const char* kNodesFolder = "/tmp";
constexpr std::size_t kLongestOutputTail = 4096;
constexpr int kMostRounds = 16;
constexpr std::string_view kUsed = "used ";
// Each holds all that it has imported.
constexpr std::size_t kMostServices = 8;

std::string last_line(const std::string& words) {
  const std::size_t end = words.find_last_not_of("\n ");
  if (end == std::string::npos) return {};
  const std::size_t start = words.rfind('\n', end);
  return words.substr(start == std::string::npos ? 0 : start + 1,
                      end - (start == std::string::npos ? 0 : start + 1) + 1);
}

std::string end_of_service(int status, const std::string& words) {
  std::string text = how_it_ended(status);
  if (const std::string line = last_line(words); !line.empty()) text += " (" + line + ")";
  return text;
}

ServiceTerms terms_of(const wire::Service& service) {
  // One that answers sees to its workers itself.
  return {.name = service.name(),
          .memory = service.answers() ? 0 : service.memory(),
          .idle = std::chrono::milliseconds(service.idle_ms()),
          .requests = service.answers() ? 0 : service.requests(),
          .start = std::chrono::milliseconds(service.start_ms()),
          .longest_start = {}};
}

/// What starts it.
std::vector<std::string> command_of(const wire::Service& service) {
  std::vector<std::string> argv(service.argv().begin(), service.argv().end());
  if (!service.answers()) return argv;
  // This program itself, also where its file has been replaced.
  std::vector<std::string> answering{"/proc/self/exe", "answering"};
  const auto add = [&answering](const char* option, std::uint64_t value) {
    answering.insert(answering.end(), {option, std::to_string(value)});
  };
  add("--batch", service.batch());
  add("--instances", service.instances());
  add("--memory", service.memory());
  add("--idle-ms", service.idle_ms());
  add("--requests", service.requests());
  add("--start-ms", service.start_ms());
  add("--devices", service.on_devices() ? 1 : 0);
  answering.emplace_back("--");
  answering.insert(answering.end(), argv.begin(), argv.end());
  return answering;
}

/// With the workers of one that answers.  What another has just forked is as large as it is, and is a
/// task's.
std::uint64_t resident_of(const wire::Service& service, pid_t pid) {
  std::uint64_t all = 0;
  for (const pid_t process :
       service.answers() ? with_descendants({pid}) : std::vector<pid_t>{pid}) {
    if (const auto facts = facts_of(process)) all += facts->resident;
  }
  return all;
}

}  // namespace

Services::~Services() {
  for (Service& service : services_) let_go_of(service);
}

Services::Service& Services::find(const wire::Service& wanted,
                                  std::shared_ptr<const BaseEnvironment> base) {
  std::string key = wanted.SerializeAsString();
  for (Service& service : services_) {
    if (service.key == key && (service.base == base || *service.base == *base)) return service;
  }
  ServiceTerms terms = terms_of(wanted);
  if (const auto known = longest_starts_.find(key); known != longest_starts_.end())
    terms.longest_start = known->second;
  return services_.emplace_back(std::move(key), wanted, std::move(base), std::move(terms));
}

void Services::want(const AttemptId& id, const wire::Service& wanted,
                    std::shared_ptr<const BaseEnvironment> base, Order order) {
  Service& service = find(wanted, std::move(base));
  service.orders[id] = std::move(order);
  service.supervisor.wanted(id);
  due_ = true;
}

void Services::foresee(const AttemptId& id, const wire::Service& service,
                       std::shared_ptr<const BaseEnvironment> base) {
  find(service, std::move(base)).supervisor.foreseen(id);
  foreseen_by_.insert(id);
  due_ = true;
}

void Services::foresee_no_more(const AttemptId& id, Time now) {
  if (foreseen_by_.erase(id) == 0) return;
  for (Service& service : services_) service.supervisor.foreseen_no_more(id, now);
  due_ = true;
}

void Services::forget(const AttemptId& id) {
  for (Service& service : services_) {
    if (service.orders.erase(id) != 0) service.supervisor.forget(id);
  }
}

void Services::suspended(Duration time) {
  for (Service& service : services_) {
    service.supervisor.suspended(time);
    if (service.asked && service.asked->doubted_until) *service.asked->doubted_until += time;
  }
}

std::optional<Time> Services::next() const {
  if (due_) return Time{};
  std::optional<Time> earliest = measure_at_;
  const auto consider = [&earliest](std::optional<Time> time) {
    if (time && (!earliest || *time < *earliest)) earliest = time;
  };
  for (const Service& service : services_) {
    consider(service.supervisor.next());
    if (service.asked) consider(service.asked->doubted_until);
  }
  for (const auto& [pid, kill_at] : ending_) consider(kill_at);
  return earliest;
}

void Services::tick(Time now) {
  due_ = false;
  for (auto& [pid, kill_at] : ending_) {
    if (kill_at > now) continue;
    ::kill(-pid, SIGKILL);
    kill_at = now + kServiceFarewell;
  }
  const bool any_lives = std::any_of(services_.begin(), services_.end(),
                                     [](const Service& service) { return service.pid > 0; });
  if (!any_lives) {
    measure_at_.reset();
  } else if (!measure_at_ || *measure_at_ <= now) {
    measure_at_ = now + kMeasureServices;
    for (Service& service : services_) {
      if (service.pid <= 0) continue;
      service.resident = resident_of(service.definition, service.pid);
      service.supervisor.uses(service.resident, now);
    }
  }
  for (Service& service : services_) {
    if (service.asked && service.asked->doubted_until && *service.asked->doubted_until <= now) {
      close_ask(service);
      service.supervisor.unserved("the process that it forked died", now);
    }
    act(service, now);
  }
  services_.remove_if([this, now](const Service& service) {
    if (service.pid > 0 || !service.orders.empty() || !service.supervisor.is_forgettable(now))
      return false;
    if (service.supervisor.longest_start() > kWorthKnowing) {
      Duration& longest = longest_starts_[service.key];
      longest = std::max(longest, service.supervisor.longest_start());
    }
    return true;
  });
}

void Services::act(Service& service, Time now) {
  struct {
    Services& services;
    Service& service;
    Time now;
    void operator()(const ServiceSupervisor::Start&) const { services.start(service, now); }
    void operator()(const ServiceSupervisor::Ask& a) const { services.ask(service, a.id, now); }
    void operator()(const ServiceSupervisor::End& a) const { services.end(service, a.why); }
    void operator()(const ServiceSupervisor::Plain& a) const {
      if (service.orders.erase(a.id) == 0) return;
      services.callbacks_.plain(
          a.id, "ran without its service " + service.definition.name() + ": " + a.why);
    }
    void operator()(const ServiceSupervisor::HandBack& a) const {
      services.hand_back(service, a.id);
    }
  } visitor{*this, service, now};
  for (auto actions = service.supervisor.decide(now); !actions.empty();
       actions = service.supervisor.decide(now)) {
    for (ServiceSupervisor::Action& action : actions) std::visit(visitor, action);
  }
  look_after_start(service);
}

void Services::hand_back(Service& service, const AttemptId& id) {
  if (service.orders.erase(id) != 0) callbacks_.handed_back(id);
}

/// Whether it is one of those that take long, and whose turn it is to import.
void Services::look_after_start(Service& service) {
  if (!service.supervisor.is_starting()) service.turn.end();
  if (service.supervisor.takes_long() == service.told_slow) return;
  service.told_slow = service.supervisor.takes_long();
  ++changes_;
}

std::size_t Services::living() const {
  return static_cast<std::size_t>(std::count_if(
      services_.begin(), services_.end(), [](const Service& service) { return service.pid > 0; }));
}

std::set<std::string> Services::names() const {
  std::set<std::string> names;
  for (const Service& service : services_)
    if (service.pid > 0 && !service.supervisor.takes_long())
      names.insert(service.definition.name());
  return names;
}

std::set<std::string> Services::slow_starters() const {
  std::set<std::string> names;
  for (const Service& service : services_)
    if (service.supervisor.takes_long()) names.insert(service.definition.name());
  return names;
}

bool Services::is_any_awaited() const {
  return std::any_of(services_.begin(), services_.end(),
                     [](const Service& service) { return service.supervisor.is_awaited(); });
}

std::uint64_t Services::memory() const {
  std::uint64_t all = 0;
  for (const Service& service : services_) all += service.pid > 0 ? service.resident : 0;
  return all;
}

void Services::end_idle(std::size_t most) {
  for (Service& service : services_) {
    if (living() <= most) return;
    if (service.pid > 0 && service.orders.empty() && !service.asked &&
        !service.supervisor.is_awaited()) {
      service.supervisor.end_asked();
      act(service, clock_now());
    }
  }
}

void Services::start(Service& service, Time now) {
  const wire::Service& what = service.definition;
  if (!service.turn.begin(kNodesFolder, service.key) && service.supervisor.may_wait_for_turn(now))
    return service.supervisor.not_yet(now);
  end_idle(kMostServices - 1);
  if (living() >= kMostServices)
    return service.supervisor.not_started("this pilot keeps as many services as it may", now);
  Fd theirs;
  int pipe[2] = {-1, -1};
  if (!socket_pair(service.control, theirs) || ::pipe2(pipe, O_CLOEXEC) != 0) {
    service.control.reset();
    return service.supervisor.not_started(std::strerror(errno), now);
  }
  service.output = Fd(pipe[0]);
  const Fd writing(pipe[1]);
  ::fcntl(service.output.get(), F_SETFL, O_NONBLOCK);

  std::map<std::string, std::string> variables{{"HPCBATCH_SERVICE", what.name()},
                                               {"HPCBATCH_SERVICE_HEARS", "starting"}};
  for (const wire::Variable& variable : what.variables())
    variables[variable.name()] = variable.value();
  TaskEnvironment environment(service.base, variables);
  std::vector<std::string> argv = command_of(what);
  const std::vector<std::string> paths = candidates(argv.front(), environment.find("PATH"));
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (std::string& argument : argv) arguments.push_back(argument.data());
  arguments.push_back(nullptr);

  SpawnPlan plan;
  for (const std::string& path : paths) plan.programs.push_back(path.c_str());
  plan.argv = arguments.data();
  plan.environment = environment.pointers();
  plan.directory = "/";
  plan.standard_input = theirs.get();
  plan.standard_output = writing.get();
  plan.standard_error = writing.get();
  const Spawned spawned = spawn(plan);
  if (spawned.pid < 0) {
    service.control.reset();
    service.output.reset();
    return service.supervisor.not_started(
        "cannot run " + what.argv(0) + ": " + std::strerror(spawned.error), now);
  }
  service.pid = spawned.pid;
  ++changes_;
  service.resident = 0;
  service.output_tail.clear();
  task_processes_.ours(service.pid);
  loop_.watch(service.control.get(), EPOLLIN,
              [this, &service](std::uint32_t) { hear(service, clock_now()); });
  loop_.watch(service.output.get(), EPOLLIN,
              [this, &service](std::uint32_t) { keep_words(service); });
  log_line("service " + what.name() + " starts (process " + std::to_string(service.pid) + ")");
}

void Services::ask(Service& service, const AttemptId& id, Time now) {
  // It has gone, which is told when it is reaped.
  if (!service.control) return;
  const auto order = service.orders.find(id);
  if (order == service.orders.end()) return service.supervisor.served(now);
  Fd theirs;
  Asked asked{id, {}, {}};
  const Fd request = in_memory(order->second.request);
  if (!request || !socket_pair(asked.reply, theirs))
    return service.supervisor.unserved(
        std::string("the pilot cannot ask it: ") + std::strerror(errno), now);
  const int yes = 1;
  ::setsockopt(asked.reply.get(), SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes);
  const Order& what = order->second;
  std::vector<int> fds{request.get(), theirs.get(), what.standard_input, what.standard_output,
                       what.standard_error};
  if (what.control_group >= 0) fds.push_back(what.control_group);
  if (!send_with_descriptors(service.control.get(), "run", fds)) {
    // Its end is told when it is reaped.
    if (errno == EPIPE || errno == ECONNRESET) return;
    return service.supervisor.unserved(
        std::string("the pilot cannot ask it: ") + std::strerror(errno), now);
  }
  service.asked = std::move(asked);
  loop_.watch(service.asked->reply.get(), EPOLLIN,
              [this, &service](std::uint32_t) { hear_reply(service, clock_now()); });
}

void Services::hear(Service& service, Time now) {
  for (int round = 0; service.control && round < kMostRounds; ++round) {
    const auto heard = receive(service.control.get(), false);
    if (!heard) return;
    due_ = true;
    if (heard->is_end) {
      // It reads no more requests; its end is told when it is reaped, and what it forked last is in
      // its group.
      close_ask(service);
      loop_.forget(service.control.get());
      service.control.reset();
      ::kill(-service.pid, SIGKILL);
    } else if (heard->text == "ready") {
      service.supervisor.ready(now);
    } else if (heard->text.starts_with("starting")) {
      service.supervisor.lives(now);
    } else if (heard->text == "busy" || heard->text == "free") {
      service.supervisor.works(heard->text == "busy", now);
    } else if (heard->text.starts_with(kUsed)) {
      hear_use(heard->text.substr(kUsed.size()));
    } else if (heard->text == "renewing") {
      log_line("service " + service.definition.name() +
               " starts itself anew: what it has loaded has changed");
      service.supervisor.renewing(now);
    } else {
      log_line("service " + service.definition.name() +
               " says what nobody understands: " + heard->text.substr(0, 100));
    }
  }
}

/// `PID CPU_US PEAK`: what a task took of its service.
void Services::hear_use(const std::string& text) {
  char* at = nullptr;
  const auto pid = static_cast<pid_t>(std::strtol(text.c_str(), &at, 10));
  const std::uint64_t cpu_us = std::strtoull(at, &at, 10);
  callbacks_.used(pid, cpu_us, std::strtoull(at, nullptr, 10));
}

void Services::hear_reply(Service& service, Time now) {
  auto heard = receive(service.asked->reply.get(), true);
  if (!heard) return;
  due_ = true;
  if (heard->is_end) return doubt(service, now);
  const AttemptId id = service.asked->id;
  ServiceReply reply = read_reply(heard->text);
  if (std::holds_alternative<Here>(reply)) {
    const auto facts = heard->sender > 0 ? facts_of(heard->sender) : std::nullopt;
    const bool is_handed_over = facts && !facts->is_zombie && facts->parent == ::getpid() &&
                                !task_processes_.is_ours(heard->sender);
    // Its own group from here on: all of it is ended with the task.
    if (!is_handed_over || ::setpgid(heard->sender, heard->sender) != 0)
      reply = CannotServe{"the process that it forked was not handed over"};
  }
  if (const auto* why = std::get_if<CannotServe>(&reply)) {
    close_ask(service);
    return service.supervisor.unserved(why->why, now);
  }
  service.supervisor.served(now);
  // One that nobody wants any more ends by itself: it is never let go.
  if (service.orders.erase(id) == 0) return close_ask(service);
  if (const auto* refusal = std::get_if<CannotEnter>(&reply)) {
    close_ask(service);
    return callbacks_.cannot_enter(id, refusal->error);
  }
  callbacks_.began(id, heard->sender);
  ::send(service.asked->reply.get(), "go", 2, MSG_NOSIGNAL);
  close_ask(service);
}

/// The process that it forked died, or it died itself, which is told otherwise.
void Services::doubt(Service& service, Time now) {
  loop_.forget(service.asked->reply.get());
  service.asked->reply.reset();
  service.asked->doubted_until = now + kServiceDoubt;
}

void Services::close_ask(Service& service) {
  if (!service.asked) return;
  if (service.asked->reply) loop_.forget(service.asked->reply.get());
  service.asked.reset();
}

void Services::keep_words(Service& service) {
  char bytes[4096];
  // One that writes without pause takes turns with all else.
  for (int round = 0; round < kMostRounds; ++round) {
    const ssize_t count = ::read(service.output.get(), bytes, sizeof bytes);
    if (count < 0) return;
    if (count == 0) {
      loop_.forget(service.output.get());
      service.output.reset();
      return;
    }
    service.output_tail.append(bytes, static_cast<std::size_t>(count));
    if (service.output_tail.size() > kLongestOutputTail)
      service.output_tail.erase(0, service.output_tail.size() - kLongestOutputTail);
  }
}

void Services::let_go_of(Service& service) {
  close_ask(service);
  for (Fd* fd : {&service.control, &service.output}) {
    if (*fd) loop_.forget(fd->get());
    fd->reset();
  }
  service.pid = -1;
  ++changes_;
}

void Services::end(Service& service, const std::string& why) {
  if (service.pid <= 0) return;
  log_line("service " + service.definition.name() + " is ended: " + why);
  // The process that it is forking, where there is one, is still in its group.
  ::kill(-service.pid, SIGTERM);
  // One that is stopped takes no other signal before it goes on.
  ::kill(-service.pid, SIGCONT);
  ending_[service.pid] = clock_now() + kServiceFarewell;
  let_go_of(service);
}

bool Services::reaped(pid_t pid, int status, Time now) {
  if (ending_.erase(pid) != 0) {
    ::kill(-pid, SIGKILL);
    task_processes_.not_ours(pid);
    return true;
  }
  // What the process used of its service was said before it ended.
  for (Service& service : services_) {
    if (service.definition.answers()) hear(service, now);
  }
  const auto at = std::find_if(services_.begin(), services_.end(),
                               [pid](const Service& service) { return service.pid == pid; });
  if (at == services_.end()) return false;
  Service& service = *at;
  ::kill(-pid, SIGKILL);
  task_processes_.not_ours(pid);
  if (service.output) keep_words(service);
  const std::string why = end_of_service(status, service.output_tail);
  log_line("service " + service.definition.name() + ": " + why);
  let_go_of(service);
  service.supervisor.died(why, now);
  due_ = true;
  return true;
}

}  // namespace hpcbatch::pilot
