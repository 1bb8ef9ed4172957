// The service of tasks whose service answers: for the pilot it is a service as any other, that forks
// the tasks' processes; those are stubs, and their requests go to workers that stay loaded.  A
// program of its own, so that nothing of it can hold up or end the pilot.
#pragma once

#include "pilot/answering/answer_stub.hpp"
#include "pilot/answering/request_dispatcher.hpp"
#include "pilot/answering/worker_process.hpp"
#include "pilot/base/loop.hpp"
#include "posix/files.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pilot {

// How a pilot starts the service that answers: its own program, with what the service's definition
// says as arguments.

struct AnsweringOptions {
  DispatchTerms terms;
  std::vector<std::string> command;  ///< of a worker
};

/// As `hpcbatch-pilot answering ...` gets them, without those two words; none where they are wrong.
std::optional<AnsweringOptions> read_answering_options(const std::vector<std::string>& arguments);

class AnsweringService {
 public:
  /// `control` is the pilot's socket (docs/formats.md).
  AnsweringService(AnsweringOptions options, Fd control);
  ~AnsweringService();

  /// Until the pilot wants it no more, or no worker can be had; the exit code.
  int run();

 private:
  struct Asked {
    RequestWords words;
    std::vector<unsigned> cpus;
    std::string devices;
    Fd stub;
    bool is_let_go{false};
    std::string pid;
    std::deque<std::string> packets;  // that the stub has not taken
    std::size_t packet_bytes{0};
    bool is_over{false};  // nothing more comes
  };
  struct Worker {
    std::unique_ptr<WorkerProcess> process;
    std::map<std::string, RequestDispatcher::Request> batch;  // by the words' ids
    std::chrono::microseconds cpu_before{};
    std::uint64_t peak{0};
  };

  void hear_pilot();
  void take_request(const std::vector<int>& descriptors);
  void hear_stub(RequestDispatcher::Request id, std::uint32_t events);
  void tell(RequestDispatcher::Request id, StubWord word, std::string_view text);
  void flush(Asked& asked);
  void close_stub(RequestDispatcher::Request id);

  void hear_worker(RequestDispatcher::Worker id, const std::string& line);
  void look_for_ended_workers();
  void worker_closed(RequestDispatcher::Worker id);
  void worker_says(RequestDispatcher::Worker id, const WorkerOutput& output);
  void worker_says(RequestDispatcher::Worker id, const WorkerAnswer& answer);
  /// To the pilot: what it used goes to the task.
  void tell_use(Worker& worker, const Asked& asked);
  void balance(RequestDispatcher::Worker id);

  void act(Time now);
  void start(const RequestDispatcher::StartWorker& action, Time now);
  void hand_over(const RequestDispatcher::HandOver& action);
  void measure(Time now);

  AnsweringOptions options_;
  Loop loop_;
  Fd control_;
  Fd ends_;      // signals that end it
  Fd children_;  // signals that a child has ended
  RequestDispatcher dispatcher_;
  RequestDispatcher::Request next_request_{1};
  std::map<RequestDispatcher::Request, Asked> asked_;
  std::map<RequestDispatcher::Worker, Worker> workers_;
  Time measure_at_;
  bool told_busy_{false};
  std::optional<int> exit_;
};

}  // namespace hpcbatch::pilot
