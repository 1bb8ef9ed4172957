// Fields of sacct, of jobs and of their steps.
#include "model/quantities.hpp"
#include "slurm_commands/listing.hpp"
#include "slurm_commands/options.hpp"
#include "slurm_commands/times.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace hpcbatch::slurm_commands {
namespace {

using Line = SacctLine;

struct SacctField {
  std::string_view title;
  std::size_t width;
  std::string (*value)(const Line&, const Viewed&);
  bool left{false};
};

std::string with_step(const std::string& id, const Line& line) {
  return line.step.empty() ? id : id + "." + line.step;
}

std::string state_text(const Line& line, const Viewed& viewed) {
  std::string word(words_of(line.job.state).word);
  if (line.job.state == JobState::Cancelled && line.step.empty())
    return word + " by " + std::to_string(viewed.uid);
  if (line.step == "extern" && has_ended(line.job.state)) return "COMPLETED";
  // Slurm calls a step so that a signal has ended, as where the time is over.
  const bool is_ended_by_signal = line.job.signal != 0 && line.job.state == JobState::Failed;
  if (!line.step.empty() && (is_ended_by_signal || line.job.state == JobState::Timeout))
    return "CANCELLED";
  return word;
}

std::string exit_text(const Line& line, const Viewed&) {
  const Job& job = line.job;
  // As Slurm tells these of the job and of its steps.
  if (line.step == "extern") return "0:0";
  if (job.state == JobState::Timeout) return line.step.empty() ? "0:0" : "0:15";
  if (job.state == JobState::OutOfMemory) return "0:125";
  if (job.state == JobState::Cancelled && line.step.empty()) return "0:0";
  return std::to_string(job.exit_code) + ":" + std::to_string(job.signal);
}

std::string moment_of(const std::optional<double>& time, const Viewed& viewed) {
  return time ? moment(*time, viewed.time_format) : "Unknown";
}

double elapsed(const Job& job, const Viewed& viewed) {
  return job.started ? std::max(0.0, job.ended.value_or(viewed.now) - *job.started) : 0;
}

/// Of what waits those that it asks for.
std::string cpus_of_line(const Line& line, const Viewed&) {
  return std::to_string(cpus_of(line.job));
}

/// Only of what waits, and no more than that it does where it might start.
std::string reason_text(const Line& line, const Viewed&) {
  const Job& job = line.job;
  const bool is_told = job.state == JobState::Pending && line.step.empty() &&
                       job.reason != "Resources" && job.reason != "Priority";
  return !line.step.empty() ? "" : is_told ? job.reason : "None";
}

std::string cpu_text(double seconds) {
  char text[64];
  const auto whole = static_cast<long>(seconds);
  const double part = seconds - std::floor(seconds);
  if (whole < 3600) {
    std::snprintf(text, sizeof text, "%02ld:%06.3f", whole / 60,
                  static_cast<double>(whole % 60) + part);
    return text;
  }
  return long_duration(seconds);
}

std::string amount_text(std::uint64_t bytes, const Viewed& viewed);

std::string resident(const Line& line, const Viewed& viewed) {
  if (line.step.empty() || line.job.peak_memory == 0) return "";
  if (viewed.unit != 0 && line.step != "extern") return amount_text(line.job.peak_memory, viewed);
  return line.step == "extern" ? "0" : std::to_string(line.job.peak_memory >> 10U) + "K";
}

/// In the unit of --units, else as memory_text has it.
std::string amount_text(std::uint64_t bytes, const Viewed& viewed) {
  const auto unit = bytes_in(std::string_view(&viewed.unit, viewed.unit == 0 ? 0 : 1));
  if (!unit || *unit == 1) return memory_text(bytes);
  const double amount = static_cast<double>(bytes) / *unit;
  char text[64];
  std::snprintf(text, sizeof text, amount == std::floor(amount) ? "%.0f%c" : "%.2f%c", amount,
                viewed.unit);
  return text;
}

double planned(const Job& job, const Viewed& viewed) {
  const double until = job.started.value_or(job.ended.value_or(viewed.now));
  return std::max(0.0, until - eligible_since(job).value_or(until));
}

std::string resources(const Line& line, const Viewed& viewed, bool given) {
  const Job& job = line.job;
  if (given && !job.started) return "";
  const std::string cpus = std::to_string(cpus_of(job));
  std::string text = (line.step.empty() ? "billing=" + cpus + "," : "") + "cpu=" + cpus;
  if (const std::uint64_t gpus = gpus_of(job); gpus != 0)
    text += ",gres/gpu=" + std::to_string(gpus);
  if (job.memory != 0) text += ",mem=" + amount_text(job.memory, viewed);
  return text + ",node=1";
}

std::string of_job(const Line& line, const std::string& text) {
  return line.step.empty() ? text : "";
}

std::string nothing(const Line&, const Viewed&) {
  return "";
}

const SacctField kFields[] = {
    {"Account", 10, [](const Line& l, const Viewed&) { return l.job.account; }},
    {"AdminComment", 15, nothing},
    {"AllocCPUS", 10, cpus_of_line},
    {"AllocNodes", 10,
     [](const Line& l, const Viewed&) { return std::string(l.job.started ? "1" : "0"); }},
    {"AllocTRES", 10, [](const Line& l, const Viewed& v) { return resources(l, v, true); }},
    {"AssocID", 7, nothing},
    {"AveCPU", 10,
     [](const Line& l, const Viewed&) {
       return l.step == "batch" ? long_duration(l.job.cpu_s) : "";
     }},
    {"AveCPUFreq", 10, nothing},
    {"AveDiskRead", 14, nothing},
    {"AveDiskWrite", 14, nothing},
    {"AvePages", 10, nothing},
    {"AveRSS", 10, resident},
    {"AveVMSize", 10, nothing},
    {"BlockID", 16, nothing},
    {"Cluster", 10, [](const Line&, const Viewed&) { return std::string("hpcbatch"); }},
    {"Comment", 14, [](const Line& l, const Viewed&) { return of_job(l, l.job.comment); }},
    {"Constraints", 19, [](const Line& l, const Viewed&) { return of_job(l, l.job.constraint); }},
    {"ConsumedEnergy", 14, nothing},
    {"ConsumedEnergyRaw", 17, nothing},
    {"Container", 19, nothing},
    {"CPUTime", 10,
     [](const Line& l, const Viewed& v) {
       return long_duration(elapsed(l.job, v) * static_cast<double>(cpus_of(l.job)));
     }},
    {"CPUTimeRAW", 10,
     [](const Line& l, const Viewed& v) {
       return std::to_string(static_cast<long>(elapsed(l.job, v)) * cpus_of(l.job));
     }},
    {"DBIndex", 10, nothing, true},
    {"DerivedExitCode", 15, [](const Line& l, const Viewed&) { return of_job(l, "0:0"); }},
    {"Elapsed", 10,
     [](const Line& l, const Viewed& v) { return long_duration(elapsed(l.job, v)); }},
    {"ElapsedRaw", 10,
     [](const Line& l, const Viewed& v) {
       return std::to_string(static_cast<long>(elapsed(l.job, v)));
     }},
    {"Eligible", 19,
     [](const Line& l, const Viewed& v) { return moment_of(eligible_since(l.job), v); }},
    {"End", 19, [](const Line& l, const Viewed& v) { return moment_of(l.job.ended, v); }},
    {"ExitCode", 8, exit_text},
    {"Extra", 19, nothing},
    {"FailedNode", 19, nothing},
    {"Flags", 19, nothing},
    {"GID", 6, [](const Line& l, const Viewed& v) { return of_job(l, std::to_string(v.gid)); }},
    {"Group", 9, [](const Line& l, const Viewed& v) { return of_job(l, v.group); }},
    {"JobID", 12, [](const Line& l, const Viewed&) { return with_step(job_id(l.job), l); }, true},
    {"JobIDRaw", 12,
     [](const Line& l, const Viewed&) { return with_step(std::to_string(number_of(l.job)), l); },
     true},
    {"JobName", 10,
     [](const Line& l, const Viewed&) { return l.step.empty() ? l.job.name : l.step; }},
    {"Layout", 9,
     [](const Line& l, const Viewed&) { return std::string(l.step.empty() ? "" : "Unknown"); }},
    {"Licenses", 19, nothing},
    {"MaxDiskRead", 12, nothing},
    {"MaxDiskReadNode", 15, nothing},
    {"MaxDiskReadTask", 15, nothing},
    {"MaxDiskWrite", 12, nothing},
    {"MaxDiskWriteNode", 16, nothing},
    {"MaxDiskWriteTask", 16, nothing},
    {"MaxPages", 8, nothing},
    {"MaxPagesNode", 12, nothing},
    {"MaxPagesTask", 14, nothing},
    {"MaxRSS", 10, resident},
    {"MaxRSSNode", 10,
     [](const Line& l, const Viewed&) { return l.step.empty() ? "" : l.job.node; }},
    {"MaxRSSTask", 10,
     [](const Line& l, const Viewed&) {
       return std::string(l.step.empty() || l.job.peak_memory == 0 ? "" : "0");
     }},
    {"MaxVMSize", 10, nothing},
    {"MaxVMSizeNode", 14, nothing},
    {"MaxVMSizeTask", 14, nothing},
    {"McsLabel", 12, nothing},
    {"MinCPU", 10, nothing},
    {"MinCPUNode", 10, nothing},
    {"MinCPUTask", 10, nothing},
    {"NCPUS", 10, cpus_of_line},
    {"NNodes", 8, [](const Line&, const Viewed&) { return std::string("1"); }},
    {"NodeList", 15,
     [](const Line& l, const Viewed&) {
       return l.job.node.empty() ? std::string("None assigned") : l.job.node;
     }},
    {"NTasks", 8,
     [](const Line& l, const Viewed&) { return std::string(l.step.empty() ? "" : "1"); }},
    {"Partition", 10,
     [](const Line& l, const Viewed& v) {
       return of_job(l, l.job.partition.empty() ? v.default_partition : l.job.partition);
     }},
    {"Planned", 10,
     [](const Line& l, const Viewed& v) { return of_job(l, long_duration(planned(l.job, v))); }},
    {"PlannedCPU", 10,
     [](const Line& l, const Viewed& v) {
       return of_job(l, long_duration(planned(l.job, v) * static_cast<double>(cpus_of(l.job))));
     }},
    {"PlannedCPURAW", 10,
     [](const Line& l, const Viewed& v) {
       return of_job(l, std::to_string(static_cast<long>(planned(l.job, v)) * cpus_of(l.job)));
     }},
    {"Priority", 10,
     [](const Line& l, const Viewed&) { return of_job(l, std::to_string(priority_of(l.job))); }},
    {"QOS", 10,
     [](const Line& l, const Viewed&) {
       return of_job(l, l.job.qos.empty() ? "normal" : l.job.qos);
     }},
    {"QOSRAW", 6, [](const Line& l, const Viewed&) { return of_job(l, "1"); }},
    {"QOSREQ", 10, nothing},
    {"Reason", 22, reason_text},
    {"ReqCPUFreq", 10, nothing},
    {"ReqCPUFreqGov", 13, nothing},
    {"ReqCPUFreqMax", 13, nothing},
    {"ReqCPUFreqMin", 13, nothing},
    {"ReqCPUS", 8, cpus_of_line},
    {"ReqMem", 10,
     [](const Line& l, const Viewed& v) {
       return of_job(l, l.job.memory == 0 ? "" : amount_text(l.job.memory, v));
     }},
    {"ReqNodes", 8, [](const Line&, const Viewed&) { return std::string("1"); }},
    {"ReqTRES", 10,
     [](const Line& l, const Viewed& v) { return of_job(l, resources(l, v, false)); }},
    {"Reservation", 20, [](const Line& l, const Viewed&) { return of_job(l, l.job.reservation); }},
    {"ReservationId", 8, nothing},
    {"Reserved", 10,
     [](const Line& l, const Viewed& v) { return of_job(l, long_duration(planned(l.job, v))); }},
    {"ResvCPU", 10,
     [](const Line& l, const Viewed& v) {
       return of_job(l, long_duration(planned(l.job, v) * static_cast<double>(cpus_of(l.job))));
     }},
    {"ResvCPURAW", 10,
     [](const Line& l, const Viewed& v) {
       return of_job(l, std::to_string(static_cast<long>(planned(l.job, v)) * cpus_of(l.job)));
     }},
    {"Restarts", 8,
     [](const Line& l, const Viewed&) { return of_job(l, std::to_string(l.job.restarts)); }},
    {"SLUID", 19, nothing},
    {"Start", 19,
     [](const Line& l, const Viewed& v) {
       return moment_of(l.job.started ? l.job.started : l.job.ended, v);
     }},
    {"State", 10, state_text},
    {"StdErr", 20, [](const Line& l, const Viewed&) { return of_job(l, l.job.error); }},
    {"StdIn", 20, [](const Line& l, const Viewed&) { return of_job(l, l.job.input); }},
    {"StdOut", 20, [](const Line& l, const Viewed&) { return of_job(l, l.job.output); }},
    {"Submit", 19, [](const Line& l, const Viewed& v) { return moment_of(l.job.submitted, v); }},
    {"SubmitLine", 20, nothing},
    {"Suspended", 10, [](const Line&, const Viewed&) { return std::string("00:00:00"); }},
    {"SystemComment", 15, nothing},
    {"SystemCPU", 10, [](const Line&, const Viewed&) { return std::string("00:00:00"); }},
    {"Timelimit", 10,
     [](const Line& l, const Viewed&) {
       return of_job(l, l.job.time_limit ? long_duration(*l.job.time_limit) : "UNLIMITED");
     }},
    {"TimelimitRaw", 10,
     [](const Line& l, const Viewed&) {
       return of_job(l, l.job.time_limit ? std::to_string(static_cast<long>(*l.job.time_limit / 60))
                                         : "UNLIMITED");
     }},
    {"TotalCPU", 10, [](const Line& l, const Viewed&) { return cpu_text(l.job.cpu_s); }},
    {"TRESUsageInAve", 14, nothing},
    {"TRESUsageInMax", 14, nothing},
    {"TRESUsageInMaxNode", 18, nothing},
    {"TRESUsageInMaxTask", 18, nothing},
    {"TRESUsageInMin", 14, nothing},
    {"TRESUsageInMinNode", 18, nothing},
    {"TRESUsageInMinTask", 18, nothing},
    {"TRESUsageInTot", 14, nothing},
    {"TRESUsageOutAve", 15, nothing},
    {"TRESUsageOutMax", 15, nothing},
    {"TRESUsageOutMaxNode", 19, nothing},
    {"TRESUsageOutMaxTask", 19, nothing},
    {"TRESUsageOutMin", 15, nothing},
    {"TRESUsageOutMinNode", 19, nothing},
    {"TRESUsageOutMinTask", 19, nothing},
    {"TRESUsageOutTot", 15, nothing},
    {"UID", 6, [](const Line& l, const Viewed& v) { return of_job(l, std::to_string(v.uid)); }},
    {"User", 9, [](const Line& l, const Viewed& v) { return of_job(l, v.user); }},
    {"UserCPU", 10, [](const Line& l, const Viewed&) { return cpu_text(l.job.cpu_s); }},
    {"WCKey", 10, nothing},
    {"WCKeyID", 10, nothing},
    {"WorkDir", 20, [](const Line& l, const Viewed&) { return of_job(l, l.job.directory); }},
};

bool is_same(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char one, char two) { return lower_case(one) == lower_case(two); });
}

