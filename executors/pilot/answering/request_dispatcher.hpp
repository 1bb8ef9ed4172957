// What is decided about a service that answers: how many workers there are, which requests each is
// handed, and what becomes of requests whose worker died.  No process, socket or clock is touched
// here.
//
// A worker has one batch at a time.  Where it dies over a batch of several, nobody knows whose fault
// it was: each of them is handed over alone from then on, and what has killed three workers alone
// is the culprit and fails.  Nothing else fails here: where there is no worker to be had, requests
// run without one.
#pragma once

#include "pilot/base/clock.hpp"

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace hpcbatch::pilot {

struct DispatchTerms {
  std::size_t batch{1};      // requests that are handed over together at most
  std::size_t instances{};   // workers per set of devices at most; 0: one for each request
  std::uint64_t memory{};    // bytes of a worker and all below it; 0: no bound
  Duration idle{};           // after which a worker that nobody wants ends; zero: never
  std::uint32_t requests{};  // after which a worker is renewed; 0: never
  Duration start{};          // without a sign of life while it starts
  bool waits_for_devices{};  // no worker before a request says on which
};

class RequestDispatcher {
 public:
  using Request = std::uint64_t;
  using Worker = std::uint64_t;

  struct StartWorker {
    Worker worker{};
    std::string devices;
  };
  /// At least one request.
  struct HandOver {
    Worker worker{};
    std::vector<Request> requests;
  };
  /// The worker may stop working on it.
  struct Cancel {
    Worker worker{};
    Request request{};
  };
  /// Its end is not told by `died`.
  struct EndWorker {
    Worker worker{};
    std::string why;
  };
  /// The request runs without a worker.
  struct Plain {
    Request request{};
    std::string why;
  };
  struct Fail {
    Request request{};
    std::string why;
  };
  /// Something that its owner is to know.
  struct Tell {
    Request request{};
    std::string what;
  };
  /// A worker is ready for the first time.
  struct Ready {};
  /// No worker can be had: the service ends.
  struct GiveUp {};
  using Action =
      std::variant<StartWorker, HandOver, Cancel, EndWorker, Plain, Fail, Tell, Ready, GiveUp>;

  RequestDispatcher(DispatchTerms terms, Time now);

  /// `memory`: bytes that the task may use itself, and its worker for it.
  void wanted(Request request, const std::string& devices, std::uint64_t memory = 0);
  /// Nobody waits for its answer any more.
  void cancelled(Request request, Time now);

  void not_started(Worker worker, const std::string& why, Time now);
  /// It is still loading.
  void lives(Worker worker, Time now);
  void ready(Worker worker, Time now);
  /// It has said something about what it works on.
  void heard(Worker worker, Time now);
  void answered(Worker worker, Request request, Time now);
  /// What it has loaded has changed: it answers no more.
  void renews(Worker worker, Time now);
  void died(Worker worker, const std::string& why, Time now);
  void uses(Worker worker, std::uint64_t memory, Time now);

  std::vector<Action> decide(Time now);
  std::optional<Time> next() const;
  /// A request is here, whoever has it.
  bool is_busy() const { return !requests_.empty(); }

 private:
  struct Known {
    std::string devices;
    std::uint64_t memory{0};
    std::optional<Worker> at;
    bool alone{false};
    unsigned deaths{0};
  };
  enum class State { Starting, Ready, Working };
  struct WorkerState {
    std::string devices;
    State state{State::Starting};
    Time since{};  // of the state, or of the last sign of life
    Time begun{};
    std::set<Request> batch;
    bool is_cancelled{false};  // something of its batch
    std::uint32_t served{0};
    bool is_too_large{false};
  };

  void begin_worker(const std::string& devices, Time now);
  void lost(const WorkerState& its, const std::string& why, Time now);
  void take_back(const std::set<Request>& batch, const std::string& why);
  void start_failed(const std::string& why, Time now);
  void watch(Worker worker, WorkerState& its, Time now, std::vector<Worker>& over);
  void hand_over(Worker worker, WorkerState& its, Time now);
  void staff(Time now);
  Time deadline_of(const WorkerState& its) const;
  std::uint64_t bound_of(const WorkerState& its) const;

  DispatchTerms terms_;
  std::map<Request, Known> requests_;
  std::deque<Request> waiting_;
  std::map<Worker, WorkerState> workers_;
  Worker next_worker_{1};
  bool was_ready_{false};
  unsigned starts_failed_{0};
  std::optional<Time> not_before_;
  bool given_up_{false};
  std::vector<Action> actions_;
};

}  // namespace hpcbatch::pilot
