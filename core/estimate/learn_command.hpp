// `hpcbatch waits train`: asks the engine for what a site's accounting keeps, learns from it, and
// leaves a model where the engine takes it from.
#pragma once

#include "plugin_host/plugin_host.hpp"

#include <boost/json/value.hpp>

#include <functional>
#include <string>

namespace hpcbatch::estimate {

/// What is being done, how much of it, of how much.
using LearnProgress = std::function<void(const std::string&, std::size_t, std::size_t)>;

/// `asked`: {"site", "days", "estimator", "json"}.  Returns the exit code; throws CommandError,
/// InterruptedByUser, and std::exception where `asked` is no such thing.
int learn_waits(const PluginHost& plugins, const boost::json::value& asked,
                const LearnProgress& progress);

}  // namespace hpcbatch::estimate
