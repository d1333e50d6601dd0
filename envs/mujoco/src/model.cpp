#include "model.hpp"

#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

namespace fs = std::filesystem;

namespace mujoco {
namespace {

struct Cache {
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<const mjModel>> models;  // by path and text
  // describe() is called before there is an env that holds the model, so the cache holds one.
  ModelPtr latest;
};
// Never destroyed: envs may outlive the library's statics.
Cache& cache() {
  static Cache& only = *new Cache;
  return only;
}

// "file: what MuJoCo says", on one line.
[[noreturn]] void refuse(const std::string& name, std::string_view what) {
  std::string text = name + ": ";
  for (const char c : what) text += c == '\n' ? ' ' : c;
  throw envpool::error(EP_E_ARGUMENT, text.substr(0, text.find_last_not_of(' ') + 1));
}

// Parses by `parse`, edits, then compiles.
template <class Parse>
ModelPtr compile(const std::string& name, const Edit& edit, Parse parse) {
  char error[1024] = "";
  mjSpec* spec = nullptr;
  mjModel* model = nullptr;
  guarded([&] {
    spec = parse(error, static_cast<int>(sizeof error));
    if (spec == nullptr) return;
    if (edit.apply) edit.apply(spec);
    model = lib().mj_compile(spec, nullptr);
  });
  const std::unique_ptr<mjSpec, decltype(lib().mj_deleteSpec)> held(spec, lib().mj_deleteSpec);
  if (spec == nullptr) refuse(name, error);
  if (model == nullptr) refuse(name, lib().mjs_getError(spec));
  return {model, [](const mjModel* m) { lib().mj_deleteModel(const_cast<mjModel*>(m)); }};
}

template <class Parse>
ModelPtr cached(const std::string& name, const std::string& key, const Edit& edit, Parse parse) {
  Cache& all = cache();
  // Held while compiling: others that want the same model wait for it anyway.
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.models, [](const auto& entry) { return entry.second.expired(); });
  ModelPtr model = all.models[key].lock();
  if (model == nullptr) all.models[key] = model = compile(name, edit, parse);
  return all.latest = model;
}

}  // namespace

ModelPtr load_file(const envpool::host& host, const fs::path& file, const Edit& edit) {
  open(host);
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || fs::is_directory(file))
    throw envpool::error(EP_E_NOT_FOUND, "can't read the model " + file.string());
  const std::string name = fs::absolute(file).string();
  return cached(name, name + '\n' + edit.name + '\n' + text.str(), edit,
                [&name](char* error, int size) {
                  return lib().mj_parseXML(name.c_str(), nullptr, error, size);
                });
}

ModelPtr load_text(const envpool::host& host, const std::string& xml) {
  open(host);
  return cached("the XML text", xml, {}, [&xml](char* error, int size) {
    return lib().mj_parseXMLString(xml.c_str(), nullptr, error, size);
  });
}

fs::path folder(const envpool::host& host, const char* asset, const char* package) {
  try {
    return host.asset(asset);
  } catch (const envpool::error&) {
    throw envpool::error(EP_E_NOT_FOUND, std::string("the models of this task come with ") +
                                             package + ", which is not installed: pip install " +
                                             package);
  }
}

int find(const mjModel& model, mjtObj type, const std::string& name) {
  const int id = lib().mj_name2id(&model, type, name.c_str());
  if (id >= 0) return id;
  std::string known;
  for (int i = 0; const char* other = lib().mj_id2name(&model, type, i); ++i)
    if (*other != 0) known += (known.empty() ? "" : ", ") + std::string(other);
  throw envpool::error(EP_E_ARGUMENT, "the model has no \"" + name + "\"; it has " + known);
}

std::string_view name_of(const mjModel& model, mjtObj type, int id) {
  const char* name = lib().mj_id2name(&model, type, id);
  return name == nullptr ? "" : name;
}

}  // namespace mujoco
