// The files of tasks on a site that does not see this machine's file system: inputs go into the
// store in its workspace, results come back.
#pragma once

#include "hpcbatch/transport.hpp"
#include "loop/asio.hpp"
#include "model/ids.hpp"
#include "model/site.hpp"
#include "plugin_host/plugin_host.hpp"
#include "sites/pilot_program.hpp"
#include "staging/hash_files.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// Of the loop's thread only; nothing here waits, and no answer comes from within a call.  Has
/// lanes and logins of its own.  While the site cannot be reached all is tried again, ever less
/// often, and those who asked wait.
class SiteFiles {
 public:
  using MakeTransport = std::function<Result<std::unique_ptr<Transport>>()>;

  SiteFiles(asio::io_context& loop, const PluginHost& plugins, const Site& site,
            const PilotProgram& program);
  SiteFiles(asio::io_context& loop, MakeTransport make_transport, const Site& site,
            const PilotProgram& program);
  SiteFiles(const SiteFiles&) = delete;
  SiteFiles& operator=(const SiteFiles&) = delete;
  /// Never waits.  Nobody is answered any more.
  ~SiteFiles();

  /// `paths`: absolute, on this machine.
  struct Wanted {
    StageOwner owner;
    std::vector<std::string> paths;
  };
  using StageInResults = std::vector<std::pair<StageOwner, std::optional<StageError>>>;
  /// For each owner: all its files are on the site, or why not.  `answer` is called as often as
  /// something is decided, with those owners of this call for which it is: each is told once.  An
  /// owner that got its files holds them until `let_go`; one that got an error holds nothing.
  void stage_in(std::vector<Wanted> wanted, std::function<void(StageInResults)> answer);
  /// Where an owner's file lies on the site (absolute); nothing where it has not been staged in.
  std::optional<std::string> place_of(const StageOwner& owner, const std::string& path) const;
  /// Its files may be cleaned away.  Where it still waits it is told an error that can be tried
  /// again.
  void let_go(const StageOwner& owner);
  /// While true nothing of the store is cleaned away: after a restart tasks of an earlier engine
  /// may use files that nobody holds here.
  void keep_all(bool all);
  /// A place (as place_of said) at which a task did not find its file: who brings it next makes
  /// sure of it.
  void forget_there(const std::string& place);

  /// `there`: absolute, below the site's workspace.
  struct Taken {
    std::string there;
    std::string here;
  };
  /// Copies files of the site to here, each whole or not at all, with the mode that it has there;
  /// answers once, in the order of the question.
  void take(std::vector<Taken> taken,
            std::function<void(std::vector<std::optional<StageError>>)> answer);
  /// Removes files and folders (absolute, below `files` or `out` of the site's workspace) with the
  /// next exchange.
  void drop(const std::vector<std::string>& there);

  struct Figures {
    std::uint64_t bytes_sent{0};
    std::uint64_t files_sent{0};
    std::uint64_t bytes_taken{0};
    std::uint64_t files_taken{0};
    std::uint64_t exchanges{0};
    std::uint64_t store_files{0};  ///< as far as they are known
    std::uint64_t store_bytes{0};
    std::string trouble;     ///< why nothing goes at present
    std::size_t to_send{0};  ///< files that wait to be sent, and to be taken
    std::size_t to_take{0};
    /// The large file on its way now; small ones go together, within seconds.
    struct Copy {
      std::string path;  ///< where it comes from, or goes to, on this machine
      bool is_sent{true};
      std::uint64_t size{0};
      std::uint64_t begun_at{0};  ///< so much of it an earlier try had moved
      std::uint64_t moved{0};
      std::chrono::steady_clock::duration since{};
    };
    std::optional<Copy> copy;
    /// For people: how far `copy` has come, how fast it goes, and what waits behind it.
    std::string copy_in_words() const;
  };
  Figures figures() const;

 private:
  class Body;
  std::shared_ptr<Body> body_;  // calls under way may come back after this is gone
};

}  // namespace hpcbatch
