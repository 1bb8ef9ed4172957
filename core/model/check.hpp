// What is done when we ourselves are wrong: say where, and stop before the mistake spreads.
#pragma once

#include <cstdio>
#include <cstdlib>

#define HPCBATCH_CHECK(condition)                                                              \
  do {                                                                                         \
    if (!(condition)) {                                                                        \
      std::fprintf(stderr, "hpcbatch: internal error: %s does not hold (%s:%d)\n", #condition, \
                   __FILE__, __LINE__);                                                        \
      std::abort();                                                                            \
    }                                                                                          \
  } while (false)
