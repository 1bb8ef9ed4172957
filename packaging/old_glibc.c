/* What our objects and libstdc++ ask of glibc that glibc 2.28 (2018; RHEL 8) has not: linked into what packages hold, and seen
 * by nothing outside the file that it is in.  Where the machine's glibc is newer, its own functions do the work.
 *
 * Debian's headers are newer than that glibc.  Layouts and numbers that programs see have not changed between the two, only
 * functions were added (glibc's NEWS for 2.29 to 2.36): the linker names each that is missing here.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define OURS __attribute__((visibility("hidden")))

typedef int (*find_object)(void*, struct dl_find_object*);
typedef int (*cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const struct timespec*);
typedef int (*mutex_clocklock)(pthread_mutex_t*, clockid_t, const struct timespec*);

static find_object newer_find_object;
static cond_clockwait newer_cond_clockwait;
static mutex_clocklock newer_mutex_clocklock;

/* Looked up before main(): a look-up may take locks, which whoever throws or waits may hold. */
__attribute__((constructor(101))) static void look_for_newer(void) {
  newer_find_object = (find_object)dlsym(RTLD_DEFAULT, "_dl_find_object");
  newer_cond_clockwait = (cond_clockwait)dlsym(RTLD_DEFAULT, "pthread_cond_clockwait");
  newer_mutex_clocklock = (mutex_clocklock)dlsym(RTLD_DEFAULT, "pthread_mutex_clocklock");
}

/* libstdc++ counts references without atomics while this says that no other thread was ever started. */
OURS char __libc_single_threaded = 0;

struct search {
  uintptr_t address;
  struct dl_find_object* found;
};

static int holds(struct dl_phdr_info* object, size_t size, void* data) {
  (void)size;
  struct search* search = data;
  uintptr_t start = 0, end = 0;
  void* frames = NULL;
  int inside = 0;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)* part = &object->dlpi_phdr[i];
    const uintptr_t at = object->dlpi_addr + part->p_vaddr;
    if (part->p_type == PT_GNU_EH_FRAME) frames = (void*)at;
    if (part->p_type != PT_LOAD) continue;
    if (start == 0 || at < start) start = at;
    if (at + part->p_memsz > end) end = at + part->p_memsz;
    if (search->address >= at && search->address < at + part->p_memsz) inside = 1;
  }
  if (!inside || frames == NULL) return 0;
  search->found->dlfo_flags = 0;
  search->found->dlfo_map_start = (void*)start;
  search->found->dlfo_map_end = (void*)end;
  search->found->dlfo_link_map = NULL; /* no unwinder reads it */
  search->found->dlfo_eh_frame = frames;
  return 1;
}

/* Since 2.35; libgcc asks it alone where a frame's table is. */
OURS int _dl_find_object(void* address, struct dl_find_object* found) {
  if (newer_find_object != NULL) return newer_find_object(address, found);
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(holds, &search) == 1 ? 0 : -1;
}

/* The same moment on the clock that the older functions wait by; set back meanwhile, a wait takes longer by as much. */
static struct timespec on_the_wall(clockid_t clock, const struct timespec* moment) {
  if (clock == CLOCK_REALTIME) return *moment;
  struct timespec there, here;
  clock_gettime(clock, &there);
  clock_gettime(CLOCK_REALTIME, &here);
  int64_t nanoseconds = (int64_t)here.tv_nsec + moment->tv_nsec - there.tv_nsec;
  struct timespec wall = {here.tv_sec + moment->tv_sec - there.tv_sec, 0};
  while (nanoseconds < 0) --wall.tv_sec, nanoseconds += 1000000000;
  while (nanoseconds >= 1000000000) ++wall.tv_sec, nanoseconds -= 1000000000;
  wall.tv_nsec = (long)nanoseconds;
  return wall;
}

/* Since 2.30. */
OURS int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  if (newer_cond_clockwait != NULL) return newer_cond_clockwait(condition, mutex, clock, until);
  const struct timespec wall = on_the_wall(clock, until);
  return pthread_cond_timedwait(condition, mutex, &wall);
}

/* Since 2.30. */
OURS int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const struct timespec* until) {
  if (newer_mutex_clocklock != NULL) return newer_mutex_clocklock(mutex, clock, until);
  const struct timespec wall = on_the_wall(clock, until);
  return pthread_mutex_timedlock(mutex, &wall);
}

/* Since 2.30. */
OURS pid_t gettid(void) {
  return (pid_t)syscall(SYS_gettid);
}

/* Since 2.36. */
OURS uint32_t arc4random(void) {
  uint32_t number;
  size_t had = 0;
  while (had < sizeof number) {
    const ssize_t got = getrandom((char*)&number + had, sizeof number - had, 0);
    if (got < 0 && errno != EINTR) abort(); /* as glibc does: there is no answer that is not random */
    if (got > 0) had += (size_t)got;
  }
  return number;
}

/* Since 2.32. */
OURS const char* sigabbrev_np(int signal) {
#define NAMED(name) case SIG##name: return #name;
  switch (signal) {
    NAMED(HUP) NAMED(INT) NAMED(QUIT) NAMED(ILL) NAMED(TRAP) NAMED(ABRT) NAMED(BUS) NAMED(FPE) NAMED(KILL) NAMED(USR1) NAMED(SEGV)
    NAMED(USR2) NAMED(PIPE) NAMED(ALRM) NAMED(TERM) NAMED(STKFLT) NAMED(CHLD) NAMED(CONT) NAMED(STOP) NAMED(TSTP) NAMED(TTIN)
    NAMED(TTOU) NAMED(URG) NAMED(XCPU) NAMED(XFSZ) NAMED(VTALRM) NAMED(PROF) NAMED(WINCH) NAMED(POLL) NAMED(PWR) NAMED(SYS)
  }
#undef NAMED
  return NULL;
}
