// plugin.cpp - finds out whether a file is a plugin that this host can use, and says why if not.
#include "plugin.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include "error.hpp"
#include "options.hpp"

namespace envpool::runtime {
namespace {

constexpr const char* kSymbol = "envpool_plugin_v1";

// The structs of ABI 1.0 end here; a plugin's may be larger, never smaller.
constexpr std::size_t kLeastPlugin = offsetof(ep_plugin, url) + sizeof(ep_plugin::url);
constexpr std::size_t kLeastTask = offsetof(ep_task, extension) + sizeof(ep_task::extension);

[[noreturn]] void refuse(const std::string& flaw) { throw Error(ErrorKind::kPlugin, flaw); }

void check_size(const std::string& what, std::size_t size, std::size_t least) {
  if (size < least)
    refuse("the struct size of " + what + " is " + std::to_string(size) + ", but ABI 1.0 needs " +
           std::to_string(least));
}

void check_text(const std::string& what, const char* text) {
  if (text && !is_utf8(text)) refuse(what + " is not UTF-8");
}

// ---- the file

struct stat status_of(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0)
    refuse(errno == ENOENT ? "there is no such file" : std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode))
    refuse(S_ISDIR(status.st_mode) ? "it is a directory, not a shared library"
                                   : "it is not a file");
  return status;
}

// dlopen says of any other file only that its header is invalid, and a file that was cut short it
// maps as if it were whole: the process dies of the first access behind its end.
void check_elf(const std::string& path, std::uint64_t bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse("it can't be read");
  ElfW(Ehdr) header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) refuse("it is not a shared library");
  constexpr unsigned char kClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (header.e_ident[EI_CLASS] != kClass || header.e_phentsize != sizeof(ElfW(Phdr))) return;
  file.seekg(static_cast<std::streamoff>(header.e_phoff));
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) part{};
    file.read(reinterpret_cast<char*>(&part), sizeof part);
    const bool whole = file && part.p_offset <= bytes && part.p_filesz <= bytes - part.p_offset;
    if (!whole) refuse("it is cut short: a part of the file is missing");
  }
}

// The path must be absolute: dlopen looks for a bare name elsewhere.
void* open_library(const std::string& path) {
  if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
  std::string reason = shown(dlerror());
  if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
  refuse("it can't be loaded: " + reason);
}

ep_plugin_fn find_entry(void* library) {
  if (void* entry = dlsym(library, kSymbol)) return reinterpret_cast<ep_plugin_fn>(entry);
  for (int major = 2; major < 10; ++major) {
    const std::string other = "envpool_plugin_v" + std::to_string(major);
    if (dlsym(library, other.c_str()))
      refuse("it is a plugin for version " + std::to_string(major) + " of the ABI (it exports " +
             other + "), but this host needs version 1 (" + kSymbol + ")");
  }
  refuse(std::string("not an envpool plugin: it does not export ") + kSymbol);
}

// ---- what the entry returned

