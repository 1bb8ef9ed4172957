// ledger SECONDS: a small task of that length. ledger COMMAND...: one that runs a command, with its exit code.
// Both have a line in the file $LEDGER.
#include "ledger.h"

#include <sys/wait.h>

int main(int argc, char** argv) {
  struct ledger ledger;
  char* end = argv[1];
  const double seconds = argc == 2 ? strtod(argv[1], &end) : 0;
  int status = 0;
  ledger_begin(&ledger, "task", ledger_word("HPCBATCH_PILOT"), -1);
  if (*end == '\0') {
    ledger_work(&ledger, seconds);
  } else {
    const pid_t child = fork();
    if (child == 0) {
      execvp(argv[1], argv + 1);
      _exit(127);
    }
    while (waitpid(child, &status, WNOHANG) == 0)
      ledger_work(&ledger, ledger_now() - ledger.begun + LEDGER_BEAT_MS / 1000.0);
  }
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ledger_say(&ledger, code == 0 ? 'd' : 'f');
  return code;
}
