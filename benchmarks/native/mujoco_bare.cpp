// mujoco_bare.cpp - the ceiling: a loop of mj_step on one thread over envs of a model, with random
// control, and resets where the task has them.
//
//   mujoco_bare LIBRARY MODEL FRAME_SKIP LOWEST HIGHEST NOISE ENVS
//
// LIBRARY and MODEL: MuJoCo's and an MJCF file. An episode ends when the third position leaves
// LOWEST to HIGHEST, or after 1000 steps; the next begins at the model's own configuration with
// uniform noise of that scale. Reads from its input how many seconds to step, answers with the
// number of env steps, and so on until the end of the input. A reset counts as a step and takes an
// env the whole of it, as in a pool. Neither observes nor rewards anything.
//
// Not built by CMake: benchmarks/mujoco.py compiles it with the headers of the wheel that it runs.
#include <dlfcn.h>
#include <mujoco/mujoco.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

void* library = nullptr;

template <class F>
F* function(const char* name) {
  void* const found = dlsym(library, name);
  if (found == nullptr) std::exit((std::fprintf(stderr, "mujoco_bare: no %s\n", name), 1));
  return reinterpret_cast<F*>(found);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return std::fprintf(stderr, "mujoco_bare: bad arguments\n"), 2;
  library = dlopen(argv[1], RTLD_NOW);
  if (library == nullptr) return std::fprintf(stderr, "mujoco_bare: %s\n", dlerror()), 1;
  auto* const step = function<decltype(mj_step)>("mj_step");
  auto* const reset = function<decltype(mj_resetData)>("mj_resetData");
  auto* const forward = function<decltype(mj_forward)>("mj_forward");

  char error[1000];
  const mjModel* const m =
      function<decltype(mj_loadXML)>("mj_loadXML")(argv[2], nullptr, error, sizeof error);
  if (m == nullptr) return std::fprintf(stderr, "mujoco_bare: %s\n", error), 1;
  const int frame_skip = std::atoi(argv[3]);
  const double lowest = std::atof(argv[4]), highest = std::atof(argv[5]);
  const double noise = std::atof(argv[6]);

  struct Env {
    mjData* data;
    int length;
    bool over;
  };
  std::vector<Env> envs(static_cast<std::size_t>(std::atoi(argv[7])));
  for (Env& env : envs) env = {function<decltype(mj_makeData)>("mj_makeData")(m), 0, true};

  std::minstd_rand generator(1);
  const auto uniform = [&generator](double low, double high) {
    return std::uniform_real_distribution(low, high)(generator);
  };
  const auto play = [&](Env& env) {
    mjData* const d = env.data;
    if (env.over) {
      reset(m, d);
      for (int i = 0; i < m->nq; ++i) d->qpos[i] += uniform(-noise, noise);
      for (int i = 0; i < m->nv; ++i) d->qvel[i] += uniform(-noise, noise);
      forward(m, d);
      env = {d, 0, false};
      return;
    }
    for (int i = 0; i < m->nu; ++i)
      d->ctrl[i] = uniform(m->actuator_ctrlrange[2 * i], m->actuator_ctrlrange[2 * i + 1]);
    for (int i = 0; i < frame_skip; ++i) step(m, d);
    env.over = ++env.length == 1000 || d->qpos[2] < lowest || d->qpos[2] > highest;
  };

  using Clock = std::chrono::steady_clock;
  double seconds = 0;
  while (std::scanf("%lf", &seconds) == 1) {
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    unsigned long long steps = 0;
    do {
      for (Env& env : envs) play(env);
      steps += envs.size();
    } while (Clock::now() < end);
    std::printf("%llu\n", steps);
    std::fflush(stdout);
  }
  return 0;
}
