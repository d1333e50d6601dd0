/* bad.c - a plugin with one flaw, chosen by -DFLAW=F_<name>; flaws.txt lists them with what a host
 * should say. Without FLAW it is sound: the flaws are all that differs. */
#include <envpool/env.h>
#include <stdlib.h>

/* clang-format off */
enum {
  F_none, F_no_symbol, F_plugin_null, F_plugin_size, F_abi_major, F_host_minor, F_plugin_name, F_no_tasks, F_tasks_null,
  F_task_null, F_task_size, F_sharing, F_task_flag, F_id_duplicate, F_id_bad, F_id_null, F_no_describe, F_no_create,
  F_no_reset, F_no_step, F_no_observe, F_no_destroy, F_options_null, F_option_null, F_option_size, F_option_name,
  F_option_duplicate, F_option_type, F_option_flag, F_option_range, F_option_choice, F_option_string, F_option_bounds,
  F_field_size, F_field_role, F_field_kind, F_field_dtype, F_field_layout, F_field_flag, F_field_name_null,
  F_field_name_bad, F_field_duplicate, F_field_root, F_field_nesting, F_field_rank, F_field_shape, F_field_shape_zero,
  F_field_shape_null, F_field_bounds, F_field_bound_count, F_field_discrete_n, F_field_discrete_float,
  F_field_text_dtype, F_field_ragged_scalar, F_field_image_dtype, F_field_image_rank, F_field_palette,
  F_refusal_ignored, F_agents_zero, F_describe_fails, F_create_null, F_create_fails, F_step_status
};
/* clang-format on */
#ifndef FLAW
#define FLAW F_none
#endif
#define IF(flaw, then, otherwise) (FLAW == F_##flaw ? (then) : (otherwise))

/* ---- spec --------------------------------------------------------------- */

static const int64_t TWO[] = {2}, NONE[] = {0}, NEGATIVE[] = {-2}, ZERO[] = {0},
                     IMAGE[] = {8, 8, 3};
