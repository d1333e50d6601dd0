/* ext/agents.h - names for the agents of a multi-agent task, and groups of agents that share
 * fields.
 *
 * Task extension "envpool.agents/1": ep_task.extension() returns an immortal ep_agents. */
#ifndef ENVPOOL_EXT_AGENTS_H
#define ENVPOOL_EXT_AGENTS_H

#include <envpool/env.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EP_EXT_AGENTS "envpool.agents/1"

typedef struct ep_agents {
  uint32_t size;
  uint32_t group_count;                        /* ep_field.group is below this; at least 1 */
  const char*(EP_CALL* name)(uint32_t agent);  /* "player_0"; immortal. [any-thread] */
  const char*(EP_CALL* group)(uint32_t group); /* "team_red"; immortal. [any-thread] */
} ep_agents;

#ifdef __cplusplus
}
#endif
#endif /* ENVPOOL_EXT_AGENTS_H */
