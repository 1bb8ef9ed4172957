// A line of a ledger for each process that holds cpus: who it is, where, with which cpus, from when to when. All
// lines are equally long, so each process writes its own anew as it goes on: the last time in it was seen alive.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LEDGER_LINE = 160, LEDGER_BEAT_MS = 50 };

struct ledger {
  int file;
  off_t at;
  char who[LEDGER_LINE];
  double begun;
};

static double ledger_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void ledger_say(struct ledger* ledger, char state) {
  char line[2 * LEDGER_LINE];
  const int size = snprintf(line, sizeof line, "%s %.3f %.3f %c", ledger->who, ledger->begun,
                            ledger_now(), state);
  memset(line + size, ' ', (size_t)(LEDGER_LINE - size));
  line[LEDGER_LINE - 1] = '\n';
  if (ledger->at >= 0) {
    if (pwrite(ledger->file, line, LEDGER_LINE, ledger->at) != LEDGER_LINE) abort();
    return;
  }
  // Where it came to lie among those of others is known afterwards, and writing anew needs a file that does not append.
  const char* path = getenv("LEDGER");
  const int appends = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (appends < 0 || write(appends, line, LEDGER_LINE) != LEDGER_LINE) abort();
  ledger->at = lseek(appends, 0, SEEK_CUR) - LEDGER_LINE;
  close(appends);
  ledger->file = open(path, O_WRONLY | O_CLOEXEC);
  if (ledger->file < 0) abort();
}

static const char* ledger_word(const char* name) {
  const char* value = getenv(name);
  return value && *value ? value : "-";
}

/// `pilot`: where it runs; `rank`: -1 where it is none.
static void ledger_begin(struct ledger* ledger, const char* kind, const char* pilot, int rank) {
  cpu_set_t set;
  unsigned long long mask = 0;
  sched_getaffinity(0, sizeof set, &set);
  for (int cpu = 0; cpu < 64; ++cpu) mask |= CPU_ISSET(cpu, &set) ? 1ULL << cpu : 0;
  ledger->at = -1;
  ledger->begun = ledger_now();
  snprintf(ledger->who, sizeof ledger->who, "%s %s %s %s %d %d %s %llx", kind,
           ledger_word("HPCBATCH_TASK_ID"), ledger_word("HPCBATCH_ATTEMPT"), pilot, rank,
           (int)getpid(), ledger_word("HPCBATCH_CPUS"), mask);
  ledger_say(ledger, 'r');
}

/// Sleeps, and says so.
static void ledger_work(struct ledger* ledger, double seconds) {
  const struct timespec beat = {0, LEDGER_BEAT_MS * 1000000L};
  while (ledger_now() < ledger->begun + seconds) {
    nanosleep(&beat, NULL);
    ledger_say(ledger, 'r');
  }
}