static const int64_t NINE[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
static const float LOW[] = {-1, IF(field_bounds, 2.0f, -1.0f)}, HIGH[] = {1, 1};

/* The field that carries the flaw; the sound one is obs "state", float32[2]. */
static ep_field flawed(void) {
  ep_field f = {.size = sizeof f,
                .role = EP_OBS,
                .kind = EP_BOX,
                .dtype = EP_FLOAT32,
                .name = "state",
                .shape = TWO,
                .rank = 1,
                .low = LOW,
                .high = HIGH,
                .bound_count = 2};
  switch (FLAW) {
    case F_field_size:
      f.size = 0;
      break;
    case F_field_role:
      f.role = 9;
      break;
    case F_field_kind:
      f.kind = 99;
      break;
    case F_field_dtype:
      f.dtype = 500;
      break;
    case F_field_layout:
      f.layout = 77;
      break;
    case F_field_flag:
      f.flags = 1u << 9;
      break;
    case F_field_name_null:
      f.name = NULL;
      break;
    case F_field_name_bad:
      f.name = "a//b";
      break;
    case F_field_bound_count:
      f.bound_count = 3;
      break;
    case F_field_rank:
    case F_refusal_ignored:
      f.shape = NINE, f.rank = 9, f.bound_count = 1;
      break;
    case F_field_shape:
      f.shape = NEGATIVE;
      break;
    case F_field_shape_zero:
      f.shape = ZERO;
      break;
    case F_field_shape_null:
      f.shape = NULL;
      break;
    case F_field_discrete_n:
    case F_field_discrete_float:
      f.kind = EP_DISCRETE, f.low = f.high = NULL, f.bound_count = 1;
      f.n = FLAW == F_field_discrete_n ? NONE : TWO;
      f.dtype = FLAW == F_field_discrete_n ? EP_INT64 : EP_FLOAT32;
      break;
    case F_field_text_dtype:
      f.kind = EP_TEXT, f.low = f.high = NULL, f.bound_count = 0;
      break;
    case F_field_ragged_scalar:
      f.flags = EP_FIELD_RAGGED, f.rank = 0, f.shape = NULL, f.bound_count = 1;
      break;
    case F_field_image_dtype:
    case F_field_image_rank:
    case F_field_palette:
      f.low = f.high = NULL, f.bound_count = 0, f.shape = IMAGE;
      f.rank = FLAW == F_field_image_dtype ? 3 : 2;
      f.layout = FLAW == F_field_palette ? EP_INDEXED : EP_HWC;
      f.dtype = FLAW == F_field_image_dtype ? EP_FLOAT32 : EP_UINT8;
      break;
    default:
      break;
  }
  return f;
}

static ep_status EP_CALL describe(const ep_host* host, const ep_create* info, ep_spec* spec) {
  (void)info;
  ep_field all[3] = {flawed(),
                     {.size = sizeof(ep_field),
                      .role = EP_OBS,
                      .kind = EP_BOX,
                      .dtype = EP_FLOAT32,
                      .name = "more"},
                     {.size = sizeof(ep_field),
                      .role = EP_ACTION,
                      .kind = EP_DISCRETE,
                      .dtype = EP_INT64,
                      .name = "",
                      .n = TWO,
                      .bound_count = 1}};
  if (FLAW == F_describe_fails) return ep_fail(host, EP_E_NOT_FOUND, "bad: cannot describe");
  if (FLAW == F_agents_zero) spec->max_agents = 0;
  if (FLAW == F_field_duplicate) all[1].name = "state";
  if (FLAW == F_field_root) all[1].name = "";
  if (FLAW == F_field_nesting) all[1].name = "state/inner";
  for (int i = 0; i < 3; i++) {
    const ep_status s = spec->add(spec, &all[i]);
    if (s != EP_OK && FLAW != F_refusal_ignored) return s;
  }
  return EP_OK;
}

static const ep_value FLOAT_ONE = {.type = EP_T_FLOAT, .f = 1},
                      FLOAT_TWO = {.type = EP_T_FLOAT, .f = 2};
static const ep_value CHOICES[] = {{.type = EP_T_STRING, .s = "a"},
                                   {.type = EP_T_STRING, .s = "b"}};
static const ep_option RATE = {
    .size = IF(option_size, 0, sizeof(ep_option)),
    .flags = IF(option_flag, 1u << 9, 0),
    .name = IF(option_name, "Not a name", "rate"),
    .def = {.type = IF(option_type, 42, EP_T_FLOAT), .f = IF(option_range, 3.0, 1.5)},
    .min = IF(option_bounds, &FLOAT_TWO, &FLOAT_ONE),
    .max = IF(option_bounds, &FLOAT_ONE, &FLOAT_TWO)};
static const ep_option MODE = {
    .size = sizeof(ep_option),
    .name = IF(option_duplicate, "rate", "mode"),
    .def = {.type = EP_T_STRING, .s = IF(option_string, NULL, IF(option_choice, "c", "a"))},
    .choices = IF(option_string, NULL, CHOICES),
    .choice_count = IF(option_string, 0, 2)};
static const ep_option* const OPTIONS[] = {&RATE, IF(option_null, NULL, &MODE)};

/* ---- running ------------------------------------------------------------ */

static ep_status EP_CALL create(const ep_host* host, const ep_create* info, void** env) {
  (void)info;
  if (FLAW == F_create_fails) return ep_fail(host, EP_E_FAILED, "bad: cannot create");
  *env = FLAW == F_create_null ? NULL : malloc(1);
  return EP_OK;
}
static ep_status EP_CALL reset(void* env, const ep_reset* how) {
  (void)env, (void)how;
  return EP_OK;
}
static ep_status EP_CALL step(void* env, const ep_input* in, const ep_result* out) {
  (void)env, (void)in;
  *out->reward = 1;
  *out->terminated = *out->truncated = 0;
  return FLAW == F_step_status ? 12345 : EP_OK;
}
static ep_status EP_CALL observe(void* env, const ep_view* out) {
  (void)env;
  if (out->obs && out->obs[0]) ((float*)out->obs[0])[0] = ((float*)out->obs[0])[1] = 0;
  if (out->obs && out->obs[1]) *(float*)out->obs[1] = 0;
  return EP_OK;
}
static void EP_CALL destroy(void* env) { free(env); }

/* ---- plugin ------------------------------------------------------------- */

#define TASK(ID)                                 \
  {.size = IF(task_size, 0, sizeof(ep_task)),    \
   .sharing = IF(sharing, 7, EP_FREE),           \
   .flags = IF(task_flag, UINT64_C(1) << 20, 0), \
   .id = ID,                                     \
   .options = IF(options_null, NULL, OPTIONS),   \
   .option_count = 2,                            \
   .describe = IF(no_describe, NULL, describe),  \
   .create = IF(no_create, NULL, create),        \
   .reset = IF(no_reset, NULL, reset),           \
   .step = IF(no_step, NULL, step),              \
   .observe = IF(no_observe, NULL, observe),     \
   .destroy = IF(no_destroy, NULL, destroy)}
static const ep_task FIRST = TASK(IF(id_null, NULL, IF(id_bad, "Bad task", "Bad-v0")));
static const ep_task SECOND = TASK(IF(id_duplicate, "Bad-v0", "Worse-v0"));
static const ep_task* const TASKS[] = {&FIRST, IF(task_null, NULL, &SECOND)};
static const ep_plugin PLUGIN = {.size = IF(plugin_size, 0, sizeof(ep_plugin)),
                                 .abi_major = IF(abi_major, EP_ABI_MAJOR + 1, EP_ABI_MAJOR),
                                 .abi_minor = EP_ABI_MINOR,
                                 .host_minor = IF(host_minor, 999, 0),
                                 .task_count = IF(no_tasks, 0, 2),
                                 .tasks = IF(tasks_null, NULL, TASKS),
                                 .name = IF(plugin_name, NULL, "bad"),
                                 .version = "0"};

#if defined(FLAW_NO_SYMBOL)
const void* bad_anchor(void);
const void* bad_anchor(void) { return &PLUGIN; }
#else
const ep_plugin* EP_CALL envpool_plugin_v1(const ep_host* host) {
  if (FLAW == F_plugin_null) {
    host->explain(host, "bad: refusing to load");
    return NULL;
  }
  return &PLUGIN;
}
#endif
