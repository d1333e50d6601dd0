/* ext/state.h - the whole state of an env as bytes: search, checkpoints, tests.
 *
 * Task extension "envpool.state/1": ep_task.extension() returns an immortal ep_state. */
#ifndef ENVPOOL_EXT_STATE_H
#define ENVPOOL_EXT_STATE_H

#include <envpool/env.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EP_EXT_STATE "envpool.state/1"

enum {
  EP_STATE_CLONE = 1,  /* for the same process and binary */
  EP_STATE_PERSIST = 2 /* for any machine and a later version of the plugin */
};

/* Takes bytes; may be called many times, in order. A status other than EP_OK is to be returned by
 * save(). Frozen. */
typedef struct ep_writer {
  void* ctx;
  ep_status(EP_CALL* write)(const struct ep_writer* writer, const void* data, uint64_t bytes);
} ep_writer;

typedef struct ep_state {
  uint32_t size;
  uint32_t purposes; /* bit p set: purpose p is supported */
  /* Writes all that step(), observe() and an unseeded reset() depend on, the generator too.
   * [env-exclusive] */
  ep_status(EP_CALL* save)(void* env, int32_t purpose, const ep_writer* writer);
  /* Takes such bytes into any env made with equal options. Bytes it can't use: EP_E_ARGUMENT, and
   * nothing changes. [env-exclusive] */
  ep_status(EP_CALL* load)(void* env, int32_t purpose, const void* data, uint64_t bytes);
} ep_state;

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_EXT_STATE_H */
