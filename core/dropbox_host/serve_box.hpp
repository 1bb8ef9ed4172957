// The process of a drop box: all that opens files of users happens in it, and nothing of the engine's.
#pragma once

#include "dropbox/submit_port.hpp"
#include "hpcbatch/result.hpp"

#include <boost/json/value.hpp>

#include <mutex>
#include <string>
#include <string_view>

namespace hpcbatch {

/// The first word of its command line; the second one is the folder, for who lists processes.
inline constexpr std::string_view kServeBox = "serve-dropbox";

/// The file whose lock the processes of an engine share; -1 and errno where it cannot be opened.
/// Writable: NFS refuses the lock of a whole engine otherwise (flock(2)).
int open_box_lock(const std::string& file);

/// What the process says to its engine (see box_process.hpp), from any thread.  An engine that reads no
/// more is gone, and with it the process.
class BoxWords final : public SubmitPort {
 public:
  explicit BoxWords(int engine) : engine_(engine) {}
  void submit(DropboxTask task) override;
  void cancel(const std::string& key) override;
  void warn(const std::string& text);
  /// The box is at work before it is known to have opened, and the engine expects that word first: all
  /// others wait for it.  Once.
  void open(const Result<void>& opened);

 private:
  void say(std::string_view key, boost::json::value value);
  void write(std::string_view lines) const;

  const int engine_;
  std::mutex mutex_;
  bool is_open_{false};
  std::string held_back_;
};

/// Serves the engine at kHandedOver until that one closes it or is gone.  Returns the exit code.
int serve_box();

}  // namespace hpcbatch
