#include "wire/history.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <chrono>

namespace hpcbatch::wire {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

bool is_plain(char c) {
  return c > ' ' && c < '\x7f' && c != '%' && c != '=';
}

void append_escaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

}  // namespace

std::string to_line(const HistoryRecord& record) {
  std::string line = std::to_string(record.time_us);
  for (const std::string* word : {&record.by, &record.what}) {
    line += ' ';
    append_escaped(line, *word);
  }
  for (const auto& [name, value] : record.facts) {
    line += ' ';
    append_escaped(line, name);
    line += '=';
    append_escaped(line, value);
  }
  line += '\n';
  return line;
}

HistoryFile::HistoryFile(const std::string& folder, const std::string& name, std::string by)
    : file_(::open((folder + "/" + name + ".history").c_str(),
                   O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)),
      by_(std::move(by)) {}

HistoryFile::~HistoryFile() {
  if (file_ >= 0) ::close(file_);
}

void HistoryFile::add(std::string what,
                      std::vector<std::pair<std::string, std::string>> facts) const {
  if (file_ < 0) return;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::string line =
      to_line({std::chrono::duration_cast<std::chrono::microseconds>(now).count(), by_,
               std::move(what), std::move(facts)});
  [[maybe_unused]] const ssize_t written = ::write(file_, line.data(), line.size());
}

}  // namespace hpcbatch::wire
