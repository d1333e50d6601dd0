/* play.c - plays a plugin with random actions, without Python: for sanitizers, debuggers and
 * profilers.
 *
 *   play PLUGIN [STEPS [THREADS]]
 *
 * Each thread makes one env of every task, all with default options, and steps it; seeds differ. A
 * plugin that allows one env a process is played by one thread. The exit status is 0 if no call
 * failed. */
#include <dlfcn.h>
#include <envpool/env.h>
#include <envpool/ext/render.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FIELDS = 64, MOST_THREADS = 64 };

/* ---- the host ----------------------------------------------------------- */

static const void* EP_CALL extension(const ep_host* host, const char* id) {
  (void)host, (void)id;
  return NULL;
}
static void EP_CALL say(const ep_host* host, int32_t level, const char* text) {
  (void)host, (void)level;
  fprintf(stderr, "%s\n", text);
}
static void EP_CALL explain(const ep_host* host, const char* text) { say(host, 0, text); }
static ep_status EP_CALL asset(const ep_host* host, const char* name, char* buf, uint64_t cap,
                               uint64_t* len) {
  (void)host, (void)name, (void)buf, (void)cap, (void)len;
  return EP_E_NOT_FOUND;
}
static int32_t EP_CALL cancelled(const ep_host* host) {
  (void)host;
  return 0;
}
static const ep_host HOST = {sizeof(ep_host), EP_ABI_MAJOR, EP_ABI_MINOR, NULL,  "play",   "1",
                             extension,       say,          explain,      asset, cancelled};

/* ---- fields ------------------------------------------------------------- */

/* What has to be known of a field: where it is, and which actions it takes. */
typedef struct Field {
  ep_role role;
  ep_kind kind;
  ep_dtype dtype;
  uint64_t count; /* elements, those of all agents */
  double low, high;
  void* data;
  uint32_t* length; /* NULL: it has none */
} Field;

typedef struct Play {
  const ep_task* task;
  uint64_t seed, steps;
  uint32_t agents, field_count;
  Field field[MOST_FIELDS];
  int failed;
} Play;

static uint64_t bytes_of(ep_dtype dtype) {
  return dtype == EP_BOOL ? 1 : (uint64_t)(dtype % 100) / 8;
}

static double number(ep_dtype dtype, const void* at) {
  switch (dtype) {
    case EP_FLOAT32:
      return *(const float*)at;
    case EP_FLOAT64:
      return *(const double*)at;
    case EP_UINT8:
      return *(const uint8_t*)at;
    case EP_INT32:
      return *(const int32_t*)at;
    case EP_INT64:
      return (double)*(const int64_t*)at;
    default:
      return 0; /* integers near 0 will do for the others */
  }
}

static void put_number(ep_dtype dtype, void* at, double value) {
  const int64_t whole = (int64_t)value;
  if (dtype == EP_FLOAT32)
    *(float*)at = (float)value;
  else if (dtype == EP_FLOAT64)
    *(double*)at = value;
  else
    memcpy(at, &whole, bytes_of(dtype)); /* little-endian */
}

static ep_status EP_CALL add(ep_spec* spec, const ep_field* from) {
  Play* play = spec->ctx;
  if (play->field_count == MOST_FIELDS) return EP_E_UNSUPPORTED;
  Field* f = &play->field[play->field_count++];
  const uint32_t agents = from->flags & EP_FIELD_PER_AGENT ? spec->max_agents : 1;
  *f = (Field){.role = from->role,
               .kind = from->kind,
               .dtype = from->dtype,
               .count = agents,
               .low = -1,
               .high = 1};
  for (uint32_t i = 0; i < from->rank; i++) f->count *= (uint64_t)from->shape[i];
  if (from->kind == EP_DISCRETE) {
    f->low = from->start ? (double)from->start[0] : 0;
    f->high = f->low + (double)from->n[0] - 1;
    for (uint32_t i = 1; i < from->bound_count; i++) /* within the least of all */
      if ((double)from->n[i] - 1 < f->high - f->low) f->high = f->low + (double)from->n[i] - 1;
  } else if (from->kind == EP_MULTI_BINARY) {
    f->low = 0;
  } else if (from->low && from->high) {
    f->low = number(f->dtype, from->low);
    f->high = number(f->dtype, from->high);
  }
  f->data = calloc(f->count, bytes_of(f->dtype));
  if (from->kind == EP_TEXT || from->flags & EP_FIELD_RAGGED)
    f->length = calloc(agents, sizeof *f->length);
  return f->data ? EP_OK : EP_E_NOMEM;
}

/* ---- playing ------------------------------------------------------------ */

/* The fields of a role, in order, as the calls want them. */
static uint32_t gather(const Play* play, ep_role role, void** data, uint32_t** length) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < play->field_count; i++)
    if (play->field[i].role == role) {
      data[n] = play->field[i].data;
      length[n++] = play->field[i].length;
    }
  return n;
}

static ep_status look(const Play* play, void* env) {
  void *obs[MOST_FIELDS], *info[MOST_FIELDS], *global[MOST_FIELDS];
  uint32_t *obs_length[MOST_FIELDS], *info_length[MOST_FIELDS], *global_length[MOST_FIELDS];
  gather(play, EP_OBS, obs, obs_length);
  gather(play, EP_INFO, info, info_length);
  gather(play, EP_GLOBAL, global, global_length);
  const ep_view view = {sizeof view, play->agents, obs,         info,
                        global,      obs_length,   info_length, global_length};
  return play->task->observe(env, &view);
}

