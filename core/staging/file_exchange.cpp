#include "staging/file_exchange.hpp"

#include "plugin_host/guarded.hpp"
#include "posix/files.hpp"
#include "staging/stage_out.hpp"
#include "wire/checksum.hpp"
#include "wire/file_store.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace hpcbatch {
namespace {

/// Nothing where it is not what was hashed; why is found out when it is hashed again.
std::optional<std::string> content_of(const StagedFiles::Sending& file) {
  const Fd fd(open_to_read(file.path));
  if (!fd || state_of(fd.get()) != file.state) return std::nullopt;
  std::string bytes(file.state.size, '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(fd.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  wire::ContentHash hash;
  hash.add(bytes);
  if (!file.key.starts_with(hash.digits())) return std::nullopt;
  return bytes;
}

bool is_unchanged(const StagedFiles::Sending& file) {
  const Fd fd(open_to_read(file.path));
  return fd && state_of(fd.get()) == file.state;
}

StageError not_taken(const wire::FilesReport::Done& done) {
  const auto trouble = static_cast<wire::FileTrouble>(done.trouble());
  const bool is_lasting =
      trouble == wire::FileTrouble::Absent || trouble == wire::FileTrouble::Refused;
  const bool is_absent = trouble == wire::FileTrouble::Absent;
  return {!is_lasting, is_absent ? Failure::OutputMissing : Failure::StageOutFailed, done.text()};
}

}  // namespace

ExchangeOutcome exchange_files(ExchangeTools& tools, const PilotProgram& program,
                               const std::string& workspace, ExchangePlan plan, Deadline deadline) {
  ExchangeOutcome outcome;
  for (std::size_t at = 0; at < plan.small.size(); ++at) {
    auto content = content_of(plan.small[at]);
    if (!content) {
      outcome.changed.push_back(at);
      continue;
    }
    wire::FilesOrder::Put* put = plan.order.add_put();
    put->set_key(plan.small[at].key);
    put->set_data(std::move(*content));
    put->set_executable(plan.small[at].state.executable);
    outcome.put.push_back(at);
  }
  outcome.report = parsed_report<wire::FilesReport>(
      run_exchange(tools, program, "files", workspace, plan.order.SerializeAsString(), deadline));
  if (!outcome.report) return outcome;
  // The call may have been given up: nothing may be written here any more.
  if (std::chrono::steady_clock::now() >= deadline) {
    outcome.report = Error{Error::Kind::Transient, "the exchange did not end in time"};
    return outcome;
  }
  // What is none of an answer to what was asked is not heard.
  wire::FilesReport& report = *outcome.report;
  const auto most_taken = static_cast<int>(plan.take_to.size());
  while (report.take_size() > most_taken) report.mutable_take()->RemoveLast();
  for (int at = 0; at < report.take_size(); ++at) {
    wire::FilesReport::Took& took = *report.mutable_take(at);
    std::optional<StageError>& error = outcome.taken.emplace_back();
    if (took.done().trouble() != 0) {
      error = not_taken(took.done());
    } else if (!took.too_large()) {
      error = write_whole_file(plan.take_to[static_cast<std::size_t>(at)], took.data(),
                               took.mode() & 0777);
      took.clear_data();
    }
  }
  return outcome;
}

LargeSent send_large(ExchangeTools& tools, const StagedFiles::Sending& file,
                     const std::string& place, Deadline deadline) {
  LargeSent sent;
  sent.is_changed = !is_unchanged(file);
  if (sent.is_changed) return sent;
  sent.result = guarded("transport", [&] {
    return tools.transport->put({{file.path, place, 0600}}, deadline);
  });
  sent.is_changed = !is_unchanged(file);
  return sent;
}

LargeFetched fetch_large(ExchangeTools& tools, const LargeFetch& file, Deadline deadline) {
  LargeFetched fetched;
  fetched.here = make_folder_of(file.here);
  if (fetched.here) return fetched;
  fetched.result = guarded("transport", [&] {
    return tools.transport->get({{file.there, file.here, file.mode}}, deadline);
  });
  return fetched;
}

}  // namespace hpcbatch
