#include "sites/submit_trial.hpp"

#include "plugin_host/guarded.hpp"
#include "sites/allocation_request.hpp"

#include "hpcbatch/submit_trial.hpp"

#include <fmt/format.h>

namespace hpcbatch {
namespace {

constexpr const char* kTrialName = "hbtrial";

}  // namespace

std::vector<SiteCheck> try_shapes(const Site& site, const Scheduler& scheduler,
                                  Transport& transport, const std::string& folder,
                                  Deadline deadline) {
  const auto* trial = dynamic_cast<const SubmitTrial*>(&scheduler);
  if (!trial) return {};
  std::vector<SiteCheck> checks;
  for (const Shape& shape : site.shapes) {
    AllocationRequest request = allocation_request(site, shape, kTrialName, {"/bin/true"});
    request.directory = folder;
    const std::string script_at = folder + "/trial.sh";
    const auto said = guarded("scheduler", [&]() -> Result<std::string> {
      const std::string script = scheduler.script(request);
      if (auto put = transport.put_text({{script_at, script, 0700}}, deadline); !put)
        return put.error();
      auto output = transport.run(trial->try_submit(request, script_at), deadline);
      if (!output) return output.error();
      return trial->read_try_submit(*output);
    });
    checks.push_back({"submit " + shape.name, said.has_value(),
                      said ? *said : fmt::format("it would not be taken: {}", said.error().text)});
  }
  return checks;
}

}  // namespace hpcbatch
