// The file that tells a pilot who it is: its key, where the engine is, what it may use and for how
// long.  The engine writes one per allocation, readable by nobody else; the pilot reads it at its
// start and before each new link.
#pragma once

#include "wire/encrypted_link.hpp"

#include "hpcbatch/result.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hpcbatch::wire {

struct Address {
  enum class Kind {
    Unix,
    Tcp,
    Relay,  // the file in which the site's relay says where it listens (relay.hpp)
    Spool,  // the folder in which bytes lie as files (relay.hpp)
  };
  Kind kind{Kind::Unix};
  std::string place;      // absolute path, or an IPv4 or IPv6 address in numbers
  std::uint16_t port{0};  // of Tcp
  friend bool operator==(const Address&, const Address&) = default;
};

/// "unix /path", "tcp 10.0.0.1 4000", "relay /path" or "spool /path".
std::string to_text(const Address& address);
std::optional<Address> parse_address(std::string_view text);

struct PilotFile {
  std::string allocation;
  std::string site;
  Key key{};                       // the allocation's; a pilot uses pilot_key(key, rank)
  std::vector<Address> addresses;  // tried in order
  std::string workspace;           // absolute
  // What each node has, in 1/10000: cpus, memory (bytes), gpus/KIND.  Devices are numbered in the
  // order of kinds here.
  std::vector<std::pair<std::string, std::int64_t>> capacity;
  std::chrono::milliseconds walltime{0};  // from the pilot's start; 0: none
  std::chrono::milliseconds margin{0};    // be gone that long before the walltime
  std::chrono::milliseconds idle{0};      // end after that long with nothing to do; 0: never
  std::string gpu_test;                   // of the site, for a shell; empty: none
  bool shares_gpus_by_mps{false};         // between tasks of parts of one
  std::string gpu_helper;                 // absolute path of `hpcbatch-gpu`; empty: none
  std::string scratch{"/tmp"};            // where the slots' TMPDIR is made
  std::string history;                    // folder of histories (history.hpp); empty: none
  friend bool operator==(const PilotFile&, const PilotFile&) = default;
};

std::string to_text(const PilotFile& file);

/// `name` stands in the error, with the line.
hpcbatch::Result<PilotFile> parse_pilot_file(std::string_view text, const std::string& name);

/// Refuses a file that another user owns or that others can read.  Transient: it is not there or
/// cannot be read now.
hpcbatch::Result<PilotFile> read_pilot_file(const std::string& path);

}  // namespace hpcbatch::wire
