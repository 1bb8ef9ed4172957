// `hpcbatch plugin check`: holds a plugin against the contract of its kind, in a process of its own.
#pragma once

#include <boost/json/object.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace hpcbatch::plugin_kit {

struct CheckAsked {
  std::filesystem::path file;
  std::string config;       ///< text: of a tool its file, of others what a site says of it
  std::string config_file;  ///< where that stands
  std::string directory;    ///< where a transport may write; empty: a new one in TMPDIR
};

/// What is heard while it is asked: {"plugin", "kind", "version", "fingerprint"} first, then
/// {"promise": words} when one is begun and {"good": true or false, "text": what is wrong} when it is
/// over.
using Heard = std::function<void(const boost::json::object&)>;

/// What speaks against it in one sentence; empty: it keeps the contract.  Throws std::exception where
/// it cannot be asked.
std::string check_plugin(const CheckAsked& asked, const Heard& heard);

}  // namespace hpcbatch::plugin_kit
