// Looks once a second whether the store's files lie where they were, and says in the workspaces how
// far its ids have come.
#pragma once

#include "loop/asio.hpp"
#include "loop/lane.hpp"
#include "loop/writer.hpp"
#include "sites/given_ids.hpp"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace hpcbatch {

/// On the loop's thread; what may block does so on the store's lane and on one for the workspaces.
class StoreWatch {
 public:
  /// `workspaces`: those that this machine sees.  All that is named outlives this.
  StoreWatch(asio::io_context& loop, Writer& writer, std::string engine_name,
             std::vector<std::string> workspaces);
  StoreWatch(const StoreWatch&) = delete;
  StoreWatch& operator=(const StoreWatch&) = delete;
  ~StoreWatch();

  /// Goes on by itself from then on.
  void begin();
  /// Tasks up to that submission are acknowledged.
  void given(std::uint64_t highest);
  /// The file of the store that somebody has removed or replaced; empty: none.
  const std::string& missing() const { return missing_; }

 private:
  void look_again();
  void seen(std::string missing, const GivenIds& given);
  void write();

  Writer& writer_;
  asio::steady_timer timer_, soon_;
  std::string engine_name_;
  std::vector<std::string> workspaces_;
  std::string missing_;
  GivenIds given_, written_;
  bool writes_soon_{false};
  std::shared_ptr<std::atomic<bool>> is_writing_{std::make_shared<std::atomic<bool>>(false)};
  Lane lane_;
};

}  // namespace hpcbatch
