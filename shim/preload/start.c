/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared object's life in a process: the constructor, the log that is opened when NCCL is first
 * used, a fork, the end. A process that never touches NCCL must not notice us: no file, no output,
 * no thread, no signal handler.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "shim/base/glibc_floor.h"
#include "shim/base/paths.h"
#include "shim/preload/capture.h"
#include "shim/preload/comm.h"
#include "shim/preload/say.h"
#include "shim/preload/settings.h"
#include "shim/preload/shim.h"
#include "shim/preload/site.h"

#define SITE_CAP 32768u /* call sites: 2 MiB of log, 1 MiB of each GPU's memory */

struct shim shim;
void (*shim_on_log_open)(struct log_writer *log);
_Atomic int shim_was_called, shim_nccl_began;
__thread unsigned shim_inside __attribute__((tls_model("initial-exec")));

extern bool ncclshim_dlsym_off;

/* ---- the log ----------------------------------------------------------------------------------- */

enum { LOG_NOT_YET, LOG_OPENING, LOG_OPEN, LOG_NONE };
static struct log_writer writer;
static _Atomic int log_state;

static void note_command(struct log_writer *log)
{
    char text[4096];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : 0;

    if (fd >= 0)
        close(fd);
    if (n > 0)
        log_note(log, NCCLSHIM_NOTE_COMMAND, 0, 0, 0, NULL, 0, text, (size_t)n);
}

static void note_profile(struct log_writer *log)
{
    const struct profile *p = shim.profile;
    size_t name = strlen(p->name) + 1, path = strlen(p->path) + 1;
    char text[1024];

    if (name + path <= sizeof(text)) {
        memcpy(text, p->name, name);
        memcpy(text + name, p->path, path);
        log_note(log, NCCLSHIM_NOTE_PROFILE, 0, 0, p->digest, NULL, 0, text, name + path);
    }
    if (shim.bad_profile[0])
        log_warn(log, -1, "the profile was not applied: %s", shim.bad_profile);
}

static bool open_log(void)
{
    struct error e;
    char dir[512], why[640];

    if (log_dir_default(dir, sizeof(dir))) {
        say_once(SAY_NO_LOG, "no log: the path of its folder is too long");
        return false;
    }
    if (log_writer_open(&writer, dir, SITE_CAP, &e)) {
        say_once(SAY_NO_LOG, "no log: %s", error_str(&e, why, sizeof(why)));
        return false;
    }
    note_command(&writer);
    note_profile(&writer);
    settings_note(&writer);
    return true;
}

struct log_writer *shim_log(void)
{
    int state = atomic_load_explicit(&log_state, memory_order_acquire);
    bool good;

    if (state == LOG_OPEN)
        return &writer;
    if (state == LOG_NONE || !shim.log_wanted)
        return NULL;
    if (state == LOG_NOT_YET && atomic_compare_exchange_strong(&log_state, &state, LOG_OPENING)) {
        good = open_log();
        atomic_store_explicit(&log_state, good ? LOG_OPEN : LOG_NONE, memory_order_release);
        if (good && shim_on_log_open)
            shim_on_log_open(&writer);
        return good ? &writer : NULL;
    }
    while (atomic_load_explicit(&log_state, memory_order_acquire) == LOG_OPENING)
        sched_yield();
    return shim_log();
}

struct log_writer *shim_log_if_open(void)
{
    return atomic_load_explicit(&log_state, memory_order_acquire) == LOG_OPEN ? &writer : NULL;
}

static void check_version(struct log_writer *log, int version)
{
    const struct version_range *r = &shim.profile->nccl;

    if (version && (version < r->least || version > r->most))
        log_warn(log, -1, "profile %s is meant for NCCL %s, but %d.%d.%d is loaded",
                 shim.profile->name, r->text, version / 10000, version / 100 % 100, version % 100);
}

void shim_note_library(struct nccl_lib *lib)
{
    struct log_writer *log = shim_log_if_open();

    if (!log || atomic_exchange(&lib->noted, 1))
        return;
    log_note(log, NCCLSHIM_NOTE_LIBRARY, (uint32_t)lib_number(lib), 0, (uint64_t)lib_version(lib),
             NULL, 0, lib_path(lib), strlen(lib_path(lib)) + 1);
    check_version(log, lib_version(lib));
}

/* ---- fork -------------------------------------------------------------------------------------- */

/*
 * The child has the parent's mappings but is another process: it must not write into the parent's
 * log, and its CUDA contexts are dead. It opens a log of its own when it makes a communicator.
 * No lock, no allocation, no output here.
 */
static void in_child(void)
{
    if (atomic_load(&log_state) == LOG_NOT_YET)
        return;
    comm_forget();
    gpu_forget();
    site_forget();
    capture_forget();
    say_forget();
    libs_forget_notes();
    memset(&writer, 0, sizeof(writer)); /* mappings and descriptor stay: they cost nothing */
    writer.fd = -1;
    atomic_store_explicit(&log_state, LOG_NOT_YET, memory_order_release);
}