static ep_status begin(const Play* play, void* env, uint32_t has_seed) {
  ep_value options[MOST_FIELDS];
  ep_reset how = {sizeof how, has_seed, play->seed, options, 0, 0};
  for (uint32_t i = 0; i < play->task->option_count; i++)
    if (play->task->options[i]->flags & EP_OPTION_AT_RESET)
      options[how.option_count++] = play->task->options[i]->def;
  return play->task->reset(env, &how);
}

/* One step with random actions; *over is 1 if the episode ended. */
static ep_status act(const Play* play, void* env, uint64_t* random, uint8_t* over) {
  double reward[MOST_FIELDS] = {0};
  uint8_t terminated[MOST_FIELDS] = {0}, truncated[MOST_FIELDS] = {0}, alive[MOST_FIELDS];
  void* action[MOST_FIELDS];
  uint32_t* length[MOST_FIELDS];
  const int many = play->agents > 1;
  for (uint32_t i = 0; i < play->field_count; i++) {
    const Field* f = &play->field[i];
    if (f->role != EP_ACTION) continue;
    for (uint64_t k = 0; k < f->count; k++)
      put_number(f->dtype, (char*)f->data + k * bytes_of(f->dtype),
                 f->kind == EP_BOX
                     ? ep_uniform(random, f->low, f->high)
                     : f->low + (double)(int64_t)ep_uniform(random, 0, f->high - f->low + 1));
  }
  gather(play, EP_ACTION, action, length);
  memset(alive, 1, sizeof alive);
  *over = 0;
  const ep_input in = {sizeof in, play->agents, (const void* const*)action,
                       (const uint32_t* const*)length};
  const ep_result out = {sizeof out,          play->agents,      reward, terminated, truncated,
                         many ? alive : NULL, many ? over : NULL};
  const ep_status status = play->task->step(env, &in, &out);
  if (!many) *over = terminated[0] | truncated[0];
  return status;
}

static ep_status draw(const Play* play, void* env) {
  const ep_render* render = play->task->extension ? play->task->extension(EP_EXT_RENDER) : NULL;
  if (!render || !(render->formats & 1u << EP_RGB8)) return EP_OK;
  ep_image image = {.size = sizeof image, .format = EP_RGB8};
  ep_status status = render->measure(env, &image);
  if (status != EP_OK) return status;
  image.row_bytes = 3 * (uint64_t)image.width;
  image.pixels = malloc(image.row_bytes * image.height);
  status = image.pixels ? render->draw(env, &image) : EP_E_NOMEM;
  free(image.pixels);
  return status;
}

static ep_status run(Play* play) {
  ep_value options[MOST_FIELDS];
  for (uint32_t i = 0; i < play->task->option_count; i++) options[i] = play->task->options[i]->def;
  const ep_create info = {sizeof info, play->task->option_count, options, play->seed};
  ep_spec spec = {.size = sizeof spec, .max_agents = 1, .ctx = play, .add = add};
  ep_status status = play->task->describe(&HOST, &info, &spec);
  play->agents = spec.max_agents;
  void* env = NULL;
  if (status != EP_OK || (status = play->task->create(&HOST, &info, &env)) != EP_OK) return status;

  uint64_t random = play->seed, clock = 0;
  status = begin(play, env, 1);
  if (status == EP_OK) status = look(play, env);
  for (uint64_t i = 0; status == EP_OK && i < play->steps; i++) {
    uint8_t over = 0;
    status = act(play, env, &random, &over);
    if (status == EP_OK) status = look(play, env);
    if (status == EP_OK && i % 100 == 0) status = draw(play, env);
    over = over || ++clock == (uint64_t)spec.max_episode_steps;
    if (status == EP_OK && over) {
      clock = 0;
      status = begin(play, env, 0);
    }
  }
  play->task->destroy(env);
  return status;
}

static void* thread(void* arg) {
  Play* play = arg;
  play->failed = run(play) != EP_OK;
  for (uint32_t i = 0; i < play->field_count; i++) {
    free(play->field[i].data);
    free(play->field[i].length);
  }
  return NULL;
}

int main(int argc, char** argv) {
  const uint64_t steps = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000;
  const unsigned long threads = argc > 3 ? strtoul(argv[3], NULL, 10) : 4;
  if (argc < 2 || threads < 1 || threads > MOST_THREADS) {
    fprintf(stderr, "usage: play PLUGIN [STEPS [THREADS]]\n");
    return 2;
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  ep_plugin_fn entry;
  *(void**)&entry = dlsym(library, "envpool_plugin_v1");
  const ep_plugin* plugin = entry ? entry(&HOST) : NULL;
  if (!plugin) {
    fprintf(stderr, "%s is no plugin\n", argv[1]);
    return 1;
  }
  int failed = 0;
  for (uint32_t t = 0; t < plugin->task_count; t++) {
    static Play play[MOST_THREADS];
    pthread_t id[MOST_THREADS];
    const unsigned long n = plugin->tasks[t]->sharing == EP_ONE_PER_PROCESS ? 1 : threads;
    memset(play, 0, sizeof play);
    for (unsigned long i = 0; i < n; i++) {
      play[i].task = plugin->tasks[t];
      play[i].seed = i;
      play[i].steps = steps;
      if (pthread_create(&id[i], NULL, thread, &play[i])) return 1;
    }
    for (unsigned long i = 0; i < n; i++) {
      pthread_join(id[i], NULL);
      failed |= play[i].failed;
    }
    printf("%s: %lu threads, %llu steps each: %s\n", plugin->tasks[t]->id, n,
           (unsigned long long)steps, failed ? "FAILED" : "ok");
  }
  return failed;
}
