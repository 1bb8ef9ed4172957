// The batch systems of all sites, with their lanes and the commands on them: they accept, refuse,
// lose answers, forget, repeat, start, suspend, preempt, requeue and end batch jobs.
#pragma once

#include "draw.hpp"
#include "model/action.hpp"
#include "model/event.hpp"
#include "model/site.hpp"
#include "pilot_process.hpp"
#include "scenario.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch::clockwork {

class World;

struct Job {
  AllocationId id;
  std::string site;
  Shape shape;
  std::uint64_t number{0};
  BatchState state{BatchState::Queued};
  EndCause cause{EndCause::None};
  std::uint32_t starts{0};
  bool hidden{false};   ///< on its way: in no list yet
  bool dropped{false};  ///< ended, and in no list any more
  bool ending{false};
  bool out_of_reach{false};     ///< its site was taken out of the engine's configuration meanwhile
  std::uint32_t missing_in{0};  ///< so many of the next lists
  std::uint32_t shown_in{2};    ///< so many lists since it was missing in one
  bool repeated{false};
  Time ended{};
  std::vector<std::shared_ptr<PilotProcess>> pilots;  ///< of its last start

  bool lives() const { return state != BatchState::Ended; }
  bool is_local() const { return site == kLocalSite; }
};

class BatchSystems {
 public:
  using Answer = std::function<void(const Event&)>;
  explicit BatchSystems(World& world) : world_(world) {}
  ~BatchSystems();
  BatchSystems(const BatchSystems&) = delete;
  BatchSystems& operator=(const BatchSystems&) = delete;

  void submit(const OpenAllocation& asked, const Shape& shape, Answer answer);
  void cancel(const CancelAllocation& asked);
  void poll(const std::string& site, Answer answer);
  void read_outbox(const ReadOutbox& asked, Answer answer);
  void forget(const ForgetAllocation& asked);
  using Found = std::function<void(const std::vector<AllocationId>&)>;
  void find_left(const std::string& site, Found found);
  /// The sites of an engine that starts: of all others nobody hears any more.
  void only_these_are_asked(const std::vector<Site>& sites);

  void strike(const Incident& incident);
  void pilot_gone(const std::shared_ptr<PilotProcess>& pilot);
  void make_peace();
  /// The engine's: what runs there dies with it.
  void machine_lost_power();
  bool is_empty() const;
  bool has_one_that_stays() const;
  bool has_no_end(const AllocationId& id) const;
  bool holds(const PilotId& pilot, std::uint64_t incarnation, const AttemptId& attempt) const;
  std::string what_is_left() const;

 private:
  struct Lane {
    Time free_at{};
    std::deque<IncidentKind> spoilt;  ///< commands to come
    std::uint64_t commands{0};
    Time polls_fail_until{};
    std::vector<BatchJob> last_list;
  };
  /// On the site's lane, one command at a time.
  void command(const std::string& site, std::function<void(Draw)> run);
  bool is_spoilt(const std::string& site, IncidentKind how);
  Job& create(const OpenAllocation& asked, const Shape& shape);
  void appear(Job& job);
  void start_later(Job& job);
  void start(Job& job);
  void signal_end(Job& job, EndCause cause);
  void kill_all(Job& job, EndCause cause);
  void end(Job& job, EndCause cause);
  void record(const std::string& what, const Job& job);
  const Site& site_of(const Job& job) const;
  PilotProcess::Node draw_node(const Job& job, Draw& draw);
  Job* any_job(std::uint64_t which, bool running, bool of_cluster);
  std::vector<BatchJob> list(const std::string& site);

  World& world_;
  std::deque<Job> jobs_;  ///< stay where they are
  std::map<std::string, Lane> lanes_;
  std::uint64_t incarnations_{0};
  bool any_never_started_{false};
  std::map<std::string, Time> black_holes_;                        ///< nodes by name: until when
  std::uint64_t bad_nodes_{0}, unfit_nodes_{0}, wrong_clocks_{0};  ///< to come
};

}  // namespace hpcbatch::clockwork
