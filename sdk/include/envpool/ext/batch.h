/* ext/batch.h - many envs in one call, for those that cost nanoseconds.
 *
 * Task extension "envpool.batch/1": ep_task.extension() returns an immortal ep_batch. For EP_FREE
 * single-agent tasks without lengths and globals. It works over ordinary handles and gives exactly
 * what step() and observe() give. */
#ifndef ENVPOOL_EXT_BATCH_H
#define ENVPOOL_EXT_BATCH_H

#include <envpool/env.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EP_EXT_BATCH "envpool.batch/1"

/* One field of many envs: row r lives at data + r * row_bytes. data NULL: not wanted. Frozen. */
typedef struct ep_column {
  void* data;
  uint64_t row_bytes;
} ep_column;

/* env[i] takes its action from row in[i] of each action column, and writes to row out[i] of every
 * other array. */
typedef struct ep_rows {
  uint32_t size;
  uint32_t count;
  void* const* env;
  const uint32_t *in, *out;
  const ep_column *action, *obs,
      *info; /* one a field, in the order of ep_spec.add() within the role */
  double* reward;
  uint8_t *terminated, *truncated;
  ep_status* status; /* per env, always written: one failing env must not fail the rest */
} ep_rows;

typedef struct ep_batch {
  uint32_t size;
  uint32_t reserved;
  /* step() and observe() of each. EP_OK, or any other status if some status[out[i]] is not EP_OK.
   * Calls on disjoint envs may run at once. [any-thread] */
  ep_status(EP_CALL* step_many)(const ep_rows* rows);
} ep_batch;

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_EXT_BATCH_H */
