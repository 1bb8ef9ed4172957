#include "pilot/answering/answering_service.hpp"

#include "pilot/base/clock.hpp"
#include "pilot/base/log_line.hpp"
#include "pilot/services/service_socket.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hpcbatch::pilot {
namespace {

std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// False where there is no such option.
bool take(const std::string& name, std::uint64_t value, DispatchTerms& terms) {
  const auto milliseconds = std::chrono::milliseconds(value);
  if (name == "--batch") {
    terms.batch = value;
  } else if (name == "--instances") {
    terms.instances = value;
  } else if (name == "--memory") {
    terms.memory = value;
  } else if (name == "--idle-ms") {
    terms.idle = milliseconds;
  } else if (name == "--requests") {
    terms.requests = static_cast<std::uint32_t>(value);
  } else if (name == "--start-ms") {
    terms.start = milliseconds;
  } else if (name == "--devices") {
    terms.waits_for_devices = value != 0;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<AnsweringOptions> read_answering_options(const std::vector<std::string>& arguments) {
  AnsweringOptions options;
  std::size_t at = 0;
  for (; at + 1 < arguments.size() && arguments[at] != "--"; at += 2) {
    const auto value = whole_number(arguments[at + 1]);
    if (!value || !take(arguments[at], *value, options.terms)) return std::nullopt;
  }
  if (at >= arguments.size() || arguments[at] != "--") return std::nullopt;
  options.command.assign(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1, arguments.end());
  if (options.command.empty()) return std::nullopt;
  return options;
}

namespace {

using namespace std::chrono_literals;

constexpr Duration kMeasureWorkers = 1s;
// A task whose reader is slower than its worker has so much waiting, and then the worker waits.
constexpr std::size_t kMostWaiting = std::size_t{1} << 20;
constexpr int kFailed = 1;
constexpr std::array<std::string_view, 4> kDeviceVariables{
    "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
constexpr std::string_view kIdOfTask = "HPCBATCH_TASK_ID";
constexpr std::string_view kMemoryOfTask = "HPCBATCH_MEM_MB";

std::string all_of(int descriptor) {
  std::string bytes;
  std::array<char, std::size_t{64} << 10> piece{};
  for (;;) {
    const ssize_t count = ::read(descriptor, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return bytes;
    bytes.append(piece.data(), static_cast<std::size_t>(count));
  }
}

/// Variables that are not, or not so, in this process's own environment, which its workers have.
std::map<std::string, std::string> own_variables(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> own;
  for (const std::string& line : environment) {
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(0, equals);
    const char* mine = std::getenv(name.c_str());
    if (mine == nullptr || line.compare(equals + 1, std::string::npos, mine) != 0)
      own[name] = line.substr(equals + 1);
  }
  return own;
}

std::string devices_of(const std::map<std::string, std::string>& variables) {
  std::string devices;
  for (const std::string_view name : kDeviceVariables) {
    const auto at = variables.find(std::string(name));
    if (at != variables.end()) devices += at->first + "=" + at->second + "\n";
  }
  return devices;
}

std::uint64_t granted_memory(const std::map<std::string, std::string>& variables) {
  const auto at = variables.find(std::string(kMemoryOfTask));
  return at == variables.end() ? 0 : std::strtoull(at->second.c_str(), nullptr, 10) << 20;
}

std::map<std::string, std::string> variables_of(const std::string& devices) {
  std::map<std::string, std::string> variables;
  for (std::size_t begin = 0; begin < devices.size();) {
    const std::size_t end = devices.find('\n', begin);
    const std::string line = devices.substr(begin, end - begin);
    const std::size_t equals = line.find('=');
    variables[line.substr(0, equals)] = line.substr(equals + 1);
    begin = end + 1;
  }
  return variables;
}

Fd descriptor_of(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : signals) sigaddset(&set, number);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return Fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

AnsweringService::AnsweringService(AnsweringOptions options, Fd control)
    : options_(std::move(options)),
      control_(std::move(control)),
      ends_(descriptor_of({SIGTERM, SIGINT, SIGHUP})),
      children_(descriptor_of({SIGCHLD})),
      dispatcher_(options_.terms, clock_now()),
      measure_at_(clock_now() + kMeasureWorkers) {
  ::fcntl(control_.get(), F_SETFL, O_NONBLOCK);
  loop_.watch(control_.get(), EPOLLIN, [this](std::uint32_t) { hear_pilot(); });
  loop_.watch(ends_.get(), EPOLLIN, [this](std::uint32_t) { exit_ = 0; });
  loop_.watch(children_.get(), EPOLLIN, [this](std::uint32_t) { look_for_ended_workers(); });
}

AnsweringService::~AnsweringService() = default;

int AnsweringService::run() {
  for (;;) {
    const Time now = clock_now();
    measure(now);
    act(now);
    if (exit_) return *exit_;
    std::optional<Time> until = dispatcher_.next();
    if (!workers_.empty() && (!until || measure_at_ < *until)) until = measure_at_;
    loop_.wait(until);
  }
}

void AnsweringService::hear_pilot() {
  std::array<char, 64> text{};
  constexpr std::size_t kMostDescriptors = 8;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMostDescriptors)> room{};
  iovec piece{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = room.data();
  message.msg_controllen = room.size();
  const ssize_t count = ::recvmsg(control_.get(), &message, MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    exit_ = 0;
    return;
  }
  std::vector<int> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    descriptors.resize((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(descriptors.data(), CMSG_DATA(header), descriptors.size() * sizeof(int));
  }
  constexpr std::size_t kFewest = 5;
  if (descriptors.size() >= kFewest) take_request(descriptors);
  for (const int descriptor : descriptors) ::close(descriptor);
}

/// Request, reply, the three streams and, where it has one, its control group.
void AnsweringService::take_request(const std::vector<int>& descriptors) {
  const int reply = descriptors[1];
  const auto refuse = [reply](const std::string& why) {
    ::send(reply, why.data(), why.size(), MSG_NOSIGNAL);
  };
  const auto read = read_request(all_of(descriptors[0]));
  if (!read) return refuse("its request is of another version");
  Asked asked;
  asked.stub = fork_stub(read->request, read->environment,
                         {.reply = reply,
                          .input = descriptors[2],
                          .output = descriptors[3],
                          .error = descriptors[4],
                          .control_group = descriptors.size() > 5 ? descriptors[5] : -1});
  if (!asked.stub) return refuse(std::string("it cannot fork: ") + std::strerror(errno));
  asked.words = {.id = {},
                 .argv = read->request.argv,
                 .directory = read->request.directory,
                 .environment = own_variables(read->environment)};
  asked.cpus = read->request.cpus;
  if (options_.terms.waits_for_devices) asked.devices = devices_of(asked.words.environment);
  const RequestDispatcher::Request id = next_request_++;
  const auto task = asked.words.environment.find(std::string(kIdOfTask));
  asked.words.id = task == asked.words.environment.end() ? "request" : task->second;
  // The same task may come again while its earlier attempt is being given up.
  asked.words.id += "#" + std::to_string(id);
  loop_.watch(asked.stub.get(), EPOLLIN,
              [this, id](std::uint32_t events) { hear_stub(id, events); });
  asked_.emplace(id, std::move(asked));
}

/// It was let go, takes more of what is said, or is gone.
void AnsweringService::hear_stub(RequestDispatcher::Request id, std::uint32_t events) {
  Asked& asked = asked_.at(id);
  if ((events & EPOLLOUT) != 0) {
    flush(asked);
    for (auto& [worker, there] : workers_) balance(worker);
  }
  if ((events & ~static_cast<std::uint32_t>(EPOLLOUT)) == 0) return;
  std::array<char, 32> text{};
  const ssize_t count = ::recv(asked.stub.get(), text.data(), text.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count > 0 && !asked.is_let_go) {
    asked.is_let_go = true;
    asked.pid.assign(text.data(), static_cast<std::size_t>(count));
    return dispatcher_.wanted(id, asked.devices, granted_memory(asked.words.environment));
  }
  if (count > 0) return;
  if (asked.is_let_go && !asked.is_over) dispatcher_.cancelled(id, clock_now());
  close_stub(id);
}

void AnsweringService::close_stub(RequestDispatcher::Request id) {
  const auto at = asked_.find(id);
  if (at == asked_.end()) return;
  loop_.forget(at->second.stub.get());
  asked_.erase(at);
}

void AnsweringService::tell(RequestDispatcher::Request id, StubWord word, std::string_view text) {
  const auto at = asked_.find(id);
  if (at == asked_.end()) return;
  Asked& asked = at->second;
  do {
    const std::string_view piece = text.substr(0, kLargestStubPacket);
    asked.packets.push_back(static_cast<char>(word) + std::string(piece));
    asked.packet_bytes += piece.size();
    text.remove_prefix(piece.size());
  } while (!text.empty());
  flush(asked);
}

void AnsweringService::flush(Asked& asked) {
  while (!asked.packets.empty()) {
    const std::string& packet = asked.packets.front();
    const ssize_t count = ::send(asked.stub.get(), packet.data(), packet.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == ENOBUFS)) break;
    // Its end is about to be read.
    asked.packet_bytes -= packet.size() - 1;
    asked.packets.pop_front();
  }
  loop_.change(asked.stub.get(),
               static_cast<std::uint32_t>(EPOLLIN) |
                   (asked.packets.empty() ? 0U : static_cast<std::uint32_t>(EPOLLOUT)));
}

/// A worker that says more than one of its tasks takes waits.
void AnsweringService::balance(RequestDispatcher::Worker id) {
  Worker& worker = workers_.at(id);
  if (!worker.process) return;
  worker.process->pause(
      std::any_of(worker.batch.begin(), worker.batch.end(), [this](const auto& one) {
        const auto at = asked_.find(one.second);
        return at != asked_.end() && at->second.packet_bytes > kMostWaiting;
      }));
}

void AnsweringService::hear_worker(RequestDispatcher::Worker id, const std::string& line) {
  const auto at = workers_.find(id);
  if (at == workers_.end()) return;
  const Time now = clock_now();
  struct {
    AnsweringService& service;
    RequestDispatcher::Worker id;
    Time now;
    void operator()(const WorkerStarts&) const {
      service.dispatcher_.lives(id, now);
      ::send(service.control_.get(), "starting", 8, MSG_NOSIGNAL);
    }
    void operator()(const WorkerIsReady&) const { service.dispatcher_.ready(id, now); }
    void operator()(const WorkerRenews&) const { service.dispatcher_.renews(id, now); }
    void operator()(const WorkerOutput& output) const { service.worker_says(id, output); }
    void operator()(const WorkerAnswer& answer) const { service.worker_says(id, answer); }
    void operator()(const NotUnderstood& word) const {
      service.workers_.erase(id);
      service.dispatcher_.died(id, "it said what is not understood: " + word.why, now);
    }
  } visitor{*this, id, now};
  std::visit(visitor, read_word(line));
}

/// What a call has forked may hold the socket of a worker that is gone.
void AnsweringService::look_for_ended_workers() {
  signalfd_siginfo signal{};
  while (::read(children_.get(), &signal, sizeof signal) > 0) {
  }
  std::vector<RequestDispatcher::Worker> all;
  all.reserve(workers_.size());
  for (const auto& [id, worker] : workers_) all.push_back(id);
  for (const RequestDispatcher::Worker id : all) {
    for (auto at = workers_.find(id); at != workers_.end() && at->second.process->has_ended();
         at = workers_.find(id)) {
      if (!at->second.process->read()) worker_closed(id);
    }
  }
}

void AnsweringService::worker_closed(RequestDispatcher::Worker id) {
  const auto at = workers_.find(id);
  if (at == workers_.end()) return;
  const std::unique_ptr<WorkerProcess> process = std::move(at->second.process);
  workers_.erase(at);
  dispatcher_.died(id, process->end(), clock_now());
}

void AnsweringService::worker_says(RequestDispatcher::Worker id, const WorkerOutput& output) {
  Worker& worker = workers_.at(id);
  dispatcher_.heard(id, clock_now());
  const auto request = worker.batch.find(output.id);
  if (request == worker.batch.end()) return;
  tell(request->second, output.is_error ? StubWord::Error : StubWord::Output, output.text);
  balance(id);
}

void AnsweringService::worker_says(RequestDispatcher::Worker id, const WorkerAnswer& answer) {
  Worker& worker = workers_.at(id);
  const auto at = worker.batch.find(answer.id);
  if (at == worker.batch.end()) return;
  const RequestDispatcher::Request request = at->second;
  worker.batch.erase(at);
  if (const auto asked = asked_.find(request); asked != asked_.end()) {
    tell_use(worker, asked->second);
    asked->second.is_over = true;
    tell(request, StubWord::Exit, std::to_string(answer.exit_code));
  }
  dispatcher_.answered(id, request, clock_now());
  balance(id);
}

void AnsweringService::tell_use(Worker& worker, const Asked& asked) {
  const WorkerUse use = worker.process->use();
  worker.peak = std::max(worker.peak, use.memory);
  const std::string text = "used " + asked.pid + " " +
                           std::to_string((use.cpu - worker.cpu_before).count()) + " " +
                           std::to_string(worker.peak);
  worker.cpu_before = use.cpu;
  ::send(control_.get(), text.data(), text.size(), MSG_NOSIGNAL);
}

void AnsweringService::start(const RequestDispatcher::StartWorker& action, Time now) {
  const RequestDispatcher::Worker id = action.worker;
  try {
    workers_[id].process = std::make_unique<WorkerProcess>(
        loop_, options_.command, variables_of(action.devices),
        WorkerProcess::Callbacks{[this, id](const std::string& line) { hear_worker(id, line); },
                                 [this, id] { worker_closed(id); }});
  } catch (const std::system_error& error) {
    workers_.erase(id);
    log_line(error.what());
    dispatcher_.not_started(id, error.what(), now);
  }
}

void AnsweringService::hand_over(const RequestDispatcher::HandOver& action) {
  Worker& worker = workers_.at(action.worker);
  std::vector<RequestWords> batch;
  std::vector<unsigned> cpus;
  bool is_bound = true;
  for (const RequestDispatcher::Request id : action.requests) {
    const Asked& asked = asked_.at(id);
    batch.push_back(asked.words);
    worker.batch[asked.words.id] = id;
    cpus.insert(cpus.end(), asked.cpus.begin(), asked.cpus.end());
    is_bound = is_bound && !asked.cpus.empty();
  }
  if (is_bound) worker.process->bind_to(cpus);
  const WorkerUse use = worker.process->use();
  worker.cpu_before = use.cpu;
  worker.peak = use.memory;
  worker.process->send(batch_line(batch));
}

void AnsweringService::act(Time now) {
  struct {
    AnsweringService& service;
    Time now;
    void operator()(const RequestDispatcher::StartWorker& a) const { service.start(a, now); }
    void operator()(const RequestDispatcher::HandOver& a) const { service.hand_over(a); }
    void operator()(const RequestDispatcher::Cancel& a) const {
      Worker& worker = service.workers_.at(a.worker);
      for (const auto& [words, request] : worker.batch) {
        if (request == a.request) worker.process->send(cancel_line(words));
      }
    }
    void operator()(const RequestDispatcher::EndWorker& a) const {
      log_line("a worker is ended: " + a.why);
      service.workers_.erase(a.worker);
    }
    void operator()(const RequestDispatcher::Plain& a) const {
      over(a.request, StubWord::Plain, a.why);
    }
    void operator()(const RequestDispatcher::Fail& a) const {
      over(a.request, StubWord::Fail, a.why);
    }
    void operator()(const RequestDispatcher::Tell& a) const {
      service.tell(a.request, StubWord::Error, "hpcbatch: " + a.what + "\n");
    }
    void operator()(const RequestDispatcher::Ready&) const {
      ::send(service.control_.get(), "ready", 5, MSG_NOSIGNAL);
    }
    // Why is what was said last: by the worker, or of it.
    void operator()(const RequestDispatcher::GiveUp&) const { service.exit_ = kFailed; }
    void over(RequestDispatcher::Request request, StubWord word, const std::string& why) const {
      if (const auto at = service.asked_.find(request); at != service.asked_.end())
        at->second.is_over = true;
      service.tell(request, word, why);
    }
  } visitor{*this, now};
  for (auto actions = dispatcher_.decide(now); !actions.empty();
       actions = dispatcher_.decide(now)) {
    for (const RequestDispatcher::Action& action : actions) std::visit(visitor, action);
  }
  if (dispatcher_.is_busy() == told_busy_) return;
  told_busy_ = dispatcher_.is_busy();
  const std::string_view word = told_busy_ ? "busy" : "free";
  ::send(control_.get(), word.data(), word.size(), MSG_NOSIGNAL);
}

void AnsweringService::measure(Time now) {
  if (now < measure_at_) return;
  measure_at_ = now + kMeasureWorkers;
  std::vector<std::pair<RequestDispatcher::Worker, std::uint64_t>> uses;
  for (auto& [id, worker] : workers_) {
    const std::uint64_t memory = worker.process->use().memory;
    worker.peak = std::max(worker.peak, memory);
    uses.emplace_back(id, memory);
  }
  for (const auto& [id, memory] : uses) dispatcher_.uses(id, memory, now);
}

}  // namespace hpcbatch::pilot
