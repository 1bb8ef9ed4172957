// Runs services and hands requests to them.  What is to be done is decided by their supervisor.
//
// A service has a socket as its standard input.  For each request it gets descriptors: the
// request's bytes, a socket of the request's own, the task's standard streams, and its control
// group.  It forks a process that is handed over to the pilot and waits to be let go
// (docs/formats.md).
#pragma once

#include "pilot/base/loop.hpp"
#include "pilot/policy/service_supervisor.hpp"
#include "pilot/processes/process_tree.hpp"
#include "pilot/processes/surroundings.hpp"
#include "pilot/services/service_socket.hpp"
#include "posix/files.hpp"
#include "wire/wire.pb.h"

#include <sys/types.h>

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

namespace hpcbatch::pilot {

class Services {
 public:
  /// What a process needs to be forked; the descriptors stay the caller's until one of the
  /// callbacks, or `forget`.
  struct Order {
    std::string request;
    int standard_input{-1};
    int standard_output{-1};
    int standard_error{-1};
    int control_group{-1};  // -1: none
  };
  struct Callbacks {
    /// The process is there, a child of the pilot, and runs when this returns.
    std::function<void(const AttemptId&, pid_t)> began;
    /// It could not enter its directory.
    std::function<void(const AttemptId&, int error)> cannot_enter;
    /// The service does not do it.
    std::function<void(const AttemptId&, const std::string& why)> plain;
    /// The service takes a while to start: the task is not to wait for it here.
    std::function<void(const AttemptId&)> handed_back;
    /// The task whose process this is took so much of a service that answers; its peak in bytes.
    std::function<void(pid_t, std::uint64_t cpu_us, std::uint64_t peak)> used;
  };

  Services(Loop& loop, TaskProcesses& task_processes, Callbacks callbacks)
      : loop_(loop), task_processes_(task_processes), callbacks_(std::move(callbacks)) {}
  ~Services();

  /// One of the callbacks follows, from within `tick`, or from within the loop.
  void want(const AttemptId& id, const wire::Service& service,
            std::shared_ptr<const BaseEnvironment> base, Order order);
  void forget(const AttemptId& id);
  /// A task that runs will be followed by one that wants this, until it is foreseen no more.
  void foresee(const AttemptId& id, const wire::Service& service,
               std::shared_ptr<const BaseEnvironment> base);
  void foresee_no_more(const AttemptId& id, Time now);

  /// True where the child of the pilot was a service.
  bool reaped(pid_t pid, int status, Time now);
  /// Pilot and services were stopped for that long.
  void suspended(Duration time);
  void tick(Time now);
  std::optional<Time> next() const;

  /// Names of those that live, but for those that take long to start.
  std::set<std::string> names() const;
  std::set<std::string> slow_starters() const;
  /// Tasks went back that will come again when one of these is ready.
  bool is_any_awaited() const;
  /// Grows whenever one of these has changed.
  std::uint64_t changes() const { return changes_; }
  /// Resident bytes of all services, when they were looked at last.
  std::uint64_t memory() const;
  /// Ends services that nobody wants now, until no more than so many live.
  void end_idle(std::size_t most);

 private:
  struct Asked {
    AttemptId id;
    Fd reply;
    std::optional<Time>
        doubted_until;  // nobody holds the other end: has it died, or its service too?
  };
  struct Service {
    Service(std::string definition_bytes, wire::Service what,
            std::shared_ptr<const BaseEnvironment> environment, ServiceTerms terms)
        : key(std::move(definition_bytes)),
          definition(std::move(what)),
          base(std::move(environment)),
          supervisor(std::move(terms)) {}
    std::string key;
    wire::Service definition;
    std::shared_ptr<const BaseEnvironment> base;
    ServiceSupervisor supervisor;
    pid_t pid{-1};
    std::uint64_t resident{0};
    Fd control;
    Fd output;
    std::string output_tail;
    std::optional<Asked> asked;
    ImportLock turn;  // while it starts
    bool told_slow{false};
    std::unordered_map<AttemptId, Order, AttemptHash> orders;
  };

  std::size_t living() const;
  Service& find(const wire::Service& service, std::shared_ptr<const BaseEnvironment> base);
  void act(Service& service, Time now);
  void hand_back(Service& service, const AttemptId& id);
  void look_after_start(Service& service);
  void start(Service& service, Time now);
  void ask(Service& service, const AttemptId& id, Time now);
  void end(Service& service, const std::string& why);
  void hear(Service& service, Time now);
  void hear_use(const std::string& text);
  void hear_reply(Service& service, Time now);
  void doubt(Service& service, Time now);
  void keep_words(Service& service);
  void close_ask(Service& service);
  void let_go_of(Service& service);

  Loop& loop_;
  TaskProcesses& task_processes_;
  Callbacks callbacks_;
  std::list<Service> services_;
  std::map<pid_t, Time> ending_;  // told to; when they are killed
  std::set<AttemptId> foreseen_by_;
  std::map<std::string, Duration> longest_starts_;  // of services that are gone, by their keys
  std::optional<Time> measure_at_;
  std::uint64_t changes_{0};
  bool due_{false};
};

}  // namespace hpcbatch::pilot
