#include "render.hpp"

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <string>
#include <vector>

#include "gl.hpp"
#include "json.hpp"

namespace mujoco {
namespace {

constexpr std::uint32_t kLargest = 16384;  // pixels a side
constexpr std::size_t kModels = 4;         // that a thread keeps ready

// What drawing one model takes. Made, used and destroyed with a context current.
class Scene {
 public:
  Scene(ModelPtr model, int max_geom) : model_(std::move(model)), max_geom_(max_geom) {
    lib().mjv_defaultScene(&scene_);
    lib().mjr_defaultContext(&context_);
    // Making a context loads OpenGL's functions into variables of the whole process.
    static std::mutex& loading = *new std::mutex;
    const std::lock_guard lock(loading);
    guarded([&] {
      lib().mjv_makeScene(model_.get(), &scene_, max_geom);
      lib().mjr_makeContext(model_.get(), &context_, mjFONTSCALE_150);
    });
  }
  Scene(const Scene&) = delete;
  ~Scene() {
    lib().mjr_freeContext(&context_);
    lib().mjv_freeScene(&scene_);
  }
  bool suits(const ModelPtr& model, int max_geom) const {
    return model_ == model && max_geom_ == max_geom;
  }

  void draw(const Physics& physics, const View& view, const ep_image& image) {
    const mjModel& m = physics.model();
    const mjrRect all = {0, 0, static_cast<int>(image.width), static_cast<int>(image.height)};
    mjvOption option;
    mjvPerturb perturb;
    mjvCamera camera = view.free;
    const int chosen = image.camera == 0 ? view.camera : static_cast<int>(image.camera) - 1;
    if (chosen >= 0) {
      camera.type = mjCAMERA_FIXED;
      camera.fixedcamid = chosen;
    }
    const std::size_t row = std::size_t{3} * image.width;
    pixels_.resize(row * image.height);
    lib().mjv_defaultOption(&option);
    for (const auto& [flag, on] : view.flags) option.flags[flag] = on;
    // It uses the data's stack and leaves everything else as it is.
    mjData& data = const_cast<mjData&>(physics.data());
    guarded([&] {
      const auto& mj = lib();
      if (all.width > context_.offWidth || all.height > context_.offHeight)
        mj.mjr_resizeOffscreen(std::max(all.width, context_.offWidth),
                               std::max(all.height, context_.offHeight), &context_);
      mj.mjr_setBuffer(mjFB_OFFSCREEN, &context_);
      if (physics.owns_model())
        for (int i = 0; i < m.nhfield; ++i) mj.mjr_uploadHField(&m, &context_, i);
      mj.mjv_defaultPerturb(&perturb);
      mj.mjv_updateScene(&m, &data, &option, &perturb, &camera, mjCAT_ALL, &scene_);
      mj.mjr_render(all, &scene_, &context_);
      mj.mjr_readPixels(pixels_.data(), nullptr, all, &context_);
    });
    // OpenGL's rows begin at the bottom.
    for (std::uint32_t y = 0; y < image.height; ++y)
      std::memcpy(static_cast<std::uint8_t*>(image.pixels) + y * image.row_bytes,
                  pixels_.data() + row * (image.height - 1 - y), row);
  }

 private:
  const ModelPtr model_;
  const int max_geom_;
  mjvScene scene_;
  mjrContext context_;
  std::vector<std::uint8_t> pixels_;
};

// What a thread draws with.
class Studio {
 public:
  Studio() : context_(GlContext::create()) {}
  ~Studio() {
    // At the end of the process somebody may have closed the display: then all of it is gone.
    if (context_->enter()) {
      scenes_.clear();
      context_->leave();
    } else {
      new std::list<Scene>(std::move(scenes_));  // left behind: freeing would call OpenGL
    }
  }

  void draw(const Physics& physics, const View& view, const ep_image& image) {
    if (!context_->enter())
      throw envpool::error(EP_E_FAILED, "OpenGL's context can't be used any more");
    struct Leave {
      GlContext& context;
      ~Leave() { context.leave(); }
    } leave{*context_};
    scene(physics.shared_model(), view.max_geom).draw(physics, view, image);
  }

