/* test_layout.c - pins the layout of every struct, and the value of every constant, that crosses
 * the ABI (64-bit). A failure here means: this is no longer envpool_plugin_v1. Appending members
 * adds lines and changes SIZE of a struct that grows; the lines that are there never change.
 * Compiles as C and as C++; run, it checks the ids of extensions. */
#include <envpool/env.h>
#include <envpool/ext/agents.h>
#include <envpool/ext/batch.h>
#include <envpool/ext/placement.h>
#include <envpool/ext/render.h>
#include <envpool/ext/state.h>
#include <string.h>

#ifdef __cplusplus
#define CHECK(what, text) static_assert(what, text)
#else
#define CHECK(what, text) _Static_assert(what, text)
#endif
#define SIZE(T, bytes) CHECK(sizeof(T) == (bytes), "size of " #T)
#define AT(T, member, offset) CHECK(offsetof(T, member) == (offset), "offset of " #T "." #member)
#define IS(constant, value) CHECK((constant) == (value), "value of " #constant)

CHECK(sizeof(void*) == 8, "the pinned layout is that of 64-bit machines");

/* ---- env.h ------------------------------------------------------------- */

SIZE(ep_field, 136);
AT(ep_field, size, 0);
AT(ep_field, role, 4);
AT(ep_field, kind, 8);
AT(ep_field, dtype, 12);
AT(ep_field, name, 16);
AT(ep_field, doc, 24);
AT(ep_field, unit, 32);
AT(ep_field, shape, 40);
AT(ep_field, low, 48);
AT(ep_field, high, 56);
AT(ep_field, n, 64);
AT(ep_field, start, 72);
AT(ep_field, rank, 80);
AT(ep_field, bound_count, 84);
AT(ep_field, flags, 88);
AT(ep_field, group, 92);
AT(ep_field, layout, 96);
AT(ep_field, reserved, 100);
AT(ep_field, meaning, 104);
AT(ep_field, labels, 112);
AT(ep_field, palette, 120);
AT(ep_field, gray, 128);

SIZE(ep_value, 48);
AT(ep_value, type, 0);
AT(ep_value, dtype, 4);
AT(ep_value, i, 8);
AT(ep_value, f, 16);
AT(ep_value, s, 24);
AT(ep_value, data, 32);
AT(ep_value, count, 40);

SIZE(ep_option, 112);
AT(ep_option, size, 0);
AT(ep_option, flags, 4);
AT(ep_option, name, 8);
AT(ep_option, doc, 16);
AT(ep_option, unit, 24);
AT(ep_option, def, 32);
AT(ep_option, min, 80);
AT(ep_option, max, 88);
AT(ep_option, choices, 96);
AT(ep_option, choice_count, 104);
AT(ep_option, reserved, 108);

SIZE(ep_spec, 48);
AT(ep_spec, size, 0);
AT(ep_spec, max_agents, 4);
AT(ep_spec, max_episode_steps, 8);
AT(ep_spec, reward_threshold, 16);
AT(ep_spec, fps, 24);
AT(ep_spec, ctx, 32);
AT(ep_spec, add, 40);

SIZE(ep_host, 72);
AT(ep_host, size, 0);
AT(ep_host, abi_major, 4);
AT(ep_host, abi_minor, 6);
AT(ep_host, ctx, 8);
AT(ep_host, name, 16);
AT(ep_host, version, 24);
AT(ep_host, extension, 32);
AT(ep_host, log, 40);
AT(ep_host, explain, 48);
AT(ep_host, asset, 56);
AT(ep_host, cancelled, 64);

SIZE(ep_input, 24);
AT(ep_input, size, 0);
AT(ep_input, agents, 4);
AT(ep_input, action, 8);
AT(ep_input, action_length, 16);

SIZE(ep_result, 48);
AT(ep_result, size, 0);
AT(ep_result, agents, 4);
AT(ep_result, reward, 8);
AT(ep_result, terminated, 16);
AT(ep_result, truncated, 24);
AT(ep_result, alive, 32);
AT(ep_result, episode_over, 40);

