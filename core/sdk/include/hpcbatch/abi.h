/* The one symbol a plugin exports, in plain C so that any compiler reads it the same way.  Reading
 * it runs nothing of the plugin's.  Everything behind `create` is C++ and holds only when the
 * fingerprints are equal. */
#ifndef HPCBATCH_ABI_H
#define HPCBATCH_ABI_H

#include <stdint.h>

#define HPCBATCH_ABI_MAGIC 0x42435048u /* the bytes "HPCB" */
#define HPCBATCH_ABI_MAJOR 2 /* a virtual or a field of an SDK type changed: must be equal */
#define HPCBATCH_ABI_MINOR 0 /* something was appended: the plugin's must not be higher */

enum hpcbatch_plugin_kind {
  HPCBATCH_KIND_SCHEDULER = 1,
  HPCBATCH_KIND_TRANSPORT = 2,
  HPCBATCH_KIND_TOOL = 3,
  HPCBATCH_KIND_ESTIMATOR = 4
};

typedef struct hpcbatch_plugin_descriptor { /* NOLINT(readability-identifier-naming): C */
  uint32_t magic;
  uint16_t abi_major, abi_minor;
  uint32_t size; /* of this struct, as the plugin saw it */
  uint32_t kind; /* enum hpcbatch_plugin_kind */
  const char* name;
  const char* version;     /* the plugin's own, for messages */
  const char* fingerprint; /* what the layout of C++ values depends on */
  /* Makes one object from its configuration as YAML text.  Null on failure, with the reason in
   * `error` (at most `error_size` bytes, the last one 0).  Never throws.  What it returns is a
   * pointer to the interface of `kind`; the caller owns it and deletes it through the interface's
   * virtual destructor. */
  void* (*create)(const char* config_yaml, char* error, uint32_t error_size);
} hpcbatch_plugin_descriptor;

#endif
