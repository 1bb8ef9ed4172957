// What qstat prints of jobs.  Pure.
#pragma once

#include "pbs_commands/pbs_job.hpp"
#include "slurm_commands/listing.hpp"

#include <boost/json/object.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch::pbs_commands {

using slurm_commands::Viewed;

std::string queue_of(const PbsJob& job, const Viewed& viewed);

/// All that `qstat -f` tells of a job, in its order; lists of values are objects.
boost::json::object attributes_of(const PbsJob& job, const Viewed& viewed, const std::string& host);

/// `Job Id: 12.hpcbatch` and a line for each attribute; long ones go on in the next line, which begins
/// with a tab, but where `wide`.
std::string attributes_as_text(const std::string& id, const boost::json::object& attributes,
                               bool wide);
/// `Job Id: 12.hpcbatch|Job_Name=x|...`
std::string attributes_as_dsv(const std::string& id, const boost::json::object& attributes,
                              const std::string& delimiter);
/// Laid out as PBS does it: tabs, and a tab behind each colon.
std::string json_as_text(const boost::json::object& object);

/// The tables of qstat, of `qstat -u` and its relatives (-a), of -B and of -Q; no job: no table.
std::string short_table(const std::vector<PbsJob>& jobs, const Viewed& viewed);
std::string long_table(const std::vector<PbsJob>& jobs, const Viewed& viewed);
std::string server_table(const std::vector<PbsJob>& jobs);
std::string queue_table(const std::vector<PbsJob>& jobs, const Viewed& viewed);

}  // namespace hpcbatch::pbs_commands
