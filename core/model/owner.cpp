#include "model/owner.hpp"

#include <fmt/format.h>

#include <sstream>

namespace hpcbatch {

std::string to_text(const Owner& owner) {
  return fmt::format("host {}\nboot {}\nprocess {}\nstart {}\nheartbeat {}\nidle {:d}\nconfig {}\n",
                     owner.host, owner.boot_id, owner.process, owner.process_start, owner.heartbeat,
                     owner.ends_when_idle, owner.config);
}

std::optional<Owner> parse_owner(std::string_view text) {
  std::istringstream in{std::string(text)};
  Owner owner;
  std::string key;
  int fields = 0;
  while (in >> key) {
    if (key == "host")
      in >> owner.host;
    else if (key == "boot")
      in >> owner.boot_id;
    else if (key == "process")
      in >> owner.process;
    else if (key == "start")
      in >> owner.process_start;
    else if (key == "heartbeat")
      in >> owner.heartbeat;
    else if (key == "idle")
      in >> owner.ends_when_idle;
    else if (key == "config")
      std::getline(in.ignore(), owner.config);
    ++fields;
  }
  return fields >= 5 ? std::optional(owner) : std::nullopt;
}

}  // namespace hpcbatch