SIZE(ep_view, 56);
AT(ep_view, size, 0);
AT(ep_view, agents, 4);
AT(ep_view, obs, 8);
AT(ep_view, info, 16);
AT(ep_view, global, 24);
AT(ep_view, obs_length, 32);
AT(ep_view, info_length, 40);
AT(ep_view, global_length, 48);

SIZE(ep_reset, 32);
AT(ep_reset, size, 0);
AT(ep_reset, has_seed, 4);
AT(ep_reset, seed, 8);
AT(ep_reset, options, 16);
AT(ep_reset, option_count, 24);
AT(ep_reset, reserved, 28);

SIZE(ep_create, 24);
AT(ep_create, size, 0);
AT(ep_create, option_count, 4);
AT(ep_create, options, 8);
AT(ep_create, env_id, 16);

SIZE(ep_task, 104);
AT(ep_task, size, 0);
AT(ep_task, sharing, 4);
AT(ep_task, flags, 8);
AT(ep_task, id, 16);
AT(ep_task, doc, 24);
AT(ep_task, options, 32);
AT(ep_task, option_count, 40);
AT(ep_task, reserved, 44);
AT(ep_task, describe, 48);
AT(ep_task, create, 56);
AT(ep_task, reset, 64);
AT(ep_task, step, 72);
AT(ep_task, observe, 80);
AT(ep_task, destroy, 88);
AT(ep_task, extension, 96);

SIZE(ep_plugin, 56);
AT(ep_plugin, size, 0);
AT(ep_plugin, abi_major, 4);
AT(ep_plugin, abi_minor, 6);
AT(ep_plugin, host_minor, 8);
AT(ep_plugin, reserved, 10);
AT(ep_plugin, task_count, 12);
AT(ep_plugin, tasks, 16);
AT(ep_plugin, name, 24);
AT(ep_plugin, version, 32);
AT(ep_plugin, license, 40);
AT(ep_plugin, url, 48);

/* ---- ext/agents.h ------------------------------------------------------ */

SIZE(ep_agents, 24);
AT(ep_agents, size, 0);
AT(ep_agents, group_count, 4);
AT(ep_agents, name, 8);
AT(ep_agents, group, 16);

/* ---- ext/batch.h ------------------------------------------------------- */

SIZE(ep_column, 16);
AT(ep_column, data, 0);
AT(ep_column, row_bytes, 8);

SIZE(ep_rows, 88);
AT(ep_rows, size, 0);
AT(ep_rows, count, 4);
AT(ep_rows, env, 8);
AT(ep_rows, in, 16);
AT(ep_rows, out, 24);
AT(ep_rows, action, 32);
AT(ep_rows, obs, 40);
AT(ep_rows, info, 48);
AT(ep_rows, reward, 56);
AT(ep_rows, terminated, 64);
AT(ep_rows, truncated, 72);
AT(ep_rows, status, 80);

SIZE(ep_batch, 16);
AT(ep_batch, size, 0);
AT(ep_batch, reserved, 4);
AT(ep_batch, step_many, 8);

/* ---- ext/placement.h --------------------------------------------------- */

SIZE(ep_placement, 16);
AT(ep_placement, size, 0);
AT(ep_placement, reserved, 4);
AT(ep_placement, worker, 8);

/* ---- ext/render.h ------------------------------------------------------ */

SIZE(ep_image, 40);
AT(ep_image, size, 0);
AT(ep_image, format, 4);
AT(ep_image, width, 8);
AT(ep_image, height, 12);
AT(ep_image, camera, 16);
AT(ep_image, reserved, 20);
AT(ep_image, row_bytes, 24);
AT(ep_image, pixels, 32);

SIZE(ep_render, 24);
AT(ep_render, size, 0);
AT(ep_render, formats, 4);
AT(ep_render, measure, 8);
AT(ep_render, draw, 16);

/* ---- ext/state.h ------------------------------------------------------- */