/* ---- start and end ----------------------------------------------------------------------------- */

/*
 * Were we in the process from its start, or did NCCL open us as its plugin in a process that only
 * inherited the variables? Only the former may touch the environment. A preloaded object is in the
 * global scope; dlopen(NULL) searches just that.
 */
static bool is_preloaded(void)
{
    /* Without dlopen nobody opened us, and there is nothing to set for: children are preloaded, too. */
    void *global = HAS_DLOPEN ? dlopen(NULL, RTLD_LAZY) : NULL;
    bool found = global && real_dlsym(global, "ncclshim_is_loaded") != NULL;

    if (global)
        dlclose(global);
    return found;
}

__attribute__((visibility("default"))) extern const char ncclshim_is_loaded[];
const char ncclshim_is_loaded[] = NCCLSHIM_VERSION;

static bool switched_off(const char *variable, const char *off)
{
    const char *v = getenv(variable);

    return v && !strcmp(v, off);
}

/* Once for a whole tree of processes: every shell and helper that a server starts loads us too. */
#define TOLD_VARIABLE "NCCLSHIM_TOLD"

static void tell_bad_profile(void)
{
    const char *told = getenv(TOLD_VARIABLE);

    if (told && !strcmp(told, shim.bad_profile))
        return;
    say_once(SAY_PROFILE, "%s (nothing was set)", shim.bad_profile);
    if (shim.preloaded)
        setenv(TOLD_VARIABLE, shim.bad_profile, 1);
}

/* `none`, where not even that can be made for want of memory. Never freed. */
static const struct profile nothing_set = {
    .name = (char *)"none",
    .path = (char *)"",
    .description = (char *)"",
    .nccl = {.most = INT_MAX},
    .log = {.sample = LOG_SAMPLE_DEFAULT,
            .capacity = LOG_CAPACITY_DEFAULT,
            .eager = true,
            .captured = true,
            .ops = (1u << OP_COUNT) - 1},
};

static void load_profile(void)
{
    const char *wanted = getenv("NCCLSHIM_PROFILE");
    struct profile *p = NULL;
    struct error e;

    if (profile_load(wanted, &p, &e)) {
        error_str(&e, shim.bad_profile, sizeof(shim.bad_profile));
        tell_bad_profile();
        shim.refuse = switched_off("NCCLSHIM_STRICT", "1");
        if (profile_load(NULL, &p, NULL))
            p = NULL;
    }
    shim.profile = p ? p : &nothing_set;
    shim.log_options = shim.profile->log;
}

/*
 * The loader drops LD_PRELOAD for set-uid programs; /etc/ld.so.preload it does not. Whoever starts
 * such a program must not choose files that it reads and folders that it writes.
 */
static void stay_out(void)
{
    shim.profile = &nothing_set;
    shim.log_options = nothing_set.log;
    ncclshim_dlsym_off = true;
}

__attribute__((constructor)) static void start(void)
{
    static bool started;

    /* A dlopen while the process ends can run constructors a second time: glibc has taken back
     * the mark that ours ran. */
    if (started)
        return;
    started = true;
    if (getauxval(AT_SECURE)) {
        stay_out();
        return;
    }
    shim.preloaded = is_preloaded();
    ncclshim_dlsym_off = switched_off("NCCLSHIM_DLSYM", "0");
    shim.log_wanted = shim.preloaded && !switched_off("NCCLSHIM_LOG", "off");
    load_profile();
    if (shim.preloaded)
        settings_apply(shim.profile, shim.log_wanted);
    pthread_atfork(NULL, NULL, in_child);
}

/* NCCL's plugins came with 2.23; an older one can be at work without any sign that reaches us. */
#define DOORS_SINCE 22304

/*
 * NCCL was at work in this process, and not one call came through us: opened with deep binding,
 * called through pncclX, or NCCLSHIM_DLSYM=0. An empty log would look like a server that makes no
 * calls, so say what it is.
 */
static void check_missed(void)
{
    struct nccl_lib *lib;
    struct log_writer *log;

    if (atomic_load(&shim_was_called) || !shim.log_wanted)
        return;
    if (!atomic_load(&shim_nccl_began) && !libs_any_mapped())
        return;
    lib = lib_loaded();
    if (!lib || (!atomic_load(&shim_nccl_began) && (lib_version(lib) >= DOORS_SINCE || !driver_get())))
        return;
    log = shim_log();
    if (!log)
        return;
    shim_note_library(lib);
    log_note(log, NCCLSHIM_NOTE_MISSED, (uint32_t)lib_number(lib), 0, 0, NULL, 0, lib_path(lib),
             strlen(lib_path(lib)) + 1);
}

__attribute__((destructor)) static void end(void)
{
    struct log_writer *log;

    check_missed();
    log = shim_log_if_open();
    if (!log)
        return;
    comm_tell_unused_sections(log);
    log_writer_close(log);
}
