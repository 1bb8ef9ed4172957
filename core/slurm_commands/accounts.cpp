// sacctmgr and sshare: accounts are the cluster's.  Where its own commands are not there, nobody has
// any, which is what Slurm says without accounting.
#include "slurm_commands/commands.hpp"
#include "slurm_commands/options.hpp"

#include <algorithm>

namespace hpcbatch::slurm_commands {
namespace {

/// `format=account%20,user`, of all words and of the option.
std::vector<std::string> titles_of(const Parsed& parsed, const char* usual) {
  std::string names = parsed.value("format").value_or("");
  for (const std::string& word : parsed.words) {
    if (word.starts_with("format=")) names = word.substr(word.find('=') + 1);
  }
  std::vector<std::string> titles = split_at(names.empty() ? usual : names, ',');
  for (std::string& title : titles) title = title.substr(0, title.find('%'));
  return titles;
}

/// A table without a row.
int print_titles(const Parsed& parsed, const char* usual) {
  if (parsed.has("noheader")) return 0;
  constexpr std::size_t kWidth = 10;
  std::string text, line;
  const bool is_parsable = parsed.has("parsable") || parsed.has("parsable2");
  for (std::string title : titles_of(parsed, usual)) {
    if (is_parsable) {
      text.append(text.empty() || parsed.has("parsable") ? "" : "|").append(title);
      if (parsed.has("parsable")) text += "|";
      continue;
    }
    title.resize(std::min(title.size(), kWidth));
    text.append(kWidth - title.size(), ' ').append(title).append(" ");
    line.append(kWidth, '-').append(" ");
  }
  print_text(text + "\n" + (is_parsable ? "" : line + "\n"));
  return 0;
}

}  // namespace

int sacctmgr(const Call& call, const Session& /*session*/) {
  if (!real_command(call).empty()) become_real(call, call.words);
  const Parsed parsed = parse_options(sacctmgr_options(), call.words);
  const std::string verb = parsed.words.empty() ? "" : parsed.words.front();
  if (verb != "show" && verb != "list")
    throw CommandFailed("sacctmgr: error: hpcbatch has no accounts to " +
                        (verb.empty() ? "ask for" : verb) + "; it has show and list");
  return print_titles(parsed, "User,Account");
}

int sshare(const Call& call, const Session& /*session*/) {
  if (!real_command(call).empty()) become_real(call, call.words);
  return print_titles(parse_options(sshare_options(), call.words),
                      "Account,User,RawShares,NormShares,RawUsage,EffectvUsage,FairShare");
}

}  // namespace hpcbatch::slurm_commands
