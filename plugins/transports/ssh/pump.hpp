// Moves bytes between a descriptor and a channel, each as fast as the other takes them.
#pragma once

#include "session.hpp"

#include <string>
#include <vector>

namespace hpcbatch {

class Pump {
 public:
  /// `first` came from the far side before.
  Pump(Session& session, int near, ssh_channel far, std::string first);
  /// Until either end is closed or the connection is lost.
  void run();

 private:
  void take_near();
  bool give_far();
  void take_far();
  bool give_near();
  bool wait();

  Session& session_;
  int near_;
  ssh_channel far_;
  std::string to_far_;
  std::string to_near_;
  std::vector<char> buffer_;
  bool near_has_ended_{false};
  bool eof_is_sent_{false};
};

/// The far side has ended, and all that it said was taken.
bool is_closed(ssh_channel channel);

}  // namespace hpcbatch
