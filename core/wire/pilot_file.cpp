#include "wire/pilot_file.hpp"

#include "wire/encrypted_link.hpp"
#include "wire/whole_file.hpp"

#include <hpcbatch/text.hpp>

#include <optional>
#include <set>

namespace hpcbatch::wire {
namespace {

constexpr std::string_view kFirstLine = "hpcbatch-pilot 1";

std::optional<std::int64_t> number(std::string_view text) {
  const auto value = number_in<std::int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

/// Cuts the first word and the blank behind it off `text`.
std::string_view take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return word;
}

/// Says what was expected where it is not that.
class Reader {
 public:
  explicit Reader(PilotFile& file) : file_(file) {}

  /// Empty: the line was taken.
  std::string take(std::string_view key, std::string_view rest) {
    const bool repeats = key == "address" || key == "capacity";
    if (!repeats && !seen_.insert(std::string(key)).second)
      return "'" + std::string(key) + "' stands there twice";
    if (key == "allocation") return take_name(rest);
    if (key == "site") return take_text(rest, file_.site);
    if (key == "key") return take_key(rest);
    if (key == "address") return take_address(rest);
    if (key == "workspace") return take_path(rest, file_.workspace);
    if (key == "scratch") return take_path(rest, file_.scratch);
    if (key == "history") return take_path(rest, file_.history);
    if (key == "gpu_helper") return take_path(rest, file_.gpu_helper);
    if (key == "gpu_test") return take_text(rest, file_.gpu_test);
    if (key == "gpu_sharing") {
      file_.shares_gpus_by_mps = rest == "mps";
      return file_.shares_gpus_by_mps ? std::string() : "expected mps";
    }
    if (key == "capacity") return take_capacity(rest);
    if (key == "walltime_ms") return take_duration(rest, file_.walltime);
    if (key == "margin_ms") return take_duration(rest, file_.margin);
    if (key == "idle_ms") return take_duration(rest, file_.idle);
    return "unknown key '" + std::string(key) + "'";
  }

  std::string missing() const {
    for (const char* key : {"allocation", "key", "workspace"}) {
      if (!seen_.contains(key)) return "there is no line '" + std::string(key) + "'";
    }
    if (file_.addresses.empty()) return "there is no line 'address'";
    return {};
  }

 private:
  static std::string take_text(std::string_view rest, std::string& into) {
    if (rest.empty()) return "expected a word";
    into = rest;
    return {};
  }
  std::string take_name(std::string_view rest) {
    const bool good =
        !rest.empty() && rest.size() <= kLongestAllocationName &&
        rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") ==
            std::string_view::npos;
    if (!good) return "expected a name of up to 15 letters and digits";
    file_.allocation = rest;
    return {};
  }
  std::string take_key(std::string_view rest) {
    const auto key = key_from_hex(rest);
    if (!key) return "expected a key of 64 hexadecimal digits";
    file_.key = *key;
    return {};
  }
  static std::string take_path(std::string_view rest, std::string& into) {
    if (!rest.starts_with('/')) return "expected an absolute path";
    into = rest;
    return {};
  }
  static std::string take_duration(std::string_view rest, std::chrono::milliseconds& into) {
    const auto value = number(rest);
    if (!value) return "expected a number of milliseconds";
    into = std::chrono::milliseconds{*value};
    return {};
  }
  std::string take_address(std::string_view rest) {
    auto address = parse_address(rest);
    if (!address)
      return "expected 'unix /path', 'tcp NUMERIC-ADDRESS PORT', 'relay /path' or 'spool /path'";
    file_.addresses.push_back(std::move(*address));
    return {};
  }
  std::string take_capacity(std::string_view rest) {
    const std::string_view name = take_word(rest);
    const auto value = number(rest);
    if (name.empty() || !value) return "expected a name and an amount in 1/10000";
    for (const auto& [other, unused] : file_.capacity) {
      if (other == name) return "'" + std::string(name) + "' stands there twice";
    }
    file_.capacity.emplace_back(name, *value);
    return {};
  }

  PilotFile& file_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

std::string to_text(const Address& address) {
  switch (address.kind) {
    case Address::Kind::Unix:
      return "unix " + address.place;
    case Address::Kind::Relay:
      return "relay " + address.place;
    case Address::Kind::Spool:
      return "spool " + address.place;
    case Address::Kind::Tcp:
      break;
  }
  return "tcp " + address.place + " " + std::to_string(address.port);
}

std::optional<Address> parse_address(std::string_view text) {
  const std::string_view kind = take_word(text);
  if (text.starts_with('/')) {
    if (kind == "unix") return Address{Address::Kind::Unix, std::string(text), 0};
    if (kind == "relay") return Address{Address::Kind::Relay, std::string(text), 0};
    if (kind == "spool") return Address{Address::Kind::Spool, std::string(text), 0};
    return std::nullopt;
  }
  const std::string_view host = take_word(text);
  const auto port = number(text);
  if (kind != "tcp" || host.empty() || !port || *port < 1 || *port > 65535) return std::nullopt;
  return Address{Address::Kind::Tcp, std::string(host), static_cast<std::uint16_t>(*port)};
}

std::string to_text(const PilotFile& file) {
  std::string text(kFirstLine);
  const auto line = [&text](std::string_view key, std::string_view value) {
    text.append("\n").append(key).append(" ").append(value);
  };
  line("allocation", file.allocation);
  if (!file.site.empty()) line("site", file.site);
  line("key", to_hex(file.key));
  for (const Address& address : file.addresses) line("address", to_text(address));
  line("workspace", file.workspace);
  for (const auto& [name, amount] : file.capacity)
    line("capacity", name + " " + std::to_string(amount));
  line("walltime_ms", std::to_string(file.walltime.count()));
  line("margin_ms", std::to_string(file.margin.count()));
  line("idle_ms", std::to_string(file.idle.count()));
  line("scratch", file.scratch);
  if (!file.history.empty()) line("history", file.history);
  if (!file.gpu_helper.empty()) line("gpu_helper", file.gpu_helper);
  if (!file.gpu_test.empty()) line("gpu_test", file.gpu_test);
  if (file.shares_gpus_by_mps) line("gpu_sharing", "mps");
  text += '\n';
  return text;
}

hpcbatch::Result<PilotFile> parse_pilot_file(std::string_view text, const std::string& name) {
  PilotFile file;
  Reader reader(file);
  int line_number = 0;
  const auto refuse = [&](const std::string& why) {
    return Error{Error::Kind::Rejected,
                 name + ", line " + std::to_string(line_number) + ": " + why};
  };
  if (!text.ends_with('\n')) {
    return Error{Error::Kind::Rejected, name + " does not end with a line end: it was cut off"};
  }
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end + 1);
    if (line_number == 1) {
      if (line == kFirstLine) continue;
      return refuse("expected '" + std::string(kFirstLine) +
                    "': this is no pilot file, or one for another version of this program");
    }
    const std::string_view key = take_word(line);
    if (const std::string why = reader.take(key, line); !why.empty()) return refuse(why);
  }
  if (const std::string why = reader.missing(); !why.empty()) {
    return Error{Error::Kind::Rejected, name + ": " + why};
  }
  return file;
}

hpcbatch::Result<PilotFile> read_pilot_file(const std::string& path) {
  const auto text = read_file(path, Readers::OwnerOnly);
  if (!text) return text.error();
  return parse_pilot_file(*text, path);
}

}  // namespace hpcbatch::wire
