#include "wire/history.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

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

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!is_plain(text[i])) return std::nullopt;
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = kHex.find(text[i + 1]);
    const std::size_t low = kHex.find(text[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

/// Cuts the next word off; empty at the end.
std::string_view next_word(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

Error expected(const std::string& what) {
  return {Error::Kind::Rejected, "cannot read a line of a history: expected " + what};
}

}  // namespace

std::string_view HistoryRecord::get(std::string_view name) const {
  const auto at = std::find_if(facts.begin(), facts.end(),
                               [&](const auto& fact) { return fact.first == name; });
  return at == facts.end() ? std::string_view() : std::string_view(at->second);
}

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

hpcbatch::Result<HistoryRecord> read_history_line(std::string_view line) {
  HistoryRecord record;
  const std::string_view time = next_word(line);
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), record.time_us);
  if (error != std::errc{} || end != time.data() + time.size()) {
    return expected("a time in microseconds first, not '" + std::string(time) + "'");
  }
  for (std::string* word : {&record.by, &record.what}) {
    const auto text = unescaped(next_word(line));
    if (!text || text->empty()) return expected("who recorded what after the time");
    *word = *text;
  }
  while (!line.empty()) {
    const std::string_view word = next_word(line);
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string_view::npos)
      return expected("NAME=VALUE, not '" + std::string(word) + "'");
    auto name = unescaped(word.substr(0, equals));
    auto value = unescaped(word.substr(equals + 1));
    if (!name || !value)
      return expected("NAME=VALUE without a bad %XX, not '" + std::string(word) + "'");
    record.facts.emplace_back(std::move(*name), std::move(*value));
  }
  return record;
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
