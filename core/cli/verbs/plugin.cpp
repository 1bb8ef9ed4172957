// `plugin`: hands over to the program for those who write plugins.
#include "cli/verbs/part_program.hpp"
#include "cli/verbs/verbs.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace hpcbatch {

int care_for_plugins(const PluginCommand& command, const Session& session) {
  const boost::json::object asked{{"verb", command.verb}, {"kind", command.kind},
                                  {"name", command.name}, {"directory", command.directory},
                                  {"file", command.file}, {"config", command.config},
                                  {"json", command.json}};
  become_part("hpcbatch-plugin", {boost::json::serialize(asked)}, session.interrupt);
}

}  // namespace hpcbatch
