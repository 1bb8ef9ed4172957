#include "file_scripts.hpp"

#include "checksum.hpp"
#include "remote_shell.hpp"

#include "hpcbatch/shell_quote.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace hpcbatch {
namespace {

constexpr std::size_t kWordsInOneCommand = 500;
constexpr const char* kAsidePrefix = ".hpcbatch-part-";

// `b2sum` knows `-l` since coreutils 8.26; the sum of nothing proves it.
constexpr const char* kSum =
    R"sh(nothing=0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8
case $(b2sum -l 256 </dev/null 2>/dev/null) in
$nothing*) program=b2sum ;;
*) if command -v sha256sum >/dev/null; then program=sha256sum; else program=cksum; fi ;;
esac
add_up() {
  case $program in
  b2sum) sum=$(b2sum -l 256); echo "${sum%% *}" ;;
  sha256sum) sum=$(sha256sum); echo "${sum%% *}" ;;
  *) cksum ;;
  esac
}
)sh";

// What has arrived is summed, 32 MB behind, while the rest arrives: read again from the memory of
// the kernel, for what splits a stream (tee) takes it in small pieces.  A dd that knows no
// `fullblock` gets its bytes from head, and the sum is made afterwards.
constexpr const char* kReceive = R"sh(umask 077
mkdir -p -- "$directory" || exit 1
[ ! -d "$to" ] || { printf '%s\n' "$to: Is a directory" >&2; exit 1; }
find "$directory" -maxdepth 1 -name '.hpcbatch-part-*' ! -name "$name" -mtime +0 \
  -exec rm -f {} + 2>/dev/null
there=0
[ ! -f "$aside" ] || there=$(wc -c < "$aside") || exit 1
[ "$there" -le "$size" ] || { rm -f "$aside"; there=0; }
echo $((there)) "$program" || exit 1
at=$((there / 65536)) end=$((size / 65536)) summed=0 adding=
store() {
  said=$(dd of="$aside" bs=65536 seek="$at" conv=notrunc "$@" 2>&1) ||
    { printf '%s\n' "$said" >&2; return 1; }
}
add() {
  [ -z "$adding" ] || wait "$adding"
  dd if="$aside" bs=65536 skip="$summed" count=$((at - summed)) 2>/dev/null &
  adding=$! summed=$at
}
flow() {
  while [ "$at" -lt "$end" ]; do
    count=$((end - at))
    [ "$count" -le 512 ] || count=512
    store count="$count" iflag=fullblock || return
    case $said in "$count+0 records in"*) ;; *) return ;; esac
    at=$((at + count))
    add
  done
  head -c $((size % 65536)) | store || return
  at=$((at + 1))
  add
  wait "$adding"
}
# Else the disk would be waited for at the end.
( while sleep 2; do sync -d -- "$aside" || exit; done ) >/dev/null 2>&1 </dev/null &
syncing=$!
if dd iflag=fullblock count=0 </dev/null >/dev/null 2>&1; then
  sum=$(flow | add_up)
else
  head -c $((size - at * 65536)) | store
  sum=$(add_up < "$aside")
fi
kill $syncing 2>/dev/null
[ "$(wc -c < "$aside")" -ge "$size" ] || exit 92
printf '%s\n' "$sum"
read -r verdict || exit 92
[ "$verdict" = same ] || { rm -f "$aside"; exit 91; }
chmod "$mode" "$aside" || exit 1
sync -- "$aside" 2>/dev/null || sync
mv -f "$aside" "$to" || exit 1
sync -- "$directory" 2>/dev/null || :)sh";

constexpr const char* kSend = R"sh([ ! -e "$file" ] || [ -f "$file" ] ||
  { printf '%s\n' "$file: it is no regular file" >&2; exit 1; }
size=$(wc -c < "$file") || exit 1
time=$(stat -c %Y "$file" 2>/dev/null || stat -f %m "$file") || exit 1
echo $((size)) "$time" "$program" || exit 1
read -r block || exit 1
exec 5>&1
give() {
  said=$(dd if="$file" bs=65536 skip="$block" 2>&1 >&5) || printf '%s\n' "$said" >&2
}
give & giving=$!
sum=$(add_up < "$file")
wait $giving
printf 'sum %s\n' "$sum" >&2)sh";

std::string directory_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

std::string octal(std::uint32_t mode) {
  std::string text;
  for (const unsigned shift : {9u, 6u, 3u, 0u})
    text += static_cast<char>('0' + (mode >> shift & 7));
  return text;
}

/// `command word word ...`, as often as it takes.
std::string for_all(const std::string& command, const std::vector<std::string>& words,
                    const std::string& otherwise) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i % kWordsInOneCommand == 0) {
      if (i > 0) text.append(otherwise).append("\n");
      text += command;
    }
    text += " " + words[i];
  }
  return words.empty() ? "" : text + otherwise + "\n";
}

std::string no_directory(const std::string& path) {
  return "[ ! -d " + quoted_path(path) + " ] || { printf '%s\\n' " +
         quoted_path(path + ": Is a directory") + " >&2; exit 1; }\n";
}

}  // namespace

