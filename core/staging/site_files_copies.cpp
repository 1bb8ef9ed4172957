// SiteFiles' large files, each by itself over the transport's own put and get.
#include "staging/site_files_body.hpp"
#include "wire/file_store.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <utility>

namespace hpcbatch {
namespace {

using namespace std::chrono_literals;

constexpr unsigned kMostTries = 5;

/// What was cut off by it goes on in the next try.
std::chrono::milliseconds limit_for(std::uint64_t size) {
  return 300s + std::chrono::seconds(size >> 22);
}

bool says_full(const std::string& text) {
  return text.find("No space left") != std::string::npos;
}
bool says_quota(const std::string& text) {
  return text.find("quota exceeded") != std::string::npos ||
         text.find("Quota exceeded") != std::string::npos;
}

}  // namespace

void SiteFiles::Body::copy() {
  if (copying_.is_busy || copying_.pause.is_on || wants_exchange_) return;
  copies_.fetches_next = !copies_.fetches_next;
  if (copies_.fetches_next ? copy_here() || copy_there() : copy_there() || copy_here())
    copying_.is_busy = true;
}

bool SiteFiles::Body::copy_there() {
  if (figures_.exchanges == 0) return false;
  auto file = files_.take_large();
  if (!file) return false;
  // Of one that was cut off a part is there already, and what is missing may well have room.
  if (file->state.size > free_bytes_ && !copies_.tries.contains(file->key)) {
    wire::FilesReport::Done full;
    full.set_trouble(static_cast<std::uint32_t>(wire::FileTrouble::DiskFull));
    full.set_text(
        fmt::format("{} bytes wanted, {} bytes free there", file->state.size, free_bytes_));
    files_.no_room(file->key, full_disk(full));
    // What is free now is known after it.
    wants_exchange_ = true;
    wake();
    return false;
  }
  if (!copying_.tools && !renew(copying_.tools)) {
    files_.not_sent(file->key);
    copy_failed(figures_.trouble);
    return false;
  }
  auto sent = std::make_shared<LargeSent>();
  const std::string place = there(wire::incoming_of_key(file->key));
  auto begin = [this, sent, place, file = *file]() -> CallLane::Work {
    return [sent, place, file, tools = copying_.tools](Deadline deadline) {
      *sent = send_large(*tools, file, place, deadline);
    };
  };
  copying_.calls.call(limit_for(file->state.size), std::move(begin),
                      [this, sent, file = *file](bool given_up) {
                        copied_there(file, given_up ? LargeSent{} : *sent);
                      });
  return true;
}

void SiteFiles::Body::copied_there(const StagedFiles::Sending& file, const LargeSent& sent) {
  copying_.is_busy = false;
  wake();
  if (sent.is_changed) {
    copies_.tries.erase(file.key);
    drops_.waiting.push_back(wire::incoming_folder_of_key(file.key));
    return files_.changed(file);
  }
  if (sent.result) {
    copying_.pause.failures = 0;
    copies_.trouble.clear();
    copies_.arrived.push_back(file);
    return;
  }
  const std::string& text = sent.result.error().text;
  // A site that cannot be reached at all is waited for by exchanges.
  wants_exchange_ = true;
  if (says_full(text) || says_quota(text)) {
    wire::FilesReport::Done full;
    full.set_trouble(static_cast<std::uint32_t>(says_full(text) ? wire::FileTrouble::DiskFull
                                                                : wire::FileTrouble::Quota));
    full.set_text(fmt::format("{}: {} bytes wanted, {} bytes were free there", text,
                              file.state.size, free_bytes_));
    return files_.no_room(file.key, full_disk(full));
  }
  if (++copies_.tries[file.key] >= kMostTries) {
    copies_.tries.erase(file.key);
    return files_.refused(file.key, {true, Failure::StageInFailed,
                                     fmt::format("cannot bring {} to {}, {} times: {}", file.path,
                                                 site_.name, kMostTries, text)});
  }
  files_.not_sent(file.key);
  copy_failed(text);
}

bool SiteFiles::Body::copy_here() {
  if (takes_.large.empty()) return false;
  if (!copying_.tools && !renew(copying_.tools)) {
    copy_failed(figures_.trouble);
    return false;
  }
  auto fetch = std::make_shared<Fetch>(std::move(takes_.large.front()));
  takes_.large.pop_front();
  auto fetched = std::make_shared<LargeFetched>();
  auto begin = [this, fetched, file = fetch->file]() -> CallLane::Work {
    return [fetched, file, tools = copying_.tools](Deadline deadline) {
      *fetched = fetch_large(*tools, file, deadline);
    };
  };
  copying_.calls.call(limit_for(fetch->file.size), std::move(begin),
                      [this, fetched, fetch](bool given_up) {
                        copied_here(std::move(*fetch), given_up ? LargeFetched{} : *fetched);
                      });
  return true;
}

void SiteFiles::Body::copied_here(Fetch fetch, const LargeFetched& fetched) {
  copying_.is_busy = false;
  wake();
  if (fetched.here) return finish(fetch.item, fetched.here);
  if (fetched.result) {
    copying_.pause.failures = 0;
    copies_.trouble.clear();
    figures_.bytes_taken += fetch.file.size;
    ++figures_.files_taken;
    return finish(fetch.item, std::nullopt);
  }
  wants_exchange_ = true;
  const std::string& text = fetched.result.error().text;
  if (++fetch.item.tries >= kMostTries)
    return finish(fetch.item,
                  StageError{true, Failure::StageOutFailed,
                             fmt::format("cannot take {} from {}, {} times: {}", fetch.file.there,
                                         site_.name, kMostTries, text)});
  // It may be gone or another one by now: its size is asked for again.
  takes_.waiting.push_back(std::move(fetch.item));
  copy_failed(text);
}

void SiteFiles::Body::copy_failed(const std::string& why) {
  if (copies_.trouble != why) spdlog::warn("the files of {}: {}", site_.name, why);
  copies_.trouble = why;
  pause(copying_.pause);
}

}  // namespace hpcbatch