std::string version_text(unsigned major, unsigned minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

void check_version(const ep_plugin& plugin) {
  if (!EP_HAS(ep_plugin, &plugin, host_minor)) check_size("the plugin", plugin.size, kLeastPlugin);
  const std::string host = version_text(EP_ABI_MAJOR, EP_ABI_MINOR);
  if (plugin.abi_major != EP_ABI_MAJOR)
    refuse("it was built for ABI " + version_text(plugin.abi_major, plugin.abi_minor) +
           ", another major version than this host's, " + host);
  if (plugin.host_minor > EP_ABI_MINOR)
    refuse("it needs a host of ABI " + version_text(EP_ABI_MAJOR, plugin.host_minor) +
           " or a later minor version, but this one has " + host);
  check_size("the plugin", plugin.size, kLeastPlugin);
}

// Letters, digits, "_", "-", "."; something, then -v<number>.
bool is_task_id(const char* id) {
  if (!id) return false;
  const std::string text = id;
  for (const unsigned char c : text)
    if (!(c < 128 && std::isalnum(c)) && !std::strchr("_-.", c)) return false;
  const std::size_t number = text.find_last_not_of("0123456789") + 1;
  return number < text.size() && number > 2 && text.substr(number - 2, 2) == "-v";
}

void check_functions(const ep_task& task) {
  const std::pair<const char*, bool> functions[] = {
      {"describe", task.describe}, {"create", task.create},   {"reset", task.reset},
      {"step", task.step},         {"observe", task.observe}, {"destroy", task.destroy}};
  for (const auto& [name, there] : functions)
    if (!there) refuse(std::string("its function ") + name + " is NULL");
}

void check_options(const ep_task& task) {
  if (task.option_count && !task.options) refuse("it has an option_count but no options");
  std::set<std::string> names;
  for (std::uint32_t i = 0; i < task.option_count; ++i) {
    const ep_option* option = task.options[i];
    if (!option) refuse("options[" + std::to_string(i) + "] is NULL");
    check_declaration(*option);
    if (!names.insert(option->name).second) refuse(std::string("duplicate option ") + option->name);
  }
}

void check_task(const ep_task& task) {
  check_functions(task);
  check_text("its doc", task.doc);
  if (task.sharing < EP_ONE_PER_PROCESS || task.sharing > EP_FREE)
    refuse("its sharing has the unknown value " + std::to_string(task.sharing));
  if (const std::uint64_t unknown = task.flags & 0xFFFFFFFF & ~EP_TASK_MAIN_THREAD)
    refuse("it has flags that this host does not know (" + std::to_string(unknown) + ")");
  check_options(task);
}

void check_tasks(const ep_plugin& plugin) {
  if (!plugin.task_count || !plugin.tasks) refuse("it has no tasks");
  std::set<std::string> ids;
  for (std::uint32_t i = 0; i < plugin.task_count; ++i) {
    const ep_task* task = plugin.tasks[i];
    const std::string which = "tasks[" + std::to_string(i) + "]";
    if (!task) refuse(which + " is NULL");
    check_size(which, task->size, kLeastTask);
    if (!is_task_id(task->id))
      refuse(which + " has the bad id \"" + shown(task->id) +
             "\": it may have letters, digits, \"_\", \"-\" and \".\", and must end in -v<number>");
    if (!ids.insert(task->id).second) refuse(std::string("duplicate task id ") + task->id);
    within(task->id, [&] { check_task(*task); });
  }
}

void check_plugin(const ep_plugin& plugin) {
  check_version(plugin);
  if (!plugin.name || !*plugin.name) refuse("it has no name");
  if (!plugin.version || !*plugin.version) refuse("it has no version");
  check_text("its name", plugin.name);
  check_text("its version", plugin.version);
  check_text("its license", plugin.license);
  check_text("its url", plugin.url);
  check_tasks(plugin);
}

const ep_plugin* call_entry(ep_plugin_fn entry, const Host& host) {
  take_explanation(EP_OK);  // what an earlier call left behind explains nothing of this one
  const ep_plugin* plugin = nullptr;
  try {
    plugin = entry(host.abi());
  } catch (...) {
    refuse(std::string(kSymbol) + " let an exception out");
  }
  const std::string explanation = take_explanation(EP_OK);
  if (!plugin)
    refuse(std::string(kSymbol) + " refused to load" +
           (explanation == "EP_OK: success" ? " and did not say why" : ": " + explanation));
  return plugin;
}

// ---- all that were loaded

// A file whose entry was called once has its verdict for ever: the entry is called once a process.
struct Verdict {
  Plugin* plugin = nullptr;
  std::string flaw;
};

struct Registry {
  std::mutex mutex;
  std::map<std::pair<dev_t, ino_t>, Verdict> verdicts;
};

// Never destroyed: plugins are used until the process ends.
Registry& the_registry() {
  static Registry& registry = *new Registry;
  return registry;
}

}  // namespace

Plugin::Plugin(std::string path, const ep_plugin* abi, Host& host)
    : path_(std::move(path)),
      abi_(abi),
      host_(&host),
      tasks_(abi->tasks, abi->tasks + abi->task_count) {}

Plugin& Plugin::load(const std::string& path, Assets assets) {
  Plugin* plugin = nullptr;
  within(path, [&] {
    const struct stat file = status_of(path);
    check_elf(path, static_cast<std::uint64_t>(file.st_size));
    std::lock_guard lock(the_registry().mutex);
    Verdict& verdict = the_registry().verdicts[{file.st_dev, file.st_ino}];
    if (!verdict.plugin && verdict.flaw.empty()) {
      // Not part of the verdict: what is missing here may be there at the next try.
      const std::string absolute = std::filesystem::absolute(path);
      const ep_plugin_fn entry = find_entry(open_library(absolute));
      try {
        Host& host = Host::make(std::move(assets));
        const ep_plugin* abi = call_entry(entry, host);
        check_plugin(*abi);
        verdict.plugin = new Plugin(absolute, abi, host);
      } catch (const Error& error) {
        verdict.flaw = error.what();
      }
    }
    if (!verdict.plugin) refuse(verdict.flaw);
    plugin = verdict.plugin;
  });
  return *plugin;
}

const ep_task& Plugin::task(const std::string& id) const {
  std::string ids;
  for (const ep_task* task : tasks_) {
    if (id == task->id) return *task;
    ids += (ids.empty() ? "" : ", ") + std::string(task->id);
  }
  throw Error(ErrorKind::kValue, path_ + ": there is no task \"" + id + "\"; there are: " + ids);
}

}  // namespace envpool::runtime
