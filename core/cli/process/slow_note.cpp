#include "cli/process/slow_note.hpp"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>

namespace hpcbatch {

SlowNote::SlowNote(std::string text, std::chrono::milliseconds patience, Tell tell) {
  auto wait = [text = std::move(text), patience,
               tell = std::move(tell)](const std::stop_token& over) {
    std::mutex mutex;
    std::condition_variable_any ends;
    std::unique_lock lock(mutex);
    ends.wait_for(lock, over, patience, [] { return false; });
    if (!over.stop_requested()) tell(text);
  };
  try {
    thread_ = std::jthread(std::move(wait));
  } catch (const std::system_error&) {
    // Where there are no threads to be had, the step goes on without.
  }
}

void SlowNote::on_standard_error(const std::string& text) {
  std::fprintf(stderr, "hpcbatch: waits for %s\n", text.c_str());
}

}  // namespace hpcbatch