std::string write_script(const std::vector<FileText>& files, const std::string& nonce) {
  std::set<std::string> directories;
  std::map<std::uint32_t, std::vector<std::string>> by_mode;
  std::vector<std::string> asides;
  std::string writes;
  std::string renames;
  for (const FileText& file : files) {
    const std::string directory = directory_of(file.path);
    directories.insert(quoted_path(directory));
    const std::string aside = quoted_path(directory + "/" + kAsidePrefix + nonce.substr(0, 12) +
                                          "-" + std::to_string(asides.size()));
    asides.push_back(aside);
    writes += no_directory(file.path) + print_text(file.text) + " > " + aside + " || exit 1\n";
    if (file.mode != 0600) by_mode[file.mode].push_back(aside);
    renames += "mv -f " + aside + " " + quoted_path(file.path) + " || exit 1\n";
  }
  const std::vector<std::string> parents(directories.begin(), directories.end());
  // Old programs can only sync everything.
  std::string text =
      "write_all() (\numask 077\n" + for_all("mkdir -p --", parents, " || exit 1") + writes;
  for (const auto& [mode, of_mode] : by_mode)
    text += for_all("chmod " + octal(mode), of_mode, " || exit 1");
  text += for_all("sync --", asides, " 2>/dev/null || sync") + renames +
          for_all("sync --", parents, " 2>/dev/null || :");
  return text + ")\nwrite_all && exit 0\n" + for_all("rm -f --", asides, "") + "exit 1";
}

std::string read_script(const std::string& path, std::uint64_t offset, std::uint64_t length) {
  const std::string file = quoted_path(path);
  // A pipe or a device in its place would hang.
  return "[ ! -e " + file + " ] || [ -f " + file + " ] || { printf '%s\\n' " +
         quoted_path(path + ": it is no regular file") + " >&2; exit 1; }\n" + "exec <" + file +
         " || exit 1\n" + "tail -c +" + std::to_string(offset + 1) + " | head -c " +
         std::to_string(length);
}

std::string list_script(const std::string& directory) {
  return "exec find " + quoted_path(directory + "/.") + " -mindepth 1 -maxdepth 1 -print0";
}

std::vector<std::string> read_list(const std::string& output) {
  std::vector<std::string> names;
  for (std::size_t at = 0; at < output.size();) {
    const auto end = std::min(output.find('\0', at), output.size());
    const std::string path = output.substr(at, end - at);
    names.push_back(path.substr(path.rfind('/') + 1));
    at = end + 1;
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string remove_script(const std::vector<std::string>& paths) {
  std::vector<std::string> words;
  for (std::string path : paths) {
    // With a slash at its end a link would be followed.
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    words.push_back(quoted_path(path));
  }
  // Programs leave folders that even their owner may not write to.
  return "all=0\nremove() {\nrm -rf -- \"$@\" 2>/dev/null && return\n"
         "find \"$@\" -type d -exec chmod u+rwx {} \\; 2>/dev/null\n"
         "rm -rf -- \"$@\" || all=1\n}\n" +
         for_all("remove", words, "") + "exit $all";
}

std::string receive_script(const Copy& file, std::uint64_t size, const std::string& mark) {
  const std::string directory = directory_of(file.to);
  const std::string name = kAsidePrefix + sha256_of(file.to + '\0' + mark).substr(0, 24);
  return kSum + ("to=" + quoted_path(file.to)) + "\ndirectory=" + quoted_path(directory) +
         "\nname=" + name + "\naside=" + quoted_path(directory + "/" + name) +
         "\nsize=" + std::to_string(size) + "\nmode=" + octal(file.mode) + "\n" + kReceive;
}

std::string send_script(const std::string& path) {
  return kSum + ("file=" + quoted_path(path)) + "\n" + kSend;
}

Error script_error(const std::string& what, const std::string& standard_error) {
  static constexpr std::array kOursToMend{
      "Permission denied", "Operation not permitted", "No such file",       "Not a directory",
      "Is a directory",    "Read-only file system",   "File name too long", "Too many levels",
      "no regular file",   "refusing to remove",      "File exists",        "irectory nonexistent"};
  const bool mend = std::any_of(kOursToMend.begin(), kOursToMend.end(), [&](const char* words) {
    return standard_error.find(words) != std::string::npos;
  });
  std::string said;
  for (std::size_t at = 0; at < standard_error.size();) {
    const auto end = std::min(standard_error.find('\n', at), standard_error.size());
    const std::string line = standard_error.substr(at, end - at);
    at = end + 1;
    // dd counts what it copied, on the same stream.
    if (line.empty() || line.find("records ") != std::string::npos || said.size() > 500) continue;
    said += (said.empty() ? "" : "; ") + line;
  }
  return {mend ? Error::Kind::Rejected : Error::Kind::Transient,
          what + ": " + (said.empty() ? "the far side did not say why" : said)};
}

}  // namespace hpcbatch
