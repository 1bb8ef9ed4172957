// The inside of SiteFiles: three lanes (hashing, exchanges, large files) and what is on its way on
// each of them.
#pragma once

#include "loop/clock.hpp"
#include "loop/lane.hpp"
#include "staging/file_exchange.hpp"
#include "staging/site_files.hpp"
#include "staging/staged_files.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hpcbatch {

/// What one exchange carries at most, in bytes.
inline constexpr std::uint64_t kMostExchanged = std::uint64_t{4} << 20;

/// A turn of the loop looks what can be begun, and tells at its end what has been decided.
class SiteFiles::Body : public std::enable_shared_from_this<SiteFiles::Body> {
 public:
  Body(asio::io_context& loop, MakeTransport make_transport, Site site, PilotProgram program);
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() { queue_->close(); }

  void stage_in(std::vector<Wanted> wanted, std::function<void(StageInResults)> answer);
  void let_go(const StageOwner& owner);
  void keep_all(bool all);
  void forget_there(const std::string& place);
  void take(std::vector<Taken> taken,
            std::function<void(std::vector<std::optional<StageError>>)> answer);
  void drop(const std::vector<std::string>& there);
  std::optional<std::string> place_of(const StageOwner& owner, const std::string& path) const;
  Figures figures() const;
  /// What cannot be done by the constructor.
  void begin() {
    queue_ = new_queue();
    look_at_ages();
  }

 private:
  struct Asked {
    std::function<void(StageInResults)> answer;
    std::size_t owners;
  };
  struct TakeRequest {
    std::vector<std::optional<StageError>> results;
    std::size_t open;
    std::function<void(std::vector<std::optional<StageError>>)> answer;
  };
  struct TakeItem {
    std::shared_ptr<TakeRequest> request;  // shared by its items, which come back one by one
    std::size_t place;
    std::string there;  // relative to the workspace
    std::string here;
    unsigned tries{0};
  };
  struct Fetch {
    TakeItem item;
    LargeFetch file;
  };
  /// What one exchange was told, to be put back where it did not come about.
  struct Flight {
    std::shared_ptr<FileExchange> exchange;
    std::vector<std::string> stale;
    std::vector<std::string> drops;
    std::vector<StagedFiles::Question> questions;
    std::vector<StagedFiles::Sending> small;
    std::vector<TakeItem> takes;
    bool lists{false};
  };
  /// After what failed the next try waits, ever longer.
  struct Pause {
    explicit Pause(asio::io_context& loop) : timer(loop) {}
    asio::steady_timer timer;
    unsigned failures{0};
    bool is_on{false};
  };
  /// Calls of one kind to the site, one at a time.
  struct Lane {
    Lane(asio::io_context& loop, std::chrono::milliseconds grace, std::function<bool()> renew)
        : pause(loop), calls(loop, grace, std::move(renew)) {}
    Pause pause;
    std::shared_ptr<FileTools> tools;
    bool is_busy{false};
    CallLane calls;
  };
  struct Hashing {
    Hashing(asio::io_context& loop, std::chrono::milliseconds grace)
        : hasher(std::make_shared<FileHasher>()), calls(loop, grace, [this] {
            hasher = std::make_shared<FileHasher>();
            return true;
          }) {}
    std::shared_ptr<FileHasher> hasher;
    bool is_busy{false};
    CallLane calls;
  };
  /// Who is to be told what became of the files that were wanted.
  struct StageIns {
    std::uint64_t last_ticket{0};
    std::map<std::uint64_t, Asked> by_ticket;
  };
  struct Takes {
    std::deque<TakeItem> waiting;
    std::deque<Fetch> large;
    std::vector<std::shared_ptr<TakeRequest>> done;  // to be answered
  };
  struct Drops {
    explicit Drops(asio::io_context& loop) : company(loop) {}
    std::vector<std::string> waiting;
    asio::steady_timer company;
    bool wait_for_company{false};
  };
  /// Of the store, page by page.
  struct Listing {
    std::string after;
    bool is_complete{false};
    bool goes_on{false};
  };
  struct Copying {
    std::string path;
    bool is_sent;
    std::uint64_t size;
    std::chrono::steady_clock::time_point since;
  };
  struct Copies {
    std::optional<Copying> now;
    std::deque<StagedFiles::Sending> unread;  // without keys
    std::set<std::string> read;               // paths that are to be hashed before they are sent
    std::map<std::string, unsigned> tries;    // by path
    std::string trouble;                      // as it was told last
    bool fetches_next{false};
  };

  void wake();
  void turn();
  void tell();
  void hash_more();
  void hashed(const std::vector<std::string>& paths, const HashProgress& progress, bool given_up);
  // site_files_exchange.cpp
  void exchange();
  bool is_worth_an_exchange(const Flight& flight);
  Flight load();
  ExchangePlan plan(const Flight& flight) const;
  void unload(Flight flight);
  void exchanged(Flight flight, const ExchangeOutcome& outcome);
  void answered(const std::shared_ptr<FileExchange>& exchange);
  void exchanges_ended(const std::string& why);
  std::shared_ptr<ExchangeQueue> new_queue();
  void read_list(const wire::FilesReport& report);
  void read_store_answers(Flight& flight, const ExchangeOutcome& outcome);
  void read_takes(Flight& flight, const ExchangeOutcome& outcome);
  void stored(const StagedFiles::Sending& file, const wire::FilesReport::Done& done);
  // site_files.cpp
  void copy();
  bool copy_there();
  bool copy_here();
  void begin_copy(const std::string& path, bool is_sent, std::uint64_t size);
  std::optional<StagedFiles::Sending> next_large();
  void read_first(const std::string& path);
  void arrived(const StagedFiles::Sending& file, const LargeSent& sent);
  void copied_there(const StagedFiles::Sending& file, const LargeSent& sent);
  void copied_here(Fetch fetch, const LargeFetched& fetched);
  void copy_failed(const std::string& why);

  void finish(const TakeItem& item, std::optional<StageError> result);
  void pause(Pause& pause);
  void look_at_ages();
  bool renew(std::shared_ptr<FileTools>& tools);
  void trouble(const std::string& text);
  std::string there(const std::string& relative) const { return site_.workspace + "/" + relative; }
  /// Nothing where it does not lie below the workspace.
  std::string relative(const std::string& path) const;
  std::string full_disk(const wire::FilesReport::Done& done) const;

  asio::io_context& loop_;
  MakeTransport make_transport_;
  Site site_;
  PilotProgram program_;
  Clock clock_;
  StagedFiles files_;
  StageIns stage_ins_;
  Takes takes_;
  Drops drops_;
  Listing listing_;
  Copies copies_;
  std::uint64_t free_bytes_{0};
  std::uint64_t most_bytes_{kMostExchanged};  // of one exchange
  Figures figures_;
  bool is_woken_{false};
  bool wants_exchange_{false};  // before anything large is copied
  asio::steady_timer age_timer_;
  Hashing hashing_;
  Lane exchanging_;
  std::shared_ptr<ExchangeQueue> queue_;
  std::deque<Flight> flights_;  // in their order
  Lane copying_;
};

}  // namespace hpcbatch
