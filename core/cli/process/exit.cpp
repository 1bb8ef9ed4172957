#include "cli/process/exit.hpp"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <new>
#include <stop_token>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/signalfd.h>

namespace hpcbatch {

Interrupt::Interrupt() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    // Under nohup, or in the background of a script, the parent has decided that this signal means
    // nothing to us.
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN)
      sigaddset(&wanted, number);
  }
  pthread_sigmask(SIG_BLOCK, &wanted, &before_);
  descriptor_ = Fd(signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
}

Interrupt::~Interrupt() {
  let_through();
}

void Interrupt::let_through() const {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int Interrupt::take() {
  signalfd_siginfo what{};
  if (::read(descriptor_.get(), &what, sizeof what) != sizeof what) return 0;
  return static_cast<int>(what.ssi_signo);
}

void Interrupt::pause(std::chrono::milliseconds time) const {
  pollfd signals{descriptor_.get(), POLLIN, 0};
  if (::poll(&signals, 1, static_cast<int>(time.count())) > 0) throw InterruptedByUser{};
}

SlowNote::SlowNote(std::string text, std::chrono::milliseconds patience, Tell tell) {
  auto wait = [text = std::move(text), patience,
               tell = std::move(tell)](const std::stop_token& over) {
    try {
      std::mutex mutex;
      std::condition_variable_any ends;
      std::unique_lock lock(mutex);
      ends.wait_for(lock, over, patience, [] { return false; });
      if (!over.stop_requested()) tell(text);
    } catch (const std::bad_alloc&) {
      // As without a thread.
    }
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
