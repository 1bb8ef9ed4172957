// What SiteFiles has done on its lanes over a stream to the program on the site: exchanges of small
// files, several under way at a time, and large files one by one.  All of it blocks.
#pragma once

#include "posix/files.hpp"
#include "sites/pilot_program.hpp"
#include "staging/hash_files.hpp"
#include "staging/staged_files.hpp"
#include "wire/file_store.hpp"
#include "wire/wire.pb.h"

#include "hpcbatch/result.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace hpcbatch {

/// How long the program there may say nothing while it reads so many bytes before its answer.
std::chrono::seconds patience_with(std::uint64_t read_there);

/// Both directions at once, so that neither end waits for the other in vain.
class FileStream {
 public:
  explicit FileStream(Fd stream);

  /// Sent by what comes next.
  void order(const wire::FilesOrder& order);
  /// Sends, until all is sent or something was said.
  Result<void> send(std::string_view frames, Deadline deadline);
  /// The next frame, whose bytes hold until the next call; nothing where `wake` can be read first.
  Result<std::optional<wire::FileFrame>> receive(Deadline deadline, int wake = -1);
  /// `read_there`: bytes that the program reads before it answers.
  Result<wire::FilesReport> receive_report(Deadline deadline, std::uint64_t read_there = 0);
  bool has_said() const { return has_said_; }

 private:
  Result<void> move(std::string_view& out, Deadline deadline, int wake);

  Fd stream_;
  std::string orders_;
  std::string_view left_;  // of `orders_`, to be sent
  wire::FileFrames in_;
  bool has_said_{false};  // and was not heard to the end
  bool was_woken_{false};
  std::chrono::seconds patience_{patience_with(0)};
  std::chrono::steady_clock::time_point moved_at_;
};

/// How far the large file on its way has come, in bytes: written by its lane, read by the loop.
struct CopyMeter {
  std::atomic<std::uint64_t> begun_at{0};  ///< what an earlier try had moved
  std::atomic<std::uint64_t> at{0};
  void begin(std::uint64_t offset) {
    begun_at = offset;
    at = offset;
  }
};

/// A transport of its own, and what is open over it.
struct FileTools : ExchangeTools {
  std::unique_ptr<FileStream> stream;
  CopyMeter meter;
};

struct ExchangePlan {
  wire::FilesOrder order;                   // without `put`
  std::vector<StagedFiles::Sending> small;  // become `put` where they are still what they were
  std::vector<std::string> take_to;         // where on this machine, as `order.take`
};

struct ExchangeOutcome {
  wire::FilesReport report;
  std::vector<std::size_t> put;                  // of `small`, as the report's `put`
  std::vector<std::size_t> changed;              // of `small`
  std::vector<std::optional<StageError>> taken;  // as the report's `take`
};

struct FileExchange {
  ExchangePlan plan;
  ExchangeOutcome outcome;
};

/// Exchanges that are to be done, in order.  Shared by the loop, which adds, and a lane.
class ExchangeQueue {
 public:
  using Answered = std::function<void(const std::shared_ptr<FileExchange>&)>;
  /// `answered`: called on the lane.
  explicit ExchangeQueue(Answered answered);

  void add(std::shared_ptr<FileExchange> exchange);
  std::shared_ptr<FileExchange> take();
  /// To be polled: something was added.
  int wake() const { return wake_.get(); }
  void answer(const std::shared_ptr<FileExchange>& exchange) const;
  /// Nothing is answered any more.
  void close();

 private:
  Answered answered_;
  Fd wake_;
  mutable std::mutex mutex_;
  bool is_closed_{false};
  std::deque<std::shared_ptr<FileExchange>> waiting_;
};

/// Until there are no more, or it has gone on for a while.
Result<void> exchange_files(FileTools& tools, const PilotProgram& program,
                            const std::string& workspace, ExchangeQueue& queue, Deadline deadline);

struct LargeSent {
  Result<void> result{Error{Error::Kind::Transient, "it did not come back in time"}};
  bool is_changed{false};           // it was not what it had been, before or after
  wire::FilesReport::Done done;     // why the store there does not take it
  std::optional<std::string> hash;  // where its key was not known before
};
/// Into the store.  Without a key it is hashed on the way.
LargeSent send_large(FileTools& tools, const PilotProgram& program, const std::string& workspace,
                     const StagedFiles::Sending& file, Deadline deadline);
/// Under which it is received there, until it is whole.
std::string received_mark(const StagedFiles::Sending& file);

struct LargeFetch {
  std::string there;  // relative to the workspace
  std::string here;
  std::uint64_t size{0};
  std::uint32_t mode{0};
  std::int64_t modified_ns{0};
};
struct LargeFetched {
  Result<void> result{Error{Error::Kind::Transient, "it did not come back in time"}};
  std::optional<StageError>
      error;  // why this machine does not take it, or the site does not give it
};
LargeFetched fetch_large(FileTools& tools, const PilotProgram& program,
                         const std::string& workspace, const LargeFetch& file, Deadline deadline);

}  // namespace hpcbatch