/// A name or the beginning of one, as sacct takes them.
const SacctField* field_named(std::string_view name) {
  for (const SacctField& field : kFields) {
    if (is_same(field.title, name)) return &field;
  }
  for (const SacctField& field : kFields) {
    if (!name.empty() && is_same(field.title.substr(0, name.size()), name)) return &field;
  }
  return nullptr;
}

}  // namespace

std::vector<std::string> sacct_field_names() {
  std::vector<std::string> names;
  for (const SacctField& field : kFields) names.emplace_back(field.title);
  return names;
}

SacctTable::SacctTable(const std::vector<std::string>& fields, SacctStyle style, Viewed viewed)
    : style_(std::move(style)), viewed_(std::move(viewed)) {
  for (const std::string& word : fields) {
    const std::size_t percent = std::min(word.find('%'), word.size());
    const SacctField* known = field_named(std::string_view(word).substr(0, percent));
    if (known == nullptr)
      throw CommandFailed("sacct: error: Invalid field requested: \"" + word.substr(0, percent) +
                          "\"");
    Field field{std::string(known->title), known->value, known->width, known->left};
    int width = 0;
    if (percent < word.size()) {
      std::from_chars(word.data() + percent + 1, word.data() + word.size(), width);
      if (width != 0) field.width = static_cast<std::size_t>(std::abs(width));
      field.left = width < 0;
    }
    fields_.push_back(std::move(field));
  }
}

std::string SacctTable::row(const std::function<std::string(const Field&)>& text_of) const {
  std::string line;
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    std::string text = text_of(field);
    if (style_.parsable) {
      line += text;
      if (i + 1 < fields_.size() || style_.last_delimiter) line += style_.delimiter;
      continue;
    }
    if (text.size() > field.width) text = text.substr(0, field.width - 1) + "+";
    const std::string blanks(field.width - text.size(), ' ');
    line += (field.left ? text + blanks : blanks + text) + " ";
  }
  return line + "\n";
}

std::string SacctTable::titles() const {
  std::string text = row([this](const Field& field) {
    return style_.parsable ? field.title : field.title.substr(0, field.width);
  });
  if (style_.parsable) return text;
  return text + row([](const Field& field) { return std::string(field.width, '-'); });
}

std::string SacctTable::line(const SacctLine& line) const {
  return row([&](const Field& field) { return field.value(line, viewed_); });
}

}  // namespace hpcbatch::slurm_commands