 private:
  Scene& scene(const ModelPtr& model, int max_geom) {
    const auto found = std::ranges::find_if(
        scenes_, [&](const Scene& scene) { return scene.suits(model, max_geom); });
    if (found != scenes_.end()) {
      scenes_.splice(scenes_.begin(), scenes_, found);
    } else {
      if (scenes_.size() == kModels) scenes_.pop_back();
      scenes_.emplace_front(model, max_geom);
    }
    return scenes_.front();
  }

  std::unique_ptr<GlContext> context_;
  std::list<Scene> scenes_;  // the latest first
};

}  // namespace

mjvCamera free_camera(const mjModel& model) {
  mjvCamera camera;
  lib().mjv_defaultCamera(&camera);
  lib().mjv_defaultFreeCamera(&model, &camera);
  return camera;
}

void configure(mjvCamera& camera, const std::string& json) {
  constexpr const char* kOption = "default_camera_config";
  for_each_member(kOption, json, [&](const std::string& key, std::span<const double> values) {
    const bool is_place = key == "lookat";
    double* const one = key == "distance"    ? &camera.distance
                        : key == "azimuth"   ? &camera.azimuth
                        : key == "elevation" ? &camera.elevation
                                             : nullptr;
    const bool known =
        is_place || one != nullptr || key == "trackbodyid" || key == "type" || key == "fixedcamid";
    if (!known || values.size() != (is_place ? 3u : 1u))
      throw envpool::error(EP_E_ARGUMENT,
                           std::string(kOption) + ": \"" + key +
                               "\": it may have distance, azimuth, elevation, lookat (3 numbers), "
                               "trackbodyid, type and fixedcamid");
    if (is_place) std::ranges::copy(values, camera.lookat);
    if (one != nullptr) *one = values[0];
  });
}

std::vector<std::pair<int, bool>> visual_flags(const std::string& json) {
  std::vector<std::pair<int, bool>> flags;
  for_each_member(
      "visual_options", json, [&](const std::string& key, std::span<const double> values) {
        const bool number = key.size() - 1 < 3 && key.find_first_not_of("0123456789") == key.npos;
        const int flag = number ? std::stoi(key) : mjNVISFLAG;
        if (flag >= mjNVISFLAG || values.size() != 1)
          throw envpool::error(EP_E_ARGUMENT, "visual_options: \"" + key +
                                                  "\": its keys are numbers of mjtVisFlag, 0 to " +
                                                  std::to_string(mjNVISFLAG - 1));
        flags.emplace_back(flag, values[0] != 0);
      });
  return flags;
}

void measure(const mjModel& model, const View& view, ep_image& image) {
  if (image.width == 0) image.width = view.width;
  if (image.height == 0) image.height = view.height;
  if (image.width > kLargest || image.height > kLargest)
    throw envpool::error(EP_E_ARGUMENT, "a picture of " + std::to_string(image.width) + " x " +
                                            std::to_string(image.height) + ": at most " +
                                            std::to_string(kLargest) + " a side");
  if (image.camera > static_cast<std::uint32_t>(model.ncam))
    throw envpool::error(EP_E_ARGUMENT, "camera " + std::to_string(image.camera) +
                                            ": there are 0, the default, and 1 to " +
                                            std::to_string(model.ncam) + ", the model's");
}

void draw(const Physics& physics, const View& view, const ep_image& image) {
  static thread_local std::unique_ptr<Studio> studio;
  if (studio == nullptr) studio = std::make_unique<Studio>();
  studio->draw(physics, view, image);
}

void draw(const Physics& physics, const View& view, std::uint8_t* pixels) {
  draw(physics, view,
       ep_image{sizeof(ep_image), EP_RGB8, view.width, view.height, 0, 0,
                std::uint64_t{3} * view.width, pixels});
}

}  // namespace mujoco
