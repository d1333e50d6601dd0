/* ext/placement.h - where the calling worker runs, for engines that place processes or threads of
 * their own.
 *
 * Host extension "envpool.placement/1": ep_host.extension() returns an immortal ep_placement. */
#ifndef ENVPOOL_EXT_PLACEMENT_H
#define ENVPOOL_EXT_PLACEMENT_H

#include <envpool/env.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EP_EXT_PLACEMENT "envpool.placement/1"

typedef struct ep_placement {
  uint32_t size;
  uint32_t reserved;
  /* Index of the calling worker, -1 on a thread that is none of the pool's. Writes up to cap
   * numbers of the CPUs that the calling thread may use, and how many there are in all to *n.
   * [any-thread] */
  int32_t(EP_CALL* worker)(const ep_host* host, int32_t* cpus, uint32_t cap, uint32_t* n);
} ep_placement;

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_EXT_PLACEMENT_H */
