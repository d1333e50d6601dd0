/* lander.c - the plugin of an engine that owns its main loop: it only describes Lander-v0. The env
 * is the program lander_program.c, which every worker process of the pool is. */
#include "lander.h"

#include <envpool/env.h>

static ep_status EP_CALL describe(const ep_host* host, const ep_create* info, ep_spec* spec) {
  static const int64_t shape[] = {LANDER_OBS}, two = 2;
  static const char* const labels[] = {"COAST", "THRUST"};
  ep_field obs = {.size = sizeof obs,
                  .role = EP_OBS,
                  .kind = EP_BOX,
                  .dtype = EP_FLOAT32,
                  .name = "",
                  .doc = "height, speed, fuel left",
                  .shape = shape,
                  .rank = 1};
  ep_field frames = {.size = sizeof frames,
                     .role = EP_INFO,
                     .kind = EP_BOX,
                     .dtype = EP_INT64,
                     .name = "frames",
                     .doc = "frames of the engine's main loop so far",
                     .flags = EP_FIELD_VOLATILE};
  ep_field action = {.size = sizeof action,
                     .role = EP_ACTION,
                     .kind = EP_DISCRETE,
                     .dtype = EP_INT64,
                     .name = "",
                     .n = &two,
                     .bound_count = 1,
                     .labels = labels};
  ep_status status;
  (void)host;
  (void)info;
  spec->max_episode_steps = 200;
  if ((status = spec->add(spec, &obs)) != EP_OK) return status;
  if ((status = spec->add(spec, &frames)) != EP_OK) return status;
  return spec->add(spec, &action);
}

static ep_status EP_CALL create(const ep_host* host, const ep_create* info, void** env) {
  (void)info;
  (void)env;
  return ep_fail(host, EP_E_UNSUPPORTED,
                 "Lander-v0 runs in the program lander_program: name it as the plugin's guest");
}

/* Never called, since there is no env. */
static ep_status EP_CALL reset(void* env, const ep_reset* how) {
  (void)env;
  (void)how;
  return EP_E_UNSUPPORTED;
}
static ep_status EP_CALL step(void* env, const ep_input* in, const ep_result* out) {
  (void)env;
  (void)in;
  (void)out;
  return EP_E_UNSUPPORTED;
}
static ep_status EP_CALL observe(void* env, const ep_view* view) {
  (void)env;
  (void)view;
  return EP_E_UNSUPPORTED;
}
static void EP_CALL destroy(void* env) { (void)env; }

static const ep_value min_fuel = {.type = EP_T_INT, .i = 1},
                      max_fuel = {.type = EP_T_INT, .i = 1000};
static const ep_option fuel = {.size = sizeof fuel,
                               .name = "fuel",
                               .doc = "units of fuel at the start",
                               .def = {.type = EP_T_INT, .i = 40},
                               .min = &min_fuel,
                               .max = &max_fuel};
static const ep_option* const options[] = {&fuel};
static const ep_task lander = {.size = sizeof lander,
                               .sharing = EP_ONE_PER_PROCESS,
                               .id = "Lander-v0",
                               .doc = "land softly; the engine is a program of its own",
                               .options = options,
                               .option_count = 1,
                               .describe = describe,
                               .create = create,
                               .reset = reset,
                               .step = step,
                               .observe = observe,
                               .destroy = destroy};
static const ep_task* const tasks[] = {&lander};
static const ep_plugin plugin = {.size = sizeof plugin,
                                 .abi_major = EP_ABI_MAJOR,
                                 .abi_minor = EP_ABI_MINOR,
                                 .task_count = 1,
                                 .tasks = tasks,
                                 .name = "lander",
                                 .version = "1.0.0",
                                 .license = "MIT"};

EP_EXPORT const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* host) {
  (void)host;
  return &plugin;
}