SIZE(ep_writer, 16);
AT(ep_writer, ctx, 0);
AT(ep_writer, write, 8);

SIZE(ep_state, 24);
AT(ep_state, size, 0);
AT(ep_state, purposes, 4);
AT(ep_state, save, 8);
AT(ep_state, load, 16);

/* ---- constants ---------------------------------------------------------- */

IS(EP_OK, 0);
IS(EP_E_FAILED, -1);
IS(EP_E_ARGUMENT, -2);
IS(EP_E_UNSUPPORTED, -3);
IS(EP_E_STATE, -4);
IS(EP_E_NOMEM, -5);
IS(EP_E_NOT_FOUND, -6);
IS(EP_E_CANCELLED, -7);
IS(EP_E_BROKEN, -8);
IS(EP_BOOL, 108);
IS(EP_UINT8, 208);
IS(EP_UINT16, 216);
IS(EP_UINT32, 232);
IS(EP_UINT64, 264);
IS(EP_INT8, 308);
IS(EP_INT16, 316);
IS(EP_INT32, 332);
IS(EP_INT64, 364);
IS(EP_FLOAT16, 416);
IS(EP_FLOAT32, 432);
IS(EP_FLOAT64, 464);
IS(EP_OBS, 1);
IS(EP_ACTION, 2);
IS(EP_INFO, 3);
IS(EP_GLOBAL, 4);
IS(EP_PLAIN, 0);
IS(EP_HW, 1);
IS(EP_HWC, 2);
IS(EP_CHW, 3);
IS(EP_INDEXED, 4);
IS(EP_BOX, 1);
IS(EP_DISCRETE, 2);
IS(EP_MULTI_BINARY, 3);
IS(EP_TEXT, 4);
IS(EP_FIELD_PER_AGENT, 1);
IS(EP_FIELD_RAGGED, 2);
IS(EP_FIELD_VOLATILE, 65536);
IS(EP_T_BOOL, 1);
IS(EP_T_INT, 2);
IS(EP_T_FLOAT, 3);
IS(EP_T_STRING, 4);
IS(EP_T_PATH, 5);
IS(EP_T_ARRAY, 6);
IS(EP_T_JSON, 7);
IS(EP_OPTION_REQUIRED, 1);
IS(EP_OPTION_AT_RESET, 2);
IS(EP_OPTION_SHAPES_SPEC, 4);
IS(EP_LOG_DEBUG, 10);
IS(EP_LOG_INFO, 20);
IS(EP_LOG_WARN, 30);
IS(EP_LOG_ERROR, 40);
IS(EP_ONE_PER_PROCESS, 0);
IS(EP_THREAD_BOUND, 1);
IS(EP_FREE, 2);
IS(EP_TASK_MAIN_THREAD, UINT64_C(1) << 0);
IS(EP_TASK_OWN_THREADS, UINT64_C(1) << 32);
IS(EP_TASK_NONDETERMINISTIC, UINT64_C(1) << 33);
IS(EP_TASK_MAY_BLOCK, UINT64_C(1) << 34);
IS(EP_TASK_STICKY, UINT64_C(1) << 35);
IS(EP_ABI_MAJOR, 1);
IS(EP_ABI_MINOR, 0);
IS(EP_RGB8, 1);
IS(EP_RGBA8, 2);
IS(EP_DEPTH_F32, 3);
IS(EP_ANSI, 4);
IS(EP_STATE_CLONE, 1);
IS(EP_STATE_PERSIST, 2);

/* 0 if the ids of the extensions are what they were. */
int main(void) {
  const int same = strcmp(EP_EXT_AGENTS, "envpool.agents/1") == 0 &&
                   strcmp(EP_EXT_BATCH, "envpool.batch/1") == 0 &&
                   strcmp(EP_EXT_PLACEMENT, "envpool.placement/1") == 0 &&
                   strcmp(EP_EXT_RENDER, "envpool.render/1") == 0 &&
                   strcmp(EP_EXT_STATE, "envpool.state/1") == 0;
  return same ? 0 : 1;
}
