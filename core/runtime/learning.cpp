#include "runtime/learning.hpp"

#include "links/recipe.hpp"
#include "records/estimate.hpp"
#include "wire/wire.pb.h"

#include <utility>

namespace hpcbatch {
namespace {

// Some 10 ms of the store's time: commits do not wait long behind it.
constexpr std::uint64_t kTasksAtOnce = 20'000;
constexpr std::chrono::milliseconds kSoon{100};
constexpr std::chrono::seconds kLater{5};

std::uint64_t ended_in_all(const store::Totals& totals) {
  return totals.done + totals.failed + totals.cancelled;
}

/// False: nothing more is left, or the disk is full and it is tried again later.
bool learn_some(store::Store& store) {
  try {
    return store.learn(kTasksAtOnce);
  } catch (const sqlite::SqlError& e) {
    if (!e.transient()) throw;
    return false;
  }
}

}  // namespace

std::string kind_of_array(const store::ArrayRow& array) {
  const wire::Start start = start_from_bytes(array.recipe);
  return records::kind_of({.said = start.kind(),
                           .tool = array.tool,
                           .name = array.name,
                           .program = start.argv().empty() ? std::string_view() : start.argv(0)});
}

Learning::Learning(Dependencies around)
    : dependencies_(std::move(around)), timer_(dependencies_.loop) {}

void Learning::learn_in(std::chrono::milliseconds time) {
  timer_.expires_after(time);
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error && !dependencies_.is_stopped()) learn();
  });
}

void Learning::learn() {
  const std::uint64_t ended = ended_in_all(dependencies_.writer.totals());
  // Retries make it less, and bring it back: then a few wait for the next.
  if (ended == learned_ && ended != 0) return learn_in(kLater);
  dependencies_.writer.read([](store::Store& store) { return learn_some(store); },
                            [this, ended](bool more) {
                              if (!more) learned_ = ended;
                              if (!more && are_wanted_) estimate([] {});
                              learn_in(more ? kSoon : kLater);
                            });
}

void Learning::want_estimates(std::function<void()> then) {
  are_wanted_ = true;
  if (are_there_) return then();
  estimate(std::move(then));
}

void Learning::estimate(std::function<void()> then) {
  dependencies_.writer.read(
      [](store::Store& store) {
        records::Estimates estimates;
        for (const auto& [kind, profile] : store.records().profiles()) {
          if (kind == records::kOtherKinds) continue;  // what one needs says nothing of the others
          if (const auto estimate = records::estimate_of(profile))
            estimates.emplace(kind, *estimate);
        }
        return estimates;
      },
      [this, then = std::move(then)](records::Estimates estimates) {
        estimates_ = std::move(estimates);
        are_there_ = true;
        then();
      });
}

void Learning::catch_up(std::function<void()> then) {
  dependencies_.writer.read([](store::Store& store) { return learn_some(store); },
                            [this, then = std::move(then)](bool more) mutable {
                              if (more && !dependencies_.is_stopped())
                                return catch_up(std::move(then));
                              then();
                            });
}

}  // namespace hpcbatch
